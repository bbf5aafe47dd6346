//! Tests of the filter: each rule alone, then any life of a conversation met at any moment.

use super::Filter;
use super::Start;
use super::Verdict;
use crate::ids::ConversationId;
use crate::realtime::event::Cargo;
use crate::realtime::event::Delta;
use crate::realtime::event::Envelope;
use crate::realtime::event::Mark;
use crate::realtime::topic::Topic;
use std::sync::Arc;
use uuid::Uuid;

const HERE: ConversationId = ConversationId(1);
const RUN: Uuid = Uuid::from_u128(1);
const OTHER: Uuid = Uuid::from_u128(2);

fn durable(rev: i64) -> Cargo {
    let json = "{}".into();
    Cargo::Frame {
        json,
        rev: Some(rev),
    }
}

fn mark(run: Uuid, mark: Mark) -> Cargo {
    let json = "{}".into();
    let lease = 1;
    Cargo::Stream {
        json,
        run,
        lease,
        mark,
    }
}

fn piece(run: Uuid, offset: usize, text: &str) -> Cargo {
    Cargo::Delta(Delta::new(HERE, run, offset, text.to_owned()))
}

fn begin(start: Start) -> Filter {
    Filter::begin(start, &mut Vec::new())
}

fn in_mid_sentence(length: usize) -> Filter {
    begin(Start {
        rev: 5,
        running: Some((RUN, length)),
    })
}

#[test]
fn a_durable_event_of_the_snapshot_is_dropped_and_the_next_passes() {
    let mut filter = begin(Start {
        rev: 5,
        ..Start::default()
    });

    assert_eq!(filter.judge(&durable(4)), Verdict::Drop);
    assert_eq!(filter.judge(&durable(5)), Verdict::Drop);
    assert_eq!(filter.judge(&durable(6)), Verdict::Forward);
    assert_eq!(filter.judge(&durable(6)), Verdict::Drop);
    assert_eq!(filter.judge(&durable(7)), Verdict::Forward);
}

#[test]
fn after_a_missing_durable_event_nothing_passes() {
    let mut filter = begin(Start {
        rev: 5,
        ..Start::default()
    });

    assert_eq!(filter.judge(&durable(7)), Verdict::Resync);
    assert_eq!(filter.judge(&durable(6)), Verdict::Drop);
    assert_eq!(filter.judge(&durable(8)), Verdict::Drop);
    assert_eq!(filter.judge(&mark(RUN, Mark::Start)), Verdict::Drop);
}

#[test]
fn a_stream_passes_from_its_beginning_to_its_end() {
    let mut filter = begin(Start::default());

    for cargo in [
        mark(RUN, Mark::Start),
        piece(RUN, 0, "Hé"),
        piece(RUN, 2, "😀"),
        mark(RUN, Mark::Reset),
        piece(RUN, 0, "!"),
        mark(RUN, Mark::Complete),
        mark(RUN, Mark::Stop),
    ] {
        assert_eq!(filter.judge(&cargo), Verdict::Forward, "{cargo:?}");
    }
    assert_eq!(filter.judge(&mark(RUN, Mark::Stop)), Verdict::Drop);
}

#[test]
fn pieces_that_the_snapshot_holds_are_dropped_and_a_merged_one_is_cut() {
    let mut filter = in_mid_sentence(4);

    assert_eq!(filter.judge(&mark(RUN, Mark::Start)), Verdict::Drop);
    assert_eq!(filter.judge(&piece(RUN, 0, "Hé")), Verdict::Drop);
    let Verdict::Rest(json) = filter.judge(&piece(RUN, 2, "😀!?")) else {
        panic!("the piece begins before the end of the snapshot's text");
    };
    let frame: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&frame["offset"], &frame["delta"]),
        (&4.into(), &"!?".into())
    );
    assert_eq!(filter.judge(&piece(RUN, 6, ".")), Verdict::Forward);
}

#[test]
fn missing_text_is_mended_with_the_text_so_far() {
    let mut filter = in_mid_sentence(0);

    let verdict = filter.judge(&piece(RUN, 3, "d"));
    assert_eq!(verdict, Verdict::Mend { run: RUN, end: 4 });
    assert!(filter.mend(RUN, 4, Some("abcde")));

    assert_eq!(filter.judge(&piece(RUN, 4, "e")), Verdict::Drop);
    assert_eq!(filter.judge(&piece(RUN, 5, "f")), Verdict::Forward);
}

#[test]
fn a_text_that_does_not_reach_the_gap_waits_for_the_stream_to_begin_anew() {
    for text in [None, Some("ab")] {
        let mut filter = in_mid_sentence(0);
        filter.judge(&piece(RUN, 3, "d"));

        assert!(!filter.mend(RUN, 4, text));

        assert_eq!(filter.judge(&piece(RUN, 4, "e")), Verdict::Drop);
        assert_eq!(filter.judge(&mark(RUN, Mark::Reset)), Verdict::Forward);
        assert_eq!(filter.judge(&piece(RUN, 0, "a")), Verdict::Forward);
    }
}

#[test]
fn of_a_run_that_was_not_seen_to_begin_nothing_passes() {
    let mut filter = begin(Start {
        rev: 5,
        ..Start::default()
    });

    for cargo in [
        piece(RUN, 3, "x"),
        mark(RUN, Mark::Reset),
        mark(RUN, Mark::Complete),
        mark(RUN, Mark::Stop),
    ] {
        assert_eq!(filter.judge(&cargo), Verdict::Drop, "{cargo:?}");
    }
}

#[test]
fn no_piece_passes_between_the_completion_of_a_run_and_its_end() {
    let mut filter = in_mid_sentence(4);

    filter.judge(&mark(RUN, Mark::Complete));

    assert_eq!(filter.judge(&piece(RUN, 4, "late")), Verdict::Drop);
    assert_eq!(filter.judge(&mark(RUN, Mark::Stop)), Verdict::Forward);
}

fn held<const N: usize>(all: [Cargo; N]) -> Vec<Arc<Envelope>> {
    let topic = Topic::Conversation(HERE);
    all.map(|cargo| Arc::new(Envelope { topic, cargo })).into()
}

fn passed(filter: &mut Filter, held: &[Arc<Envelope>]) -> Vec<String> {
    let all = held
        .iter()
        .filter(|it| filter.judge(&it.cargo) == Verdict::Forward);
    all.map(|it| match &it.cargo {
        Cargo::Frame { rev, .. } => format!("{}", rev.unwrap()),
        Cargo::Stream { run, mark, .. } => format!("{mark:?} {}", run.as_u128()),
        other => format!("{other:?}"),
    })
    .collect()
}

#[test]
fn a_run_that_began_and_ended_before_the_snapshot_is_not_told_again() {
    let mut held = held([
        mark(RUN, Mark::Start),
        piece(RUN, 0, "done"),
        durable(5),
        mark(RUN, Mark::Complete),
        mark(RUN, Mark::Stop),
        durable(6),
        mark(OTHER, Mark::Start),
    ]);
    let start = Start {
        rev: 5,
        running: None,
    };

    let mut filter = Filter::begin(start, &mut held);

    assert_eq!(passed(&mut filter, &held), ["6", "Start 2"]);
}

#[test]
fn what_was_held_of_the_running_run_is_in_its_text() {
    let mut held = held([
        mark(OTHER, Mark::Start),
        piece(OTHER, 0, "long ago"),
        mark(OTHER, Mark::Stop),
        mark(RUN, Mark::Start),
        piece(RUN, 0, "given up"),
        mark(RUN, Mark::Reset),
        piece(RUN, 0, "an"),
        durable(6),
        mark(RUN, Mark::Complete),
        mark(RUN, Mark::Stop),
    ]);
    let start = Start {
        rev: 5,
        running: Some((RUN, 2)),
    };

    let mut filter = Filter::begin(start, &mut held);

    assert_eq!(passed(&mut filter, &held), ["6", "Complete 1", "Stop 1"]);
}
