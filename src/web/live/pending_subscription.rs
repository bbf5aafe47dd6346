//! A subscription to a conversation whose answer has not been sent yet: buffers the events until
//! then, and creates the filter that decides about them.

use std::sync::Arc;

use base::ids::ConversationId;
use realtime::envelope;
use realtime::envelope::{Envelope, Protocol, utf16_len};
use realtime::outbox::MAX_QUEUED_BYTES;
use serde_json::Number;

use crate::runs::execution::live_streams::LiveStream;
use crate::web::live::queries::OpenedSubscription;
use crate::web::live::server_frames::StreamState;
use crate::web::live::subscription_filter::{SnapshotPosition, SubscriptionFilter};

/// A pending subscription; each socket has at most one.
pub struct PendingSubscription {
    pub frame_id: Number,
    pub conversation: ConversationId,
    /// The content of the answer, once it is known; then only the barrier is missing.
    pub result: Option<SubscribeResult>,
    buffered: Vec<Arc<Envelope>>,
    buffered_bytes: usize,
    /// Events were lost meanwhile: the client must subscribe again.
    pub has_gap: bool,
}

/// The content of the answer.
pub struct SubscribeResult {
    pub opened: OpenedSubscription,
    pub stream: Option<StreamState>,
}

impl PendingSubscription {
    /// Creates a pending subscription without a result.
    pub fn new(frame_id: Number, conversation: ConversationId) -> Self {
        Self {
            frame_id,
            conversation,
            result: None,
            buffered: Vec::new(),
            buffered_bytes: 0,
            has_gap: false,
        }
    }

    /// Buffers an envelope; above the limit of an outbox all are dropped.
    pub fn buffer(&mut self, envelope: Arc<Envelope>) {
        self.buffered_bytes += envelope.size();
        if self.buffered_bytes > MAX_QUEUED_BYTES {
            self.buffered.clear();
            self.has_gap = true;
        }
        if !self.has_gap {
            self.buffered.push(envelope);
        }
    }

    /// Stores the snapshot, and the text of the active run, read directly after the barrier was
    /// set.
    pub fn set_result(
        &mut self,
        opened: OpenedSubscription,
        live: Option<LiveStream>,
        protocol: Protocol,
    ) {
        let handle = envelope::stream_handle(self.conversation);
        let stream = opened.stream.map(|(run_id, membership_id)| {
            let base = opened.base_text.as_deref();
            let live = live.filter(|it| it.run_id == run_id);
            let new = live.map_or_else(String::new, |it| it.text);
            StreamState {
                h: (protocol == Protocol::V2).then_some(handle),
                run_id,
                membership_id,
                base_length: base.map(utf16_len),
                text: format!("{}{new}", base.unwrap_or_default()),
            }
        });
        self.result = Some(SubscribeResult { opened, stream });
    }

    /// Returns the filter that starts after the answer, and the envelopes that it must decide
    /// first.
    pub fn release(mut self, result: &SubscribeResult) -> (SubscriptionFilter, Vec<Arc<Envelope>>) {
        let running = result.stream.as_ref();
        let start = SnapshotPosition {
            rev: result.opened.rev,
            running: running.map(|it| (it.run_id.0, utf16_len(&it.text))),
            base_length: running.and_then(|it| it.base_length).unwrap_or_default(),
        };
        let member = result.opened.membership;
        self.buffered.retain(|it| it.receivers.include(member));
        let filter = SubscriptionFilter::new(start, &mut self.buffered);
        (filter, self.buffered)
    }

    /// Returns the buffered envelopes if there is no answer: the previous filter continues with
    /// them.
    pub fn into_buffered(self) -> Vec<Arc<Envelope>> {
        self.buffered
    }
}
