//! Queues requests for a permit to call a model, from runs whose tool approval was decided and from
//! copilot candidates. The dispatcher in `run_job.rs` grants them.
//!
//! **Invariant:** a candidate releases its permit when its [`Permit`] is dropped, however it ends.

use std::collections::HashSet;
use std::sync::Arc;

use base::ids::RunId;
use leased_jobs::claim_loop::WakeupSignal;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::runs::store::due_runs::DueRun;

/// The requests for permits, and the candidates that hold one. Cheap to clone; clones share state.
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

/// The permit of a candidate, or its request for one.
pub struct Permit {
    permits: Permits,
    wakeup: WakeupSignal,
    id: RunId,
    granted: Option<oneshot::Receiver<()>>,
}

impl Permits {
    /// Waits until a run has its permit again. If dropped, the request is removed.
    pub async fn wait_for_run(&self, due: DueRun, wakeup: &WakeupSignal) {
        let id = due.id;
        let granted = self.enqueue(due, |state| &mut state.runs);
        let _forgets = RemoveOnDrop { permits: self, id };
        wakeup.notify();
        // Fails only if the sender was dropped, and this call owns the request.
        let _ = granted.await;
    }

    /// Requests a permit for a candidate; its `id` is its own and not that of a run.
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

    /// Returns the runs that wait for a permit, each due since its approval was decided.
    pub fn waiting_runs(&self) -> Vec<DueRun> {
        self.0.lock().runs.iter().map(|it| it.due.clone()).collect()
    }

    /// Returns the candidates that wait.
    pub fn waiting_candidates(&self) -> Vec<DueRun> {
        let state = self.0.lock();
        state.candidates.iter().map(|it| it.due.clone()).collect()
    }

    /// Grants a waiting run its permit. Returns `false` if it no longer waits.
    pub fn grant_run(&self, id: RunId) -> bool {
        let waiting = remove_request(&mut self.0.lock().runs, id);
        waiting.is_some_and(|it| it.grant.send(()).is_ok())
    }

    /// Grants a waiting candidate a permit. Returns `false` if it no longer waits.
    pub fn grant_candidate(&self, id: RunId) -> bool {
        let mut state = self.0.lock();
        let waiting = remove_request(&mut state.candidates, id);
        // Under the lock: a candidate that is dropped now releases its permit after this.
        let is_granted = waiting.is_some_and(|it| it.grant.send(()).is_ok());
        if is_granted {
            state.held.insert(id);
        }
        is_granted
    }

    /// Returns whether a candidate holds a permit.
    pub fn is_held(&self, id: RunId) -> bool {
        self.0.lock().held.contains(&id)
    }

    /// Returns how many candidates hold a permit.
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

/// Removes the request of a run that stops waiting.
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
    /// Returns when the permit is granted.
    pub async fn granted(&mut self) {
        if let Some(granted) = self.granted.as_mut() {
            // Fails only if the request was removed, which only `drop` does.
            let _ = granted.await;
            self.granted = None;
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.permits.0.lock();
        // In this order: revokes a grant that is in progress.
        self.granted = None;
        remove_request(&mut state.candidates, self.id);
        state.held.remove(&self.id);
        drop(state);
        self.wakeup.notify();
    }
}
