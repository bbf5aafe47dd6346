//! Puts what several calls tell at once into the order of the calls: one slot for each, and one
//! speaks at a time. Pure.
//!
//! **Invariant:** a slot speaks when all before it are closed; until then it waits here, within
//! bounds: how far a call is may be forgotten, its end never. Nothing follows its end.

use crate::tools::tool::Outcome;

/// What may wait, in bytes.
const MAX_BUFFER_BYTES: usize = 1024 * 1024;

/// What is told of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// Its slot begins to speak.
    Began,
    /// How far it is.
    Moved(String),
    /// Over.
    Ended(Outcome),
}

/// The slots of one batch.
pub struct Gate {
    slots: Vec<Slot>,
    speaking: usize,
    n_bytes: usize,
}

#[derive(Default)]
struct Slot {
    moves: Vec<String>,
    end: Option<Outcome>,
    is_closed: bool,
}

impl Gate {
    /// For so many calls. The first one speaks at once.
    pub fn new(n_calls: usize) -> (Self, Vec<(usize, Told)>) {
        let gate = Self {
            slots: (0..n_calls).map(|_| Slot::default()).collect(),
            speaking: 0,
            n_bytes: 0,
        };
        let first = (n_calls > 0).then_some((0, Told::Began));
        (gate, first.into_iter().collect())
    }

    /// The call tells how far it is. Gives what may be told now.
    pub fn moves(&mut self, at: usize, message: &str) -> Vec<(usize, Told)> {
        let Some(slot) = self.slots.get_mut(at).filter(|it| !it.is_closed) else {
            return Vec::new();
        };
        if at == self.speaking {
            return vec![(at, Told::Moved(message.to_owned()))];
        }
        if self.n_bytes + message.len() <= MAX_BUFFER_BYTES {
            self.n_bytes += message.len();
            slot.moves.push(message.to_owned());
        }
        Vec::new()
    }

    /// The call is over. Gives what may be told now.
    pub fn ends(&mut self, at: usize, outcome: Outcome) -> Vec<(usize, Told)> {
        let Some(slot) = self.slots.get_mut(at).filter(|it| !it.is_closed) else {
            return Vec::new();
        };
        slot.is_closed = true;
        slot.end = Some(outcome);
        let mut told = Vec::new();
        while let Some(slot) = self.slots.get_mut(self.speaking) {
            for message in std::mem::take(&mut slot.moves) {
                self.n_bytes -= message.len();
                told.push((self.speaking, Told::Moved(message)));
            }
            let Some(end) = slot.end.take() else { break };
            told.push((self.speaking, Told::Ended(end)));
            self.speaking += 1;
            if self.speaking < self.slots.len() {
                told.push((self.speaking, Told::Began));
            }
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::Gate;
    use super::MAX_BUFFER_BYTES;
    use super::Told;
    use proptest::prelude::any;
    use proptest::prelude::prop_assert_eq;
    use proptest::proptest;

    fn ended(text: &str) -> Told {
        Told::Ended(Ok(text.to_owned()))
    }

    #[test]
    fn who_is_early_waits_for_those_before() {
        let (mut gate, first) = Gate::new(2);

        assert_eq!(first, [(0, Told::Began)]);
        assert_eq!(gate.moves(1, "half"), []);
        assert_eq!(gate.ends(1, Ok("B".to_owned())), []);
        assert_eq!(gate.moves(0, "soon"), [(0, Told::Moved("soon".to_owned()))]);
        assert_eq!(
            gate.ends(0, Ok("A".to_owned())),
            [
                (0, ended("A")),
                (1, Told::Began),
                (1, Told::Moved("half".to_owned())),
                (1, ended("B")),
            ]
        );
    }

    // R57
    #[test]
    fn nothing_follows_the_end() {
        let (mut gate, _) = Gate::new(1);
        gate.ends(0, Ok(String::new()));

        assert_eq!(gate.moves(0, "late"), []);
        assert_eq!(gate.ends(0, Ok("again".to_owned())), []);
        assert_eq!(gate.moves(7, "nobody"), []);
    }

    #[test]
    fn how_far_it_is_may_be_forgotten_and_its_end_never() {
        let (mut gate, _) = Gate::new(2);
        gate.moves(1, &"x".repeat(MAX_BUFFER_BYTES));
        gate.moves(1, "too much");
        gate.ends(1, Ok("B".to_owned()));

        let told = gate.ends(0, Ok("A".to_owned()));

        assert_eq!(told.len(), 4);
        assert_eq!(told[3], (1, ended("B")));
    }

    proptest! {
        #[test]
        fn groups_never_interleave(doings in proptest::collection::vec((0_usize..4, any::<bool>()), 0..40)) {
            let (mut gate, mut told) = Gate::new(4);
            for (at, is_end) in doings {
                told.extend(match is_end {
                    true => gate.ends(at, Ok(String::new())),
                    false => gate.moves(at, "m"),
                });
            }
            for at in 0..4 {
                told.extend(gate.ends(at, Ok(String::new())));
            }

            let slots: Vec<usize> = told.iter().map(|it| it.0).collect();
            prop_assert_eq!(slots.is_sorted(), true);
            for at in 0..4 {
                let own: Vec<&Told> = told.iter().filter(|it| it.0 == at).map(|it| &it.1).collect();
                prop_assert_eq!(own[0], &Told::Began);
                let n_ends = own.iter().filter(|it| matches!(it, Told::Ended(_))).count();
                prop_assert_eq!((n_ends, matches!(own[own.len() - 1], Told::Ended(_))), (1, true));
            }
        }
    }
}
