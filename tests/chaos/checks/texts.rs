//! Checks C1 to C8: which texts were stored, of which runs and posts, and how often.

use std::collections::{HashMap, HashSet};

use crate::checks::check::{Check, by_run, claims, continues, of_people, texts_of_runs};
use crate::record::{Evidence, Writing};

fn new(evidence: &Evidence) -> impl Iterator<Item = &Writing> {
    evidence.writings.iter().filter(|it| it.is_new)
}

pub fn one_text_per_run(evidence: &Evidence) -> Check {
    let mut check = Check::of("C1", "a run writes at most one text");
    let mut texts: HashMap<&str, usize> = HashMap::new();
    for text in texts_of_runs(evidence) {
        let n = texts.entry(text.run).or_default();
        *n += 1;
        check.expect(*n == 1, || {
            format!("message {} is text {n} of run {}", text.message, text.run)
        });
    }
    check
}

pub fn a_success_has_a_text(evidence: &Evidence) -> Check {
    let mut check = Check::of("C2", "a run has a text if and only if it succeeded");
    let texts: HashSet<&str> = texts_of_runs(evidence).iter().map(|it| it.run).collect();
    for (run, steps) in by_run(evidence) {
        let last = steps[steps.len() - 1];
        let (has_text, end) = (texts.contains(run), &last.became);
        // Texts of canceled runs are checked by C3.
        let fits = has_text == (end == "succeeded") || (end == "canceled" && last.kept);
        check.expect(fits, || {
            format!("run {run} is {end}, with a text: {has_text}")
        });
    }
    check
}

pub fn what_a_canceled_run_leaves(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "C3",
        "a canceled run keeps its partial text if requested, a failed one nothing",
    );
    let sent_texts: HashMap<&str, &str> = evidence
        .sent_texts
        .iter()
        .map(|it| (first_word(it), it.as_str()))
        .collect();
    let texts = texts_of_runs(evidence);
    let texts: HashMap<&str, &str> = texts.iter().map(|it| (it.run, it.content)).collect();
    let continues = continues(evidence);
    for (run, steps) in by_run(evidence) {
        let last = steps[steps.len() - 1];
        let text = texts.get(run).copied();
        let fits = match (last.became.as_str(), text) {
            ("failed", text) => text.is_none(),
            ("canceled", Some(_)) if continues.contains(run) => last.kept,
            ("canceled", Some(text)) => last.kept && is_part(text, &sent_texts),
            ("canceled", None) => true,
            _ => continue,
        };
        check.expect(fits, || {
            format!(
                "run {run} is {}, kept: {}, and left {text:?}",
                last.became, last.kept
            )
        });
    }
    check
}

/// Whether a text is a prefix of what the model sent; unknown for a faulty answer.
fn is_part(text: &str, sent_texts: &HashMap<&str, &str>) -> bool {
    if text.trim().is_empty() {
        return false;
    }
    if !text.starts_with("reply") {
        return true;
    }
    let whole = sent_texts
        .get(first_word(text))
        .copied()
        .unwrap_or_default();
    whole.starts_with(text.trim())
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}

pub fn acknowledged_messages_are_stored(evidence: &Evidence) -> Check {
    let mut check = Check::of("C4", "every acknowledged message is stored unchanged");
    let stored: HashMap<i64, &Writing> = new(evidence).map(|it| (it.message, it)).collect();
    for post in &evidence.posts {
        let Some(ack) = post.acknowledged() else {
            continue;
        };
        let row = stored.get(&ack.message);
        let same = row.is_some_and(|it| {
            (it.conversation, it.seq) == (post.conversation, ack.seq)
                && it.content == post.content
                && it.key == post.key
        });
        check.expect(same, || format!("{post:?}\nis stored as {row:?}"));
    }
    check
}

pub fn no_phantom_messages(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "C5",
        "every stored message was posted, and a rejected one is not stored",
    );
    let posts: HashMap<&str, _> = evidence
        .posts
        .iter()
        .map(|it| (it.key.as_str(), it))
        .collect();
    for row in of_people(evidence) {
        let post = posts.get(row.key.as_str());
        let fits =
            post.is_some_and(|it| it.content == row.content && it.conversation == row.conversation);
        check.expect(fits, || format!("never posted: {row:?}"));
        check.expect(!post.is_some_and(|it| it.refused()), || {
            format!("rejected, but stored: {row:?}\n{post:?}")
        });
    }
    check
}

pub fn messages_are_stored_once(evidence: &Evidence) -> Check {
    let mut check = Check::of("C6", "a message that is sent twice is stored once");
    let mut rows: HashMap<&str, usize> = HashMap::new();
    for row in new(evidence).filter(|it| !it.key.is_empty()) {
        *rows.entry(&row.key).or_default() += 1;
    }
    for post in &evidence.posts {
        let n = rows.get(post.key.as_str()).copied().unwrap_or(0);
        let acks = post
            .tries
            .iter()
            .filter(|it| (200..300).contains(&it.status));
        let ids: HashSet<(i64, i64)> = acks.map(|it| (it.message, it.seq)).collect();
        check.expect(n <= 1 && ids.len() <= 1, || {
            format!("stored {n} times, as {ids:?}: {post:?}")
        });
    }
    check
}

/// The limit of model calls for each claim; see `generation/`.
const MAX_CALLS: usize = 3;

pub fn calls_are_bounded(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "C7",
        "a claim or a suggestion calls its model at most three times",
    );
    let n_claims = claims(evidence).len() + evidence.n_candidates;
    check.n = n_claims;
    if evidence.n_calls > MAX_CALLS * n_claims {
        let violation = format!("{} calls for {n_claims} claims", evidence.n_calls);
        check.broken.push(violation);
    }
    check
}

pub fn replies_are_stored_once(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "C8",
        "a reply is stored once, also if the response to its commit was lost",
    );
    let sent_texts: HashSet<&str> = evidence.sent_texts.iter().map(String::as_str).collect();
    let mut stored: HashSet<&str> = HashSet::new();
    let ends = by_run(evidence);
    let is_whole = |run: &str| {
        let last = ends.get(run).and_then(|it| it.last());
        last.is_none_or(|it| it.became != "canceled")
    };
    let continues = continues(evidence);
    for text in texts_of_runs(evidence) {
        let is_reply = text.content.starts_with("reply") && !continues.contains(text.run);
        if !is_reply || !is_whole(text.run) {
            continue;
        }
        let description = || format!("{:?} of run {}", text.content, text.run);
        let is_first = stored.insert(text.content);
        check.expect(is_first, || format!("stored twice: {}", description()));
        check.expect(sent_texts.contains(text.content), || {
            format!("the model never sent {}", description())
        });
    }
    check
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::check::example::{good, writing};
    use crate::record::Version;

    const ALL: &[fn(&Evidence) -> Check] = &[
        one_text_per_run,
        a_success_has_a_text,
        acknowledged_messages_are_stored,
        no_phantom_messages,
        messages_are_stored_once,
        calls_are_bounded,
        replies_are_stored_once,
    ];

    fn version(position: i64, run: &str, content: &str) -> Version {
        Version {
            conversation: 1,
            message: 12,
            position,
            run: run.to_owned(),
            content: content.to_owned(),
            ..Version::default()
        }
    }

    fn broken(check: fn(&Evidence) -> Check, spoil: impl FnOnce(&mut Evidence)) -> usize {
        let mut evidence = good();
        spoil(&mut evidence);
        check(&evidence).broken.len()
    }

    #[test]
    fn a_good_record_has_no_violation() {
        for check in ALL {
            let check = check(&good());
            assert!(check.n > 0 && check.broken.is_empty(), "{check:?}");
        }
    }

    #[test]
    fn a_second_text_and_a_missing_one_are_detected() {
        let twice = |it: &mut Evidence| it.writings.push(it.writings[1].clone());

        assert_eq!(broken(one_text_per_run, twice), 1);
        assert_eq!(
            broken(a_success_has_a_text, |it| it.writings.truncate(1)),
            1
        );
        assert_eq!(
            broken(a_success_has_a_text, |it| it.moves[3].became =
                "failed".to_owned()),
            1
        );
        assert_eq!(broken(replies_are_stored_once, twice), 1);
        assert_eq!(
            broken(replies_are_stored_once, |it| it.sent_texts.clear()),
            1
        );
    }

    #[test]
    fn a_clone_or_a_first_swipe_is_no_second_text() {
        let cloned = |it: &mut Evidence| {
            let mut clone = it.writings[1].clone();
            (clone.conversation, clone.message, clone.origin) = (2, 22, 12);
            it.writings.push(clone);
        };
        let versions = |it: &mut Evidence| {
            it.versions = vec![version(0, "r1", "reply1 yes"), version(1, "r2", "reply2")];
        };
        let same_run = |it: &mut Evidence| it.versions = vec![version(1, "r1", "reply1 yes")];

        assert_eq!(broken(one_text_per_run, cloned), 0);
        assert_eq!(broken(replies_are_stored_once, cloned), 0);
        assert_eq!(broken(one_text_per_run, versions), 0);
        assert_eq!(broken(one_text_per_run, same_run), 1);
    }

    #[test]
    fn the_text_of_a_canceled_or_failed_run_is_checked() {
        let end = |end: &'static str, kept: bool, text: &'static str| {
            move |it: &mut Evidence| {
                it.moves[3].became = end.to_owned();
                it.moves[3].kept = kept;
                it.writings[1].content = text.to_owned();
            }
        };
        let nothing = |it: &mut Evidence| {
            it.moves[3].became = "canceled".to_owned();
            it.writings.truncate(1);
        };

        let check = what_a_canceled_run_leaves;
        assert_eq!(broken(check, nothing), 0);
        assert_eq!(broken(check, end("canceled", true, "reply1")), 0);
        assert_eq!(broken(check, end("canceled", false, "reply1")), 1);
        assert_eq!(broken(check, end("canceled", true, "reply1 no")), 1);
        assert_eq!(broken(check, end("canceled", true, "reply12")), 1);
        assert_eq!(broken(check, end("canceled", true, "  ")), 1);
        assert_eq!(broken(check, end("failed", true, "reply1")), 1);
    }

    #[test]
    fn a_lost_message_and_a_changed_one_are_detected() {
        assert_eq!(
            broken(acknowledged_messages_are_stored, |it| it.writings.clear()),
            1
        );
        assert_eq!(
            broken(acknowledged_messages_are_stored, |it| it.writings[0].seq =
                2),
            1
        );
        assert_eq!(
            broken(acknowledged_messages_are_stored, |it| it.writings[0]
                .content
                .clear()),
            1
        );
    }

    #[test]
    fn an_unknown_message_and_a_stored_refusal_are_detected() {
        let phantom = |it: &mut Evidence| it.writings.push(writing(8, 8, 3, "user", "boo"));
        let refusal = |it: &mut Evidence| it.posts[0].tries[0].status = 423;
        let unclear = |it: &mut Evidence| it.posts[0].tries[0].status = 0;

        assert_eq!(broken(no_phantom_messages, phantom), 1);
        assert_eq!(broken(no_phantom_messages, refusal), 1);
        assert_eq!(broken(no_phantom_messages, unclear), 0);
    }

    #[test]
    fn a_duplicated_message_is_detected() {
        let twice = |it: &mut Evidence| it.writings.push(it.writings[0].clone());
        let other_id = |it: &mut Evidence| {
            let mut again = it.posts[0].tries[0].clone();
            again.message = 99;
            it.posts[0].tries.push(again);
        };

        assert_eq!(broken(messages_are_stored_once, twice), 1);
        assert_eq!(broken(messages_are_stored_once, other_id), 1);
        assert_eq!(broken(calls_are_bounded, |it| it.n_calls = 4), 1);
    }
}
