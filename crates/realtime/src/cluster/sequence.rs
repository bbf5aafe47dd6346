//! Detects lost and repeated messages: compares the number of each message with the last number
//! received from the same node. No I/O.
//!
//! A skipped number means a lost message; a number that is not higher than the last one means a
//! repeated or late message.

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
    fn gaps_and_repetitions_are_detected_per_node() {
        let (node_a, node_b, mut peers) =
            (Uuid::now_v7(), Uuid::now_v7(), PeerSequences::default());
        for (from, n, expected) in [
            (node_a, 5, SequenceCheck::Next),
            (node_a, 6, SequenceCheck::Next),
            (node_b, 1, SequenceCheck::Next),
            (node_a, 6, SequenceCheck::Old),
            (node_a, 9, SequenceCheck::AfterGap),
            (node_a, 8, SequenceCheck::Old),
            (node_a, 10, SequenceCheck::Next),
            (node_b, 2, SequenceCheck::Next),
        ] {
            assert_eq!(peers.record(from, n), expected, "{n}");
        }
    }
}
