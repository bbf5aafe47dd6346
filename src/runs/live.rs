//! The text so far of every run that is being written on this node.
//!
//! **Invariant:** a delta is published under the same lock that guards the text, so that whoever
//! reads the text knows which deltas it holds; and once a stream is closed, nothing of it is
//! published any more: after a cancel is acknowledged no reader sees another word.

use crate::ids::ConversationId;
use crate::ids::MembershipId;
use crate::ids::RunId;
use crate::realtime::event;
use crate::realtime::event::Cargo;
use crate::realtime::event::Delta;
use crate::realtime::event::Envelope;
use crate::realtime::hub::Hub;
use crate::realtime::topic::Topic;
use crate::runs::events::StreamChunk;
use dashmap::DashMap;
use std::sync::Arc;

/// The streams of this node. Cloning gives another handle on the same ones.
#[derive(Clone)]
pub struct Live {
    hub: Hub,
    /// One for each conversation in which a run of this node writes; it ends with the run.
    streams: Arc<DashMap<ConversationId, Stream>>,
}

#[derive(Clone, Debug)]
struct Stream {
    run: RunId,
    membership: MembershipId,
    text: String,
    /// UTF-16 units of `text`.
    length: usize,
}

/// What a late listener is told of a stream.
#[derive(Clone, Debug)]
pub struct LiveText {
    pub run_id: RunId,
    pub membership_id: MembershipId,
    pub text: String,
}

impl Live {
    /// Nothing is being written.
    pub fn new(hub: Hub) -> Self {
        Self {
            hub,
            streams: Arc::default(),
        }
    }

    /// A run begins, with an empty text.
    pub fn open(&self, conversation: ConversationId, run: RunId, membership: MembershipId) {
        let stream = Stream {
            run,
            membership,
            text: String::new(),
            length: 0,
        };
        self.streams.insert(conversation, stream);
    }

    /// Adds to a run's text and tells everyone. `false`: the stream was closed, nobody is told.
    pub fn append(&self, conversation: ConversationId, run: RunId, delta: &str) -> bool {
        let Some(mut stream) = self.streams.get_mut(&conversation) else {
            return false;
        };
        if stream.run != run {
            return false;
        }
        let chunk = StreamChunk {
            conversation_id: conversation,
            run_id: run,
            offset: stream.length,
            delta,
        };
        let length = delta.encode_utf16().count();
        self.hub.publish(Envelope {
            topic: Topic::Conversation(conversation),
            cargo: Cargo::Delta(Delta {
                json: event::encode(&chunk),
                conversation: conversation.0,
                run: run.0,
                offset: stream.length,
                length,
                text: delta.into(),
            }),
        });
        stream.text.push_str(delta);
        stream.length += length;
        true
    }

    /// The run writes no more.
    pub fn close(&self, conversation: ConversationId, run: RunId) {
        self.streams
            .remove_if(&conversation, |_, stream| stream.run == run);
    }

    /// The text so far.
    pub fn text(&self, conversation: ConversationId) -> Option<LiveText> {
        self.streams.get(&conversation).map(|it| LiveText {
            run_id: it.run,
            membership_id: it.membership,
            text: it.text.clone(),
        })
    }
}
