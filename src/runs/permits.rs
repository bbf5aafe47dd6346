//! Who waits on this node for a permit to call a model without a queued row: running runs whose
//! question was decided, and copilot candidates. The dispatcher grants (`worker.rs`).
//!
//! **Invariant:** a candidate returns its permit with its [`Permit`], however it ends.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::ids::RunId;
use crate::runs::due_runs::DueRun;
use crate::runs::wakeup::WakeupSignal;

/// Cloning gives another handle on the same ones.
#[derive(Clone, Default)]
pub struct Permits(Arc<Mutex<PermitState>>);

#[derive(Default)]
struct PermitState {
    runs: Vec<PermitRequest>,
    candidates: Vec<PermitRequest>,
    /// The candidates that hold a permit.
    held: HashSet<RunId>,
}

struct PermitRequest {
    due: DueRun,
    grant: oneshot::Sender<()>,
}

/// The permit of a candidate, or its wish for one.
pub struct Permit {
    permits: Permits,
    wakeup: WakeupSignal,
    id: RunId,
    granted: Option<oneshot::Receiver<()>>,
}

impl Permits {
    /// A run wants its permit back. Returns once it was granted; dropped, it no longer waits.
    pub async fn wait_for_run(&self, due: DueRun, wakeup: &WakeupSignal) {
        let id = due.id;
        let granted = self.enqueue(due, |state| &mut state.runs);
        let _forgets = RemoveOnDrop { permits: self, id };
        wakeup.notify();
        // An error: another wish of the same run took its place, which cannot be.
        let _ = granted.await;
    }

    /// A candidate wants a permit; its `id` is its own and no run's.
    pub fn request_for_candidate(&self, due: DueRun, wakeup: &WakeupSignal) -> Permit {
        let id = due.id;
        let granted = self.enqueue(due, |state| &mut state.candidates);
        wakeup.notify();
        Permit {
            permits: self.clone(),
            wakeup: wakeup.clone(),
            id,
            granted: Some(granted),
        }
    }

    /// The runs that wait, each due since its question was decided.
    pub fn waiting_runs(&self) -> Vec<DueRun> {
        self.0.lock().runs.iter().map(|it| it.due.clone()).collect()
    }

    /// The candidates that wait.
    pub fn waiting_candidates(&self) -> Vec<DueRun> {
        let state = self.0.lock();
        state.candidates.iter().map(|it| it.due.clone()).collect()
    }

    /// Gives a waiting run its permit. `false`: it no longer waits.
    pub fn grant_run(&self, id: RunId) -> bool {
        let waiting = remove_request(&mut self.0.lock().runs, id);
        waiting.is_some_and(|it| it.grant.send(()).is_ok())
    }

    /// Gives a waiting candidate a permit. `false`: it no longer waits.
    pub fn grant_candidate(&self, id: RunId) -> bool {
        let mut state = self.0.lock();
        let waiting = remove_request(&mut state.candidates, id);
        // Under the lock: who goes takes its permit along.
        let is_granted = waiting.is_some_and(|it| it.grant.send(()).is_ok());
        if is_granted {
            state.held.insert(id);
        }
        is_granted
    }

    /// Whether a candidate holds a permit.
    pub fn is_held(&self, id: RunId) -> bool {
        self.0.lock().held.contains(&id)
    }

    /// How many candidates hold one.
    pub fn n_held(&self) -> usize {
        self.0.lock().held.len()
    }

    fn enqueue(
        &self,
        due: DueRun,
        select_queue: impl FnOnce(&mut PermitState) -> &mut Vec<PermitRequest>,
    ) -> oneshot::Receiver<()> {
        let (grant, granted) = oneshot::channel();
        select_queue(&mut self.0.lock()).push(PermitRequest { due, grant });
        granted
    }
}

fn remove_request(waiting: &mut Vec<PermitRequest>, id: RunId) -> Option<PermitRequest> {
    let at = waiting.iter().position(|it| it.due.id == id)?;
    Some(waiting.remove(at))
}

/// A run that gives up waiting is forgotten.
struct RemoveOnDrop<'a> {
    permits: &'a Permits,
    id: RunId,
}

impl Drop for RemoveOnDrop<'_> {
    fn drop(&mut self) {
        remove_request(&mut self.permits.0.lock().runs, self.id);
    }
}

impl Permit {
    /// Returns once it was granted.
    pub async fn granted(&mut self) {
        if let Some(granted) = self.granted.as_mut() {
            // An error would mean that it was forgotten, which only its end does.
            let _ = granted.await;
            self.granted = None;
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.permits.0.lock();
        // In this order: a grant that was under way is taken back.
        self.granted = None;
        remove_request(&mut state.candidates, self.id);
        state.held.remove(&self.id);
        drop(state);
        self.wakeup.notify();
    }
}
