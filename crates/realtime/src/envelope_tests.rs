//! Tests of the frames of both protocols: their content, and that each is encoded once.

use std::sync::Arc;

use base::ids::{ConversationId, UserId};
use serde::Serialize;
use uuid::Uuid;

use super::{Envelope, Event, Protocol, SocketControl, StreamBoundary, StreamDelta};
use crate::hub::Hub;
use crate::outbox::{NextItem, Outbox};
use crate::topic::Topic;

const HERE: ConversationId = ConversationId(7);
const RUN: Uuid = Uuid::from_u128(1);

#[derive(Serialize)]
struct Named {
    #[serde(skip)]
    name: &'static str,
    run_id: Uuid,
}

impl Event for Named {
    fn name(&self) -> &'static str {
        self.name
    }
}

fn boundary(name: &'static str, mark: StreamBoundary) -> Envelope {
    let event = Named { name, run_id: RUN };
    Envelope::stream(Topic::Conversation(HERE), &event, (RUN, 1), mark)
}

fn frame(envelope: &Envelope, protocol: Protocol) -> &str {
    envelope.frame(protocol).expect("clients get it")
}

#[test]
fn a_delta_is_long_in_protocol_1_and_short_in_protocol_2() {
    let delta = Envelope::delta(StreamDelta::new(HERE, RUN, 12, "\"é😀\n"));

    assert_eq!(
        frame(&delta, Protocol::V1),
        r#"{"type":"stream_chunk","conversation_id":7,"run_id":"00000000-0000-0000-0000-000000000001","offset":12,"delta":"\"é😀\n"}"#
    );
    assert_eq!(
        frame(&delta, Protocol::V2),
        r#"{"h":7,"o":12,"d":"\"é😀\n"}"#
    );
}

#[test]
fn only_the_start_of_a_stream_carries_its_handle_and_only_in_protocol_2() {
    let start = boundary("typing_start", StreamBoundary::Start);
    let run = r#""run_id":"00000000-0000-0000-0000-000000000001""#;

    assert_eq!(
        frame(&start, Protocol::V1),
        format!(r#"{{"type":"typing_start",{run}}}"#)
    );
    assert_eq!(
        frame(&start, Protocol::V2),
        format!(r#"{{"type":"typing_start",{run},"h":7}}"#)
    );
    for other in [
        boundary("stream_reset", StreamBoundary::Reset),
        boundary("typing_stop", StreamBoundary::Stop),
        Envelope::plain(
            Topic::Conversation(HERE),
            &Named {
                name: "n",
                run_id: RUN,
            },
        ),
    ] {
        assert_eq!(other.frame(Protocol::V1), other.frame(Protocol::V2));
    }
    let control = Envelope::control(UserId(1), SocketControl::Disabled);
    assert_eq!(control.frame(Protocol::V2), None);
}

#[test]
fn an_event_is_encoded_once_for_each_protocol_that_a_subscriber_uses() {
    let hub = Hub::new();
    let subscribers: Vec<_> = (0..6).map(|_| Outbox::new()).collect();
    for outbox in &subscribers {
        hub.subscribe(Topic::Conversation(HERE), outbox);
    }

    hub.publish(boundary("typing_start", StreamBoundary::Start));
    hub.publish(Envelope::delta(StreamDelta::new(HERE, RUN, 0, "a")));

    let queues: Vec<Vec<Arc<Envelope>>> = subscribers.iter().map(received).collect();
    for n in 0..2 {
        for protocol in [Protocol::V1, Protocol::V2] {
            let bytes = |queue: &Vec<Arc<Envelope>>| frame(&queue[n], protocol).as_ptr();
            let first = bytes(&queues[0]);
            assert!(queues.iter().all(|queue| bytes(queue) == first));
        }
    }
}

#[test]
fn a_form_that_no_subscriber_uses_is_not_encoded() {
    let delta = StreamDelta::new(HERE, RUN, 0, "a");

    delta.frame(Protocol::V2);

    assert!(delta.long_frame.get().is_none());
}

#[test]
fn the_size_of_a_delta_does_not_depend_on_what_is_encoded() {
    let envelope = Envelope::delta(StreamDelta::new(HERE, RUN, 0, "a"));
    let before = envelope.size();

    let long = frame(&envelope, Protocol::V1).len();

    assert_eq!(envelope.size(), before);
    assert!(before >= long, "{before} < {long}");
}

#[test]
fn the_rest_of_a_delta_begins_at_a_character() {
    let delta = StreamDelta::new(HERE, RUN, 4, "a😀b").with_lease(3);
    let rest =
        |offset, text: &'static str| Some(StreamDelta::new(HERE, RUN, offset, text).with_lease(3));

    assert_eq!(delta.after(4), Some(delta.clone()));
    assert_eq!(delta.after(5), rest(5, "😀b"));
    assert_eq!(delta.after(6), None);
    assert_eq!(delta.after(7), rest(7, "b"));
}

fn received(outbox: &Arc<Outbox>) -> Vec<Arc<Envelope>> {
    let all = std::iter::from_fn(|| outbox.try_next());
    all.map(|next| match next {
        NextItem::Envelope(it) => it,
        other => panic!("unexpected item: {other:?}"),
    })
    .collect()
}
