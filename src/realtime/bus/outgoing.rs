//! What waits to be sent to the other nodes.
//!
//! **Invariant:** whoever puts something in never waits. What waits is bounded in number, size and
//! age; the oldest goes first, and the gap in the numbers tells the others that it did.

use crate::realtime::bus::meter::Meter;
use crate::realtime::bus::packet::Parcel;
use crate::realtime::bus::signal::Signal;
use crate::realtime::event::Cargo;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Parcels that may wait.
const MOST: usize = 8 * 1024;

/// Bytes that may wait.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// A hint that is older helps nobody: whoever it was for has looked by itself.
const STALE: Duration = Duration::from_secs(10);

/// The queue before the wire. Any thread puts in, one task takes out.
pub struct Outgoing {
    state: Mutex<State>,
    bell: Notify,
    meter: Arc<Meter>,
}

#[derive(Default)]
struct State {
    /// The number of the newest parcel.
    n: u64,
    waiting: VecDeque<Waiting>,
    bytes: usize,
    /// A bell waits already; a second one would say nothing more.
    has_bell: bool,
}

struct Waiting {
    n: u64,
    since: Instant,
    parcel: Parcel,
}

impl Waiting {
    fn is_bell(&self) -> bool {
        matches!(self.parcel, Parcel::Signal(Signal::Bell))
    }

    /// Whether it would still say something at `now`. What takes rights away always does.
    fn is_fresh(&self, now: Instant) -> bool {
        let is_order =
            matches!(&self.parcel, Parcel::Envelope(it) if matches!(it.cargo, Cargo::Order(_)));
        is_order || now.duration_since(self.since) < STALE
    }
}

impl Outgoing {
    /// Nothing waits.
    pub fn new(meter: Arc<Meter>) -> Self {
        Self {
            state: Mutex::default(),
            bell: Notify::new(),
            meter,
        }
    }

    /// Takes a parcel in; may drop the oldest for it.
    pub fn put(&self, parcel: Parcel) {
        let mut state = self.state.lock();
        if matches!(parcel, Parcel::Signal(Signal::Bell)) {
            if state.has_bell {
                return;
            }
            state.has_bell = true;
        }
        state.n += 1;
        state.bytes += size(&parcel);
        let waiting = Waiting {
            n: state.n,
            since: Instant::now(),
            parcel,
        };
        state.waiting.push_back(waiting);
        while state.waiting.len() > MOST || (state.bytes > MOST_BYTES && state.waiting.len() > 1) {
            state.pop();
            self.meter.dropped.inc();
        }
        drop(state);
        self.bell.notify_one();
    }

    /// The oldest that wait, at most `most` of them, with their numbers; waits for one.
    pub async fn take(&self, most: usize) -> Vec<(u64, Parcel)> {
        loop {
            let taken = self.take_now(most);
            if !taken.is_empty() {
                return taken;
            }
            self.bell.notified().await;
        }
    }

    fn take_now(&self, most: usize) -> Vec<(u64, Parcel)> {
        let now = Instant::now();
        let mut state = self.state.lock();
        let mut taken = Vec::new();
        while taken.len() < most
            && let Some(it) = state.pop()
        {
            match it.is_fresh(now) {
                true => taken.push((it.n, it.parcel)),
                false => drop(self.meter.dropped.inc()),
            }
        }
        taken
    }
}

impl State {
    fn pop(&mut self) -> Option<Waiting> {
        let it = self.waiting.pop_front()?;
        self.bytes -= size(&it.parcel);
        self.has_bell &= !it.is_bell();
        Some(it)
    }
}

fn size(parcel: &Parcel) -> usize {
    match parcel {
        Parcel::Envelope(envelope) => envelope.size(),
        Parcel::Signal(Signal::Text(it)) => size_of::<Parcel>() + it.text.len() + it.start.len(),
        Parcel::Signal(Signal::Presence { rooms, .. }) => {
            let people: usize = rooms.iter().map(|(_, it)| it.len() + 1).sum();
            size_of::<Parcel>() + 32 * people
        }
        Parcel::Signal(_) => size_of::<Parcel>(),
    }
}

#[cfg(test)]
mod tests {
    use super::MOST;
    use super::MOST_BYTES;
    use super::Outgoing;
    use super::STALE;
    use crate::ids::UserId;
    use crate::realtime::bus::packet::Parcel;
    use crate::realtime::bus::signal::Signal;
    use crate::realtime::event::Cargo;
    use crate::realtime::event::Envelope;
    use crate::realtime::event::Order;
    use crate::realtime::topic::Topic;

    fn outgoing() -> Outgoing {
        Outgoing::new(std::sync::Arc::default())
    }

    fn frame(size: usize) -> Parcel {
        Parcel::Envelope(Envelope {
            topic: Topic::User(UserId(1)),
            cargo: Cargo::Frame {
                json: "x".repeat(size).into(),
                rev: None,
            },
        })
    }

    #[tokio::test]
    async fn the_oldest_goes_when_too_much_waits_and_its_number_is_missing() {
        let outgoing = outgoing();
        for _ in 0..MOST + 3 {
            outgoing.put(frame(1));
        }

        let taken = outgoing.take(usize::MAX).await;

        assert_eq!((taken.len(), taken[0].0), (MOST, 4));
        assert_eq!(outgoing.meter.dropped.get(), 3);
    }

    #[tokio::test]
    async fn what_waits_is_bounded_in_size_and_one_alone_may_be_larger() {
        let outgoing = outgoing();
        outgoing.put(frame(1));
        outgoing.put(frame(MOST_BYTES + 1));

        let taken = outgoing.take(usize::MAX).await;

        assert_eq!(taken.iter().map(|it| it.0).collect::<Vec<_>>(), [2]);
        assert_eq!(outgoing.state.lock().bytes, 0);
    }

    #[tokio::test]
    async fn a_second_bell_says_nothing_more() {
        let outgoing = outgoing();
        let bell = || Parcel::Signal(Signal::Bell);
        outgoing.put(bell());
        outgoing.put(bell());
        assert_eq!(outgoing.take(9).await.len(), 1);

        outgoing.put(bell());

        assert_eq!(outgoing.take(9).await.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_old_hint_is_not_sent_but_an_order_is() {
        let outgoing = outgoing();
        outgoing.put(frame(1));
        outgoing.put(Parcel::Envelope(Envelope::order(
            UserId(1),
            Order::Disabled,
        )));
        tokio::time::advance(STALE).await;

        let taken = outgoing.take(9).await;

        assert_eq!(taken.iter().map(|it| it.0).collect::<Vec<_>>(), [2]);
    }
}
