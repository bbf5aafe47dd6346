//! Events and their envelopes: an event is encoded once, for all subscribers.

use base::ids::{ApiKeyId, ConversationId, SessionId, SpaceId, UserId};
use bytestring::ByteString;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::topic::Topic;

/// An event: declared in the module where it happens, read only by clients.
pub trait Event: Serialize {
    /// The value of the field `type`.
    fn name(&self) -> &'static str;
}

/// One published event, encoded once.
#[derive(Clone, Debug)]
pub struct Envelope {
    pub topic: Topic,
    pub payload: Payload,
}

/// The content of an envelope, as far as the hub and the sockets need to know it.
#[derive(Clone, Debug)]
pub enum Payload {
    /// A frame. A durable one has the `rev` of its conversation.
    Frame { json: ByteString, rev: Option<i64> },
    /// A frame of the stream of `run`: its start, its end, a reset.
    Stream {
        json: ByteString,
        run: Uuid,
        /// The lease under which it is written: frames with an older lease are ignored.
        lease: i64,
        mark: StreamBoundary,
    },
    /// A piece of the stream of `run`; queued pieces may be merged.
    Delta(StreamDelta),
    /// A frame for everyone except the user who caused it.
    ExceptUser { json: ByteString, except: UserId },
    /// A command for the sockets of a user; never sent to clients.
    Control(SocketControl),
}

/// The effect of a frame on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamBoundary {
    /// `typing_start`.
    Start,
    /// `stream_reset`: the text starts again from the beginning.
    Reset,
    /// `stream_complete`: no delta follows.
    Complete,
    /// `typing_stop`: the last frame of a run.
    Stop,
}

/// A piece of the text of a running run.
#[derive(Clone, Debug)]
pub struct StreamDelta {
    /// The whole frame `stream_chunk`, encoded.
    pub json: ByteString,
    pub conversation: i64,
    pub run: Uuid,
    /// As in [`Payload::Stream`]; 0 where it is no longer checked.
    pub lease: i64,
    /// UTF-16 units of the text before this piece.
    pub offset: usize,
    /// UTF-16 units of this piece.
    pub length: usize,
    pub text: ByteString,
}

/// A command for the sockets of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SocketControl {
    /// The membership in this space was lost, or has fewer rights: check the subscriptions again.
    RightsChanged(SpaceId),
    /// The server-wide role was lost: check all subscriptions again.
    RoleLost,
    /// This session has ended: close.
    SessionEnded(SessionId),
    /// This API key was revoked: close.
    KeyRevoked(ApiKeyId),
    /// Every session of this user has ended: close.
    Disabled,
}

impl Envelope {
    /// Creates an event without an order relative to others.
    pub fn plain(topic: Topic, event: &impl Event) -> Self {
        Self::frame(topic, event, None)
    }

    /// Creates a durable event of a conversation.
    pub fn durable(topic: Topic, event: &impl Event, rev: i64) -> Self {
        Self::frame(topic, event, Some(rev))
    }

    /// Creates a frame of the stream of a run, under its lease.
    pub fn stream(
        topic: Topic,
        event: &impl Event,
        (run, lease): (Uuid, i64),
        mark: StreamBoundary,
    ) -> Self {
        Self {
            topic,
            payload: Payload::Stream {
                json: encode(event),
                run,
                lease,
                mark,
            },
        }
    }

    /// Creates a piece of a stream, for the subscribers of its conversation.
    pub fn delta(delta: StreamDelta) -> Self {
        Self {
            topic: Topic::Conversation(ConversationId(delta.conversation)),
            payload: Payload::Delta(delta),
        }
    }

    /// Creates an event for everyone except the user who caused it.
    pub fn except_user(topic: Topic, event: &impl Event, except: UserId) -> Self {
        Self {
            topic,
            payload: Payload::ExceptUser {
                json: encode(event),
                except,
            },
        }
    }

    /// Returns the bytes that this envelope keeps allocated while it is queued, at least.
    pub fn size(&self) -> usize {
        let text = match &self.payload {
            Payload::Frame { json, .. }
            | Payload::Stream { json, .. }
            | Payload::ExceptUser { json, .. } => json.len(),
            Payload::Delta(delta) => delta.json.len() + delta.text.len(),
            Payload::Control(_) => 0,
        };
        text + size_of::<Self>()
    }

    /// Creates a command for a user's sockets.
    pub fn control(user: UserId, order: SocketControl) -> Self {
        Self {
            topic: Topic::User(user),
            payload: Payload::Control(order),
        }
    }

    fn frame(topic: Topic, event: &impl Event, rev: Option<i64>) -> Self {
        Self {
            topic,
            payload: Payload::Frame {
                json: encode(event),
                rev,
            },
        }
    }
}

/// The frame of a piece of text; the only event declared here, because queued pieces are merged and
/// encoded again.
#[derive(Serialize)]
struct StreamChunkFrame<'a> {
    conversation_id: i64,
    run_id: Uuid,
    offset: usize,
    delta: &'a str,
}

impl Event for StreamChunkFrame<'_> {
    fn name(&self) -> &'static str {
        "stream_chunk"
    }
}

impl StreamDelta {
    /// Creates the piece `text` that starts after `offset` UTF-16 units of the run's text.
    pub fn new(
        conversation: ConversationId,
        run: Uuid,
        offset: usize,
        text: impl Into<ByteString>,
    ) -> Self {
        let text = text.into();
        let chunk = StreamChunkFrame {
            conversation_id: conversation.0,
            run_id: run,
            offset,
            delta: &text,
        };
        Self {
            json: encode(&chunk),
            conversation: conversation.0,
            run,
            lease: 0,
            offset,
            length: utf16_len(&text),
            text,
        }
    }

    /// Returns the same piece, written under this lease.
    pub fn with_lease(self, lease: i64) -> Self {
        Self { lease, ..self }
    }

    /// Returns the UTF-16 units of the run's text up to the end of this piece.
    pub fn end(&self) -> usize {
        self.offset + self.length
    }
}

/// Returns the length of a text as a browser counts it.
pub fn utf16_len(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

#[derive(Serialize)]
struct TypedEvent<'a, E> {
    r#type: &'static str,
    #[serde(flatten)]
    event: &'a E,
}

/// Encodes an event as the text of a frame, `type` first.
pub fn encode(event: &impl Event) -> ByteString {
    let typed = TypedEvent {
        r#type: event.name(),
        event,
    };
    // Only non-string map keys or a failing `Serialize` cause errors; events have neither.
    serde_json::to_string(&typed)
        .expect("an event is plain data and always encodes")
        .into()
}
