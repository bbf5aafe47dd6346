//! What travels: an envelope, encoded once for all who hear it.

use crate::ids::SessionId;
use crate::ids::SpaceId;
use crate::realtime::topic::Topic;
use bytestring::ByteString;
use serde::Serialize;
use uuid::Uuid;

/// A room's event: declared where it happens, read by clients alone.
pub trait Event: Serialize {
    /// The word in `type`.
    fn name(&self) -> &'static str;
}

/// One event on its way, encoded once.
#[derive(Clone, Debug)]
pub struct Envelope {
    pub topic: Topic,
    pub cargo: Cargo,
}

/// What an envelope holds, as far as the loudspeaker and the sockets must know.
#[derive(Clone, Debug)]
pub enum Cargo {
    /// A frame. A durable one has the number `rev` of its conversation.
    Frame { json: ByteString, rev: Option<i64> },
    /// A frame that belongs to the stream of `run`: its beginning, its end, a reset.
    Stream {
        json: ByteString,
        run: Uuid,
        mark: Mark,
    },
    /// A piece of the stream of `run`; pieces that wait may be merged.
    Delta(Delta),
    /// An order to the sockets of a person; never sent on as it is.
    Order(Order),
}

/// What a frame means for a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// `typing_start`.
    Start,
    /// `stream_reset`: the text begins anew.
    Reset,
    /// `stream_complete`: no delta follows.
    Complete,
    /// `typing_stop`: the last frame of a run.
    Stop,
}

/// A piece of text of a running run.
#[derive(Clone, Debug)]
pub struct Delta {
    /// The whole frame `stream_chunk`, encoded.
    pub json: ByteString,
    pub conversation: i64,
    pub run: Uuid,
    /// UTF-16 units of the text before this piece.
    pub offset: usize,
    /// UTF-16 units of this piece.
    pub length: usize,
    pub text: ByteString,
}

/// What a person's sockets must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The seat in this space is lost, or may do less: look again at what is subscribed.
    RightsChanged(SpaceId),
    /// This session has ended: close.
    SessionEnded(SessionId),
    /// Every session of this person has ended: close.
    Disabled,
}

impl Envelope {
    /// An event that needs no order among others.
    pub fn plain(topic: Topic, event: &impl Event) -> Self {
        Self::frame(topic, event, None)
    }

    /// A durable event of a conversation.
    pub fn durable(topic: Topic, event: &impl Event, rev: i64) -> Self {
        Self::frame(topic, event, Some(rev))
    }

    /// A frame of a stream.
    pub fn stream(topic: Topic, event: &impl Event, run: Uuid, mark: Mark) -> Self {
        Self {
            topic,
            cargo: Cargo::Stream {
                json: encode(event),
                run,
                mark,
            },
        }
    }

    /// An order to a person's sockets.
    pub fn order(user: crate::ids::UserId, order: Order) -> Self {
        Self {
            topic: Topic::User(user),
            cargo: Cargo::Order(order),
        }
    }

    fn frame(topic: Topic, event: &impl Event, rev: Option<i64>) -> Self {
        Self {
            topic,
            cargo: Cargo::Frame {
                json: encode(event),
                rev,
            },
        }
    }
}

#[derive(Serialize)]
struct Typed<'a, E> {
    r#type: &'static str,
    #[serde(flatten)]
    event: &'a E,
}

/// An event as the text of a frame, `type` first.
pub fn encode(event: &impl Event) -> ByteString {
    let typed = Typed {
        r#type: event.name(),
        event,
    };
    // Only a map with keys that are no text, or a failing `Serialize`, could fail; events have neither.
    serde_json::to_string(&typed)
        .expect("an event is plain data and always encodes")
        .into()
}
