//! The bounded event queue of one socket: merges queued text pieces, and drops events if the socket
//! is read too slowly.
//!
//! Queued text pieces of one run are merged. When more than [`MAX_QUEUED_BYTES`] are queued, all
//! queued events of conversations are dropped; the reader gets a gap marker for each conversation
//! that lost something, and requests what it missed.
//!
//! Answers to a client's own frames do not pass through here: the socket's task writes each answer
//! before it reads the next frame, so at most one of them ever waits.
//!
//! **Invariant:** the events of a topic leave in the order in which they came, and after a gap no
//! event of that conversation leaves until [`Outbox::clear_conversation`].

use std::collections::VecDeque;
use std::sync::Arc;

use base::ids::ConversationId;
use parking_lot::Mutex;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::envelope::{Envelope, Payload, SocketControl, StreamDelta};
use crate::topic::Topic;

/// Bytes that may be queued. A single envelope may be larger: a long message must get through.
pub const MAX_QUEUED_BYTES: usize = 256 * 1024;

/// Different socket commands that may be queued; a user has few sessions and not many more spaces.
const MAX_CONTROLS: usize = 256;

/// How far back a text piece searches for the piece that it continues. A larger distance would need
/// as many conversations with queued frames.
const MERGE_WINDOW: usize = 32;

/// The queue between the hub and one socket. Any thread pushes, one task pops.
#[derive(Default)]
pub struct Outbox {
    state: Mutex<OutboxState>,
    /// Notified when the queue is no longer empty.
    wakeup: Notify,
}

/// The next item for the socket.
#[derive(Debug)]
pub enum NextItem {
    /// Must be executed before anything else is sent.
    Control(SocketControl),
    /// Queued events of this conversation were dropped.
    Gap(ConversationId),
    Envelope(Arc<Envelope>),
    /// Everything queued before [`Outbox::push_barrier`] has left.
    Barrier(ConversationId),
    /// An event that cannot be requested again was dropped: the socket must close.
    Overflow,
}

#[derive(Default)]
struct OutboxState {
    controls: VecDeque<SocketControl>,
    /// Conversations that lost events, and whether the reader knows.
    gaps: Vec<ConversationGap>,
    queue: VecDeque<QueuedItem>,
    /// The sum of the sizes in `queue`.
    bytes: usize,
    is_overflowed: bool,
}

struct ConversationGap {
    conversation: ConversationId,
    is_reported: bool,
}

enum QueuedItem {
    Barrier(ConversationId),
    Single(Arc<Envelope>),
    Merged(Box<MergedDeltas>),
}

/// Consecutive pieces of one run, encoded when they leave.
struct MergedDeltas {
    conversation: ConversationId,
    run: Uuid,
    offset: usize,
    /// UTF-16 units of the run's text up to the end of `text`.
    end: usize,
    text: String,
}

impl Outbox {
    /// Creates an empty outbox, to be shared with the hub.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Queues the envelope, or drops it and records that. Never waits. Returns how many envelopes
    /// were dropped, this one or queued ones.
    pub fn push(&self, envelope: &Arc<Envelope>) -> u64 {
        self.change(|state| state.push(envelope))
    }

    /// Marks this position: earlier events of the conversation leave before [`NextItem::Barrier`].
    pub fn push_barrier(&self, conversation: ConversationId) {
        self.change(|state| state.queue.push_back(QueuedItem::Barrier(conversation)));
    }

    /// Waits for the next item. Cancel-safe: nothing is lost when the future is dropped.
    pub async fn next(&self) -> NextItem {
        loop {
            if let Some(next) = self.try_next() {
                return next;
            }
            self.wakeup.notified().await;
        }
    }

    /// Returns the next item, if one is queued.
    pub fn try_next(&self) -> Option<NextItem> {
        self.state.lock().pop()
    }

    /// Records that events were lost before they came here: the reader must load `conversation`
    /// again.
    pub fn mark_gap(&self, conversation: ConversationId) {
        self.change(|state| {
            let topic = Topic::Conversation(conversation);
            if !state.has_gap(topic) {
                state.gaps.push(ConversationGap {
                    conversation,
                    is_reported: false,
                });
            }
            let is_void = |it: &QueuedItem| it.topic() == topic && it.is_recoverable();
            state.queue.retain(|it| !is_void(it));
            state.recount_bytes();
        });
    }

    /// Drops queued events of `conversation` and its gap: its subscription starts or ends here.
    pub fn clear_conversation(&self, conversation: ConversationId) {
        let mut state = self.state.lock();
        state.gaps.retain(|it| it.conversation != conversation);
        state
            .queue
            .retain(|it| it.topic() != Topic::Conversation(conversation));
        state.recount_bytes();
    }

    /// Returns the queued bytes.
    pub fn queued_bytes(&self) -> usize {
        self.state.lock().bytes
    }

    fn change<T>(&self, change: impl FnOnce(&mut OutboxState) -> T) -> T {
        let mut state = self.state.lock();
        let was_empty = state.is_empty();
        let changed = change(&mut state);
        let should_wake = was_empty && !state.is_empty();
        drop(state);
        if should_wake {
            self.wakeup.notify_one();
        }
        changed
    }
}

impl OutboxState {
    fn is_empty(&self) -> bool {
        self.queue.is_empty()
            && self.controls.is_empty()
            && !self.is_overflowed
            && self.gaps.iter().all(|it| it.is_reported)
    }

    /// Returns how many envelopes were dropped.
    fn push(&mut self, envelope: &Arc<Envelope>) -> u64 {
        if let Payload::Control(order) = envelope.payload {
            self.push_control(order);
            return 0;
        }
        if self.is_overflowed || self.has_gap(envelope.topic) {
            return 1;
        }
        if !self.merge_delta(envelope) {
            self.bytes += envelope.size();
            self.queue.push_back(QueuedItem::Single(envelope.clone()));
        }
        match self.bytes > MAX_QUEUED_BYTES && self.queue.len() > 1 {
            true => self.drop_recoverable(),
            false => 0,
        }
    }

    fn push_control(&mut self, order: SocketControl) {
        if self.controls.contains(&order) {
            return;
        }
        match self.controls.len() < MAX_CONTROLS {
            true => self.controls.push_back(order),
            false => self.is_overflowed = true,
        }
    }

    fn pop(&mut self) -> Option<NextItem> {
        if let Some(order) = self.controls.pop_front() {
            return Some(NextItem::Control(order));
        }
        if self.is_overflowed {
            return Some(NextItem::Overflow);
        }
        if let Some(gap) = self.gaps.iter_mut().find(|it| !it.is_reported) {
            gap.is_reported = true;
            return Some(NextItem::Gap(gap.conversation));
        }
        let item = self.queue.pop_front()?;
        self.bytes -= item.size();
        if self.queue.is_empty() {
            // A burst must not keep its memory while the socket is idle.
            self.queue.shrink_to(MERGE_WINDOW);
        }
        Some(item.into_next())
    }

    fn has_gap(&self, topic: Topic) -> bool {
        self.gaps
            .iter()
            .any(|it| topic == Topic::Conversation(it.conversation))
    }

    /// Merges a text piece into a queued one, if it continues the newest frame of its conversation.
    fn merge_delta(&mut self, envelope: &Envelope) -> bool {
        let Payload::Delta(delta) = &envelope.payload else {
            return false;
        };
        let mut newest = self.queue.iter_mut().rev().take(MERGE_WINDOW);
        let Some(newest) = newest.find(|it| it.topic() == envelope.topic) else {
            return false;
        };
        let before = newest.size();
        let merged = newest.append(delta);
        self.bytes = self.bytes - before + newest.size();
        merged
    }

    /// Drops the queued events of conversations, because clients can request them again. The rest
    /// must fit. Returns how many were dropped.
    fn drop_recoverable(&mut self) -> u64 {
        let n_before = self.queue.len();
        for place in 0..self.queue.len() {
            let topic = self.queue[place].topic();
            if let Topic::Conversation(conversation) = topic
                && !self.has_gap(topic)
            {
                self.gaps.push(ConversationGap {
                    conversation,
                    is_reported: false,
                });
            }
        }
        self.queue.retain(|it| !it.is_recoverable());
        self.recount_bytes();
        if self.bytes > MAX_QUEUED_BYTES {
            self.is_overflowed = true;
            self.queue.clear();
            self.bytes = 0;
        }
        (n_before - self.queue.len()) as u64
    }

    fn recount_bytes(&mut self) {
        self.bytes = self.queue.iter().map(QueuedItem::size).sum();
    }
}

impl QueuedItem {
    fn topic(&self) -> Topic {
        match self {
            Self::Barrier(conversation) => Topic::Conversation(*conversation),
            Self::Single(envelope) => envelope.topic,
            Self::Merged(merged) => Topic::Conversation(merged.conversation),
        }
    }

    /// Returns whether the client can request it again.
    fn is_recoverable(&self) -> bool {
        !matches!(self, Self::Barrier(_)) && matches!(self.topic(), Topic::Conversation(_))
    }

    fn size(&self) -> usize {
        match self {
            Self::Barrier(_) => 0,
            Self::Single(envelope) => envelope.size(),
            Self::Merged(merged) => size_of::<MergedDeltas>() + merged.text.len(),
        }
    }

    /// Appends a piece if it is of the same run and starts where this one ends.
    fn append(&mut self, delta: &StreamDelta) -> bool {
        if self.end() != Some((delta.run, delta.offset)) {
            return false;
        }
        if let Self::Single(envelope) = self
            && let Payload::Delta(first) = &envelope.payload
        {
            *self = Self::Merged(Box::new(MergedDeltas {
                conversation: ConversationId(first.conversation),
                run: first.run,
                offset: first.offset,
                end: first.end(),
                text: first.text.to_string(),
            }));
        }
        if let Self::Merged(merged) = self {
            merged.text.push_str(&delta.text);
            merged.end = delta.end();
        }
        true
    }

    /// Returns where the next piece would start, if this is a piece of a run.
    fn end(&self) -> Option<(Uuid, usize)> {
        match self {
            Self::Merged(merged) => Some((merged.run, merged.end)),
            Self::Single(envelope) => match &envelope.payload {
                Payload::Delta(delta) => Some((delta.run, delta.end())),
                _ => None,
            },
            Self::Barrier(_) => None,
        }
    }

    fn into_next(self) -> NextItem {
        match self {
            Self::Barrier(conversation) => NextItem::Barrier(conversation),
            Self::Single(envelope) => NextItem::Envelope(envelope),
            Self::Merged(it) => {
                let delta = StreamDelta::new(it.conversation, it.run, it.offset, it.text);
                NextItem::Envelope(Arc::new(Envelope::delta(delta)))
            }
        }
    }
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;
