//! Checks D1 to D3 and D5: the streamed text of a run.

use std::collections::{HashMap, HashSet};

use crate::checks::check::{Check, by_run, continues, is_final, texts_of_runs};
use crate::record::{ClientLog, Evidence, Micros, ReceivedEvent};

pub fn deltas_equal_the_text(evidence: &Evidence) -> Check {
    let mut check = Check::of("D1", "the deltas of a run, in order, are its text");
    let stored = texts_of_runs(evidence).into_iter();
    let stored = stored.filter(|it| it.content.starts_with("reply"));
    // A tab does not record the older text with which the text of a continue begins.
    let continues = continues(evidence);
    let stored = stored.filter(|it| !continues.contains(it.run));
    let texts: HashMap<&str, &str> = stored.map(|it| (it.run, it.content)).collect();
    for client_log in &evidence.client_logs {
        let mut held: Option<(&str, String)> = None;
        for note in &client_log.notes {
            match &note.event {
                ReceivedEvent::Connected(_) => held = None,
                // No text: another node streams it, or it is complete and about to be stored.
                ReceivedEvent::Snapshot { stream, .. } => {
                    let known = stream.as_ref().filter(|(_, text)| !text.is_empty());
                    held = known.map(|(run, text)| (run.as_str(), text.clone()));
                }
                ReceivedEvent::TypingStart(run) => held = Some((run, String::new())),
                ReceivedEvent::Reset(run, text) => held = Some((run, text.clone())),
                ReceivedEvent::Chunk { run, offset, delta } => {
                    if *offset == 0 {
                        held = Some((run, String::new()));
                    }
                    // After a delta with another offset the tab requests the whole text.
                    held = held.filter(|(held, text)| {
                        held == run && text.encode_utf16().count() == *offset
                    });
                    if let Some((_, text)) = &mut held {
                        text.push_str(delta);
                    }
                }
                // A swipe is published with its message; then its run has ended.
                ReceivedEvent::Durable {
                    ends: Some(run), ..
                }
                | ReceivedEvent::Complete(run) => {
                    let Some((_, text)) = held.take_if(|(held, _)| held == run) else {
                        continue;
                    };
                    let Some(stored) = texts.get(run.as_str()) else {
                        continue;
                    };
                    // The last chunks may be lost between nodes; the message is published in any
                    // case.
                    let cut = stored.starts_with(text.trim()) && was_lossy(evidence, note.at);
                    check.expect(text.trim() == *stored || cut, || {
                        format!(
                            "tab {} received {text:?} of run {run}, stored is {stored:?}",
                            client_log.client
                        )
                    });
                }
                _ => {}
            }
        }
    }
    check
}

/// Whether messages between nodes may have been lost in the seconds before.
fn was_lossy(evidence: &Evidence, at: Micros) -> bool {
    let mut faults = evidence.faults.iter();
    faults.any(|it| it.kind.contains("Redis") && it.at <= at && it.until >= at - 5_000_000)
}

pub fn ended_runs_send_no_deltas(evidence: &Evidence) -> Check {
    let mut check = Check::of("D2", "after the end of a run no text of it is sent");
    for client_log in &evidence.client_logs {
        let mut over: HashSet<&str> = HashSet::new();
        for note in &client_log.notes {
            match &note.event {
                ReceivedEvent::Connected(_) => over.clear(),
                ReceivedEvent::TypingStart(run) => {
                    over.remove(run.as_str());
                }
                ReceivedEvent::Complete(run) => {
                    over.insert(run);
                }
                ReceivedEvent::Chunk { run, .. } => {
                    check.expect(!over.contains(run.as_str()), || {
                        format!(
                            "tab {} received more of run {run} after its end",
                            client_log.client
                        )
                    });
                }
                _ => {}
            }
        }
    }
    check
}

pub fn typing_ends_once(evidence: &Evidence) -> Check {
    let mut check = Check::of("D3", "each typing indicator ends once");
    let ended = ends(evidence);
    for client_log in &evidence.client_logs {
        let (mut types, mut stopped): (Option<&str>, Option<&str>) = (None, None);
        for note in &client_log.notes {
            // A stopped node may publish a run late that others have ended meanwhile; the next
            // event corrects it.
            let is_over = |run: &str| ended.get(run).is_some_and(|at| *at <= note.at);
            match &note.event {
                // A new connection and a snapshot replace the state: an earlier typing indicator
                // may have ended.
                ReceivedEvent::Connected(_)
                | ReceivedEvent::Snapshot { .. }
                | ReceivedEvent::Resync => {
                    (types, stopped) = (None, None);
                }
                ReceivedEvent::TypingStart(run) => {
                    let free = types.is_none_or(is_over) || is_over(run);
                    check.expect(free, || {
                        format!(
                            "tab {}: run {run} starts typing while {types:?} does",
                            client_log.client
                        )
                    });
                    (types, stopped) = (Some(run.as_str()), None);
                }
                ReceivedEvent::TypingStop(run) => {
                    check.expect(stopped != Some(run.as_str()), || {
                        format!("tab {}: run {run} stopped typing twice", client_log.client)
                    });
                    types.take_if(|it| it == run);
                    stopped = Some(run.as_str());
                }
                _ => {}
            }
        }
        check.expect(types.is_none(), || {
            format!(
                "tab {}: run {types:?} never stops typing in conversation {}",
                client_log.client, client_log.conversation
            )
        });
    }
    check
}

/// When each run ended.
fn ends(evidence: &Evidence) -> HashMap<&str, Micros> {
    let over = evidence.moves.iter().filter(|it| is_final(&it.became));
    over.map(|it| (it.run.as_str(), it.at)).collect()
}

/// Twenty batches of 50 ms per second, and a margin.
const MAX_DELTAS_PER_SECOND: usize = 25;
/// The end of a run sends the rest without waiting for the next batch.
const LAST_PIECE: usize = 1;

pub fn deltas_are_batched(evidence: &Evidence) -> Check {
    let mut check = Check::of("D5", "a run sends at most 25 chunks per second");
    let runs = by_run(evidence);
    let seconds = |run: &str| {
        let steps = runs.get(run)?;
        let began = steps.iter().find(|it| it.became == "running")?;
        let ended = steps.last()?;
        usize::try_from((ended.at - began.at) / 1_000_000 + 1).ok()
    };
    for client_log in &evidence.client_logs {
        for (run, n) in pieces(client_log) {
            let Some(seconds) = seconds(run) else {
                continue;
            };
            check.expect(n <= MAX_DELTAS_PER_SECOND * seconds + LAST_PIECE, || {
                format!(
                    "tab {} received {n} chunks of run {run} in {seconds} s",
                    client_log.client
                )
            });
        }
    }
    check
}

fn pieces(client_log: &ClientLog) -> HashMap<&str, usize> {
    let mut pieces = HashMap::new();
    for note in &client_log.notes {
        if let ReceivedEvent::Chunk { run, .. } = &note.event {
            *pieces.entry(run.as_str()).or_default() += 1;
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::check::example::{fault, good};
    use crate::record::Note;

    const RUN: &str = "r1";

    fn chunk(offset: usize, delta: &str) -> ReceivedEvent {
        ReceivedEvent::Chunk {
            run: RUN.to_owned(),
            offset,
            delta: delta.to_owned(),
        }
    }

    fn end() -> ReceivedEvent {
        ReceivedEvent::Durable {
            rev: 4,
            kind: "message_created".to_owned(),
            is_reduced: false,
            digest: 1,
            ends: Some(RUN.to_owned()),
            message: None,
        }
    }

    /// The good record with the events of one tab, each at second 6.
    fn with(events: Vec<ReceivedEvent>) -> Evidence {
        let mut evidence = good();
        let note = |event| Note {
            at: 6_000_000,
            event,
        };
        evidence.client_logs = vec![ClientLog {
            conversation: 1,
            notes: events.into_iter().map(note).collect(),
            ..ClientLog::default()
        }];
        evidence
    }

    fn whole() -> Vec<ReceivedEvent> {
        let run = || RUN.to_owned();
        vec![
            ReceivedEvent::Connected(0),
            ReceivedEvent::TypingStart(run()),
            chunk(0, "reply1 "),
            chunk(7, "yes"),
            end(),
            ReceivedEvent::Complete(run()),
            ReceivedEvent::TypingStop(run()),
        ]
    }

    #[test]
    fn a_good_record_has_no_violation() {
        let all: [fn(&Evidence) -> Check; 4] = [
            deltas_equal_the_text,
            ended_runs_send_no_deltas,
            typing_ends_once,
            deltas_are_batched,
        ];
        for check in all {
            let check = check(&with(whole()));
            assert!(check.n > 0 && check.broken.is_empty(), "{check:?}");
        }
    }

    #[test]
    fn a_different_text_is_detected_and_a_filled_gap_is_no_violation() {
        let mut other = whole();
        other[3] = chunk(7, "no");
        let mut hole = whole();
        hole.remove(2);
        let short = vec![whole().remove(1), whole().remove(2), end()];

        assert_eq!(deltas_equal_the_text(&with(other)).broken.len(), 1);
        let mut lossy = with(short.clone());
        lossy.faults.push(fault("Redis killed", 4, 5));
        assert_eq!(deltas_equal_the_text(&lossy).broken.len(), 0);
        assert_eq!(deltas_equal_the_text(&with(short)).broken.len(), 1);
        assert_eq!(deltas_equal_the_text(&with(hole)).n, 0);
    }

    #[test]
    fn deltas_after_the_end_are_detected() {
        let mut late = whole();
        late.push(chunk(10, "!"));

        assert_eq!(ended_runs_send_no_deltas(&with(late)).broken.len(), 1);
    }

    #[test]
    fn a_typing_indicator_without_an_end_or_with_two_is_detected() {
        let mut open = whole();
        open.pop();
        let mut twice = whole();
        twice.push(whole().remove(6));

        let mut both = whole();
        both.insert(2, ReceivedEvent::TypingStart("r2".to_owned()));
        both.push(ReceivedEvent::TypingStop("r2".to_owned()));

        assert_eq!(typing_ends_once(&with(open)).broken.len(), 1);
        assert_eq!(typing_ends_once(&with(both)).broken.len(), 1);
        assert_eq!(typing_ends_once(&with(twice)).broken.len(), 1);
    }

    #[test]
    fn too_many_deltas_are_detected() {
        let flood = (0..200).map(|n| chunk(n, "x")).collect();

        assert_eq!(deltas_are_batched(&with(flood)).broken.len(), 1);
    }
}
