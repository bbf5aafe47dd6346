//! The bounded queue of messages to the other nodes; numbers the messages.
//!
//! **Invariant:** pushing never waits. The queue is bounded in number, size and age; the oldest
//! message is dropped first, and the others detect this by the gap in the numbers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::cluster::message::MessageBody;
use crate::cluster::metrics::ClusterMetrics;
use crate::cluster::signal::ClusterSignal;
use crate::envelope::Payload;

/// Messages that may be queued.
const MAX_MESSAGES: usize = 8 * 1024;

/// Bytes that may be queued.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// An older hint is useless: its receiver has already found out by polling.
const MAX_AGE: Duration = Duration::from_secs(10);

/// The queue before the connection. Any thread pushes, one task pops.
pub struct SendQueue {
    state: Mutex<SendQueueState>,
    wakeup: Notify,
    metrics: Arc<ClusterMetrics>,
}

#[derive(Default)]
struct SendQueueState {
    /// The number of the newest message.
    n: u64,
    queue: VecDeque<QueuedMessage>,
    bytes: usize,
    /// A wake-up signal is already queued; a second one would add nothing.
    has_wakeup: bool,
}

struct QueuedMessage {
    n: u64,
    queued_at: Instant,
    body: MessageBody,
}

impl QueuedMessage {
    fn is_wakeup(&self) -> bool {
        matches!(self.body, MessageBody::Signal(ClusterSignal::RunDue))
    }

    /// Returns whether it is still useful at `now`. A command that revokes access always is.
    fn is_fresh(&self, now: Instant) -> bool {
        let is_control = matches!(&self.body, MessageBody::Envelope(it) if matches!(it.payload, Payload::Control(_)));
        is_control || now.duration_since(self.queued_at) < MAX_AGE
    }
}

impl SendQueue {
    /// Creates an empty queue.
    pub fn new(metrics: Arc<ClusterMetrics>) -> Self {
        Self {
            state: Mutex::default(),
            wakeup: Notify::new(),
            metrics,
        }
    }

    /// Queues a message; may drop the oldest ones to make space.
    pub fn push(&self, body: MessageBody) {
        let mut state = self.state.lock();
        if matches!(body, MessageBody::Signal(ClusterSignal::RunDue)) {
            if state.has_wakeup {
                return;
            }
            state.has_wakeup = true;
        }
        state.n += 1;
        state.bytes += size(&body);
        let message = QueuedMessage {
            n: state.n,
            queued_at: Instant::now(),
            body,
        };
        state.queue.push_back(message);
        while state.queue.len() > MAX_MESSAGES || (state.bytes > MAX_BYTES && state.queue.len() > 1)
        {
            state.pop();
            self.metrics.dropped.inc();
        }
        drop(state);
        self.wakeup.notify_one();
    }

    /// Waits for messages and returns the oldest ones, at most `max`, with their numbers.
    pub async fn pop_batch(&self, max: usize) -> Vec<(u64, MessageBody)> {
        loop {
            let taken = self.try_pop_batch(max);
            if !taken.is_empty() {
                return taken;
            }
            self.wakeup.notified().await;
        }
    }

    fn try_pop_batch(&self, max: usize) -> Vec<(u64, MessageBody)> {
        let now = Instant::now();
        let mut state = self.state.lock();
        let mut taken = Vec::new();
        while taken.len() < max
            && let Some(it) = state.pop()
        {
            match it.is_fresh(now) {
                true => taken.push((it.n, it.body)),
                false => drop(self.metrics.dropped.inc()),
            }
        }
        taken
    }
}

impl SendQueueState {
    fn pop(&mut self) -> Option<QueuedMessage> {
        let message = self.queue.pop_front()?;
        self.bytes -= size(&message.body);
        self.has_wakeup &= !message.is_wakeup();
        Some(message)
    }
}

fn size(body: &MessageBody) -> usize {
    match body {
        MessageBody::Envelope(envelope) => envelope.size(),
        MessageBody::Signal(ClusterSignal::Text(it)) => {
            size_of::<MessageBody>() + it.text.len() + it.start.len()
        }
        MessageBody::Signal(ClusterSignal::Presence { conversations, .. }) => {
            let people: usize = conversations.iter().map(|(_, it)| it.len() + 1).sum();
            size_of::<MessageBody>() + 32 * people
        }
        MessageBody::Signal(_) => size_of::<MessageBody>(),
    }
}

#[cfg(test)]
mod tests {
    use base::ids::UserId;

    use super::{MAX_AGE, MAX_BYTES, MAX_MESSAGES, SendQueue};
    use crate::cluster::message::MessageBody;
    use crate::cluster::signal::ClusterSignal;
    use crate::envelope::{Envelope, Payload, Receivers, SocketControl};
    use crate::topic::Topic;

    fn send_queue() -> SendQueue {
        SendQueue::new(std::sync::Arc::default())
    }

    fn frame(size: usize) -> MessageBody {
        MessageBody::Envelope(Envelope {
            topic: Topic::User(UserId(1)),
            receivers: Receivers::Everyone,
            payload: Payload::Frame {
                json: "x".repeat(size).into(),
                rev: None,
            },
        })
    }

    #[tokio::test]
    async fn a_full_queue_drops_its_oldest_message_and_skips_its_number() {
        let outgoing = send_queue();
        for _ in 0..MAX_MESSAGES + 3 {
            outgoing.push(frame(1));
        }

        let batch = outgoing.pop_batch(usize::MAX).await;

        assert_eq!((batch.len(), batch[0].0), (MAX_MESSAGES, 4));
        assert_eq!(outgoing.metrics.dropped.get(), 3);
    }

    #[tokio::test]
    async fn the_queue_is_bounded_in_size_and_a_single_message_may_be_larger() {
        let outgoing = send_queue();
        outgoing.push(frame(1));
        outgoing.push(frame(MAX_BYTES + 1));

        let batch = outgoing.pop_batch(usize::MAX).await;

        assert_eq!(batch.iter().map(|it| it.0).collect::<Vec<_>>(), [2]);
        assert_eq!(outgoing.state.lock().bytes, 0);
    }

    #[tokio::test]
    async fn a_second_wakeup_is_not_queued() {
        let outgoing = send_queue();
        let wakeup = || MessageBody::Signal(ClusterSignal::RunDue);
        outgoing.push(wakeup());
        outgoing.push(wakeup());
        assert_eq!(outgoing.pop_batch(9).await.len(), 1);

        outgoing.push(wakeup());

        assert_eq!(outgoing.pop_batch(9).await.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_old_event_is_not_sent_but_a_control_is() {
        let outgoing = send_queue();
        outgoing.push(frame(1));
        outgoing.push(MessageBody::Envelope(Envelope::control(
            UserId(1),
            SocketControl::Disabled,
        )));
        tokio::time::advance(MAX_AGE).await;

        let batch = outgoing.pop_batch(9).await;

        assert_eq!(batch.iter().map(|it| it.0).collect::<Vec<_>>(), [2]);
    }
}
