//! Events and their envelopes: each event is encoded once for each protocol, for all subscribers of
//! its topic. An envelope can also contain a command for sockets.
//!
//! In protocol 2, a piece of a stream names a handle in place of its conversation and run: the id of
//! the conversation, see [`stream_handle`].

use std::sync::OnceLock;

use base::ids::{ApiKeyId, ConversationId, SessionId, SpaceId, UserId};
use bytestring::ByteString;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use crate::receivers::Receivers;
use crate::topic::Topic;

/// An event: declared in the module where it happens, read only by clients.
pub trait Event: Serialize {
    /// The value of the field `type`.
    fn name(&self) -> &'static str;
}

/// The version of the frames that a socket receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Every frame names its type and its ids.
    #[default]
    V1,
    /// A piece of a stream is short: `{"h": handle, "o": offset, "d": text}`.
    V2,
}

/// One published event.
#[derive(Clone, Debug)]
pub struct Envelope {
    pub topic: Topic,
    /// Which subscribers of the topic receive it.
    pub receivers: Receivers,
    pub payload: Payload,
}

/// The content of an envelope, as far as the hub and the sockets need to know it.
#[derive(Clone, Debug)]
pub enum Payload {
    /// A frame. A durable one has the `rev` of its conversation.
    Frame { json: ByteString, rev: Option<i64> },
    /// The start, the end or a reset of a stream.
    Stream(StreamFrame),
    /// A piece of a stream; queued pieces may be merged.
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

/// The start, the end or a reset of the stream of a run.
#[derive(Clone, Debug)]
pub struct StreamFrame {
    /// The frame in protocol 1.
    pub json: ByteString,
    pub run: Uuid,
    /// The lease under which it is written: frames with an older lease are ignored.
    pub lease: i64,
    pub mark: StreamBoundary,
    /// For a start: the UTF-16 units of an existing text that the run continues; else 0.
    pub base_length: usize,
    /// A start in protocol 2, encoded when the first socket needs it.
    with_handle: OnceLock<ByteString>,
}

/// A piece of the text of a running run. Each of its frames is encoded when the first socket needs
/// it.
#[derive(Clone, Debug)]
pub struct StreamDelta {
    /// The whole frame `stream_chunk`.
    long_frame: OnceLock<ByteString>,
    /// The same piece in protocol 2.
    short_frame: OnceLock<ByteString>,
    pub conversation: i64,
    pub run: Uuid,
    /// As in [`StreamFrame`]; 0 where it is no longer checked.
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
        Self::with_frame(topic, event, None)
    }

    /// Creates a durable event of a conversation.
    pub fn durable(topic: Topic, event: &impl Event, rev: i64) -> Self {
        Self::with_frame(topic, event, Some(rev))
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
            receivers: Receivers::Everyone,
            payload: Payload::Stream(StreamFrame::new(encode(event), (run, lease), mark)),
        }
    }

    /// Creates a piece of a stream, for the subscribers of its conversation.
    pub fn delta(delta: StreamDelta) -> Self {
        Self {
            topic: Topic::Conversation(ConversationId(delta.conversation)),
            receivers: Receivers::Everyone,
            payload: Payload::Delta(delta),
        }
    }

    /// Creates an event for everyone except the user who caused it.
    pub fn except_user(topic: Topic, event: &impl Event, except: UserId) -> Self {
        Self {
            topic,
            receivers: Receivers::Everyone,
            payload: Payload::ExceptUser {
                json: encode(event),
                except,
            },
        }
    }

    /// Returns the frame for a socket with this protocol; `None` if clients get none. Encoded at most
    /// once, and then shared by all sockets.
    pub fn frame(&self, protocol: Protocol) -> Option<&ByteString> {
        match &self.payload {
            Payload::Frame { json, .. } | Payload::ExceptUser { json, .. } => Some(json),
            Payload::Stream(event) => match self.topic {
                Topic::Conversation(id) => Some(event.frame(id, protocol)),
                _ => Some(&event.json),
            },
            Payload::Delta(delta) => Some(delta.frame(protocol)),
            Payload::Control(_) => None,
        }
    }

    /// Returns the bytes that this envelope keeps allocated while it is queued, approximately. The
    /// same at any time, whatever is encoded.
    pub fn size(&self) -> usize {
        let text = match &self.payload {
            Payload::Frame { json, .. } | Payload::ExceptUser { json, .. } => json.len(),
            Payload::Stream(event) => event.json.len(),
            Payload::Delta(delta) => 2 * delta.text.len() + CHUNK_FIELDS_BYTES,
            Payload::Control(_) => 0,
        };
        text + size_of::<Self>()
    }

    /// Creates a command for a user's sockets.
    pub fn control(user: UserId, order: SocketControl) -> Self {
        Self {
            topic: Topic::User(user),
            receivers: Receivers::Everyone,
            payload: Payload::Control(order),
        }
    }

    fn with_frame(topic: Topic, event: &impl Event, rev: Option<i64>) -> Self {
        Self {
            topic,
            receivers: Receivers::Everyone,
            payload: Payload::Frame {
                json: encode(event),
                rev,
            },
        }
    }
}

/// The length of a frame `stream_chunk` without its text, at most.
const CHUNK_FIELDS_BYTES: usize = 160;

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

/// The same piece in protocol 2.
#[derive(Serialize)]
struct ShortChunkFrame<'a> {
    h: i64,
    o: usize,
    d: &'a str,
}

/// Returns the handle of the stream of a conversation in protocol 2: the id of the conversation.
///
/// On a node, at any time one run of a conversation streams: the one that started last. Its
/// `typing_start`, or the snapshot of a later subscriber, precedes its pieces at every socket.
pub fn stream_handle(conversation: ConversationId) -> i64 {
    conversation.0
}

impl StreamFrame {
    /// Creates a frame of the stream of a run, written under its lease; `json` is the frame in
    /// protocol 1.
    pub fn new(json: ByteString, (run, lease): (Uuid, i64), mark: StreamBoundary) -> Self {
        let base_length = match mark {
            StreamBoundary::Start => parse_base_length(&json),
            _ => 0,
        };
        Self {
            json,
            run,
            lease,
            mark,
            base_length,
            with_handle: OnceLock::new(),
        }
    }

    fn frame(&self, conversation: ConversationId, protocol: Protocol) -> &ByteString {
        match (protocol, self.mark) {
            (Protocol::V2, StreamBoundary::Start) => self.with_handle.get_or_init(|| {
                let fields = self.json.strip_suffix('}').unwrap_or(&self.json);
                format!(r#"{fields},"h":{}}}"#, stream_handle(conversation)).into()
            }),
            _ => &self.json,
        }
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
        Self {
            long_frame: OnceLock::new(),
            short_frame: OnceLock::new(),
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

    /// Returns the part of this piece after the first `length` UTF-16 units of the run's text, which
    /// begins at `length`; `None` if that position is inside a character or outside this piece.
    pub fn after(&self, length: usize) -> Option<Self> {
        let mut units = self.offset;
        let mut known = 0;
        for it in self.text.chars() {
            if units >= length {
                break;
            }
            units += it.len_utf16();
            known += it.len_utf8();
        }
        let conversation = ConversationId(self.conversation);
        let rest = || Self::new(conversation, self.run, length, &self.text[known..]);
        (units == length).then(|| rest().with_lease(self.lease))
    }

    /// Returns the frame for a socket with this protocol.
    pub fn frame(&self, protocol: Protocol) -> &ByteString {
        match protocol {
            Protocol::V1 => self.long_frame.get_or_init(|| {
                encode(&StreamChunkFrame {
                    conversation_id: self.conversation,
                    run_id: self.run,
                    offset: self.offset,
                    delta: &self.text,
                })
            }),
            Protocol::V2 => self.short_frame.get_or_init(|| {
                to_json(&ShortChunkFrame {
                    h: stream_handle(ConversationId(self.conversation)),
                    o: self.offset,
                    d: &self.text,
                })
            }),
        }
    }
}

/// The same piece of the same run; what is encoded of it is not compared.
impl PartialEq for StreamDelta {
    fn eq(&self, other: &Self) -> bool {
        (self.run, self.lease, self.offset) == (other.run, other.lease, other.offset)
            && (self.conversation, &self.text) == (other.conversation, &other.text)
    }
}

impl Eq for StreamDelta {}

/// Returns the field `base_length` of a start; 0 if it has none.
pub fn parse_base_length(start: &str) -> usize {
    #[derive(Default, Deserialize)]
    struct Start {
        #[serde(default)]
        base_length: Option<usize>,
    }
    let start: Start = serde_json::from_str(start).unwrap_or_default();
    start.base_length.unwrap_or_default()
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
    to_json(&typed)
}

fn to_json(frame: &impl Serialize) -> ByteString {
    // Only non-string map keys or a failing `Serialize` cause errors; events have neither.
    serde_json::to_string(frame)
        .expect("an event is plain data and always encodes")
        .into()
}

#[cfg(test)]
#[path = "envelope_tests.rs"]
mod tests;
