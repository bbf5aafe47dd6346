//! The rope to all other nodes: pulled by whoever has something to tell, held by the hub.

use std::sync::Arc;

use uuid::Uuid;

use crate::realtime::cluster::message::MessageBody;
use crate::realtime::cluster::metrics::ClusterMetrics;
use crate::realtime::cluster::send_queue::SendQueue;
use crate::realtime::cluster::signal::ClusterSignal;

/// A way to the other nodes, or none. Cloning gives another handle on the same one.
#[derive(Clone, Default)]
pub struct ClusterBus {
    state: Option<Arc<BusState>>,
}

/// What sender, receiver and handles share.
pub struct BusState {
    /// This process, among all that ever spoke here.
    pub node: Uuid,
    pub send_queue: SendQueue,
    pub metrics: Arc<ClusterMetrics>,
}

/// Who takes in what other nodes say. Called by one task, in the order of arrival; must be quick.
pub trait ClusterReceiver: Send + Sync + 'static {
    /// A parcel of another node.
    fn receive(&self, from: Uuid, parcel: MessageBody);

    /// Something was, or may have been, missed.
    fn on_gap(&self);

    /// Other nodes are heard from now on.
    fn on_connected(&self);
}

impl ClusterBus {
    /// A house of one node.
    pub fn none() -> Self {
        Self::default()
    }

    /// A line that nobody holds at the other end yet: see [`link`](crate::realtime::bus::link).
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

    /// The line, if there is one.
    pub fn state(&self) -> Option<&Arc<BusState>> {
        self.state.as_ref()
    }

    /// Says something to all other nodes. Never waits.
    pub fn publish(&self, signal: ClusterSignal) {
        self.enqueue(MessageBody::Signal(signal));
    }

    pub(in crate::realtime) fn enqueue(&self, body: MessageBody) {
        // What stays here takes no number: it would look like a loss.
        if let Some(state) = self.state.as_ref().filter(|_| body.should_forward()) {
            state.send_queue.push(body);
        }
    }

    /// How often something of other nodes was, or may have been, missed so far.
    pub fn n_gaps(&self) -> u64 {
        let state = self.state.as_ref();
        state.map_or(0, |it| it.metrics.gaps.get() + it.metrics.connects.get())
    }

    /// Whether other nodes are heard now.
    pub fn is_connected(&self) -> bool {
        self.state
            .as_ref()
            .is_some_and(|it| it.metrics.connected.get() == 1)
    }
}
