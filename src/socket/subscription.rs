//! What of a conversation one socket gets to see, from its snapshot on without a gap.
//!
//! The order of a subscription is: listen, and hold back what is heard; read the snapshot; mark
//! the place in the outbox and read the text so far of the run that is running in the snapshot;
//! when the mark comes out, answer; let through what was held back and whatever follows. What is
//! let through is decided here, from the snapshot and the envelopes alone.
//!
//! The text of another run than the snapshot's is of no use: that run began after the snapshot,
//! so all of it is heard. The snapshot is read in one transaction: all of it is as of its `rev`.
//!
//! **Invariant:** whatever the snapshot met half-way, the client ends with the timeline and the
//! text of the stream that it would have if it had been there from the beginning.

use crate::ids::ConversationId;
use crate::realtime::event::Cargo;
use crate::realtime::event::Delta;
use crate::realtime::event::Envelope;
use crate::realtime::event::Mark;
use crate::realtime::event::utf16_len;
use bytestring::ByteString;
use std::sync::Arc;
use uuid::Uuid;

/// Where a subscription begins: what its answer told the client.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start {
    /// Of the newest durable event that is in the snapshot.
    pub rev: i64,
    /// The run that was running in the snapshot, and the UTF-16 units of its text at the mark; 0 if
    /// there was no text of this run.
    pub running: Option<(Uuid, usize)>,
}

/// What becomes of an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The client knows it already, or nothing of it.
    Drop,
    /// The client gets it as it is.
    Forward,
    /// The client has the first part of this piece; it gets this in its place.
    Rest(ByteString),
    /// Text is missing before this piece, which reaches up to `end`: see [`Filter::mend`].
    Mend { run: Uuid, end: usize },
    /// A durable event is missing. Nothing more passes: the client subscribes again.
    Resync,
}

/// Decides for one subscription.
#[derive(Debug)]
pub struct Filter {
    /// Of the newest durable event that the client has.
    rev: i64,
    /// Runs that the client sees writing; each ends with its `typing_stop`.
    open: Vec<Writer>,
    /// A durable event was missing.
    lost: bool,
}

#[derive(Debug)]
struct Writer {
    run: Uuid,
    /// UTF-16 units of the text that the client has; `None`: that text is not known here, and no
    /// piece passes before it begins anew.
    length: Option<usize>,
}

impl Filter {
    /// Begins behind a snapshot, and takes out of `held`, which was heard before the mark, what the
    /// client knows of streams by its answer. What is left is to be judged like all that follows.
    pub fn begin(start: Start, held: &mut Vec<Arc<Envelope>>) -> Self {
        match start.running {
            Some((run, _)) => drop_up_to_the_text_of(run, held),
            None => drop_begun_before(start.rev, held),
        }
        let open = start.running.map(|(run, length)| Writer {
            run,
            length: Some(length),
        });
        Self {
            rev: start.rev,
            open: open.into_iter().collect(),
            lost: false,
        }
    }

    /// Judges the next envelope of the conversation.
    pub fn judge(&mut self, cargo: &Cargo) -> Verdict {
        if self.lost {
            return Verdict::Drop;
        }
        match cargo {
            Cargo::Frame { rev: None, .. } | Cargo::Aside { .. } => Verdict::Forward,
            Cargo::Frame { rev: Some(rev), .. } => self.judge_durable(*rev),
            Cargo::Stream { run, mark, .. } => self.judge_mark(*run, *mark),
            Cargo::Delta(delta) => self.judge_piece(delta),
            Cargo::Order(_) => Verdict::Drop,
        }
    }

    /// Text was missing before a piece of `run` that reaches up to `end`; `text` is what the run
    /// has written by now. Returns whether the client must be told to begin again with it.
    ///
    /// Shorter than the piece reaches, or unknown, the text is of no use: the run began anew and
    /// the client will hear so, or it has ended, or another node writes it.
    pub fn mend(&mut self, run: Uuid, end: usize, text: Option<&str>) -> bool {
        let length = text.map(utf16_len).filter(|it| *it >= end);
        if let Some(writer) = self.writer(run) {
            writer.length = length;
        }
        length.is_some()
    }

    fn judge_durable(&mut self, rev: i64) -> Verdict {
        if rev <= self.rev {
            return Verdict::Drop;
        }
        if rev > self.rev + 1 {
            self.lost = true;
            return Verdict::Resync;
        }
        self.rev = rev;
        Verdict::Forward
    }

    fn judge_mark(&mut self, run: Uuid, mark: Mark) -> Verdict {
        let Some(writer) = self.writer(run) else {
            if mark != Mark::Start {
                return Verdict::Drop;
            }
            let length = Some(0);
            self.open.push(Writer { run, length });
            return Verdict::Forward;
        };
        match mark {
            Mark::Start => return Verdict::Drop,
            Mark::Reset => writer.length = Some(0),
            Mark::Complete => writer.length = None,
            Mark::Stop => self.open.retain(|it| it.run != run),
        }
        Verdict::Forward
    }

    fn judge_piece(&mut self, delta: &Delta) -> Verdict {
        let Some(writer) = self.writer(delta.run) else {
            return Verdict::Drop;
        };
        let Some(length) = writer.length else {
            return Verdict::Drop;
        };
        if delta.end() <= length {
            return Verdict::Drop;
        }
        let verdict = match delta.offset {
            offset if offset > length => None,
            offset if offset == length => Some(Verdict::Forward),
            // Pieces that wait are merged: what the client has may end inside of one.
            _ => rest(delta, length).map(Verdict::Rest),
        };
        match verdict {
            Some(verdict) => {
                writer.length = Some(delta.end());
                verdict
            }
            None => Verdict::Mend {
                run: delta.run,
                end: delta.end(),
            },
        }
    }

    fn writer(&mut self, run: Uuid) -> Option<&mut Writer> {
        self.open.iter_mut().find(|it| it.run == run)
    }
}

/// The client knows what this run had written at the mark, and that it was the one that wrote: what
/// is heard of other runs before its end comes from before its beginning.
fn drop_up_to_the_text_of(run: Uuid, held: &mut Vec<Arc<Envelope>>) {
    let mut is_over = false;
    held.retain(|it| match (run_of(&it.cargo), is_over) {
        (None, _) | (Some(_), true) => true,
        (Some((of, mark)), false) => {
            is_over = of == run && mark == Some(Mark::Stop);
            of == run && matches!(mark, Some(Mark::Complete | Mark::Stop))
        }
    });
}

/// Nobody wrote in the snapshot. Runs that were announced before a durable event which is in it
/// had ended by then, and the client has what came of them.
fn drop_begun_before(rev: i64, held: &mut Vec<Arc<Envelope>>) {
    let is_in_snapshot = |it: &Arc<Envelope>| match it.cargo {
        Cargo::Frame { rev: Some(of), .. } => of <= rev,
        _ => false,
    };
    let Some(newest) = held.iter().rposition(is_in_snapshot) else {
        return;
    };
    let begun: Vec<Uuid> = held[..newest]
        .iter()
        .filter_map(|it| run_of(&it.cargo))
        .filter(|(_, mark)| *mark == Some(Mark::Start))
        .map(|(run, _)| run)
        .collect();
    held.retain(|it| run_of(&it.cargo).is_none_or(|(run, _)| !begun.contains(&run)));
}

/// The run whose stream an envelope belongs to; a piece of text has no mark.
fn run_of(cargo: &Cargo) -> Option<(Uuid, Option<Mark>)> {
    match cargo {
        Cargo::Stream { run, mark, .. } => Some((*run, Some(*mark))),
        Cargo::Delta(delta) => Some((delta.run, None)),
        _ => None,
    }
}

/// The frame of what follows in this piece after the first `length` units of the run's text;
/// `None` if that many units do not end between two characters.
fn rest(delta: &Delta, length: usize) -> Option<ByteString> {
    let mut units = delta.offset;
    let mut known = 0;
    for it in delta.text.chars() {
        if units >= length {
            break;
        }
        units += it.len_utf16();
        known += it.len_utf8();
    }
    let conversation = ConversationId(delta.conversation);
    let rest = || Delta::new(conversation, delta.run, length, &delta.text[known..]).json;
    (units == length).then(rest)
}

#[cfg(test)]
#[path = "subscription_life_tests.rs"]
mod life_tests;
#[cfg(test)]
#[path = "subscription_tests.rs"]
mod tests;
