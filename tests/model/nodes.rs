//! The memory of a node in the model: what it executes, and what it has read but not acted on.

/// A server process.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node {
    pub life: Life,
    /// It claims no new runs and releases its own.
    pub is_closing: bool,
    /// The turns that it executes, even if it has lost their lease.
    pub held: Vec<Held>,
    /// The run without a heartbeat that its reaper has read, and the lease.
    pub stale: Option<(u8, u8)>,
    /// The queued run and the newest message that its dispatcher has read. Used only by a flaw; the
    /// correct claim reads them again under the lock.
    pub seen: Option<(u8, u8)>,
    /// The turn of a person whose deadline it has read: round and slot.
    pub passed_turn: Option<(u8, u8)>,
    /// A post that it has stored but not planned. Used only by a flaw.
    pub unplanned: Option<u8>,
    /// The run whose row names this node, and its lease. Used only by a flaw.
    pub recorded: Option<(u8, u8)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Life {
    Awake,
    Asleep,
    Dead,
}

/// A turn that a node executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Held {
    pub run: u8,
    pub lease: u8,
    pub stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// The model is streaming or has finished.
    Generating,
    /// It is being released.
    Releasing,
    /// The lease was compared and was right. Used only by a flaw.
    Checked,
    /// Committed; the follow-up is not planned yet. Used only by a flaw.
    Committed,
}

impl Node {
    pub fn new() -> Self {
        Self {
            life: Life::Awake,
            is_closing: false,
            held: Vec::new(),
            stale: None,
            seen: None,
            passed_turn: None,
            unplanned: None,
            recorded: None,
        }
    }

    pub fn is_awake(&self) -> bool {
        self.life == Life::Awake
    }

    pub fn holds(&self, run: u8, lease: u8) -> bool {
        let mut held = self.held.iter();
        held.any(|it| (it.run, it.lease) == (run, lease))
    }

    pub fn release(&mut self, held: Held) {
        self.held.retain(|it| *it != held);
    }

    pub fn set_stage(&mut self, held: Held, stage: Stage) {
        for it in self.held.iter_mut().filter(|it| **it == held) {
            it.stage = stage;
        }
        self.held.sort();
    }

    /// `kill -9`: its memory is lost.
    pub fn die(&mut self) {
        *self = Self {
            life: Life::Dead,
            ..Self::new()
        };
    }
}
