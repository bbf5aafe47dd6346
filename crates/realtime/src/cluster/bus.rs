//! The cluster bus: queues messages for the other nodes, and declares the trait `ClusterReceiver`,
//! which handles messages from them.

use std::sync::Arc;

use uuid::Uuid;

use crate::cluster::message::MessageBody;
use crate::cluster::metrics::ClusterMetrics;
use crate::cluster::send_queue::SendQueue;
use crate::cluster::signal::ClusterSignal;

/// The connection to the other nodes, or none. Cheap to clone; clones share state.
#[derive(Clone, Default)]
pub struct ClusterBus {
    state: Option<Arc<BusState>>,
}

/// State shared by sender, receiver and handles.
pub struct BusState {
    /// The id of this process, unique among all that ever used the channel.
    pub node: Uuid,
    pub send_queue: SendQueue,
    pub metrics: Arc<ClusterMetrics>,
}

/// Handles messages of other nodes. Called by one task, in the order of arrival; must be quick.
pub trait ClusterReceiver: Send + Sync + 'static {
    /// A message of another node arrived.
    fn receive(&self, from: Uuid, body: MessageBody);

    /// A message was, or may have been, missed.
    fn on_gap(&self);

    /// The connection to Redis was established.
    fn on_connected(&self);
}

impl ClusterBus {
    /// Returns the bus of a single node, which sends nothing.
    pub fn none() -> Self {
        Self::default()
    }

    /// Returns a bus that is not connected yet: see
    /// [`redis_link`](crate::cluster::redis_link).
    pub fn new() -> Self {
        let meter = Arc::<ClusterMetrics>::default();
        Self {
            state: Some(Arc::new(BusState {
                node: Uuid::now_v7(),
                send_queue: SendQueue::new(meter.clone()),
                metrics: meter,
            })),
        }
    }

    /// Returns the shared state, if there are other nodes.
    pub fn state(&self) -> Option<&Arc<BusState>> {
        self.state.as_ref()
    }

    /// Sends a signal to all other nodes. Never waits.
    pub fn publish(&self, signal: ClusterSignal) {
        self.enqueue(MessageBody::Signal(signal));
    }

    pub(crate) fn enqueue(&self, body: MessageBody) {
        // What stays on this node gets no number: the missing number would look like a loss.
        if let Some(state) = self.state.as_ref().filter(|_| body.should_forward()) {
            state.send_queue.push(body);
        }
    }

    /// Returns how often messages of other nodes were, or may have been, missed so far.
    pub fn n_gaps(&self) -> u64 {
        let state = self.state.as_ref();
        state.map_or(0, |it| it.metrics.gaps.get() + it.metrics.connects.get())
    }

    /// Returns whether this node currently receives messages of others.
    pub fn is_connected(&self) -> bool {
        self.state
            .as_ref()
            .is_some_and(|it| it.metrics.connected.get() == 1)
    }
}
