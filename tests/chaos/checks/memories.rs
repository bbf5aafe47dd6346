//! Checks the memories: each sentence about a person is learned exactly once, whatever happens between
//! the commit of its message and the end of learning from it.

use crate::checks::check::Check;
use crate::record::Evidence;

pub fn no_fact_is_lost(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "M1",
        "every message with a sentence about a person became a memory",
    );
    for fact in evidence.stored_facts.iter().filter(|it| it.is_shown) {
        check.expect(fact.n_memories > 0, || format!("no memory of {fact:?}"));
    }
    check
}

pub fn no_fact_is_learned_twice(evidence: &Evidence) -> Check {
    let mut check = Check::of("M2", "no message became two memories");
    for fact in &evidence.stored_facts {
        check.expect(fact.n_memories < 2, || format!("twice: {fact:?}"));
    }
    check
}

pub fn a_hidden_fact_is_forgotten(evidence: &Evidence) -> Check {
    let mut check = Check::of("M3", "a hidden or edited message has no memory");
    for fact in evidence.stored_facts.iter().filter(|it| !it.is_shown) {
        check.expect(fact.n_memories == 0, || format!("remembered: {fact:?}"));
    }
    check
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::StoredFact;

    /// Returns how often each rule is violated.
    fn broken(is_shown: bool, n_memories: usize) -> [usize; 3] {
        let fact = StoredFact {
            key: "c0-1".to_owned(),
            is_acknowledged: true,
            is_shown,
            n_memories,
            n_extracted: n_memories,
        };
        let evidence = Evidence {
            stored_facts: vec![fact],
            ..Evidence::default()
        };
        let checks = [
            no_fact_is_lost,
            no_fact_is_learned_twice,
            a_hidden_fact_is_forgotten,
        ];
        checks.map(|check| check(&evidence).broken.len())
    }

    #[test]
    fn one_memory_of_a_shown_sentence_and_none_of_a_hidden_one_is_right() {
        assert_eq!(broken(true, 1), [0, 0, 0]);
        assert_eq!(broken(false, 0), [0, 0, 0]);
    }

    #[test]
    fn a_lost_a_doubled_and_a_remembered_sentence_are_detected() {
        assert_eq!(broken(true, 0), [1, 0, 0]);
        assert_eq!(broken(true, 2), [0, 1, 0]);
        assert_eq!(broken(false, 1), [0, 0, 1]);
    }
}
