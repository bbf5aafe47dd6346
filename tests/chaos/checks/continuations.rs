//! Check V4: a continued message loses nothing of its text.

use std::collections::HashMap;

use crate::checks::check::Check;
use crate::record::{Evidence, Version};
use crate::stored_record::StoredText;

pub fn a_continuation_begins_with_the_older_text(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "V4",
        "a continued text is the text before it and what the model sent, and the older text is kept",
    );
    let sent: HashMap<&str, &str> = evidence
        .sent_texts
        .iter()
        .map(|it| (first_word(it), it.as_str()))
        .collect();
    let mut texts: HashMap<i64, Vec<&StoredText>> = HashMap::new();
    for text in &evidence.stored.texts {
        let texts = texts.entry(text.message).or_default();
        if text.kind == "continue" && text.position > 0 {
            let older = texts
                .iter()
                .filter(|it| text.content.starts_with(&it.content));
            let older = older.map(|it| it.content.len()).max();
            let rest = older.map(|it| &text.content[it..]);
            check.expect(rest.is_some_and(|it| fits(it, &text.end, &sent)), || {
                let all: Vec<&str> = texts.iter().map(|it| it.content.as_str()).collect();
                format!("{text:?} continues none of {all:?}")
            });
        }
        texts.push(text);
    }
    for (version, before) in continued(evidence) {
        check.expect(version.content.starts_with(before), || {
            format!("{version:?} continues {before:?}")
        });
    }
    check
}

/// Whether the model sent this text, or the beginning of it if the run was stopped. Unknown for a faulty
/// response.
fn fits(rest: &str, end: &str, sent: &HashMap<&str, &str>) -> bool {
    let rest = rest.trim();
    if !rest.starts_with("reply") {
        return !rest.is_empty();
    }
    let whole = sent.get(first_word(rest)).copied().unwrap_or_default();
    match end {
        "succeeded" => rest == whole,
        _ => whole.starts_with(rest),
    }
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}

/// Each continued version, with the text that the message showed before.
fn continued(evidence: &Evidence) -> Vec<(&Version, &str)> {
    let runs = evidence.moves.iter().filter(|it| it.kind == "continue");
    let runs: HashMap<&str, i64> = runs.map(|it| (it.run.as_str(), it.conversation)).collect();
    let is_continued = |it: &&Version| runs.get(it.run.as_str()) == Some(&it.conversation);
    let versions = evidence.versions.iter().filter(|it| it.position > 0);
    let before = |version: &Version| {
        let of_message = |it: &&crate::record::Writing| {
            it.message == version.message && it.n < version.n && it.tx != version.tx
        };
        evidence.writings.iter().rfind(of_message)
    };
    versions
        .filter(is_continued)
        .filter_map(|it| Some((it, before(it)?.content.as_str())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::check::example::{good, step};

    /// The reply of the good record, which run `r2` has continued.
    fn evidence() -> Evidence {
        let mut evidence = good();
        evidence.sent_texts.push("reply2 and more".to_owned());
        let mut end = step(10, 10, "running", "succeeded");
        (end.run, end.kind) = ("r2".to_owned(), "continue".to_owned());
        evidence.moves.push(end);
        let whole = "reply1 yes reply2 and more";
        evidence.versions = vec![Version {
            n: 11,
            tx: 10,
            conversation: 1,
            message: 12,
            position: 1,
            run: "r2".to_owned(),
            content: whole.to_owned(),
        }];
        let text = |position: i64, kind: &str, content: &str| StoredText {
            conversation: 1,
            message: 12,
            position,
            kind: kind.to_owned(),
            end: "succeeded".to_owned(),
            content: content.to_owned(),
            ..StoredText::default()
        };
        evidence.stored.texts = vec![
            text(0, "user_turn", "reply1 yes"),
            text(1, "continue", whole),
        ];
        evidence
    }

    fn broken(spoil: impl FnOnce(&mut Evidence)) -> usize {
        let mut evidence = evidence();
        spoil(&mut evidence);
        a_continuation_begins_with_the_older_text(&evidence)
            .broken
            .len()
    }

    #[test]
    fn a_good_record_has_no_violation() {
        assert_eq!(a_continuation_begins_with_the_older_text(&evidence()).n, 2);
        assert_eq!(broken(|_| {}), 0);
    }

    #[test]
    fn a_lost_or_changed_older_text_is_detected() {
        assert_eq!(broken(|it| drop(it.stored.texts.remove(0))), 1);
        assert_eq!(
            broken(|it| it.stored.texts[1].content = "reply1 no reply2 and more".to_owned()),
            1
        );
        assert_eq!(
            broken(|it| it.versions[0].content = "reply2 and more".to_owned()),
            1
        );
    }

    #[test]
    fn the_new_part_is_what_the_model_sent() {
        let ends = |content: &'static str, end: &'static str| {
            move |it: &mut Evidence| {
                it.stored.texts[1].content = content.to_owned();
                it.stored.texts[1].end = end.to_owned();
            }
        };

        assert_eq!(broken(ends("reply1 yes", "succeeded")), 1);
        assert_eq!(broken(ends("reply1 yes reply2", "succeeded")), 1);
        assert_eq!(broken(ends("reply1 yes reply2", "canceled")), 0);
        assert_eq!(broken(ends("reply1 yes reply9 and", "canceled")), 1);
        assert_eq!(broken(ends("reply1 yes odd7 and", "succeeded")), 0);
    }
}
