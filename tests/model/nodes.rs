//! The memory of a node in the model: what it executes, and what it has read but not acted on.

/// A process of Troupe.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node {
    pub life: Life,
    /// Claims no new work, releases what it has.
    pub is_closing: bool,
    /// The turns it believes to be its own.
    pub held: Vec<Held>,
    /// What its reaper saw: a silent run under this lease.
    pub suspect: Option<(u8, u8)>,
    /// What its dispatcher saw: a queued run, and the newest message. Only where a flaw acts on it
    /// later; the right claim looks again under the lock.
    pub seen: Option<(u8, u8)>,
    /// A post it has stored and not planned. Only in a flaw.
    pub unplanned: Option<u8>,
    /// The run whose row names this node, and its lease. Only where a flaw goes by it.
    pub named: Option<(u8, u8)>,
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
    /// The model speaks, or has spoken.
    Speaking,
    /// It is being given back.
    GivingBack,
    /// The lease was looked at, and was right. Only in a flaw.
    Checked,
    /// Committed; what follows is still to be planned. Only in a flaw.
    Followless,
}

impl Node {
    pub fn new() -> Self {
        Self {
            life: Life::Awake,
            is_closing: false,
            held: Vec::new(),
            suspect: None,
            seen: None,
            unplanned: None,
            named: None,
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

    /// `kill -9`: nothing of its memory is left.
    pub fn die(&mut self) {
        *self = Self {
            life: Life::Dead,
            ..Self::new()
        };
    }
}
