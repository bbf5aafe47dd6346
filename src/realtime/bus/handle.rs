//! The rope to all other nodes: pulled by whoever has something to tell, held by the hub.

use crate::realtime::bus::meter::Meter;
use crate::realtime::bus::outgoing::Outgoing;
use crate::realtime::bus::packet::Parcel;
use crate::realtime::bus::signal::Signal;
use std::sync::Arc;
use uuid::Uuid;

/// A way to the other nodes, or none. Cloning gives another handle on the same one.
#[derive(Clone, Default)]
pub struct Bus {
    line: Option<Arc<Line>>,
}

/// What sender, receiver and handles share.
pub struct Line {
    /// This process, among all that ever spoke here.
    pub node: Uuid,
    pub outgoing: Outgoing,
    pub meter: Arc<Meter>,
}

/// Who takes in what other nodes say. Called by one task, in the order of arrival; must be quick.
pub trait Inbox: Send + Sync + 'static {
    /// A parcel of another node.
    fn take(&self, from: Uuid, parcel: Parcel);

    /// Something was, or may have been, missed.
    fn missed(&self);

    /// Other nodes are heard from now on.
    fn tuned_in(&self);
}

impl Bus {
    /// A house of one node.
    pub fn none() -> Self {
        Self::default()
    }

    /// A line that nobody holds at the other end yet: see [`link`](crate::realtime::bus::link).
    pub fn new() -> Self {
        let meter = Arc::<Meter>::default();
        Self {
            line: Some(Arc::new(Line {
                node: Uuid::now_v7(),
                outgoing: Outgoing::new(meter.clone()),
                meter,
            })),
        }
    }

    /// The line, if there is one.
    pub fn line(&self) -> Option<&Arc<Line>> {
        self.line.as_ref()
    }

    /// Says something to all other nodes. Never waits.
    pub fn say(&self, signal: Signal) {
        self.put(Parcel::Signal(signal));
    }

    pub(in crate::realtime) fn put(&self, parcel: Parcel) {
        // What stays here takes no number: it would look like a loss.
        if let Some(line) = self.line.as_ref().filter(|_| parcel.travels()) {
            line.outgoing.put(parcel);
        }
    }

    /// How often something of other nodes was, or may have been, missed so far.
    pub fn n_missed(&self) -> u64 {
        let line = self.line.as_ref();
        line.map_or(0, |it| it.meter.gaps.get() + it.meter.connects.get())
    }

    /// Whether other nodes are heard now.
    pub fn is_connected(&self) -> bool {
        self.line
            .as_ref()
            .is_some_and(|it| it.meter.connected.get() == 1)
    }
}
