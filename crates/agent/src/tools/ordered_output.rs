//! Orders the updates of concurrent tool calls: all updates of one call come before those of the
//! next. No I/O.
//!
//! **Invariant:** updates of a call are emitted only after all earlier calls have finished. Until
//! then they are buffered up to a limit; beyond it progress messages are dropped, those of the last
//! calls first, but results never. No update follows the result of a call.

use crate::tools::tool::ToolResult;

/// Maximum size of everything that is buffered, in bytes, unless the results alone are larger.
const MAX_BUFFER_BYTES: usize = 1024 * 1024;

/// An update about one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolUpdate {
    /// The updates of this call begin.
    Started,
    /// A progress message.
    Progress(String),
    /// The call has ended; the last update of a call.
    Finished(ToolResult),
}

/// Buffers of the calls of one batch.
pub struct OrderedOutput {
    buffers: Vec<CallBuffer>,
    current: usize,
    n_bytes: usize,
}

#[derive(Default)]
struct CallBuffer {
    progress: Vec<String>,
    result: Option<ToolResult>,
    is_closed: bool,
}

impl OrderedOutput {
    /// Creates the buffers for `n_calls` calls and returns the updates that are due: the first call
    /// starts immediately.
    pub fn new(n_calls: usize) -> (Self, Vec<(usize, ToolUpdate)>) {
        let output = Self {
            buffers: (0..n_calls).map(|_| CallBuffer::default()).collect(),
            current: 0,
            n_bytes: 0,
        };
        let first = (n_calls > 0).then_some((0, ToolUpdate::Started));
        (output, first.into_iter().collect())
    }

    /// Adds a progress message of a call and returns the updates that are now due.
    pub fn push_progress(&mut self, at: usize, message: &str) -> Vec<(usize, ToolUpdate)> {
        let Some(slot) = self.buffers.get_mut(at).filter(|it| !it.is_closed) else {
            return Vec::new();
        };
        if at == self.current {
            return vec![(at, ToolUpdate::Progress(message.to_owned()))];
        }
        if self.n_bytes + message.len() <= MAX_BUFFER_BYTES {
            self.n_bytes += message.len();
            slot.progress.push(message.to_owned());
        }
        Vec::new()
    }

    /// Drops progress messages until the rest is within the limit.
    fn drop_progress(&mut self) {
        for buffer in self.buffers.iter_mut().rev() {
            while self.n_bytes > MAX_BUFFER_BYTES
                && let Some(message) = buffer.progress.pop()
            {
                self.n_bytes -= message.len();
            }
        }
    }

    /// Sets the result of a call and returns the updates that are now due.
    pub fn finish(&mut self, at: usize, result: ToolResult) -> Vec<(usize, ToolUpdate)> {
        let Some(slot) = self.buffers.get_mut(at).filter(|it| !it.is_closed) else {
            return Vec::new();
        };
        slot.is_closed = true;
        self.n_bytes += n_bytes(&result);
        slot.result = Some(result);
        // The result of the current call is returned at once, so it needs no room in the buffer.
        if at != self.current {
            self.drop_progress();
        }
        let mut updates = Vec::new();
        while let Some(slot) = self.buffers.get_mut(self.current) {
            for message in std::mem::take(&mut slot.progress) {
                self.n_bytes -= message.len();
                updates.push((self.current, ToolUpdate::Progress(message)));
            }
            let Some(end) = slot.result.take() else { break };
            self.n_bytes -= n_bytes(&end);
            updates.push((self.current, ToolUpdate::Finished(end)));
            self.current += 1;
            if self.current < self.buffers.len() {
                updates.push((self.current, ToolUpdate::Started));
            }
        }
        updates
    }
}

fn n_bytes(result: &ToolResult) -> usize {
    match result {
        Ok(text) | Err(text) => text.len(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq};
    use proptest::proptest;

    use super::{MAX_BUFFER_BYTES, OrderedOutput, ToolUpdate};

    fn finished(text: &str) -> ToolUpdate {
        ToolUpdate::Finished(Ok(text.to_owned()))
    }

    #[test]
    fn an_early_result_waits_for_those_before_it() {
        let (mut output, first) = OrderedOutput::new(2);

        assert_eq!(first, [(0, ToolUpdate::Started)]);
        assert_eq!(output.push_progress(1, "half"), []);
        assert_eq!(output.finish(1, Ok("B".to_owned())), []);
        assert_eq!(
            output.push_progress(0, "soon"),
            [(0, ToolUpdate::Progress("soon".to_owned()))]
        );
        assert_eq!(
            output.finish(0, Ok("A".to_owned())),
            [
                (0, finished("A")),
                (1, ToolUpdate::Started),
                (1, ToolUpdate::Progress("half".to_owned())),
                (1, finished("B")),
            ]
        );
    }

    #[test]
    fn no_update_follows_the_result() {
        let (mut output, _) = OrderedOutput::new(1);
        output.finish(0, Ok(String::new()));

        assert_eq!(output.push_progress(0, "late"), []);
        assert_eq!(output.finish(0, Ok("again".to_owned())), []);
        assert_eq!(output.push_progress(7, "nobody"), []);
    }

    #[test]
    fn progress_may_be_dropped_but_never_the_result() {
        let (mut output, _) = OrderedOutput::new(2);
        output.push_progress(1, &"x".repeat(MAX_BUFFER_BYTES));
        output.push_progress(1, "too much");
        output.finish(1, Ok("B".to_owned()));

        let updates = output.finish(0, Ok("A".to_owned()));

        assert_eq!(
            updates,
            [
                (0, finished("A")),
                (1, ToolUpdate::Started),
                (1, finished("B")),
            ]
        );
    }

    #[test]
    fn a_buffered_result_replaces_the_progress_of_the_last_calls() {
        let (mut output, _) = OrderedOutput::new(3);
        let half = "x".repeat(MAX_BUFFER_BYTES / 2);
        output.push_progress(1, &half);
        output.push_progress(2, &half);
        output.finish(2, Ok(half.clone()));

        let mut updates = output.finish(0, Ok("A".to_owned()));
        updates.extend(output.finish(1, Ok("B".to_owned())));

        let progress = |at: usize| (at, ToolUpdate::Progress(half.clone()));
        assert!(updates.contains(&progress(1)) && !updates.contains(&progress(2)));
        assert_eq!(updates.last(), Some(&(2, finished(&half))));
        assert_eq!(output.n_bytes, 0);
    }

    proptest! {
        #[test]
        fn the_buffer_is_within_its_limit_and_empty_at_the_end(steps in proptest::collection::vec((0_usize..4, any::<bool>(), 1_usize..=4), 0..12)) {
            let mut output = OrderedOutput::new(4).0;
            for (at, is_end, quarters) in steps {
                let text = "x".repeat(quarters * MAX_BUFFER_BYTES / 4);
                match is_end {
                    true => output.finish(at, Ok(text)),
                    false => output.push_progress(at, &text),
                };

                let results = output.buffers.iter().filter_map(|it| it.result.as_ref());
                let n_bytes: usize = results.map(super::n_bytes).sum();
                prop_assert!(output.n_bytes <= MAX_BUFFER_BYTES.max(n_bytes));
            }
            for at in 0..4 {
                output.finish(at, Ok(String::new()));
            }
            prop_assert_eq!(output.n_bytes, 0);
        }

        #[test]
        fn updates_of_different_calls_never_interleave(steps in proptest::collection::vec((0_usize..4, any::<bool>()), 0..40)) {
            let (mut output, mut updates) = OrderedOutput::new(4);
            for (at, is_end) in steps {
                updates.extend(match is_end {
                    true => output.finish(at, Ok(String::new())),
                    false => output.push_progress(at, "m"),
                });
            }
            for at in 0..4 {
                updates.extend(output.finish(at, Ok(String::new())));
            }

            let slots: Vec<usize> = updates.iter().map(|it| it.0).collect();
            prop_assert_eq!(slots.is_sorted(), true);
            for at in 0..4 {
                let own: Vec<&ToolUpdate> = updates.iter().filter(|it| it.0 == at).map(|it| &it.1).collect();
                prop_assert_eq!(own[0], &ToolUpdate::Started);
                let n_ends = own.iter().filter(|it| matches!(it, ToolUpdate::Finished(_))).count();
                prop_assert_eq!((n_ends, matches!(own[own.len() - 1], ToolUpdate::Finished(_))), (1, true));
            }
        }
    }
}
