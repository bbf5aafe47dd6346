//! Keeps the text so far of every run that is being written on any node, publishes its deltas to
//! subscribers, and fills gaps in the deltas of other nodes.
//!
//! **Invariant:** a delta is published under the lock that guards the text, so that a reader of the
//! text knows which deltas it contains. Once a stream is closed, no delta of it is published: after
//! a cancellation is acknowledged, readers get no more text.
//!
//! **Invariant:** deltas of another node are passed on without gaps. A delta that does not continue
//! the text is dropped, and the complete text is requested from the writing node. Deltas of a lease
//! older than the newest known one are ignored.
//!
//! **Invariant:** after the start of a run is published, no delta of an earlier run of its
//! conversation is published. Therefore the conversation identifies the stream of a delta in
//! protocol 2.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base::ids::{ConversationId, RunId};
use bytestring::ByteString;
use dashmap::DashMap;
use parking_lot::Mutex;
use realtime::cluster::signal::{ClusterSignal, StreamSnapshot};
use realtime::envelope;
use realtime::envelope::{
    Envelope, Payload, Receivers, StreamBoundary, StreamDelta, StreamFrame, utf16_len,
};
use realtime::hub::Hub;
use realtime::topic::Topic;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::runs::events::{StreamReset, TypingStart};

/// The minimum time between two requests for the same text.
const REQUEST_INTERVAL: Duration = Duration::from_millis(300);

/// Streams are removed only above this number.
const SWEEP_THRESHOLD: usize = 1024;

/// A stream without activity for this long is over, even if its end was missed.
const MAX_SILENCE: Duration = Duration::from_secs(900);

/// The streams of this node and those received from others. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct LiveStreams {
    hub: Hub,
    /// The newest stream of each conversation. An ended one is kept without its text, so that late
    /// events do not look like a new stream.
    streams: Arc<DashMap<ConversationId, LiveStreamState>>,
    /// When the text of a conversation was last requested.
    requested: Arc<Mutex<HashMap<ConversationId, Instant>>>,
    /// Notified when a requested text arrives.
    text_received: Arc<Notify>,
}

#[derive(Clone, Debug)]
struct LiveStreamState {
    run: RunId,
    lease: i64,
    is_local: bool,
    has_ended: bool,
    touched: Instant,
    /// The encoded frame `typing_start`.
    start: String,
    /// Who receives the start. All others ignore the frames that follow.
    receivers: Receivers,
    /// Length of the text that the run continues, which is not part of `text`; else 0.
    base_length: usize,
    text: String,
    /// Length of both texts in UTF-16 code units.
    length: usize,
}

/// A stream and its text so far, for a late subscriber. A text that the run continues is not included.
#[derive(Clone, Debug)]
pub struct LiveStream {
    pub run_id: RunId,
    pub text: String,
}

impl LiveStreams {
    /// Returns an empty set of streams.
    pub fn new(hub: Hub) -> Self {
        Self {
            hub,
            streams: Arc::default(),
            requested: Arc::default(),
            text_received: Arc::default(),
        }
    }

    /// Opens the stream of a run of this node, for these receivers of its start.
    pub fn open(&self, start: &TypingStart, lease: i64, receivers: Receivers) {
        let stream = LiveStreamState {
            run: start.run_id,
            lease,
            is_local: true,
            has_ended: false,
            touched: Instant::now(),
            start: envelope::encode(start).to_string(),
            receivers,
            base_length: start.base_length.unwrap_or_default(),
            text: String::new(),
            length: start.base_length.unwrap_or_default(),
        };
        self.insert(start.conversation_id, stream);
    }

    /// Replaces the last stream of its conversation. For a run that was released by another node
    /// and claimed again, publishes a reset, because subscribers may not have received one.
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

    /// Appends to the text of a run of this node and publishes the delta. Returns `false` and
    /// publishes nothing if the stream is closed.
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

    /// Ends the stream of a run under this lease or an older one.
    pub fn close(&self, conversation: ConversationId, run: RunId, lease: i64) {
        if let Some(mut stream) = self.streams.get_mut(&conversation)
            && stream.run == run
            && stream.lease <= lease
        {
            stream.mark_ended();
        }
    }

    /// Returns the text so far; `None` if nothing is being written.
    pub fn text(&self, conversation: ConversationId) -> Option<LiveStream> {
        let stream = self.streams.get(&conversation)?;
        (!stream.has_ended).then(|| LiveStream {
            run_id: stream.run,
            text: stream.text.clone(),
        })
    }

    /// Handles a start, reset or end published by another node.
    pub fn apply_boundary(
        &self,
        conversation: ConversationId,
        receivers: Receivers,
        event: StreamFrame,
    ) {
        let (run, lease, mark) = (RunId(event.run), event.lease, event.mark);
        let known = self.streams.get_mut(&conversation);
        let known = known.filter(|it| it.run == run);
        if let Some(mut stream) = known {
            if lease < stream.lease || (mark == StreamBoundary::Start && lease == stream.lease) {
                return; // of an older lease, or a repeated start
            }
            match mark {
                StreamBoundary::Start => drop(stream),
                StreamBoundary::Reset => {
                    stream.rewrite(String::new());
                    return self.publish_boundary(conversation, receivers, event);
                }
                StreamBoundary::Complete | StreamBoundary::Stop => {
                    stream.mark_ended();
                    return self.publish_boundary(conversation, receivers, event);
                }
            }
        }
        let mut stream = LiveStreamState::from_remote(run, lease, &event.json, receivers.clone());
        match mark {
            StreamBoundary::Start => self.insert(conversation, stream),
            StreamBoundary::Reset => {}
            StreamBoundary::Complete | StreamBoundary::Stop => {
                stream.mark_ended();
                self.streams.entry(conversation).or_insert(stream);
            }
        }
        self.publish_boundary(conversation, receivers, event);
    }

    fn publish_boundary(
        &self,
        conversation: ConversationId,
        receivers: Receivers,
        event: StreamFrame,
    ) {
        self.hub.publish_local(Envelope {
            topic: Topic::Conversation(conversation),
            receivers,
            payload: Payload::Stream(event),
        });
    }

    /// Handles a delta of another node.
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
        // The start of the stream or a delta was missed.
        if self.hub.has_subscribers(Topic::Conversation(conversation)) {
            self.request_text(conversation);
        }
    }

    /// Requests the text so far from the writing node, at most once per `REQUEST_INTERVAL`.
    pub fn request_text(&self, conversation: ConversationId) {
        let now = Instant::now();
        let mut asked = self.requested.lock();
        asked.retain(|_, at| now.duration_since(*at) < REQUEST_INTERVAL);
        if asked.insert(conversation, now).is_none() {
            self.hub
                .bus()
                .publish(ClusterSignal::RequestText { conversation });
        }
    }

    /// Waits for the text so far of a run on another node; `None` if it does not arrive in time.
    pub async fn wait_for_text(
        &self,
        conversation: ConversationId,
        run: RunId,
        timeout: Duration,
    ) -> Option<LiveStream> {
        let received = async {
            loop {
                let received = self.text_received.notified();
                let text = self.text(conversation).filter(|it| it.run_id == run);
                if text.is_some() || !self.hub.bus().is_connected() {
                    return text;
                }
                self.request_text(conversation);
                received.await;
            }
        };
        tokio::time::timeout(timeout, received).await.ok().flatten()
    }

    /// Sends the text that this node is writing in a conversation to the other nodes.
    pub fn send_text(&self, conversation: ConversationId) {
        let Some(stream) = self.streams.get(&conversation) else {
            return;
        };
        if !stream.is_local || stream.has_ended {
            return;
        }
        // Published under the lock of the text, so that the next delta continues it.
        self.hub.bus().publish(ClusterSignal::Text(StreamSnapshot {
            conversation,
            run: stream.run.0,
            lease: stream.lease,
            start: stream.start.clone(),
            receivers: stream.receivers.clone(),
            text: stream.text.clone(),
        }));
    }

    /// Handles the text so far of a run on another node.
    pub fn apply_text(&self, remote: StreamSnapshot) {
        let (conversation, run) = (remote.conversation, RunId(remote.run));
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
                let stream = LiveStreamState::from_remote(
                    run,
                    remote.lease,
                    &json,
                    remote.receivers.clone(),
                );
                self.insert(conversation, stream);
                let identity = (remote.run, remote.lease);
                let start = StreamFrame::new(json, identity, StreamBoundary::Start);
                self.publish_boundary(conversation, remote.receivers.clone(), start);
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

    /// Removes streams without recent activity.
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
    /// Returns the stream of a run on another node, with an empty text.
    fn from_remote(run: RunId, lease: i64, start: &str, receivers: Receivers) -> Self {
        let base_length = envelope::parse_base_length(start);
        Self {
            run,
            lease,
            is_local: false,
            has_ended: false,
            touched: Instant::now(),
            start: start.to_owned(),
            receivers,
            base_length,
            text: String::new(),
            length: base_length,
        }
    }

    fn push(&mut self, delta: &StreamDelta) {
        self.touched = Instant::now();
        self.text.push_str(&delta.text);
        self.length = delta.end();
    }

    fn rewrite(&mut self, text: String) {
        self.length = self.base_length + utf16_len(&text);
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
