//! Requests tool approvals from the moderators of a space, waits for their decisions, and stores a
//! decision.
//!
//! **Invariant:** however the wait ends, none of its approvals stays open.
//!
//! **Invariant:** a waiting run holds no permit; it continues only after it got one again.

use std::time::Duration;

use base::clock::Timestamp;
use base::ids::{ProviderId, ToolApprovalId};
use realtime::envelope::Envelope;
use realtime::topic::Topic;
use sea_orm::DbErr;
use tokio::time::{Instant, timeout};

use crate::runs::announcements::receivers;
use crate::runs::execution::lease::RunLease;
use crate::runs::services::RunServices;
use crate::runs::store::due_runs::DueRun;
use crate::runs::store::run::WaitingFor;
use crate::runs::store::tool_approval::{
    ApprovalRequest, Model, ToolApprovalStatus, ToolApprovalUpdated,
};
use crate::runs::store::{queue, run, tool_approval};

/// The tool result that the model gets if the limit of open approvals is reached.
const TOO_MANY_OPEN_APPROVALS: &str = "too many open questions";
/// How long moderators may take to decide.
const APPROVAL_TIMEOUT: Duration = Duration::from_secs(300);
/// Interval at which the decisions that were made on other nodes are read.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A run that requests approvals and waits for them.
pub struct ApprovalWait<'a> {
    pub context: &'a RunServices,
    pub run: &'a run::Model,
    pub lease: &'a RunLease,
    /// The provider for which the run needs a permit to continue.
    pub provider: ProviderId,
}

/// The decision about a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalDecision {
    /// The call is allowed; contains the name of the person who decided, if known.
    Approved(Option<String>),
    /// The call is not allowed, with the reason for the model.
    Refused(String),
}

impl ApprovalWait<'_> {
    /// Requests approvals and waits until all of them are decided, the run is canceled or `until`
    /// passes.
    pub async fn request(
        &self,
        questions: Vec<ApprovalRequest>,
        until: Instant,
    ) -> Vec<ApprovalDecision> {
        let n_questions = questions.len();
        match self.request_and_wait(questions, until).await {
            Ok(rows) => {
                let mut verdicts: Vec<ApprovalDecision> =
                    rows.iter().map(decision_from_row).collect();
                verdicts.resize(
                    n_questions,
                    ApprovalDecision::Refused(TOO_MANY_OPEN_APPROVALS.to_owned()),
                );
                verdicts
            }
            Err(error) => {
                tracing::error!(run.id = %self.run.id, %error, "failed to request tool approvals: {error}");
                vec![ApprovalDecision::Refused("Nobody could be asked.".to_owned()); n_questions]
            }
        }
    }

    async fn request_and_wait(
        &self,
        questions: Vec<ApprovalRequest>,
        until: Instant,
    ) -> Result<Vec<Model>, DbErr> {
        let (db, clock) = (&self.context.db, &self.context.clock);
        let asked = tool_approval::request(db, self.run, questions, clock.now()).await?;
        if asked.is_empty() {
            return Ok(asked);
        }
        publish_approvals(self.context, &asked);
        self.lease.set_permit(false);
        self.context.wakeup.notify();
        let ids: Vec<ToolApprovalId> = asked.iter().map(|it| it.id).collect();
        let decided = self.wait_for_decisions(ids, until).await;
        let decided_at = decided.iter().flatten().filter_map(|it| it.decided_at);
        let since = decided_at.max().unwrap_or_else(|| clock.now());
        self.acquire_permit(since, until).await;
        decided
    }

    /// Waits for the decisions; approvals still pending at the end of the wait expire.
    async fn wait_for_decisions(
        &self,
        ids: Vec<ToolApprovalId>,
        until: Instant,
    ) -> Result<Vec<Model>, DbErr> {
        let (db, clock) = (&self.context.db, &self.context.clock);
        let until = until.min(Instant::now() + APPROVAL_TIMEOUT);
        let waiting = tokio::select! {
            () = self.lease.cancel.token.cancelled() => Ok(()),
            () = tokio::time::sleep_until(until) => Ok(()),
            waited = self.wait_until_decided(&ids) => waited,
        };
        let expired = tool_approval::expire(db, ids.clone(), clock.now()).await?;
        publish_approvals(self.context, &expired);
        waiting?;
        tool_approval::find_many(db.reader(), &ids).await
    }

    /// Waits for a permit; its place in the order is that of a run that became due when the
    /// approval was decided. Returns without a permit if the run ends first.
    async fn acquire_permit(&self, since: Timestamp, until: Instant) {
        if self.lease.cancel.token.is_cancelled() {
            return;
        }
        self.set_waiting_for(Some(WaitingFor::Place)).await;
        let due = DueRun {
            id: self.run.id,
            conversation_id: self.run.conversation_id,
            space_id: self.run.space_id,
            run_after: Some(since),
            created_at: self.run.created_at,
            provider_id: Some(self.provider),
        };
        tokio::select! {
            () = self.lease.cancel.token.cancelled() => return,
            () = tokio::time::sleep_until(until) => {}
            () = self.context.permits.wait_for_run(due, &self.context.wakeup) => {}
        }
        self.set_waiting_for(None).await;
    }

    /// Stores what the run waits for. Only for display; no decision depends on it.
    async fn set_waiting_for(&self, what: Option<WaitingFor>) {
        let this = (self.run.id, self.lease.number);
        let noted = self.context.db.write(move |tx| {
            Box::pin(async move { queue::set_waiting_for(tx, this, what).await.map(|_| ()) })
        });
        let noted: Result<(), DbErr> = noted.await;
        if let Err(error) = noted {
            tracing::warn!(run.id = %self.run.id, %error, "failed to store what run {} waits for: {error}", self.run.id);
        }
    }

    /// Waits until none of the approvals is pending.
    async fn wait_until_decided(&self, ids: &[ToolApprovalId]) -> Result<(), DbErr> {
        loop {
            let decided = self.context.approval_decided.notified();
            let rows = tool_approval::find_many(self.context.db.reader(), ids).await?;
            if !rows
                .iter()
                .any(|it| it.status == ToolApprovalStatus::Pending)
            {
                return Ok(());
            }
            let _ = timeout(POLL_INTERVAL, decided).await;
        }
    }
}

/// Stores a moderator's decision about a tool call. Returns `None` if it was already decided or the
/// run is over.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn decide(
    context: &RunServices,
    id: ToolApprovalId,
    is_allowed: bool,
    by: String,
) -> Result<Option<Model>, DbErr> {
    let status = match is_allowed {
        true => ToolApprovalStatus::Approved,
        false => ToolApprovalStatus::Refused,
    };
    let decided = tool_approval::decide(&context.db, id, status, by, context.clock.now()).await?;
    if let Some(row) = &decided {
        publish_approvals(context, std::slice::from_ref(row));
        context.approval_decided.notify_waiters();
    }
    Ok(decided)
}

/// Publishes the approvals to the subscribers of their conversation that see them.
fn publish_approvals(context: &RunServices, rows: &[Model]) {
    for row in rows {
        let event = ToolApprovalUpdated {
            conversation_id: row.conversation_id,
            approval: row.view(),
        };
        let topic = Topic::Conversation(row.conversation_id);
        let envelope = Envelope::plain(topic, &event);
        let receivers = receivers::of(row.audience.as_ref());
        context.hub.publish(Envelope {
            receivers,
            ..envelope
        });
    }
}

fn decision_from_row(row: &Model) -> ApprovalDecision {
    match row.status {
        ToolApprovalStatus::Approved => ApprovalDecision::Approved(row.decided_by.clone()),
        ToolApprovalStatus::Refused => {
            ApprovalDecision::Refused("The people in the room did not allow it.".to_owned())
        }
        ToolApprovalStatus::Pending | ToolApprovalStatus::Expired => {
            ApprovalDecision::Refused("Nobody in the room agreed in time.".to_owned())
        }
    }
}
