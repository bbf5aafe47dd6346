//! What listeners of one node are told of a run that another one writes.

use super::Heard;
use super::Live;
use crate::ids::ConversationId;
use crate::ids::MembershipId;
use crate::ids::RunId;
use crate::realtime::cluster::bus::ClusterBus;
use crate::realtime::cluster::signal::StreamSnapshot;
use crate::realtime::event::Envelope;
use crate::realtime::event::Payload;
use crate::realtime::event::StreamBoundary;
use crate::realtime::event::StreamDelta;
use crate::realtime::hub::Hub;
use crate::realtime::outbox::NextItem;
use crate::realtime::outbox::Outbox;
use crate::realtime::topic::Topic;
use crate::runs::events::TypingStart;
use crate::runs::run::RunKind;
use std::sync::Arc;
use uuid::Uuid;

const HERE: ConversationId = ConversationId(7);
const RUN: RunId = RunId(Uuid::from_u128(1));

struct Node {
    live: Live,
    outbox: Arc<Outbox>,
}

impl Node {
    fn new() -> Self {
        let (hub, outbox) = (Hub::with_bus(ClusterBus::new()), Outbox::new());
        hub.subscribe(Topic::Conversation(HERE), &outbox);
        Self {
            live: Live::new(hub),
            outbox,
        }
    }

    fn mark(&self, lease: i64, mark: StreamBoundary) {
        let cargo = Payload::Stream {
            json: "{}".into(),
            run: RUN.0,
            lease,
            mark,
        };
        let heard = Heard {
            conversation: HERE,
            run: RUN,
            lease,
            mark,
        };
        let topic = Topic::Conversation(HERE);
        self.live.hear_mark(
            &heard,
            Envelope {
                topic,
                payload: cargo,
            },
        );
    }

    fn piece(&self, lease: i64, offset: usize, text: &str) {
        let delta = StreamDelta::new(HERE, RUN.0, offset, text.to_owned());
        self.live.hear_piece(delta.with_lease(lease));
    }

    fn tells(&self, lease: i64, text: &str) {
        self.live.hear_text(StreamSnapshot {
            conversation: HERE,
            run: RUN.0,
            lease,
            start: "{}".to_owned(),
            text: text.to_owned(),
        });
    }

    /// What listeners were given since the last call.
    fn told(&self) -> Vec<String> {
        let all = std::iter::from_fn(|| self.outbox.try_next());
        all.map(|next| match next {
            NextItem::Envelope(it) => match &it.payload {
                Payload::Stream { mark, .. } => format!("{mark:?}"),
                Payload::Delta(it) => format!("{}:{}", it.offset, it.text),
                other => panic!("only streams are told of: {other:?}"),
            },
            other => panic!("nothing else is told: {other:?}"),
        })
        .collect()
    }

    fn text(&self) -> Option<String> {
        self.live.text(HERE).map(|it| it.text)
    }
}

#[tokio::test]
async fn a_run_of_another_node_is_told_as_one_of_this_node() {
    let node = Node::new();
    node.mark(1, StreamBoundary::Start);
    node.piece(1, 0, "One");
    node.piece(1, 3, " two");
    assert_eq!(node.text().as_deref(), Some("One two"));
    node.mark(1, StreamBoundary::Complete);
    node.mark(1, StreamBoundary::Stop);

    assert_eq!(node.told(), ["Start", "0:One two", "Complete", "Stop"]);
    assert_eq!(node.text(), None);
}

#[tokio::test]
async fn a_piece_that_comes_again_is_not_told_again() {
    let node = Node::new();
    node.mark(1, StreamBoundary::Start);
    node.piece(1, 0, "One");
    node.mark(1, StreamBoundary::Start);
    node.piece(1, 0, "One");

    assert_eq!(node.told(), ["Start", "0:One"]);
}

#[tokio::test]
async fn a_gap_is_held_back_until_the_whole_text_is_told() {
    let node = Node::new();
    node.mark(1, StreamBoundary::Start);
    node.piece(1, 0, "One");
    node.piece(1, 7, " three");
    assert_eq!(node.told(), ["Start", "0:One"]);

    node.tells(1, "One two three");
    node.piece(1, 13, ".");

    assert_eq!(node.told(), ["3: two three."]);
}

#[tokio::test]
async fn a_run_whose_beginning_was_missed_begins_with_what_its_node_tells() {
    let node = Node::new();
    node.piece(1, 3, " two");
    assert_eq!(node.told(), [""; 0]);

    node.tells(1, "One two");
    node.piece(1, 7, " three.");

    assert_eq!(node.told(), ["Start", "0:One two three."]);
}

#[tokio::test]
async fn what_comes_under_an_older_lease_is_void() {
    let node = Node::new();
    node.mark(1, StreamBoundary::Start);
    node.piece(1, 0, "Old");
    node.told();

    // The new node is heard before the last words of the old one.
    node.mark(2, StreamBoundary::Start);
    node.piece(2, 0, "New");
    node.piece(1, 3, " words");
    node.mark(1, StreamBoundary::Reset);
    node.mark(1, StreamBoundary::Stop);
    node.tells(1, "Old words");

    assert_eq!(node.told(), ["Reset", "Start", "0:New"]);
    assert_eq!(node.text().as_deref(), Some("New"));
}

#[tokio::test]
async fn a_run_that_this_node_takes_over_begins_anew() {
    let node = Node::new();
    node.mark(1, StreamBoundary::Start);
    node.piece(1, 0, "Old");
    node.told();

    let start = TypingStart {
        conversation_id: HERE,
        run_id: RUN,
        membership_id: MembershipId(1),
        kind: RunKind::UserTurn,
        target_message_id: None,
    };
    node.live.open(&start, 2);
    node.mark(1, StreamBoundary::Stop);
    assert!(node.live.append(HERE, RUN, "New"));

    assert_eq!(node.told(), ["Reset", "0:New"]);
}

#[tokio::test]
async fn nothing_follows_the_end_of_a_run() {
    let node = Node::new();
    node.mark(1, StreamBoundary::Start);
    node.mark(1, StreamBoundary::Complete);
    node.piece(1, 0, "Late");
    node.tells(1, "Late");
    node.mark(1, StreamBoundary::Start);

    assert_eq!(node.told(), ["Start", "Complete"]);
    assert_eq!(node.text(), None);
}
