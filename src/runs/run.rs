//! Table `conversation_runs`: one attempt to produce one text. Words, finders and the document;
//! the moves are in `queue.rs`, and only there.

use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, UnionType};
use sea_orm::{FromJsonQueryResult, FromQueryResult, QueryOrder, QueryTrait};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::clock::Timestamp;
use crate::db::string_enum::string_enum;
use crate::generation::usage::UsageTotal;
use crate::ids::{ConversationId, MembershipId, MessageId, RoundId, RunId, SpaceId};

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "conversation_runs")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: RunId,
    pub conversation_id: ConversationId,
    /// Its place among the runs of its conversation, from 1: the only order there is. Taken under the
    /// conversation's lock; a newer plan for a queued run takes a new one.
    pub run_seq: i64,
    /// Its conversation's; for giving each space its turn.
    pub space_id: SpaceId,
    pub round_id: Option<RoundId>,
    pub slot_position: Option<i64>,
    pub kind: RunKind,
    pub status: RunStatus,
    pub reason: RunReason,
    pub speaker_space_membership_id: MembershipId,
    /// Not due before; none: due at once on every node, whatever its clock shows.
    pub run_after: Option<Timestamp>,
    /// The first message of the burst that this run will answer: bounds the debounce.
    pub burst_started_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub cancel_requested_at: Option<Timestamp>,
    /// A cancel was asked for that stores what was streamed.
    pub keep_partial: bool,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    /// On PostgreSQL by the database's clock.
    pub heartbeat_at: Option<Timestamp>,
    /// The node that runs it.
    pub worker_id: Option<String>,
    /// From 1; 2 when it repeats a run whose node died.
    pub attempt: i64,
    /// The fence: rises with each claim, and who ends the run must name it.
    pub lease: i64,
    /// What a running run waits for; it holds no permit then.
    pub waiting_for: Option<WaitingFor>,
    /// The newest message its prompt may contain.
    pub cutoff_seq: Option<i64>,
    pub error: Option<RunError>,
    pub usage: Option<RunUsage>,
    pub debug: RunDebug,
    /// Only of a canceled run; null where it was canceled before reasons were stored.
    pub canceled_because: Option<RunCancelReason>,
    /// The post that canceled it, with `superseded_by_message`.
    pub superseded_by_message_id: Option<MessageId>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(
        belongs_to = "crate::conversations::conversation::Entity",
        from = "Column::ConversationId",
        to = "crate::conversations::conversation::Column::Id"
    )]
    Conversation,
}

impl Related<crate::conversations::conversation::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Conversation.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}

string_enum! {
    /// What a run is; decides what follows it.
    #[schema(as = RunKind)]
    RunKind { UserTurn, AutoMode, Regenerate, ForceTalk }
    /// Where a run stands. The last four are final.
    #[schema(as = RunStatus)]
    RunStatus { Queued, Running, Succeeded, Failed, Canceled, Skipped }
    /// What a running run waits for: the decision about a tool call, or a permit to go on.
    #[schema(as = RunWaitingFor)]
    WaitingFor { Approval, Place }
    /// What caused a run.
    #[schema(as = RunReason)]
    RunReason {
        UserMessage, NextSlot, AutoMode, CopilotStart, CopilotFollowup, CopilotContinue,
        Generate, ForceTalk, Regenerate, LastTurn, Retry, Resume, Recovered,
    }
    /// Why a run was canceled.
    #[schema(as = RunCancelReason)]
    RunCancelReason {
        Stopped, Paused, Skipped, Superseded, SupersededByMessage, SpeakerUnavailable,
        AutoModeOff, ReplyOrderManual, CopilotOff, MessageHidden, Archived, Deleted,
    }
}

impl RunStatus {
    /// As in the column, in JSON and in the log.
    pub fn word(self) -> String {
        self.to_value()
    }

    /// Whether nothing can follow.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

impl RunKind {
    /// As in the column, in JSON and in the log.
    pub fn word(self) -> String {
        self.to_value()
    }

    /// Whether the scheduler chose the speaker, so that muting takes the turn away.
    pub fn is_scheduled(self) -> bool {
        matches!(self, Self::UserTurn | Self::AutoMode)
    }
}

/// Why a run failed: a code for programs, a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, FromJsonQueryResult, ToSchema)]
#[schema(as = RunError)]
pub struct RunError {
    pub code: String,
    pub message: String,
    /// Whether trying again may help.
    pub retryable: bool,
}

/// What a run cost, in tokens.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, FromJsonQueryResult, ToSchema,
)]
#[schema(as = Usage)]
pub struct RunUsage {
    pub prompt_tokens: i64,
    pub completion_tokens: i64,
    /// A part of it was not reported by the provider and is the server's own count.
    #[serde(default)]
    pub estimated: bool,
}

impl From<UsageTotal> for RunUsage {
    fn from(usage: UsageTotal) -> Self {
        Self {
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
            estimated: usage.is_estimated,
        }
    }
}

impl RunUsage {
    /// Prompt and completion together.
    pub fn total(self) -> i64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }

    /// With what further calls of the same run cost.
    pub fn sum(before: Option<Self>, more: Option<Self>) -> Option<Self> {
        let (Some(before), Some(more)) = (before, more) else {
            return before.or(more);
        };
        Some(Self {
            prompt_tokens: before.prompt_tokens.saturating_add(more.prompt_tokens),
            completion_tokens: before
                .completion_tokens
                .saturating_add(more.completion_tokens),
            estimated: before.estimated || more.estimated,
        })
    }
}

/// What led to a run and what went into it: for people who ask why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, FromJsonQueryResult)]
#[serde(default)]
pub struct RunDebug {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen_because: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger_message_id: Option<MessageId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_message_id: Option<MessageId>,
    /// The tail this run was planned after; another one at the claim makes it pointless.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_last_message_id: Option<MessageId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped_because: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PromptStats>,
}

/// What went into a prompt, in figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = PromptRecord)]
pub struct PromptStats {
    pub provider: String,
    pub model: String,
    pub total_tokens: i64,
    pub limit_tokens: i64,
    pub dropped_messages: i64,
    pub n_messages: i64,
    pub seed: i64,
}

/// One attempt to produce one text, as the API shows it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Run)]
pub struct RunView {
    pub id: RunId,
    pub conversation_id: ConversationId,
    /// Its place among the runs of its conversation.
    pub run_seq: i64,
    pub round_id: Option<RoundId>,
    pub slot_position: Option<i64>,
    pub kind: RunKind,
    pub status: RunStatus,
    pub reason: RunReason,
    pub speaker_space_membership_id: MembershipId,
    pub chosen_because: Option<String>,
    pub run_after: Option<Timestamp>,
    pub cancel_requested_at: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub heartbeat_at: Option<Timestamp>,
    pub attempt: i64,
    pub waiting_for: Option<WaitingFor>,
    /// Of a canceled run.
    pub canceled_because: Option<RunCancelReason>,
    /// The post that canceled it, with `superseded_by_message`.
    pub superseded_by_message_id: Option<MessageId>,
    pub error: Option<RunError>,
    pub usage: Option<RunUsage>,
    pub target_message_id: Option<MessageId>,
    pub trigger_message_id: Option<MessageId>,
    pub skipped_because: Option<String>,
    pub prompt: Option<PromptStats>,
    pub created_at: Timestamp,
}

impl Model {
    /// What people may read of this run.
    pub fn view(&self) -> RunView {
        RunView {
            id: self.id,
            conversation_id: self.conversation_id,
            run_seq: self.run_seq,
            round_id: self.round_id,
            slot_position: self.slot_position,
            kind: self.kind,
            status: self.status,
            reason: self.reason,
            speaker_space_membership_id: self.speaker_space_membership_id,
            chosen_because: self.debug.chosen_because.clone(),
            run_after: self.run_after,
            cancel_requested_at: self.cancel_requested_at,
            started_at: self.started_at,
            finished_at: self.finished_at,
            heartbeat_at: self.heartbeat_at,
            attempt: self.attempt,
            waiting_for: self.waiting_for,
            canceled_because: self.canceled_because,
            superseded_by_message_id: self.superseded_by_message_id,
            error: self.error.clone(),
            usage: self.usage,
            target_message_id: self.debug.target_message_id,
            trigger_message_id: self.debug.trigger_message_id,
            skipped_because: self.debug.skipped_because.clone(),
            prompt: self.debug.prompt.clone(),
            created_at: self.created_at,
        }
    }

    /// A run that a post cancels names that post.
    pub fn set_superseding_message(&mut self, post: Option<MessageId>) {
        if self.canceled_because == Some(RunCancelReason::SupersededByMessage) {
            self.superseded_by_message_id = post;
        }
    }

    /// What the next runs of its round are: a forced turn is followed by plain ones.
    pub fn kind_of_next_slot(&self) -> RunKind {
        match self.kind {
            RunKind::ForceTalk => RunKind::UserTurn,
            kind => kind,
        }
    }

    /// How long it waited from being due to its claim, or to its end if nobody claimed it. One that
    /// ended before it was due did not wait.
    pub fn queue_wait_ms(&self) -> i64 {
        let until = self.started_at.or(self.finished_at);
        let due = self.run_after.unwrap_or(self.created_at);
        until.map_or(0, |it| it.ms_since(due).max(0))
    }

    /// The document for the log of a timeline: `None` when there is no run.
    pub fn optional_view(run: &Option<Model>) -> Option<RunView> {
        run.as_ref().map(Model::view)
    }
}

/// The queued and the running run of a conversation, in one look.
pub async fn find_active(
    db: &impl ConnectionTrait,
    conversation: ConversationId,
) -> Result<(Option<Model>, Option<Model>), DbErr> {
    let of_status = |status: &'static str| {
        // Literals, so that the partial indexes are seen to fit.
        Entity::find()
            .filter(Column::ConversationId.eq(conversation))
            .filter(Expr::cust(status))
    };
    // One branch for each partial index: with OR both databases read all runs of the conversation.
    let mut either = of_status("status = 'queued'").into_query();
    either.union(UnionType::All, of_status("status = 'running'").into_query());
    let rows = db.query_all(&either).await?;
    let found: Result<Vec<Model>, DbErr> = rows
        .iter()
        .map(|row| Model::from_query_result(row, ""))
        .collect();
    let found = found?;
    let (queued, running): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|it| it.status == RunStatus::Queued);
    Ok((queued.into_iter().next(), running.into_iter().next()))
}

/// The queued and the running runs of these conversations.
pub async fn list_active(
    db: &impl ConnectionTrait,
    conversations: &[ConversationId],
) -> Result<Vec<Model>, DbErr> {
    let mut found = Vec::new();
    // One look for each partial index.
    for status in ["status = 'queued'", "status = 'running'"] {
        let active = Entity::find()
            .filter(Column::ConversationId.is_in(conversations.iter().copied()))
            .filter(Expr::cust(status));
        found.extend(active.all(db).await?);
    }
    Ok(found)
}

/// The newest run of a conversation, whatever became of it.
pub async fn find_newest(
    db: &impl ConnectionTrait,
    conversation: ConversationId,
) -> Result<Option<Model>, DbErr> {
    Entity::find()
        .filter(Column::ConversationId.eq(conversation))
        .order_by_desc(Column::RunSeq)
        .one(db)
        .await
}
