//! Checks R1 and R2: the reply order `director`.

use std::collections::HashSet;

use crate::checks::check::{Check, claims};
use crate::record::Evidence;

/// The limit of calls for each claim: three, and three without a schema if the server rejects it.
const MAX_CALLS: usize = 6;

pub fn every_turn_has_a_chosen_speaker(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "R1",
        "a turn of a director has a speaker: chosen, or by natural order after a failure",
    );
    let is_turn = |kind: &str| ["user_turn", "auto_mode"].contains(&kind);
    let runs = evidence.stored.runs.iter();
    let runs = runs.filter(|it| it.is_directed && is_turn(&it.kind) && it.status == "succeeded");
    for run in runs.filter(|it| !it.by_copilot) {
        // Neither a mentioned character nor a forced turn is left to the director.
        let reasons = ["director", "mentioned", "forced"];
        let has_reason = reasons.iter().any(|it| run.chosen_because.starts_with(it));
        check.expect(has_reason, || format!("{run:?}"));
    }
    check
}

pub fn choices_are_bounded(evidence: &Evidence) -> Check {
    let mut check = Check::of("R2", "a claim calls the director's model at most six times");
    let directed = evidence.stored.runs.iter().filter(|it| it.is_directed);
    let directed: HashSet<&str> = directed.map(|it| it.run.as_str()).collect();
    let claims = claims(evidence).into_iter();
    check.n = claims
        .filter(|it| directed.contains(it.step.run.as_str()))
        .count();
    if evidence.n_choices > MAX_CALLS * check.n {
        let violation = format!("{} calls for {} claims", evidence.n_choices, check.n);
        check.broken.push(violation);
    }
    check
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::check::example::good;
    use crate::stored_record::StoredRun;

    fn directed() -> Evidence {
        let mut evidence = good();
        evidence.stored.runs = vec![StoredRun {
            run: "r1".to_owned(),
            conversation: 1,
            kind: "user_turn".to_owned(),
            status: "succeeded".to_owned(),
            chosen_because: "director: pick1".to_owned(),
            is_directed: true,
            ..StoredRun::default()
        }];
        evidence.n_choices = 1;
        evidence
    }

    #[test]
    fn a_good_record_has_no_violation() {
        for check in [every_turn_has_a_chosen_speaker, choices_are_bounded] {
            let check = check(&directed());
            assert!(check.n > 0 && check.broken.is_empty(), "{check:?}");
        }
    }

    #[test]
    fn a_turn_without_a_choice_and_too_many_calls_are_detected() {
        let mut unchosen = directed();
        unchosen.stored.runs[0].chosen_because = "next in rotation".to_owned();
        let mut many = directed();
        many.n_choices = 7;

        assert_eq!(every_turn_has_a_chosen_speaker(&unchosen).broken.len(), 1);
        assert_eq!(choices_are_bounded(&many).broken.len(), 1);
    }
}
