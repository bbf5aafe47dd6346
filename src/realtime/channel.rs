//! The listeners of one topic, and what they were given. Pure but for the outboxes.
//!
//! Durable events of a conversation come from whichever node committed them, so one may arrive
//! before the one that it follows. It is parked for a moment then, and what comes after it too;
//! if the missing one does not come, listeners get the gap and ask again.

use crate::ids::ConversationId;
use crate::realtime::event::Cargo;
use crate::realtime::event::Envelope;
use crate::realtime::event::Mark;
use crate::realtime::outbox::Outbox;
use crate::realtime::topic::Topic;
use std::sync::Arc;
use uuid::Uuid;

/// Envelopes that wait for one that is missing.
const MOST_PARKED: usize = 64;

/// Whoever listens to a topic.
#[derive(Default)]
pub struct Channel {
    listeners: Vec<Arc<Outbox>>,
    /// The highest that listeners were given, or began with; `None`: not known.
    rev: Option<i64>,
    /// Runs that listeners see writing.
    open: Vec<Uuid>,
    parked: Vec<Arc<Envelope>>,
}

/// What became of an envelope.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// How many envelopes slow listeners lost.
    pub n_dropped: u64,
    /// Something began to wait for what is missing before it.
    pub is_parked: bool,
}

/// A conversation as the database has it: the newest `rev`, and who writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truth {
    pub conversation: ConversationId,
    pub rev: i64,
    pub running: Option<Uuid>,
}

impl Channel {
    /// Gives an envelope to all, or parks it if it may wait.
    pub fn give(&mut self, envelope: Arc<Envelope>, may_wait: bool) -> Given {
        let was_waiting = !self.parked.is_empty();
        if !may_wait || (!was_waiting && !self.is_early(&envelope)) {
            return Given {
                n_dropped: self.hand_out(&envelope),
                is_parked: false,
            };
        }
        self.parked.push(envelope);
        let n_dropped = match self.parked.len() > MOST_PARKED {
            true => self.wait_no_longer(),
            false => self.hand_out_what_follows(),
        };
        Given {
            n_dropped,
            is_parked: !was_waiting && !self.parked.is_empty(),
        }
    }

    /// Gives what waits, gap and all.
    pub fn wait_no_longer(&mut self) -> u64 {
        let parked = std::mem::take(&mut self.parked);
        parked.iter().map(|it| self.hand_out(it)).sum()
    }

    /// A listener began with a snapshot. Others may have heard less: what they were given counts.
    pub fn begun(&mut self, rev: i64, running: Option<Uuid>) {
        if self.rev.is_none() {
            self.rev = Some(rev);
            self.open.clear();
        }
        if let Some(run) = running
            && self.rev <= Some(rev)
            && !self.open.contains(&run)
        {
            self.open.push(run);
        }
    }

    /// Whether listeners were given less than there is, or see the wrong one writing. What began
    /// or ended later than `truth` was looked up has a higher `rev`.
    pub fn is_behind(&self, truth: &Truth) -> bool {
        match self.rev {
            Some(rev) if rev < truth.rev => true,
            Some(rev) if rev == truth.rev => self.open != Vec::from_iter(truth.running),
            _ => false,
        }
    }

    /// All must begin again.
    pub fn lose(&mut self, conversation: ConversationId) {
        self.rev = None;
        self.open.clear();
        self.parked.clear();
        for listener in &self.listeners {
            listener.lose(conversation);
        }
    }

    /// One more listens; twice is the same as once.
    pub fn add(&mut self, outbox: &Arc<Outbox>) {
        if !self.listeners.iter().any(|it| Arc::ptr_eq(it, outbox)) {
            self.listeners.push(outbox.clone());
        }
    }

    /// One listens no more. Returns whether nobody is left.
    pub fn remove(&mut self, outbox: &Arc<Outbox>) -> bool {
        if let Some(place) = self.listeners.iter().position(|it| Arc::ptr_eq(it, outbox)) {
            self.listeners.swap_remove(place);
        }
        self.listeners.is_empty()
    }

    fn is_early(&self, envelope: &Envelope) -> bool {
        matches!((envelope.rev(), self.rev), (Some(rev), Some(newest)) if rev > newest + 1)
    }

    /// Hands out of what waits as much as may leave now.
    fn hand_out_what_follows(&mut self) -> u64 {
        let mut n_dropped = 0;
        loop {
            let follows = |it: &Arc<Envelope>| it.rev().is_some() && !self.is_early(it);
            let early = self.parked.iter().position(|it| self.is_early(it));
            let next = match early {
                // What stands before the first that is early waits for nothing.
                None | Some(1..) => (!self.parked.is_empty()).then_some(0),
                Some(0) => self.parked.iter().position(follows),
            };
            let Some(next) = next else {
                return n_dropped;
            };
            let envelope = self.parked.remove(next);
            n_dropped += self.hand_out(&envelope);
        }
    }

    fn hand_out(&mut self, envelope: &Arc<Envelope>) -> u64 {
        self.note(envelope);
        self.listeners.iter().map(|it| it.push(envelope)).sum()
    }

    fn note(&mut self, envelope: &Envelope) {
        self.rev = self.rev.max(envelope.rev());
        let Cargo::Stream { run, mark, .. } = envelope.cargo else {
            return;
        };
        match mark {
            Mark::Start if !self.open.contains(&run) => self.open.push(run),
            Mark::Stop => self.open.retain(|it| *it != run),
            _ => {}
        }
    }
}

impl Envelope {
    fn rev(&self) -> Option<i64> {
        match (self.topic, &self.cargo) {
            (Topic::Conversation(_), Cargo::Frame { rev, .. }) => *rev,
            _ => None,
        }
    }
}

#[cfg(test)]
#[path = "channel_tests.rs"]
mod tests;
