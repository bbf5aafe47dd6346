//! Tests of what a node publishes about a run that another node writes.

use std::sync::Arc;

use base::ids::{ConversationId, MembershipId, RunId};
use realtime::cluster::bus::ClusterBus;
use realtime::cluster::signal::StreamSnapshot;
use realtime::envelope::{Payload, Receivers, StreamBoundary, StreamDelta, StreamFrame};
use realtime::hub::Hub;
use realtime::outbox::{NextItem, Outbox};
use realtime::topic::Topic;
use uuid::Uuid;

use super::LiveStreams;
use crate::runs::events::TypingStart;
use crate::runs::store::run::RunKind;

const HERE: ConversationId = ConversationId(7);
const RUN: RunId = RunId(Uuid::from_u128(1));

struct Node {
    live: LiveStreams,
    outbox: Arc<Outbox>,
}

impl Node {
    fn new() -> Self {
        let (hub, outbox) = (Hub::with_bus(ClusterBus::new()), Outbox::new());
        hub.subscribe(Topic::Conversation(HERE), &outbox);
        Self {
            live: LiveStreams::new(hub),
            outbox,
        }
    }

    fn receive_boundary(&self, lease: i64, mark: StreamBoundary) {
        let event = StreamFrame::new("{}".into(), (RUN.0, lease), mark);
        self.live.apply_boundary(HERE, Receivers::Everyone, event);
    }

    fn receive_delta(&self, lease: i64, offset: usize, text: &str) {
        let delta = StreamDelta::new(HERE, RUN.0, offset, text.to_owned());
        self.live.apply_delta(delta.with_lease(lease));
    }

    fn receive_text(&self, lease: i64, text: &str) {
        self.live.apply_text(StreamSnapshot {
            conversation: HERE,
            run: RUN.0,
            lease,
            start: "{}".to_owned(),
            receivers: Receivers::Everyone,
            text: text.to_owned(),
        });
    }

    /// Returns what subscribers received since the last call.
    fn published(&self) -> Vec<String> {
        let all = std::iter::from_fn(|| self.outbox.try_next());
        all.map(|next| match next {
            NextItem::Envelope(it) => match &it.payload {
                Payload::Stream(event) => format!("{:?}", event.mark),
                Payload::Delta(it) => format!("{}:{}", it.offset, it.text),
                other => panic!("unexpected payload: {other:?}"),
            },
            other => panic!("unexpected item: {other:?}"),
        })
        .collect()
    }

    fn text(&self) -> Option<String> {
        self.live.text(HERE).map(|it| it.text)
    }
}

#[tokio::test]
async fn a_run_of_another_node_is_published_like_a_local_one() {
    let node = Node::new();
    node.receive_boundary(1, StreamBoundary::Start);
    node.receive_delta(1, 0, "One");
    node.receive_delta(1, 3, " two");
    assert_eq!(node.text().as_deref(), Some("One two"));
    node.receive_boundary(1, StreamBoundary::Complete);
    node.receive_boundary(1, StreamBoundary::Stop);

    assert_eq!(node.published(), ["Start", "0:One two", "Complete", "Stop"]);
    assert_eq!(node.text(), None);
}

#[tokio::test]
async fn a_repeated_delta_is_published_once() {
    let node = Node::new();
    node.receive_boundary(1, StreamBoundary::Start);
    node.receive_delta(1, 0, "One");
    node.receive_boundary(1, StreamBoundary::Start);
    node.receive_delta(1, 0, "One");

    assert_eq!(node.published(), ["Start", "0:One"]);
}

#[tokio::test]
async fn text_after_a_gap_waits_for_the_whole_text() {
    let node = Node::new();
    node.receive_boundary(1, StreamBoundary::Start);
    node.receive_delta(1, 0, "One");
    node.receive_delta(1, 7, " three");
    assert_eq!(node.published(), ["Start", "0:One"]);

    node.receive_text(1, "One two three");
    node.receive_delta(1, 13, ".");

    assert_eq!(node.published(), ["3: two three."]);
}

#[tokio::test]
async fn a_run_with_a_missed_start_begins_with_the_text_of_its_node() {
    let node = Node::new();
    node.receive_delta(1, 3, " two");
    assert_eq!(node.published(), [""; 0]);

    node.receive_text(1, "One two");
    node.receive_delta(1, 7, " three.");

    assert_eq!(node.published(), ["Start", "0:One two three."]);
}

#[tokio::test]
async fn events_of_an_older_lease_are_ignored() {
    let node = Node::new();
    node.receive_boundary(1, StreamBoundary::Start);
    node.receive_delta(1, 0, "Old");
    node.published();

    // The start on the new node arrives before the last deltas of the old one.
    node.receive_boundary(2, StreamBoundary::Start);
    node.receive_delta(2, 0, "New");
    node.receive_delta(1, 3, " words");
    node.receive_boundary(1, StreamBoundary::Reset);
    node.receive_boundary(1, StreamBoundary::Stop);
    node.receive_text(1, "Old words");

    assert_eq!(node.published(), ["Reset", "Start", "0:New"]);
    assert_eq!(node.text().as_deref(), Some("New"));
}

#[tokio::test]
async fn a_run_taken_over_by_this_node_is_reset() {
    let node = Node::new();
    node.receive_boundary(1, StreamBoundary::Start);
    node.receive_delta(1, 0, "Old");
    node.published();

    let start = TypingStart {
        conversation_id: HERE,
        run_id: RUN,
        membership_id: MembershipId(1),
        kind: RunKind::UserTurn,
        target_message_id: None,
        base_length: None,
    };
    node.live.open(&start, 2, Receivers::Everyone);
    node.receive_boundary(1, StreamBoundary::Stop);
    assert!(node.live.append(HERE, RUN, "New"));

    assert_eq!(node.published(), ["Reset", "0:New"]);
}

#[tokio::test]
async fn nothing_follows_the_end_of_a_run() {
    let node = Node::new();
    node.receive_boundary(1, StreamBoundary::Start);
    node.receive_boundary(1, StreamBoundary::Complete);
    node.receive_delta(1, 0, "Late");
    node.receive_text(1, "Late");
    node.receive_boundary(1, StreamBoundary::Start);

    assert_eq!(node.published(), ["Start", "Complete"]);
    assert_eq!(node.text(), None);
}

const CONTINUE: &str = r#"{"type":"typing_start","base_length":5}"#;

#[tokio::test]
async fn a_continue_of_another_node_appends_to_the_existing_text() {
    let node = Node::new();
    let start = StreamFrame::new(CONTINUE.into(), (RUN.0, 1), StreamBoundary::Start);
    node.live.apply_boundary(HERE, Receivers::Everyone, start);
    node.receive_delta(1, 5, " and");
    node.receive_delta(1, 14, " on");
    assert_eq!(node.published(), ["Start", "5: and"]);

    // The text of the other node does not include the existing text either.
    node.receive_text(1, " and so on");
    assert_eq!(node.published(), ["9: so on"]);
    assert_eq!(node.text().as_deref(), Some(" and so on"));

    node.receive_boundary(1, StreamBoundary::Reset);
    node.receive_delta(1, 5, " Again");
    assert_eq!(node.published(), ["Reset", "5: Again"]);
}

#[tokio::test]
async fn a_continue_of_this_node_appends_to_the_existing_text() {
    let node = Node::new();
    let start = TypingStart {
        conversation_id: HERE,
        run_id: RUN,
        membership_id: MembershipId(1),
        kind: RunKind::Continue,
        target_message_id: None,
        base_length: Some(5),
    };

    node.live.open(&start, 1, Receivers::Everyone);
    assert!(node.live.append(HERE, RUN, " and"));
    assert!(node.live.append(HERE, RUN, " so"));

    assert_eq!(node.published(), ["5: and so"]);
}
