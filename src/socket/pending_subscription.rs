//! A subscription that is under way: what is held back until its answer is out.

use std::sync::Arc;

use serde_json::Number;

use crate::ids::ConversationId;
use crate::realtime::event::{Envelope, utf16_len};
use crate::realtime::outbox::MAX_QUEUED_BYTES;
use crate::runs::live_streams::LiveStream;
use crate::socket::queries::OpenedSubscription;
use crate::socket::server_frames::StreamState;
use crate::socket::subscription_filter::{SnapshotPosition, SubscriptionFilter};

/// One at most at a time for each socket.
pub struct PendingSubscription {
    pub frame_id: Number,
    pub conversation: ConversationId,
    /// What the answer will say, once it is known; then only the mark is waited for.
    pub result: Option<SubscribeResult>,
    buffered: Vec<Arc<Envelope>>,
    buffered_bytes: usize,
    /// Something was lost meanwhile: the client must begin again.
    pub has_gap: bool,
}

/// What the answer says.
pub struct SubscribeResult {
    pub opened: OpenedSubscription,
    pub stream: Option<StreamState>,
}

impl PendingSubscription {
    /// Nothing is known yet.
    pub fn new(frame_id: Number, conversation: ConversationId) -> Self {
        Self {
            frame_id: frame_id,
            conversation,
            result: None,
            buffered: Vec::new(),
            buffered_bytes: 0,
            has_gap: false,
        }
    }

    /// Holds an envelope back; past the bound of an outbox everything is lost.
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

    /// The snapshot is there, and the text of whoever writes now, read just behind the mark.
    pub fn set_result(&mut self, opened: OpenedSubscription, live: Option<LiveStream>) {
        let stream = opened.running.map(|(run_id, membership_id)| StreamState {
            run_id,
            membership_id,
            text: live
                .filter(|it| it.run_id == run_id)
                .map(|it| it.text)
                .unwrap_or_default(),
        });
        self.result = Some(SubscribeResult { opened, stream });
    }

    /// The filter that begins behind the answer, and what is to be judged by it first.
    pub fn release(mut self, result: &SubscribeResult) -> (SubscriptionFilter, Vec<Arc<Envelope>>) {
        let running = result.stream.as_ref();
        let start = SnapshotPosition {
            rev: result.opened.rev,
            running: running.map(|it| (it.run_id.0, utf16_len(&it.text))),
        };
        let filter = SubscriptionFilter::new(start, &mut self.buffered);
        (filter, self.buffered)
    }

    /// What was held back, where there is no answer: the filter from before goes on with it.
    pub fn into_buffered(self) -> Vec<Arc<Envelope>> {
        self.buffered
    }
}
