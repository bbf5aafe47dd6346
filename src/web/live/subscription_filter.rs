//! Decides which events of a conversation one socket receives after its snapshot, so that none is
//! missing or sent twice. No I/O.
//!
//! The order of a subscription is: subscribe to the hub and buffer events; read the snapshot; set
//! the barrier in the outbox and read the text so far of the run that is running in the snapshot;
//! when the barrier is reached, answer; then filter the buffered events and all later ones. The
//! filter decides from the snapshot and the envelopes alone.
//!
//! Only the text of the snapshot's run is read: any other run began after the snapshot, so all of
//! its events are received. The snapshot is read in one transaction: all of it is as of its `rev`.
//!
//! **Invariant:** whatever was in progress during the snapshot, the client ends with the timeline
//! and the stream text that it would have if it had been subscribed from the beginning.

use std::sync::Arc;

use realtime::envelope::{Envelope, Payload, StreamBoundary, StreamDelta, StreamFrame, utf16_len};
use uuid::Uuid;

/// The start of a subscription: what its answer contained.
#[derive(Clone, Copy, Debug, Default)]
pub struct SnapshotPosition {
    /// The `rev` of the newest durable event in the snapshot.
    pub rev: i64,
    /// The run that was running in the snapshot, and the UTF-16 units of its text at the barrier; 0
    /// if there was no text of this run.
    pub running: Option<(Uuid, usize)>,
    /// The UTF-16 units of the existing text with which its text begins.
    pub base_length: usize,
}

/// What to do with an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterDecision {
    /// The client already has it, or must not get it.
    Drop,
    /// The client gets it unchanged.
    Forward,
    /// The client has the first part of this piece; it gets the rest.
    ForwardRest(StreamDelta),
    /// Text is missing before this piece, which ends at `end`: see [`SubscriptionFilter::repair`].
    Repair { run: Uuid, end: usize },
    /// A durable event is missing. Nothing more passes: the client subscribes again.
    Resync,
}

/// The filter of one subscription.
#[derive(Debug)]
pub struct SubscriptionFilter {
    /// The `rev` of the newest durable event that the client has.
    rev: i64,
    /// Runs whose stream the client receives, in the order of their starts; each ends with its
    /// `typing_stop`.
    streams: Vec<StreamPosition>,
    /// A durable event was missing.
    has_gap: bool,
}

#[derive(Debug)]
struct StreamPosition {
    run: Uuid,
    /// UTF-16 units of an existing text with which the text begins, also after a reset.
    base: usize,
    /// UTF-16 units of the text that the client has; `None`: unknown, so no piece passes before the
    /// text restarts.
    length: Option<usize>,
}

impl SubscriptionFilter {
    /// Starts after a snapshot, and removes from `buffered`, which was received before the barrier,
    /// the stream events that the answer already contains. The rest must be decided like all later
    /// ones.
    pub fn new(start: SnapshotPosition, buffered: &mut Vec<Arc<Envelope>>) -> Self {
        match start.running {
            Some((run, _)) => drop_included_text(run, buffered),
            None => drop_streams_before(start.rev, buffered),
        }
        let streams = start.running.map(|(run, length)| StreamPosition {
            run,
            base: start.base_length,
            length: Some(length),
        });
        Self {
            rev: start.rev,
            streams: streams.into_iter().collect(),
            has_gap: false,
        }
    }

    /// Decides the next envelope of the conversation.
    pub fn decide(&mut self, payload: &Payload) -> FilterDecision {
        if self.has_gap {
            return FilterDecision::Drop;
        }
        match payload {
            Payload::Frame { rev: None, .. } | Payload::ExceptUser { .. } => {
                FilterDecision::Forward
            }
            Payload::Frame { rev: Some(rev), .. } => self.decide_durable(*rev),
            Payload::Stream(event) => self.decide_boundary(event),
            Payload::Delta(delta) => self.decide_delta(delta),
            Payload::Control(_) => FilterDecision::Drop,
        }
    }

    /// Handles missing text before a piece of `run` that ends at `end`; `text` is the current text
    /// of the run, without an existing text that it continues. Returns whether the client must replace its text with it.
    ///
    /// If the text is unknown or shorter than `end`, it is useless: the run restarted and the
    /// client will be notified, or it has ended, or another node executes it.
    pub fn repair(&mut self, run: Uuid, end: usize, text: Option<&str>) -> bool {
        let Some(stream) = self.stream_mut(run) else {
            return text.is_some_and(|it| utf16_len(it) >= end);
        };
        let length = text.map(|it| stream.base + utf16_len(it));
        stream.length = length.filter(|it| *it >= end);
        stream.length.is_some()
    }

    fn decide_durable(&mut self, rev: i64) -> FilterDecision {
        if rev <= self.rev {
            return FilterDecision::Drop;
        }
        if rev > self.rev + 1 {
            self.has_gap = true;
            return FilterDecision::Resync;
        }
        self.rev = rev;
        FilterDecision::Forward
    }

    fn decide_boundary(&mut self, event: &StreamFrame) -> FilterDecision {
        let (run, boundary) = (event.run, event.mark);
        let Some(stream) = self.stream_mut(run) else {
            if boundary != StreamBoundary::Start {
                return FilterDecision::Drop;
            }
            let base = event.base_length;
            let length = Some(base);
            self.streams.push(StreamPosition { run, base, length });
            return FilterDecision::Forward;
        };
        match boundary {
            StreamBoundary::Start => return FilterDecision::Drop,
            StreamBoundary::Reset => stream.length = Some(stream.base),
            StreamBoundary::Complete => stream.length = None,
            StreamBoundary::Stop => self.streams.retain(|it| it.run != run),
        }
        FilterDecision::Forward
    }

    fn decide_delta(&mut self, delta: &StreamDelta) -> FilterDecision {
        // Protocol 2 does not name the run: the client appends the text to the run that started last.
        let newest = self.streams.last_mut();
        let Some(stream) = newest.filter(|it| it.run == delta.run) else {
            return FilterDecision::Drop;
        };
        let Some(length) = stream.length else {
            return FilterDecision::Drop;
        };
        if delta.end() <= length {
            return FilterDecision::Drop;
        }
        let decision = match delta.offset {
            offset if offset > length => None,
            offset if offset == length => Some(FilterDecision::Forward),
            // Queued pieces are merged: the client's text may end inside of one.
            _ => delta.after(length).map(FilterDecision::ForwardRest),
        };
        match decision {
            Some(verdict) => {
                stream.length = Some(delta.end());
                verdict
            }
            None => FilterDecision::Repair {
                run: delta.run,
                end: delta.end(),
            },
        }
    }

    fn stream_mut(&mut self, run: Uuid) -> Option<&mut StreamPosition> {
        self.streams.iter_mut().find(|it| it.run == run)
    }
}

/// The client has the text of this run up to the barrier and knows that it was active: events of
/// other runs before its end are from before its start.
fn drop_included_text(run: Uuid, buffered: &mut Vec<Arc<Envelope>>) {
    let mut is_over = false;
    buffered.retain(|it| match (run_of(&it.payload), is_over) {
        (None, _) | (Some(_), true) => true,
        (Some((of, mark)), false) => {
            is_over = of == run && mark == Some(StreamBoundary::Stop);
            of == run && matches!(mark, Some(StreamBoundary::Complete | StreamBoundary::Stop))
        }
    });
}

/// No run was active in the snapshot. Runs announced before a durable event that is in the snapshot
/// had ended by then, and the client has their result.
fn drop_streams_before(rev: i64, buffered: &mut Vec<Arc<Envelope>>) {
    let is_in_snapshot = |it: &Arc<Envelope>| match it.payload {
        Payload::Frame { rev: Some(of), .. } => of <= rev,
        _ => false,
    };
    let Some(newest) = buffered.iter().rposition(is_in_snapshot) else {
        return;
    };
    let started: Vec<Uuid> = buffered[..newest]
        .iter()
        .filter_map(|it| run_of(&it.payload))
        .filter(|(_, mark)| *mark == Some(StreamBoundary::Start))
        .map(|(run, _)| run)
        .collect();
    buffered.retain(|it| run_of(&it.payload).is_none_or(|(run, _)| !started.contains(&run)));
}

/// Returns the run whose stream an envelope belongs to; a piece of text has no boundary.
fn run_of(payload: &Payload) -> Option<(Uuid, Option<StreamBoundary>)> {
    match payload {
        Payload::Stream(event) => Some((event.run, Some(event.mark))),
        Payload::Delta(delta) => Some((delta.run, None)),
        _ => None,
    }
}

#[cfg(test)]
#[path = "subscription_filter_simulated_server.rs"]
mod simulated_server;

#[cfg(test)]
#[path = "subscription_filter_property_tests.rs"]
mod property_tests;
#[cfg(test)]
#[path = "subscription_filter_tests.rs"]
mod tests;
