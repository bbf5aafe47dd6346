//! How far each other node was heard. Pure.
//!
//! A number that is left out says that something was lost, and one that is not higher than the
//! last that it came again, or late.

use std::collections::HashMap;
use uuid::Uuid;

/// More processes than a house ever has at once; those of the past are forgotten then.
const MOST: usize = 1024;

/// What the number of a packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It follows the last one, or is the first that is heard.
    Next,
    /// Something before it is missing.
    AfterGap,
    /// It came before, or something that was sent later did.
    Old,
}

/// The newest number of each node.
#[derive(Debug, Default)]
pub struct Peers {
    newest: HashMap<Uuid, u64>,
}

impl Peers {
    /// Takes note of a packet.
    pub fn heard(&mut self, from: Uuid, n: u64) -> Arrival {
        if self.newest.len() >= MOST && !self.newest.contains_key(&from) {
            self.newest.clear();
        }
        match self.newest.insert(from, n) {
            None => Arrival::Next,
            Some(last) if n == last + 1 => Arrival::Next,
            Some(last) if n > last => Arrival::AfterGap,
            Some(last) => {
                self.newest.insert(from, last);
                Arrival::Old
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Arrival;
    use super::Peers;
    use uuid::Uuid;

    #[test]
    fn gaps_and_repetitions_are_seen_per_node() {
        let (ann, bob, mut peers) = (Uuid::now_v7(), Uuid::now_v7(), Peers::default());
        for (from, n, expected) in [
            (ann, 5, Arrival::Next),
            (ann, 6, Arrival::Next),
            (bob, 1, Arrival::Next),
            (ann, 6, Arrival::Old),
            (ann, 9, Arrival::AfterGap),
            (ann, 8, Arrival::Old),
            (ann, 10, Arrival::Next),
            (bob, 2, Arrival::Next),
        ] {
            assert_eq!(peers.heard(from, n), expected, "{n}");
        }
    }
}
