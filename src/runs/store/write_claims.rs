//! Writes the claims of many runs with one statement for each table.

use std::collections::HashMap;

use base::ids::RunId;

use crate::conversations::conversation;
use crate::runs::error::EngineError;
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::runs::store::plan_writer::{PlanWriter, WrittenPlan, next_rev};
use crate::runs::store::{queue, run};

impl PlanWriter<'_> {
    /// Claims the queued run of each of these states, as plans do that change nothing else. Returns
    /// the new states in the same order.
    ///
    /// # Errors
    /// Returns [`EngineError::Conflict`] when one of the runs is no longer queued.
    pub async fn write_claims(
        &self,
        states: Vec<ScheduleState>,
    ) -> Result<Vec<(ScheduleState, WrittenPlan)>, EngineError> {
        let queued = states.iter().filter_map(|it| it.queued.as_ref());
        let ids: Vec<RunId> = queued.map(|it| it.id).collect();
        let claimed = queue::claim_all(self.tx, &ids, self.node, self.now, self.backend).await?;
        let mut claimed: HashMap<RunId, run::Model> =
            claimed.into_iter().map(|it| (it.id, it)).collect();
        base::fail_point!("step.between", ?);
        let mut written = Vec::with_capacity(states.len());
        for mut schedule in states {
            let queued = schedule.queued.take().ok_or(EngineError::Conflict)?;
            let claimed = claimed.remove(&queued.id).ok_or(EngineError::Conflict)?;
            schedule.running = Some(claimed.clone());
            let plan = WrittenPlan {
                rev_before: schedule.conversation.rev,
                claimed: Some(claimed),
                queue_rev: Some(next_rev(&mut schedule)),
                ..WrittenPlan::default()
            };
            written.push((schedule, plan));
        }
        let rows = written.iter().map(|(schedule, _)| &schedule.conversation);
        let proof = conversation::save_next_revs(self.tx, rows, self.backend).await?;
        if let Some((_, first)) = written.first_mut() {
            first.proof = proof;
        }
        Ok(written)
    }
}
