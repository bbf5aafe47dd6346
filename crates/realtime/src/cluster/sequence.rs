//! Detects missing messages: remembers the last message number received from each other node. Pure.
//!
//! A skipped number means a lost message; one that is not higher than the last means a repeated or
//! late message.

use std::collections::HashMap;

use uuid::Uuid;

/// More processes than an installation ever runs; at this limit, the recorded ones are forgotten.
const MAX_NODES: usize = 1024;

/// The meaning of a message's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceCheck {
    /// It follows the last one, or is the first.
    Next,
    /// A message before it is missing.
    AfterGap,
    /// It was received before, or after a message with a higher number.
    Old,
}

/// The newest number of each node.
#[derive(Debug, Default)]
pub struct PeerSequences {
    newest: HashMap<Uuid, u64>,
}

impl PeerSequences {
    /// Records a message.
    pub fn record(&mut self, from: Uuid, n: u64) -> SequenceCheck {
        if self.newest.len() >= MAX_NODES && !self.newest.contains_key(&from) {
            self.newest.clear();
        }
        match self.newest.insert(from, n) {
            None => SequenceCheck::Next,
            Some(last) if n == last + 1 => SequenceCheck::Next,
            Some(last) if n > last => SequenceCheck::AfterGap,
            Some(last) => {
                self.newest.insert(from, last);
                SequenceCheck::Old
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::{PeerSequences, SequenceCheck};

    #[test]
    fn gaps_and_repetitions_are_seen_per_node() {
        let (ann, bob, mut peers) = (Uuid::now_v7(), Uuid::now_v7(), PeerSequences::default());
        for (from, n, expected) in [
            (ann, 5, SequenceCheck::Next),
            (ann, 6, SequenceCheck::Next),
            (bob, 1, SequenceCheck::Next),
            (ann, 6, SequenceCheck::Old),
            (ann, 9, SequenceCheck::AfterGap),
            (ann, 8, SequenceCheck::Old),
            (ann, 10, SequenceCheck::Next),
            (bob, 2, SequenceCheck::Next),
        ] {
            assert_eq!(peers.record(from, n), expected, "{n}");
        }
    }
}
