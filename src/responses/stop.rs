//! The turns of this node, and the word that one of them must end.

use dashmap::DashMap;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Why a turn must end before its answer is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Its client is gone. What holds when nobody said anything else.
    Left,
    /// Somebody asked.
    Asked,
    /// The node closes.
    Closing,
    /// It is no longer ours; whatever it writes does not count.
    Lost,
}

/// Ends one turn. Cloning gives another handle on the same one.
#[derive(Clone, Default)]
pub struct Stop {
    /// Fires when the turn must end.
    pub token: CancellationToken,
    /// Rings when its log has more to read.
    pub written: watch::Sender<()>,
    why: Arc<Mutex<Option<Why>>>,
}

impl Stop {
    /// Ends the turn. The first reason counts, but a lost turn is lost.
    pub fn end(&self, why: Why) {
        let mut known = self.why.lock();
        if known.is_none() || why == Why::Lost {
            *known = Some(why);
        }
        drop(known);
        self.token.cancel();
    }

    /// Why the token fired.
    pub fn why(&self) -> Why {
        self.why.lock().unwrap_or(Why::Left)
    }
}

/// The turns that this node takes. Cloning gives another handle on the same ones.
#[derive(Clone, Default)]
pub struct Held {
    turns: Arc<DashMap<String, (Stop, i64)>>,
    n_held: watch::Sender<usize>,
    /// Whatever is held from now on ends at once.
    is_closed: Arc<AtomicBool>,
}

/// A turn that is held; let go of when this goes.
pub struct Hold {
    held: Held,
    id: String,
    lease: i64,
}

impl Held {
    /// A turn begins. `lease` 0: it has no row.
    pub fn hold(&self, id: &str, stop: &Stop, lease: i64) -> Hold {
        self.turns.insert(id.to_owned(), (stop.clone(), lease));
        self.n_held.send_modify(|it| *it += 1);
        // Looked at after the turn is among the others: either this sees the end, or the end sees it.
        if self.is_closed.load(Ordering::SeqCst) {
            stop.end(Why::Closing);
        }
        Hold {
            held: self.clone(),
            id: id.to_owned(),
            lease,
        }
    }

    /// Ends a turn if it is taken here.
    pub fn end(&self, id: &str, why: Why) {
        if let Some(turn) = self.turns.get(id) {
            turn.0.end(why);
        }
    }

    /// Ends every turn, and those that are still to come.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        for turn in self.turns.iter() {
            turn.0.end(Why::Closing);
        }
    }

    /// Rings when the log of a turn that is taken here has more to read.
    pub fn written(&self, id: &str) -> Option<watch::Receiver<()>> {
        self.turns.get(id).map(|it| it.0.written.subscribe())
    }

    /// Whether this node takes a turn under this lease.
    pub fn has(&self, id: &str, lease: i64) -> bool {
        self.turns.get(id).is_some_and(|it| it.1 == lease)
    }

    /// Those with rows, and their leases.
    pub fn stored(&self) -> Vec<(String, i64)> {
        let all = self.turns.iter().filter(|it| it.value().1 > 0);
        all.map(|it| (it.key().clone(), it.value().1)).collect()
    }

    /// Returns when this node takes no turn.
    pub async fn none_left(&self) {
        // An error would mean that the counter is gone, and we hold it.
        let _ = self.n_held.subscribe().wait_for(|it| *it == 0).await;
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // Taken again meanwhile, it is no longer this one's to remove.
        let is_own = |_: &String, turn: &(Stop, i64)| turn.1 == self.lease;
        self.held.turns.remove_if(&self.id, is_own);
        self.held.n_held.send_modify(|it| *it -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::Held;
    use super::Stop;
    use super::Why;

    #[test]
    fn who_comes_when_the_node_closes_ends_at_once() {
        let held = Held::default();
        held.close();
        let stop = Stop::default();

        let _hold = held.hold("resp_1", &stop, 1);

        assert!(stop.token.is_cancelled());
        assert_eq!(stop.why(), Why::Closing);
    }

    #[test]
    fn a_turn_that_was_taken_again_stays_when_the_first_goes() {
        let held = Held::default();
        let first = held.hold("resp_1", &Stop::default(), 1);
        let second = held.hold("resp_1", &Stop::default(), 2);

        drop(first);

        assert!(held.has("resp_1", 2));
        drop(second);
        assert!(held.stored().is_empty());
    }
}
