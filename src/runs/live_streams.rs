//! The text so far of every run that is being written, here or on another node.
//!
//! **Invariant:** a delta is published under the same lock that guards the text, so that whoever
//! reads the text knows which deltas it holds; and once a stream is closed, nothing of it is
//! published any more: after a cancel is acknowledged no reader sees another word.
//!
//! **Invariant:** what is heard of another node passes on without gaps. A piece that does not
//! continue the text is held back, and whoever writes is asked for all of it. What comes under an
//! older lease than the newest that is known is void.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use dashmap::DashMap;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::ids::{ConversationId, RunId};
use crate::realtime::cluster::signal::{ClusterSignal, StreamSnapshot};
use crate::realtime::event;
use crate::realtime::event::{Envelope, Payload, StreamBoundary, StreamDelta, utf16_len};
use crate::realtime::hub::Hub;
use crate::realtime::topic::Topic;
use crate::runs::events::{StreamReset, TypingStart};

/// Whoever writes is asked again for the same text after this.
const REQUEST_INTERVAL: Duration = Duration::from_millis(300);

/// Below so many streams none is swept.
const SWEEP_THRESHOLD: usize = 1024;

/// A stream of which nothing was heard for so long is over, whatever was missed.
const MAX_SILENCE: Duration = Duration::from_secs(900);

/// The streams that this node knows. Cloning gives another handle on the same ones.
#[derive(Clone)]
pub struct LiveStreams {
    hub: Hub,
    /// The newest of each conversation. One that has ended is kept, without its text: what comes
    /// late must not look like a beginning.
    streams: Arc<DashMap<ConversationId, LiveStreamState>>,
    /// When whom was asked for a text.
    requested: Arc<Mutex<HashMap<ConversationId, Instant>>>,
    /// Rung when a text was told.
    text_received: Arc<Notify>,
}

#[derive(Clone, Debug)]
struct LiveStreamState {
    run: RunId,
    lease: i64,
    is_local: bool,
    has_ended: bool,
    touched: Instant,
    /// The frame `typing_start`, encoded.
    start: String,
    text: String,
    /// UTF-16 units of `text`.
    length: usize,
}

/// What a late listener is told of a stream.
#[derive(Clone, Debug)]
pub struct LiveStream {
    pub run_id: RunId,
    pub text: String,
}

/// A mark of a stream as another node set it.
#[derive(Clone, Debug)]
pub struct RemoteBoundary {
    pub conversation: ConversationId,
    pub run: RunId,
    pub lease: i64,
    pub mark: StreamBoundary,
}

impl LiveStreams {
    /// Nothing is being written.
    pub fn new(hub: Hub) -> Self {
        Self {
            hub,
            streams: Arc::default(),
            requested: Arc::default(),
            text_received: Arc::default(),
        }
    }

    /// A run of this node begins, with an empty text.
    pub fn open(&self, start: &TypingStart, lease: i64) {
        let stream = LiveStreamState {
            run: start.run_id,
            lease,
            is_local: true,
            has_ended: false,
            touched: Instant::now(),
            start: event::encode(start).to_string(),
            text: String::new(),
            length: 0,
        };
        self.insert(start.conversation_id, stream);
    }

    /// Puts a stream in place of the last one of its conversation. The same run under an older
    /// lease was handed over, and not everybody may have heard that yet.
    fn insert(&self, conversation: ConversationId, stream: LiveStreamState) {
        self.sweep();
        let before = self.streams.insert(conversation, stream.clone());
        if before.is_some_and(|it| it.run == stream.run && !it.has_ended) {
            self.reset(conversation, stream.run, stream.lease);
        }
    }

    fn reset(&self, conversation_id: ConversationId, run_id: RunId, lease: i64) {
        let event = StreamReset {
            conversation_id,
            run_id,
        };
        let topic = Topic::Conversation(conversation_id);
        let mark = Envelope::stream(topic, &event, (run_id.0, lease), StreamBoundary::Reset);
        self.hub.publish_local(mark);
    }

    /// Adds to the text of a run of this node and tells everyone. `false`: the stream was closed,
    /// nobody is told.
    pub fn append(&self, conversation: ConversationId, run: RunId, delta: &str) -> bool {
        let Some(mut stream) = self.streams.get_mut(&conversation) else {
            return false;
        };
        if stream.run != run || stream.has_ended || !stream.is_local {
            return false;
        }
        let delta =
            StreamDelta::new(conversation, run.0, stream.length, delta).with_lease(stream.lease);
        stream.push(&delta);
        self.hub.publish(Envelope::delta(delta));
        true
    }

    /// The run writes no more under this lease.
    pub fn close(&self, conversation: ConversationId, run: RunId, lease: i64) {
        if let Some(mut stream) = self.streams.get_mut(&conversation)
            && stream.run == run
            && stream.lease <= lease
        {
            stream.mark_ended();
        }
    }

    /// The text so far.
    pub fn text(&self, conversation: ConversationId) -> Option<LiveStream> {
        let stream = self.streams.get(&conversation)?;
        (!stream.has_ended).then(|| LiveStream {
            run_id: stream.run,
            text: stream.text.clone(),
        })
    }

    /// A beginning, a reset or an end on another node.
    pub fn apply_boundary(&self, boundary: &RemoteBoundary, envelope: Envelope) {
        let RemoteBoundary {
            conversation,
            run,
            lease,
            mark,
        } = *boundary;
        let known = self.streams.get_mut(&conversation);
        let known = known.filter(|it| it.run == run);
        if let Some(mut stream) = known {
            if lease < stream.lease || (mark == StreamBoundary::Start && lease == stream.lease) {
                return; // of a lease that is over, or told again
            }
            match mark {
                StreamBoundary::Start => drop(stream),
                StreamBoundary::Reset => {
                    stream.rewrite(String::new());
                    return self.hub.publish_local(envelope);
                }
                StreamBoundary::Complete | StreamBoundary::Stop => {
                    stream.mark_ended();
                    return self.hub.publish_local(envelope);
                }
            }
        }
        if let Payload::Stream { json, .. } = &envelope.payload {
            let mut stream = LiveStreamState::from_remote(run, lease, json);
            match mark {
                StreamBoundary::Start => self.insert(conversation, stream),
                StreamBoundary::Reset => {}
                StreamBoundary::Complete | StreamBoundary::Stop => {
                    stream.mark_ended();
                    self.streams.entry(conversation).or_insert(stream);
                }
            }
        }
        self.hub.publish_local(envelope);
    }

    /// A piece of text from another node.
    pub fn apply_delta(&self, delta: StreamDelta) {
        let conversation = ConversationId(delta.conversation);
        if let Some(mut stream) = self.streams.get_mut(&conversation) {
            let is_known = stream.run.0 == delta.run && delta.lease <= stream.lease;
            let is_void = stream.has_ended || stream.is_local || delta.lease < stream.lease;
            if is_known && (is_void || delta.end() <= stream.length) {
                return;
            }
            if is_known && delta.offset == stream.length {
                stream.push(&delta);
                return self.hub.publish_local(Envelope::delta(delta));
            }
        }
        // Its beginning was missed, or something in between.
        if self.hub.has_subscribers(Topic::Conversation(conversation)) {
            self.request_text(conversation);
        }
    }

    /// Asks whoever writes for the text so far, unless that was done just now.
    pub fn request_text(&self, conversation: ConversationId) {
        let now = Instant::now();
        let mut asked = self.requested.lock();
        asked.retain(|_, at| now.duration_since(*at) < REQUEST_INTERVAL);
        if asked.insert(conversation, now).is_none() {
            self.hub.bus().publish(ClusterSignal::Ask { conversation });
        }
    }

    /// The text so far of a run elsewhere, once it is told; `None` when nobody tells it in time.
    pub async fn wait_for_text(
        &self,
        conversation: ConversationId,
        run: RunId,
        timeout: Duration,
    ) -> Option<LiveStream> {
        let received = async {
            loop {
                let told = self.text_received.notified();
                let text = self.text(conversation).filter(|it| it.run_id == run);
                if text.is_some() || !self.hub.bus().is_connected() {
                    return text;
                }
                self.request_text(conversation);
                told.await;
            }
        };
        tokio::time::timeout(timeout, received).await.ok().flatten()
    }

    /// Tells the other nodes what this one is writing in a conversation.
    pub fn send_text(&self, conversation: ConversationId) {
        let Some(stream) = self.streams.get(&conversation) else {
            return;
        };
        if !stream.is_local || stream.has_ended {
            return;
        }
        // Under the lock of the text: the next piece continues what is told here.
        self.hub.bus().publish(ClusterSignal::Text(StreamSnapshot {
            conversation,
            run: stream.run.0,
            lease: stream.lease,
            start: stream.start.clone(),
            text: stream.text.clone(),
        }));
    }

    /// Another node told what it is writing.
    pub fn apply_text(&self, remote: StreamSnapshot) {
        let (conversation, run) = (remote.conversation, RunId(remote.run));
        let topic = Topic::Conversation(conversation);
        let known = self.streams.get(&conversation).map(|known| {
            let is_same = known.run == run && known.lease == remote.lease;
            let is_over = known.run == run && (known.has_ended || known.lease > remote.lease);
            (is_same, is_over || known.is_local && !known.has_ended)
        });
        match known {
            Some((_, true)) => return,
            Some((true, false)) => {}
            _ => {
                let json = ByteString::from(remote.start.as_str());
                let stream = LiveStreamState::from_remote(run, remote.lease, &json);
                self.insert(conversation, stream);
                let cargo = Payload::Stream {
                    json,
                    run: remote.run,
                    lease: remote.lease,
                    mark: StreamBoundary::Start,
                };
                self.hub.publish_local(Envelope {
                    topic,
                    payload: cargo,
                });
            }
        }
        let Some(mut stream) = self.streams.get_mut(&conversation) else {
            return;
        };
        if !remote.text.starts_with(&stream.text) {
            self.reset(conversation, run, remote.lease);
            stream.rewrite(String::new());
        }
        let rest = &remote.text[stream.text.len()..];
        if !rest.is_empty() {
            let delta = StreamDelta::new(conversation, remote.run, stream.length, rest)
                .with_lease(remote.lease);
            stream.push(&delta);
            self.hub.publish_local(Envelope::delta(delta));
        }
        drop(stream);
        self.text_received.notify_waiters();
    }

    /// Forgets what ended long ago.
    fn sweep(&self) {
        if self.streams.len() < SWEEP_THRESHOLD {
            return;
        }
        let now = Instant::now();
        self.streams.retain(|_, it| {
            let is_silent = now.duration_since(it.touched) > MAX_SILENCE;
            it.is_local && !it.has_ended || !is_silent
        });
    }
}

impl LiveStreamState {
    /// One that another node writes.
    fn from_remote(run: RunId, lease: i64, start: &str) -> Self {
        Self {
            run,
            lease,
            is_local: false,
            has_ended: false,
            touched: Instant::now(),
            start: start.to_owned(),
            text: String::new(),
            length: 0,
        }
    }

    fn push(&mut self, delta: &StreamDelta) {
        self.touched = Instant::now();
        self.text.push_str(&delta.text);
        self.length = delta.end();
    }

    fn rewrite(&mut self, text: String) {
        self.length = utf16_len(&text);
        self.text = text;
    }

    fn mark_ended(&mut self) {
        self.has_ended = true;
        self.touched = Instant::now();
        self.start = String::new();
        self.rewrite(String::new());
    }
}

#[cfg(test)]
#[path = "live_streams_tests.rs"]
mod tests;
