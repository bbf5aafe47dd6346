//! Asks the moderators of a room whether a tool may be called, and waits for them.
//!
//! **Invariant:** whatever ends the waiting, none of its questions stays open.
//!
//! **Invariant:** a run that waits holds no permit, and it goes on only with one.

use crate::clock::Timestamp;
use crate::ids::ConversationId;
use crate::ids::ProviderId;
use crate::ids::ToolApprovalId;
use crate::realtime::event::Envelope;
use crate::realtime::topic::Topic;
use crate::runs::context::Context;
use crate::runs::due::Due;
use crate::runs::engine::Engine;
use crate::runs::lease::Lease;
use crate::runs::queue;
use crate::runs::run;
use crate::runs::run::WaitingFor;
use crate::runs::tool_approval;
use crate::runs::tool_approval::Model;
use crate::runs::tool_approval::Question;
use crate::runs::tool_approval::ToolApprovalStatus;
use crate::runs::tool_approval::ToolApprovalUpdated;
use crate::runs::tool_approval::View;
use sea_orm::DbErr;
use std::time::Duration;
use tokio::time::Instant;
use tokio::time::timeout;

/// What a model is told about a call that is not asked.
const TOO_MANY: &str = "too many open questions";
/// So long the room may take to answer.
const PATIENCE: Duration = Duration::from_secs(300);
/// How often the answers are looked at that came through another node.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Whoever waits for an answer.
pub struct Consent<'a> {
    pub context: &'a Context,
    pub run: &'a run::Model,
    pub lease: &'a Lease,
    /// Where its model answers.
    pub provider: ProviderId,
}

/// What the room says of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Yes; and who said so.
    Approved(Option<String>),
    /// No, for this reason.
    Refused(String),
}

impl Consent<'_> {
    /// Asks, and waits for all answers. `None`: the turn ends first.
    pub async fn ask(&self, questions: Vec<Question>, until: Instant) -> Option<Vec<Verdict>> {
        let n_questions = questions.len();
        let verdicts = match self.answers(questions, until).await {
            Ok(rows) => {
                let mut verdicts: Vec<Verdict> = rows.iter().map(verdict).collect();
                verdicts.resize(n_questions, Verdict::Refused(TOO_MANY.to_owned()));
                verdicts
            }
            Err(error) => {
                tracing::error!(run.id = %self.run.id, %error, "the room could not be asked about a tool: {error}");
                vec![Verdict::Refused("Nobody could be asked.".to_owned()); n_questions]
            }
        };
        (!self.lease.token.is_cancelled() && Instant::now() < until).then_some(verdicts)
    }

    async fn answers(&self, questions: Vec<Question>, until: Instant) -> Result<Vec<Model>, DbErr> {
        let (db, clock) = (&self.context.db, &self.context.clock);
        let asked = tool_approval::ask(db, self.run, questions, clock.now()).await?;
        if asked.is_empty() {
            return Ok(asked);
        }
        tell(self.context, &asked);
        self.lease.set_permit(false);
        self.context.bell.ring();
        let ids: Vec<ToolApprovalId> = asked.iter().map(|it| it.id).collect();
        let decided = self.decisions(ids, until).await;
        let decided_at = decided.iter().flatten().filter_map(|it| it.decided_at);
        let since = decided_at.max().unwrap_or_else(|| clock.now());
        self.take_a_place(since, until).await;
        decided
    }

    /// Waits for people; what they have not decided by then has expired.
    async fn decisions(
        &self,
        ids: Vec<ToolApprovalId>,
        until: Instant,
    ) -> Result<Vec<Model>, DbErr> {
        let (db, clock) = (&self.context.db, &self.context.clock);
        let until = until.min(Instant::now() + PATIENCE);
        let waiting = tokio::select! {
            () = self.lease.token.cancelled() => Ok(()),
            () = tokio::time::sleep_until(until) => Ok(()),
            waited = self.wait(&ids) => waited,
        };
        let expired = tool_approval::expire(db, ids.clone(), clock.now()).await?;
        tell(self.context, &expired);
        waiting?;
        tool_approval::these(db.reader(), &ids).await
    }

    /// Waits for a permit like a run that became due when its question was decided. Returns without
    /// one if the turn ends first.
    async fn take_a_place(&self, since: Timestamp, until: Instant) {
        if self.lease.token.is_cancelled() {
            return;
        }
        self.waits_for(Some(WaitingFor::Place)).await;
        let due = Due {
            id: self.run.id,
            conversation_id: self.run.conversation_id,
            space_id: self.run.space_id,
            run_after: Some(since),
            created_at: self.run.created_at,
            provider_id: Some(self.provider),
        };
        tokio::select! {
            () = self.lease.token.cancelled() => return,
            () = tokio::time::sleep_until(until) => {}
            () = self.context.permits.of_run(due, &self.context.bell) => {}
        }
        self.waits_for(None).await;
    }

    /// For people to see; nothing depends on it.
    async fn waits_for(&self, what: Option<WaitingFor>) {
        let this = (self.run.id, self.lease.number);
        let noted = self.context.db.write(move |tx| {
            Box::pin(async move { queue::waits_for(tx, this, what).await.map(|_| ()) })
        });
        let noted: Result<(), DbErr> = noted.await;
        if let Err(error) = noted {
            tracing::warn!(run.id = %self.run.id, %error, "what run {} waits for could not be noted: {error}", self.run.id);
        }
    }

    /// Waits until all are decided.
    async fn wait(&self, ids: &[ToolApprovalId]) -> Result<(), DbErr> {
        loop {
            let decided = self.context.decided.notified();
            let rows = tool_approval::these(self.context.db.reader(), ids).await?;
            if !rows
                .iter()
                .any(|it| it.status == ToolApprovalStatus::Pending)
            {
                return Ok(());
            }
            let _ = timeout(LOOK_EVERY, decided).await;
        }
    }
}

impl Engine {
    /// Decides whether a tool may be called. `None`: that was decided already, or the turn is over.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn decide(
        &self,
        id: ToolApprovalId,
        is_allowed: bool,
        by: String,
    ) -> Result<Option<Model>, DbErr> {
        let status = match is_allowed {
            true => ToolApprovalStatus::Approved,
            false => ToolApprovalStatus::Refused,
        };
        let now = self.context.clock.now();
        let decided = tool_approval::decide(&self.context.db, id, status, by, now).await?;
        if let Some(row) = &decided {
            tell(&self.context, std::slice::from_ref(row));
            self.context.decided.notify_waiters();
        }
        Ok(decided)
    }

    /// What waits for the moderators of a conversation, oldest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn tool_approvals(&self, id: ConversationId) -> Result<Vec<View>, DbErr> {
        let open = tool_approval::open_in(self.context.db.reader(), id).await?;
        Ok(open.iter().map(Model::view).collect())
    }
}

/// Tells the room what became of questions.
fn tell(context: &Context, rows: &[Model]) {
    for row in rows {
        let event = ToolApprovalUpdated {
            conversation_id: row.conversation_id,
            approval: row.view(),
        };
        let topic = Topic::Conversation(row.conversation_id);
        context.hub.publish(Envelope::plain(topic, &event));
    }
}

fn verdict(row: &Model) -> Verdict {
    match row.status {
        ToolApprovalStatus::Approved => Verdict::Approved(row.decided_by.clone()),
        ToolApprovalStatus::Refused => {
            Verdict::Refused("The people in the room did not allow it.".to_owned())
        }
        ToolApprovalStatus::Pending | ToolApprovalStatus::Expired => {
            Verdict::Refused("Nobody in the room agreed in time.".to_owned())
        }
    }
}
