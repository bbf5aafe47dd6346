//! Tests of each rule of the subscription filter.

use std::sync::Arc;

use base::ids::ConversationId;
use realtime::envelope::{Envelope, Payload, Receivers, StreamBoundary, StreamDelta, StreamFrame};
use realtime::topic::Topic;
use uuid::Uuid;

use super::{FilterDecision, SnapshotPosition, SubscriptionFilter};

const HERE: ConversationId = ConversationId(1);
const RUN: Uuid = Uuid::from_u128(1);
const OTHER: Uuid = Uuid::from_u128(2);

fn durable(rev: i64) -> Payload {
    let json = "{}".into();
    Payload::Frame {
        json,
        rev: Some(rev),
    }
}

fn mark(run: Uuid, mark: StreamBoundary) -> Payload {
    Payload::Stream(StreamFrame::new("{}".into(), (run, 1), mark))
}

fn delta(run: Uuid, offset: usize, text: &str) -> Payload {
    Payload::Delta(StreamDelta::new(HERE, run, offset, text.to_owned()))
}

fn new_filter(start: SnapshotPosition) -> SubscriptionFilter {
    SubscriptionFilter::new(start, &mut Vec::new())
}

fn filter_during_run(length: usize) -> SubscriptionFilter {
    new_filter(SnapshotPosition {
        rev: 5,
        running: Some((RUN, length)),
        ..SnapshotPosition::default()
    })
}

#[test]
fn a_durable_event_of_the_snapshot_is_dropped_and_the_next_passes() {
    let mut filter = new_filter(SnapshotPosition {
        rev: 5,
        ..SnapshotPosition::default()
    });

    assert_eq!(filter.decide(&durable(4)), FilterDecision::Drop);
    assert_eq!(filter.decide(&durable(5)), FilterDecision::Drop);
    assert_eq!(filter.decide(&durable(6)), FilterDecision::Forward);
    assert_eq!(filter.decide(&durable(6)), FilterDecision::Drop);
    assert_eq!(filter.decide(&durable(7)), FilterDecision::Forward);
}

#[test]
fn after_a_missing_durable_event_nothing_passes() {
    let mut filter = new_filter(SnapshotPosition {
        rev: 5,
        ..SnapshotPosition::default()
    });

    assert_eq!(filter.decide(&durable(7)), FilterDecision::Resync);
    assert_eq!(filter.decide(&durable(6)), FilterDecision::Drop);
    assert_eq!(filter.decide(&durable(8)), FilterDecision::Drop);
    assert_eq!(
        filter.decide(&mark(RUN, StreamBoundary::Start)),
        FilterDecision::Drop
    );
}

#[test]
fn a_stream_passes_from_its_beginning_to_its_end() {
    let mut filter = new_filter(SnapshotPosition::default());

    for cargo in [
        mark(RUN, StreamBoundary::Start),
        delta(RUN, 0, "Hé"),
        delta(RUN, 2, "😀"),
        mark(RUN, StreamBoundary::Reset),
        delta(RUN, 0, "!"),
        mark(RUN, StreamBoundary::Complete),
        mark(RUN, StreamBoundary::Stop),
    ] {
        assert_eq!(filter.decide(&cargo), FilterDecision::Forward, "{cargo:?}");
    }
    assert_eq!(
        filter.decide(&mark(RUN, StreamBoundary::Stop)),
        FilterDecision::Drop
    );
}

#[test]
fn deltas_contained_in_the_snapshot_are_dropped_and_a_merged_one_is_cut() {
    let mut filter = filter_during_run(4);

    assert_eq!(
        filter.decide(&mark(RUN, StreamBoundary::Start)),
        FilterDecision::Drop
    );
    assert_eq!(filter.decide(&delta(RUN, 0, "Hé")), FilterDecision::Drop);
    let rest = StreamDelta::new(HERE, RUN, 4, "!?");
    assert_eq!(
        filter.decide(&delta(RUN, 2, "😀!?")),
        FilterDecision::ForwardRest(rest)
    );
    assert_eq!(filter.decide(&delta(RUN, 6, ".")), FilterDecision::Forward);
}

#[test]
fn missing_text_is_repaired_with_the_text_so_far() {
    let mut filter = filter_during_run(0);

    let verdict = filter.decide(&delta(RUN, 3, "d"));
    assert_eq!(verdict, FilterDecision::Repair { run: RUN, end: 4 });
    assert!(filter.repair(RUN, 4, Some("abcde")));

    assert_eq!(filter.decide(&delta(RUN, 4, "e")), FilterDecision::Drop);
    assert_eq!(filter.decide(&delta(RUN, 5, "f")), FilterDecision::Forward);
}

#[test]
fn a_text_that_does_not_reach_the_gap_waits_for_a_reset() {
    for text in [None, Some("ab")] {
        let mut filter = filter_during_run(0);
        filter.decide(&delta(RUN, 3, "d"));

        assert!(!filter.repair(RUN, 4, text));

        assert_eq!(filter.decide(&delta(RUN, 4, "e")), FilterDecision::Drop);
        assert_eq!(
            filter.decide(&mark(RUN, StreamBoundary::Reset)),
            FilterDecision::Forward
        );
        assert_eq!(filter.decide(&delta(RUN, 0, "a")), FilterDecision::Forward);
    }
}

#[test]
fn nothing_passes_of_a_run_whose_start_was_missed() {
    let mut filter = new_filter(SnapshotPosition {
        rev: 5,
        ..SnapshotPosition::default()
    });

    for cargo in [
        delta(RUN, 3, "x"),
        mark(RUN, StreamBoundary::Reset),
        mark(RUN, StreamBoundary::Complete),
        mark(RUN, StreamBoundary::Stop),
    ] {
        assert_eq!(filter.decide(&cargo), FilterDecision::Drop, "{cargo:?}");
    }
}

#[test]
fn no_delta_passes_between_the_completion_of_a_run_and_its_end() {
    let mut filter = filter_during_run(4);

    filter.decide(&mark(RUN, StreamBoundary::Complete));

    assert_eq!(filter.decide(&delta(RUN, 4, "late")), FilterDecision::Drop);
    assert_eq!(
        filter.decide(&mark(RUN, StreamBoundary::Stop)),
        FilterDecision::Forward
    );
}

fn buffered<const N: usize>(all: [Payload; N]) -> Vec<Arc<Envelope>> {
    let topic = Topic::Conversation(HERE);
    all.map(|cargo| {
        Arc::new(Envelope {
            topic,
            receivers: Receivers::Everyone,
            payload: cargo,
        })
    })
    .into()
}

fn passed(filter: &mut SubscriptionFilter, held: &[Arc<Envelope>]) -> Vec<String> {
    let all = held
        .iter()
        .filter(|it| filter.decide(&it.payload) == FilterDecision::Forward);
    all.map(|it| match &it.payload {
        Payload::Frame { rev, .. } => format!("{}", rev.unwrap()),
        Payload::Stream(event) => format!("{:?} {}", event.mark, event.run.as_u128()),
        other => format!("{other:?}"),
    })
    .collect()
}

#[test]
fn a_run_that_began_and_ended_before_the_snapshot_is_not_sent_again() {
    let mut held = buffered([
        mark(RUN, StreamBoundary::Start),
        delta(RUN, 0, "done"),
        durable(5),
        mark(RUN, StreamBoundary::Complete),
        mark(RUN, StreamBoundary::Stop),
        durable(6),
        mark(OTHER, StreamBoundary::Start),
    ]);
    let start = SnapshotPosition {
        rev: 5,
        running: None,
        ..SnapshotPosition::default()
    };

    let mut filter = SubscriptionFilter::new(start, &mut held);

    assert_eq!(passed(&mut filter, &held), ["6", "Start 2"]);
}

#[test]
fn buffered_deltas_contained_in_the_text_of_the_snapshot_are_dropped() {
    let mut held = buffered([
        mark(OTHER, StreamBoundary::Start),
        delta(OTHER, 0, "long ago"),
        mark(OTHER, StreamBoundary::Stop),
        mark(RUN, StreamBoundary::Start),
        delta(RUN, 0, "given up"),
        mark(RUN, StreamBoundary::Reset),
        delta(RUN, 0, "an"),
        durable(6),
        mark(RUN, StreamBoundary::Complete),
        mark(RUN, StreamBoundary::Stop),
    ]);
    let start = SnapshotPosition {
        rev: 5,
        running: Some((RUN, 2)),
        ..SnapshotPosition::default()
    };

    let mut filter = SubscriptionFilter::new(start, &mut held);

    assert_eq!(passed(&mut filter, &held), ["6", "Complete 1", "Stop 1"]);
}

#[test]
fn the_pieces_of_a_continue_follow_the_existing_text() {
    let json = r#"{"base_length":4}"#;
    let start = Payload::Stream(StreamFrame::new(
        json.into(),
        (RUN, 1),
        StreamBoundary::Start,
    ));
    let mut filter = new_filter(SnapshotPosition {
        rev: 5,
        ..SnapshotPosition::default()
    });

    assert_eq!(filter.decide(&start), FilterDecision::Forward);
    let piece = |offset, text| delta(RUN, offset, text);
    assert_eq!(filter.decide(&piece(4, "a")), FilterDecision::Forward);
    let missed = FilterDecision::Repair { run: RUN, end: 8 };
    assert_eq!(filter.decide(&piece(7, "d")), missed);
    assert!(filter.repair(RUN, 8, Some("abcd")));
    let reset = mark(RUN, StreamBoundary::Reset);
    assert_eq!(filter.decide(&reset), FilterDecision::Forward);
    assert_eq!(filter.decide(&piece(4, "x")), FilterDecision::Forward);
}

#[test]
fn a_subscriber_during_a_continue_has_the_existing_text() {
    let mut filter = new_filter(SnapshotPosition {
        rev: 5,
        running: Some((RUN, 6)),
        base_length: 4,
    });

    let piece = |offset, text| delta(RUN, offset, text);
    assert_eq!(filter.decide(&piece(4, "ab")), FilterDecision::Drop);
    assert_eq!(filter.decide(&piece(6, "c")), FilterDecision::Forward);
}
