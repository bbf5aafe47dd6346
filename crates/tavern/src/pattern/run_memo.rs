//! Remembers, for each repetition of a set, which characters it has read and where what follows it
//! has failed. So `.*` and `.{0,200}` need a number of steps that is proportional to the text, not to
//! its square.

use std::ops::Range;

/// The memory of one repetition in one search.
#[derive(Clone, Debug, Default)]
pub struct RunMemo {
    /// The characters at these positions are in the set.
    extent: Range<usize>,
    /// What follows has failed at these positions. The second range is older: a repetition that
    /// starts later fails at later positions first, until it reaches the older range.
    failed: [Range<usize>; 2],
}

impl RunMemo {
    /// Returns a position up to which all characters from `start` on are in the set.
    pub fn known_end(&self, start: usize) -> usize {
        if self.extent.contains(&start) {
            self.extent.end
        } else {
            start
        }
    }

    /// Returns a position from which on all characters to before `end` are in the set.
    pub fn known_start(&self, end: usize) -> usize {
        if self.extent.start < end && end <= self.extent.end {
            self.extent.start
        } else {
            end
        }
    }

    /// Records that all characters from `start` to before `end` are in the set.
    pub fn record_extent(&mut self, start: usize, end: usize) {
        let range = start..end;
        if range.start >= range.end {
            return;
        }
        self.extent = match touch(&self.extent, &range) {
            true => join(&self.extent, &range),
            false => range,
        };
    }

    /// Records that what follows has failed at a position.
    pub fn record_failure(&mut self, at: usize) {
        let [new, old] = &mut self.failed;
        let range = at..at + 1;
        if touch(new, &range) {
            *new = join(new, &range);
        } else if touch(old, &range) {
            *old = join(old, &range);
        } else {
            *old = std::mem::replace(new, range);
        }
        if touch(new, old) {
            *new = join(new, old);
            *old = 0..0;
        }
    }

    /// Returns the range of positions around this one at all of which what follows has failed.
    pub fn failed_range(&self, at: usize) -> Option<Range<usize>> {
        let mut ranges = self.failed.iter();
        ranges.find(|it| it.contains(&at)).cloned()
    }
}

/// Returns whether two ranges overlap or are adjacent; `false` if one is empty.
fn touch(one: &Range<usize>, other: &Range<usize>) -> bool {
    let is_between = one.start <= other.end && other.start <= one.end;
    is_between && one.start < one.end && other.start < other.end
}

fn join(one: &Range<usize>, other: &Range<usize>) -> Range<usize> {
    one.start.min(other.start)..one.end.max(other.end)
}
