//! Checks W1 to W4: a whisper reaches only its audience, both in what users receive and in prompts.

use std::collections::{BTreeSet, HashMap};

use crate::checks::check::Check;
use crate::record::{Evidence, ReceivedEvent};
use crate::stored_record::{Audience, StoredRun, StoredText, sees};
use crate::{speaker_choices, text_keys};

pub fn only_the_audience_reads_a_whisper(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "W1",
        "no frame and no response for a user outside the audience has a private text or its id",
    );
    let keys = audiences_of_keys(evidence);
    let ids = evidence
        .stored
        .texts
        .iter()
        .filter(|it| !it.audience.is_empty());
    let ids: HashMap<i64, &Audience> = ids.map(|it| (it.message, &it.audience)).collect();
    let mut in_frames: HashMap<usize, BTreeSet<i64>> = HashMap::new();
    for client_log in &evidence.client_logs {
        let seen = in_frames.entry(client_log.client).or_default();
        for note in &client_log.notes {
            match &note.event {
                ReceivedEvent::Durable { message, .. } => seen.extend(message.map(|it| it.0)),
                ReceivedEvent::Snapshot { messages, .. } => {
                    seen.extend(messages.iter().map(|it| it.0));
                }
                _ => {}
            }
        }
    }
    for reader in &evidence.readers {
        for key in &reader.keys {
            // Without an audience the text was public, or it was not stored.
            let audiences = keys.get(key.as_str()).map_or(&[][..], Vec::as_slice);
            if audiences.is_empty() || audiences.iter().any(|it| it.is_empty()) {
                continue;
            }
            let is_seen = audiences.iter().any(|it| sees(&reader.memberships, it));
            check.expect(is_seen, || {
                format!(
                    "user {} ({:?}) received {key}, which is for {audiences:?}",
                    reader.client, reader.memberships
                )
            });
        }
        let in_frames = in_frames.get(&reader.client).into_iter().flatten();
        for id in reader.messages.iter().chain(in_frames) {
            let Some(audience) = ids.get(id) else {
                continue;
            };
            check.expect(sees(&reader.memberships, audience), || {
                format!(
                    "user {} ({:?}) received message {id}, which is for {audience:?}",
                    reader.client, reader.memberships
                )
            });
        }
    }
    check
}

/// The audience of each whisper, and those of the messages that have a reply of the model.
fn audiences_of_keys(evidence: &Evidence) -> HashMap<String, Vec<&Audience>> {
    let mut audiences: HashMap<String, Vec<&Audience>> = HashMap::new();
    for post in evidence.posts.iter().filter(|it| !it.audience.is_empty()) {
        audiences
            .entry(post.key.clone())
            .or_default()
            .push(&post.audience);
    }
    for text in &evidence.stored.texts {
        let is_reply = |it: &String| !it.starts_with('c');
        for key in text_keys::keys_in(&text.content)
            .into_iter()
            .filter(is_reply)
        {
            audiences.entry(key).or_default().push(&text.audience);
        }
    }
    audiences
}

pub fn only_the_audience_receives_a_private_run(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "W2",
        "no event of a private run is sent to a user outside its audience",
    );
    // A released run may be planned again for others.
    let mut audiences: HashMap<&str, Vec<&Audience>> = HashMap::new();
    for run in &evidence.stored.runs {
        audiences.entry(&run.run).or_default().push(&run.audience);
    }
    for step in evidence.moves.iter().filter(|it| it.became == "running") {
        audiences.entry(&step.run).or_default().push(&step.audience);
    }
    for client_log in &evidence.client_logs {
        for note in &client_log.notes {
            let run = match &note.event {
                ReceivedEvent::TypingStart(run)
                | ReceivedEvent::Chunk { run, .. }
                | ReceivedEvent::Reset(run, _)
                | ReceivedEvent::Complete(run)
                | ReceivedEvent::TypingStop(run) => run,
                ReceivedEvent::Snapshot {
                    stream: Some((run, _)),
                    ..
                } => run,
                _ => continue,
            };
            let audiences = audiences.get(run.as_str()).map_or(&[][..], Vec::as_slice);
            if audiences.iter().all(|it| it.is_empty()) {
                continue;
            }
            let is_seen = audiences
                .iter()
                .any(|it| sees(&[client_log.membership], it));
            check.expect(is_seen, || {
                format!(
                    "tab {} of membership {} received {:?} for {audiences:?}",
                    client_log.client, client_log.membership, note.event
                )
            });
        }
    }
    check
}

pub fn a_whisper_is_answered_in_private(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "W3",
        "a run for a whisper has its audience, and so has its text, whose author belongs to it",
    );
    let posts = evidence.writings.iter();
    let posts = posts.filter(|it| it.is_new && it.role == "user" && it.origin == 0);
    let posts: HashMap<(i64, i64), &Audience> = posts
        .map(|it| ((it.tx, it.conversation), &it.audience))
        .collect();
    let planned = evidence.moves.iter();
    for step in planned.filter(|it| it.became == "queued" && it.reason == "user_message") {
        let post = posts.get(&(step.tx, step.conversation));
        check.expect(post.is_none_or(|it| **it == step.audience), || {
            format!("a message for {post:?} plans {step:?}")
        });
    }
    let runs: HashMap<&str, &StoredRun> = evidence
        .stored
        .runs
        .iter()
        .map(|it| (it.run.as_str(), it))
        .collect();
    for text in own_texts(evidence) {
        let run = runs.get(text.run.as_str());
        let Some(run) = run.filter(|it| it.conversation == text.conversation) else {
            continue;
        };
        let is_inside = sees(&[text.author], &text.audience);
        check.expect(run.audience == text.audience && is_inside, || {
            format!("run {run:?} has the text {text:?}")
        });
    }
    check
}

fn own_texts(evidence: &Evidence) -> impl Iterator<Item = &StoredText> {
    evidence.stored.texts.iter().filter(|it| !it.is_clone)
}

pub fn a_prompt_has_only_what_its_speaker_heard(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "W4",
        "a prompt has only whispers that its speaker heard, one of the director only those of its readers",
    );
    let whispers: HashMap<&str, &Audience> = evidence
        .posts
        .iter()
        .map(|it| (it.key.as_str(), &it.audience))
        .collect();
    // Everyone who must see all whispers in the prompt; empty: everyone in the space.
    let mut readers: HashMap<String, Audience> = HashMap::new();
    for text in own_texts(evidence) {
        for key in text_keys::keys_in(&text.content) {
            readers.insert(key, vec![text.author]);
        }
    }
    let choices = evidence.stored.runs.iter();
    for run in choices.filter(|it| !it.chosen_because.is_empty()) {
        let reason = run.chosen_because.trim_start_matches("director: ");
        readers.insert(reason.to_owned(), run.audience.clone());
    }
    for call in &evidence.calls {
        let Some(readers) = readers.get(&call.key) else {
            continue;
        };
        let is_to_all = readers.is_empty() && speaker_choices::is_reason(&call.key);
        for key in &call.whispers {
            let heard = whispers.get(key.as_str());
            let all = |it: &&&Audience| !is_to_all && readers.iter().all(|one| it.contains(one));
            check.expect(heard.as_ref().is_some_and(all), || {
                format!(
                    "the prompt of {} for {readers:?} has {key}, which is for {heard:?}",
                    call.key
                )
            });
        }
    }
    check
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::check::example::{good, step, writing};
    use crate::record::{ClientLog, ModelCall, Note, Post, Reader};

    const ALL: [fn(&Evidence) -> Check; 4] = [
        only_the_audience_reads_a_whisper,
        only_the_audience_receives_a_private_run,
        a_whisper_is_answered_in_private,
        a_prompt_has_only_what_its_speaker_heard,
    ];

    fn text(message: i64, author: i64, run: &str, content: &str) -> StoredText {
        StoredText {
            conversation: 1,
            message,
            author,
            run: run.to_owned(),
            content: content.to_owned(),
            audience: vec![3, 5],
            ..StoredText::default()
        }
    }

    /// User 0 (membership 3) whispers to the character 5, which replies; user 1 (membership 4) is there.
    fn whispered() -> Evidence {
        let mut evidence = good();
        evidence.posts.push(Post {
            key: "c0-2".to_owned(),
            audience: vec![3, 5],
            ..Post::default()
        });
        let mut post = writing(8, 8, 3, "user", "c0-2 whispers to a few of you");
        post.audience = vec![3, 5];
        evidence.writings.push(post);
        let mut planned = step(9, 8, "", "queued");
        (planned.run, planned.audience) = ("r2".to_owned(), vec![3, 5]);
        evidence.moves.push(planned);
        evidence.stored.runs = vec![StoredRun {
            run: "r2".to_owned(),
            conversation: 1,
            audience: vec![3, 5],
            chosen_because: "director: pick4".to_owned(),
            ..StoredRun::default()
        }];
        evidence.stored.texts = vec![
            text(13, 3, "", "c0-2 whispers to a few of you"),
            text(14, 5, "r2", "reply2 quietly"),
        ];
        let reader = |client, membership, keys: &[&str], messages: &[i64]| Reader {
            client,
            memberships: vec![membership],
            keys: keys.iter().map(|it| (*it).to_owned()).collect(),
            messages: messages.iter().copied().collect(),
        };
        evidence.readers = vec![
            reader(0, 3, &["c0-2", "reply2", "reply1"], &[11, 13, 14]),
            reader(1, 4, &["reply1"], &[11]),
        ];
        let call = |key: &str| ModelCall {
            key: key.to_owned(),
            whispers: ["c0-2".to_owned()].into(),
        };
        evidence.calls = vec![call("reply2"), call("pick4")];
        evidence.client_logs = vec![tab(0, 3, &["r1", "r2"]), tab(1, 4, &["r1"])];
        evidence
    }

    fn tab(client: usize, membership: i64, runs: &[&str]) -> ClientLog {
        let note = |run: &&str| Note {
            at: 0,
            event: ReceivedEvent::TypingStart((*run).to_owned()),
        };
        ClientLog {
            client,
            conversation: 1,
            membership,
            notes: runs.iter().map(note).collect(),
            ..ClientLog::default()
        }
    }

    fn broken(check: fn(&Evidence) -> Check, spoil: impl FnOnce(&mut Evidence)) -> usize {
        let mut evidence = whispered();
        spoil(&mut evidence);
        check(&evidence).broken.len()
    }

    #[test]
    fn a_good_record_has_no_violation() {
        for check in ALL {
            let check = check(&whispered());
            assert!(check.n > 0 && check.broken.is_empty(), "{check:?}");
        }
    }

    #[test]
    fn a_private_text_or_id_that_reaches_another_user_is_detected() {
        let check = only_the_audience_reads_a_whisper;
        let receives = |key: &'static str| {
            move |it: &mut Evidence| it.readers[1].keys.extend([key.to_owned()])
        };
        let in_a_frame = |it: &mut Evidence| {
            it.client_logs[1].notes[0].event = ReceivedEvent::Snapshot {
                asked_at: 0,
                after: None,
                rev: 4,
                reset: false,
                messages: vec![(14, 4)],
                stream: None,
            };
        };

        assert_eq!(broken(check, receives("c0-2")), 1);
        assert_eq!(broken(check, receives("reply2")), 1);
        assert_eq!(broken(check, receives("reply99")), 0);
        assert_eq!(broken(check, |it| it.readers[1].messages.extend([13])), 1);
        assert_eq!(broken(check, in_a_frame), 1);
    }

    #[test]
    fn a_frame_of_a_private_run_that_reaches_another_user_is_detected() {
        let check = only_the_audience_receives_a_private_run;

        assert_eq!(
            broken(check, |it| it.client_logs[1] = tab(1, 4, &["r2"])),
            1
        );
    }

    #[test]
    fn a_public_answer_to_a_whisper_is_detected() {
        let check = a_whisper_is_answered_in_private;
        let planned = |it: &mut Evidence| it.moves.last_mut().unwrap().audience.clear();
        let stored = |it: &mut Evidence| it.stored.texts[1].audience.clear();
        let by_another = |it: &mut Evidence| it.stored.texts[1].author = 6;

        assert_eq!(broken(check, planned), 1);
        assert_eq!(broken(check, stored), 1);
        assert_eq!(broken(check, by_another), 1);
    }

    #[test]
    fn a_whisper_in_the_prompt_of_another_is_detected() {
        let check = a_prompt_has_only_what_its_speaker_heard;
        let spoken_by_another = |it: &mut Evidence| it.stored.texts[1].author = 6;
        let chosen_in_public = |it: &mut Evidence| it.stored.runs[0].audience.clear();
        let chosen_before_more = |it: &mut Evidence| it.stored.runs[0].audience.push(9);

        assert_eq!(broken(check, spoken_by_another), 1);
        assert_eq!(broken(check, chosen_in_public), 1);
        assert_eq!(broken(check, chosen_before_more), 1);
    }
}
