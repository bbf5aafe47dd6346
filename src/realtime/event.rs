//! What travels: an envelope, encoded once for all who hear it.

use bytestring::ByteString;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::{ApiKeyId, ConversationId, SessionId, SpaceId, UserId};
use crate::realtime::topic::Topic;

/// A room's event: declared where it happens, read by clients alone.
pub trait Event: Serialize {
    /// The word in `type`.
    fn name(&self) -> &'static str;
}

/// One event on its way, encoded once.
#[derive(Clone, Debug)]
pub struct Envelope {
    pub topic: Topic,
    pub payload: Payload,
}

/// What an envelope holds, as far as the loudspeaker and the sockets must know.
#[derive(Clone, Debug)]
pub enum Payload {
    /// A frame. A durable one has the number `rev` of its conversation.
    Frame { json: ByteString, rev: Option<i64> },
    /// A frame that belongs to the stream of `run`: its beginning, its end, a reset.
    Stream {
        json: ByteString,
        run: Uuid,
        /// The fencing number under which it is written: what comes under an older one is void.
        lease: i64,
        mark: StreamBoundary,
    },
    /// A piece of the stream of `run`; pieces that wait may be merged.
    Delta(StreamDelta),
    /// A frame for everyone but this person, who caused it.
    ExceptUser { json: ByteString, except: UserId },
    /// An order to the sockets of a person; never sent on as it is.
    Control(SocketControl),
}

/// What a frame means for a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamBoundary {
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
pub struct StreamDelta {
    /// The whole frame `stream_chunk`, encoded.
    pub json: ByteString,
    pub conversation: i64,
    pub run: Uuid,
    /// As in [`Cargo::Stream`]; 0 where nobody looks any more.
    pub lease: i64,
    /// UTF-16 units of the text before this piece.
    pub offset: usize,
    /// UTF-16 units of this piece.
    pub length: usize,
    pub text: ByteString,
}

/// What a person's sockets must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SocketControl {
    /// The seat in this space is lost, or may do less: look again at what is subscribed.
    RightsChanged(SpaceId),
    /// The role on the whole server was lost: look again at everything that is subscribed.
    RoleLost,
    /// This session has ended: close.
    SessionEnded(SessionId),
    /// This key was revoked: close.
    KeyRevoked(ApiKeyId),
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

    /// A frame of the stream of a run under its lease.
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

    /// A piece of a stream, to the listeners of its conversation.
    pub fn delta(delta: StreamDelta) -> Self {
        Self {
            topic: Topic::Conversation(ConversationId(delta.conversation)),
            payload: Payload::Delta(delta),
        }
    }

    /// An event for everyone but the person who caused it.
    pub fn except_user(topic: Topic, event: &impl Event, except: UserId) -> Self {
        Self {
            topic,
            payload: Payload::ExceptUser {
                json: encode(event),
                except,
            },
        }
    }

    /// Bytes that this envelope keeps alive while it waits, at least.
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

    /// An order to a person's sockets.
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

/// The frame of a piece of text; the one event that is declared here, because pieces that wait are
/// merged and encoded again.
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
    /// The piece `text` that begins after `offset` UTF-16 units of the run's text.
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

    /// The same piece, written under this lease.
    pub fn with_lease(self, lease: i64) -> Self {
        Self { lease, ..self }
    }

    /// UTF-16 units of the run's text up to the end of this piece.
    pub fn end(&self) -> usize {
        self.offset + self.length
    }
}

/// The length of a text as a browser counts it.
pub fn utf16_len(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

#[derive(Serialize)]
struct TypedEvent<'a, E> {
    r#type: &'static str,
    #[serde(flatten)]
    event: &'a E,
}

/// An event as the text of a frame, `type` first.
pub fn encode(event: &impl Event) -> ByteString {
    let typed = TypedEvent {
        r#type: event.name(),
        event,
    };
    // Only a map with keys that are no text, or a failing `Serialize`, could fail; events have neither.
    serde_json::to_string(&typed)
        .expect("an event is plain data and always encodes")
        .into()
}
