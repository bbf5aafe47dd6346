//! The subscribers of one topic: pushes envelopes to their outboxes, holds an envelope that arrives
//! before its predecessor, and detects missed events. Does no other I/O.
//!
//! Durable events of a conversation come from the node that committed them, so one may arrive
//! before its predecessor. Then it is held for a short time, and all later events too. If the
//! missing event does not arrive, they are delivered anyway; clients that find the gap subscribe
//! again.

use std::sync::Arc;

use base::ids::ConversationId;
use uuid::Uuid;

use crate::envelope::{Envelope, Payload, StreamBoundary, StreamFrame};
use crate::outbox::Outbox;
use crate::topic::Topic;

/// Envelopes that may wait for a missing one.
const MAX_REORDERED: usize = 64;

/// The subscribers of a topic.
#[derive(Default)]
pub struct Channel {
    subscribers: Vec<Arc<Outbox>>,
    /// The highest `rev` that subscribers received, or started with; `None`: unknown.
    rev: Option<i64>,
    /// Runs whose stream subscribers are receiving.
    active_runs: Vec<Uuid>,
    reorder_buffer: Vec<Arc<Envelope>>,
}

/// The result of delivering an envelope.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct DeliveryReport {
    /// Envelopes that slow subscribers lost.
    pub n_dropped: u64,
    /// An envelope started to wait for a missing predecessor.
    pub is_reordering: bool,
}

/// The state of a conversation in the database: the newest `rev` and the active run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabasePosition {
    pub conversation: ConversationId,
    pub rev: i64,
    pub running: Option<Uuid>,
}

impl Channel {
    /// Delivers an envelope to all subscribers, or holds it if it may wait. If `can_reorder` is
    /// false, nothing may wait: what is held is delivered too.
    pub fn deliver(&mut self, envelope: Arc<Envelope>, can_reorder: bool) -> DeliveryReport {
        let was_waiting = !self.reorder_buffer.is_empty();
        let needs_order = was_waiting || (can_reorder && self.is_early(&envelope));
        if !needs_order {
            return DeliveryReport {
                n_dropped: self.send_to_all(&envelope),
                is_reordering: false,
            };
        }
        self.reorder_buffer.push(envelope);
        let mut n_dropped = self.release_in_order();
        if !can_reorder || self.reorder_buffer.len() > MAX_REORDERED {
            n_dropped += self.release_reorder_buffer();
        }
        DeliveryReport {
            n_dropped,
            is_reordering: !was_waiting && !self.reorder_buffer.is_empty(),
        }
    }

    /// Delivers what waits, despite the gap. Returns how many envelopes were dropped.
    pub fn release_reorder_buffer(&mut self) -> u64 {
        let parked = std::mem::take(&mut self.reorder_buffer);
        parked.iter().map(|it| self.send_to_all(it)).sum()
    }

    /// Records that a subscriber started with a snapshot. Others may have received less: if their
    /// position is known, it stays.
    pub fn stream_started(&mut self, rev: i64, running: Option<Uuid>) {
        if self.rev.is_none() {
            self.rev = Some(rev);
            self.active_runs.clear();
        }
        if let Some(run) = running
            && self.rev <= Some(rev)
            && !self.active_runs.contains(&run)
        {
            self.active_runs.push(run);
        }
    }

    /// Returns whether subscribers received less than the database has, or see the wrong active
    /// run. A run that started or ended after `position` was read has a higher `rev`.
    pub fn is_behind(&self, position: &DatabasePosition) -> bool {
        match self.rev {
            Some(rev) if rev < position.rev => true,
            Some(rev) if rev == position.rev => {
                self.active_runs != Vec::from_iter(position.running)
            }
            _ => false,
        }
    }

    /// Makes all subscribers subscribe again.
    pub fn mark_gap(&mut self, conversation: ConversationId) {
        self.rev = None;
        self.active_runs.clear();
        self.reorder_buffer.clear();
        for listener in &self.subscribers {
            listener.mark_gap(conversation);
        }
    }

    /// Adds a subscriber; adding it twice has no effect.
    pub fn add_subscriber(&mut self, outbox: &Arc<Outbox>) {
        if !self.subscribers.iter().any(|it| Arc::ptr_eq(it, outbox)) {
            self.subscribers.push(outbox.clone());
        }
    }

    /// Removes a subscriber. Returns whether none is left.
    pub fn remove_subscriber(&mut self, outbox: &Arc<Outbox>) -> bool {
        if let Some(place) = self
            .subscribers
            .iter()
            .position(|it| Arc::ptr_eq(it, outbox))
        {
            self.subscribers.swap_remove(place);
        }
        self.subscribers.is_empty()
    }

    fn is_early(&self, envelope: &Envelope) -> bool {
        matches!((envelope.rev(), self.rev), (Some(rev), Some(newest)) if rev > newest + 1)
    }

    /// Delivers the waiting envelopes that are next in order. Returns how many were dropped.
    fn release_in_order(&mut self) -> u64 {
        let mut n_dropped = 0;
        loop {
            let follows = |it: &Arc<Envelope>| it.rev().is_some() && !self.is_early(it);
            let early = self.reorder_buffer.iter().position(|it| self.is_early(it));
            let next = match early {
                // An envelope before the first early one waits for nothing.
                None | Some(1..) => (!self.reorder_buffer.is_empty()).then_some(0),
                Some(0) => self.reorder_buffer.iter().position(follows),
            };
            let Some(next) = next else {
                return n_dropped;
            };
            let envelope = self.reorder_buffer.remove(next);
            n_dropped += self.send_to_all(&envelope);
        }
    }

    fn send_to_all(&mut self, envelope: &Arc<Envelope>) -> u64 {
        self.record_position(envelope);
        self.subscribers.iter().map(|it| it.push(envelope)).sum()
    }

    fn record_position(&mut self, envelope: &Envelope) {
        self.rev = self.rev.max(envelope.rev());
        let Payload::Stream(StreamFrame { run, mark, .. }) = envelope.payload else {
            return;
        };
        match mark {
            StreamBoundary::Start if !self.active_runs.contains(&run) => self.active_runs.push(run),
            StreamBoundary::Stop => self.active_runs.retain(|it| *it != run),
            _ => {}
        }
    }
}

impl Envelope {
    fn rev(&self) -> Option<i64> {
        match (self.topic, &self.payload) {
            (Topic::Conversation(_), Payload::Frame { rev, .. }) => *rev,
            _ => None,
        }
    }
}

#[cfg(test)]
#[path = "channel_tests.rs"]
mod tests;
