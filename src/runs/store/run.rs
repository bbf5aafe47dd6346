//! Table `conversation_runs`: one row for each attempt to produce one text. Contains the columns,
//! queries and the JSON document; only `queue.rs` changes the status.

use agent::usage::UsageTotal;
use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, MessageId, RoundId, RunId, SpaceId};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, UnionType};
use sea_orm::{FromJsonQueryResult, FromQueryResult, QueryOrder, QueryTrait};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::conversations::audience::message_audience::Audience;
use crate::conversations::message;
use crate::db::string_enum::string_enum;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "conversation_runs")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: RunId,
    pub conversation_id: ConversationId,
    /// Position among the runs of its conversation, from 1; defines their order. Assigned under the
    /// conversation's lock; a newer plan for a queued run assigns a new one.
    pub run_seq: i64,
    /// The conversation's space; used to alternate between spaces when runs are claimed.
    pub space_id: SpaceId,
    pub round_id: Option<RoundId>,
    pub slot_position: Option<i64>,
    pub kind: RunKind,
    pub status: RunStatus,
    pub reason: RunReason,
    /// `None` until the director chooses.
    pub speaker_space_membership_id: Option<MembershipId>,
    /// Who sees it and its text; `None`: everyone.
    pub audience: Option<Audience>,
    /// Not due before this time. Null: due immediately on every node, whatever its clock shows.
    pub run_after: Option<Timestamp>,
    /// When the first message of the burst was posted that this run answers; limits the debounce.
    pub burst_started_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub cancel_requested_at: Option<Timestamp>,
    /// Whether the requested cancel stores the text that was streamed.
    pub keep_partial: bool,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    /// On PostgreSQL by the database's clock.
    pub heartbeat_at: Option<Timestamp>,
    /// The node that executes it.
    pub worker_id: Option<String>,
    /// From 1; 2 when it repeats a run whose node died.
    pub attempt: i64,
    /// The fencing number: incremented by each claim; ending the run requires the current one.
    pub lease: i64,
    /// What a running run waits for; it holds no permit meanwhile.
    pub waiting_for: Option<WaitingFor>,
    /// The `seq` of the newest message that its prompt may contain.
    pub cutoff_seq: Option<i64>,
    pub error: Option<RunError>,
    pub usage: Option<RunUsage>,
    pub debug: RunDebug,
    /// Only for a canceled run; null if it was canceled before reasons were stored.
    pub canceled_because: Option<RunCancelReason>,
    /// The post that canceled it; only for the reason `superseded_by_message`. `None` for a whisper that
    /// not everyone sees who sees the run.
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
    /// The kind of a run, which determines what follows it.
    #[schema(as = RunKind)]
    RunKind { UserTurn, AutoMode, Regenerate, ForceTalk, Continue }
    /// The status of a run. The last four are final.
    #[schema(as = RunStatus)]
    RunStatus { Queued, Running, Succeeded, Failed, Canceled, Skipped }
    /// What a running run waits for: a decision about a tool call, or a permit to continue.
    #[schema(as = RunWaitingFor)]
    WaitingFor { Approval, Place }
    /// What caused a run.
    #[schema(as = RunReason)]
    RunReason {
        UserMessage, NextSlot, AutoMode, CopilotStart, CopilotFollowup, CopilotContinue,
        Generate, ForceTalk, Regenerate, Continue, LastTurn, Retry, Resume, Recovered,
    }
    /// Why a run was canceled.
    #[schema(as = RunCancelReason)]
    RunCancelReason {
        Stopped, Paused, Skipped, Superseded, SupersededByMessage, SpeakerUnavailable,
        AutoModeOff, ReplyOrderManual, CopilotOff, MessageHidden, Archived, Deleted,
    }
}

impl RunStatus {
    /// Returns the status as in the column, in JSON and in the log.
    pub fn word(self) -> String {
        self.to_value()
    }

    /// Returns whether the status is final.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

impl RunKind {
    /// Returns the kind as in the column, in JSON and in the log.
    pub fn word(self) -> String {
        self.to_value()
    }

    /// Returns whether the scheduler chose the speaker, so that muting the speaker skips the run.
    pub fn is_scheduled(self) -> bool {
        matches!(self, Self::UserTurn | Self::AutoMode)
    }

    /// Returns whether its text becomes a version of an existing message.
    pub fn adds_version(self) -> bool {
        matches!(self, Self::Regenerate | Self::Continue)
    }
}

/// Why a run failed: a code for programs and a sentence for users.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, FromJsonQueryResult, ToSchema)]
#[schema(as = RunError)]
pub struct RunError {
    pub code: String,
    pub message: String,
    /// Whether a retry may succeed.
    pub retryable: bool,
}

/// The tokens that a run used.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, FromJsonQueryResult, ToSchema,
)]
#[schema(as = Usage)]
pub struct RunUsage {
    pub prompt_tokens: i64,
    pub completion_tokens: i64,
    /// Part of it was not reported by the provider and is the server's own count.
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
    /// Returns prompt and completion tokens together.
    pub fn total(self) -> i64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }

    /// Returns the sum of both, if known.
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

/// What led to a run and what its prompt contained, for users who inspect it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, FromJsonQueryResult)]
#[serde(default)]
pub struct RunDebug {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen_because: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger_message_id: Option<MessageId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_message_id: Option<MessageId>,
    /// The tail for which this run was planned; if it changed by the claim, the run is skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_last_message_id: Option<MessageId>,
    /// Whether a regenerate adds a version to a message that may have later messages.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_place: bool,
    /// What a person asked a continuation to contain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped_because: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PromptStats>,
}

/// Statistics of a prompt.
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
    /// Whether the model rejected the pictures, and was asked again without them.
    #[serde(default)]
    pub pictures_refused: bool,
    /// The names of the regex scripts that left a text as it was because they are invalid or exceed a
    /// limit.
    #[serde(default)]
    pub failed_scripts: Vec<String>,
}

impl Model {
    /// Sets the post that canceled this run, if a post did that everyone sees who sees the run.
    pub fn set_superseding_message(&mut self, post: Option<&message::Model>) {
        if self.canceled_because == Some(RunCancelReason::SupersededByMessage) {
            let seen = post.filter(|it| it.is_seen_by_all_of(self.audience.as_ref()));
            self.superseded_by_message_id = seen.map(|it| it.id);
        }
    }

    /// Returns the kind of the next runs of its round: a forced run is followed by plain ones.
    pub fn kind_of_next_slot(&self) -> RunKind {
        match self.kind {
            RunKind::ForceTalk => RunKind::UserTurn,
            kind => kind,
        }
    }

    /// Returns how long it waited from due to its claim, or to its end if it was not claimed. A run
    /// that ended before it was due waited 0 ms.
    pub fn queue_wait_ms(&self) -> i64 {
        let until = self.started_at.or(self.finished_at);
        let due = self.run_after.unwrap_or(self.created_at);
        until.map_or(0, |it| it.ms_since(due).max(0))
    }
}

/// Returns a run. The caller checks the access to its conversation.
pub async fn find(db: &impl ConnectionTrait, id: RunId) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id(id).one(db).await
}

/// Returns a run of a conversation.
pub async fn find_in_conversation(
    db: &impl ConnectionTrait,
    conversation: ConversationId,
    id: RunId,
) -> Result<Option<Model>, DbErr> {
    let run = Entity::find_by_id(id).filter(Column::ConversationId.eq(conversation));
    run.one(db).await
}

/// Returns the queued and the running run of a conversation.
pub async fn find_active(
    db: &impl ConnectionTrait,
    conversation: ConversationId,
) -> Result<(Option<Model>, Option<Model>), DbErr> {
    let found = list_active(db, &[conversation]).await?.into_iter();
    let (queued, running): (Vec<_>, Vec<_>) = found.partition(|it| it.status == RunStatus::Queued);
    Ok((queued.into_iter().next(), running.into_iter().next()))
}

/// Returns the queued and the running runs of these conversations, with one query.
pub async fn list_active(
    db: &impl ConnectionTrait,
    conversations: &[ConversationId],
) -> Result<Vec<Model>, DbErr> {
    if conversations.is_empty() {
        return Ok(Vec::new());
    }
    let of_status = |status: &'static str| {
        // Literals, because a bound parameter does not match the partial indexes.
        Entity::find()
            .filter(Column::ConversationId.is_in(conversations.iter().copied()))
            .filter(Expr::cust(status))
    };
    // One branch for each partial index: with OR both databases read all runs of the conversation.
    let mut either = of_status("status = 'queued'").into_query();
    either.union(UnionType::All, of_status("status = 'running'").into_query());
    let rows = db.query_all(&either).await?;
    rows.iter()
        .map(|row| Model::from_query_result(row, ""))
        .collect()
}

/// Returns the newest run of a conversation, whatever its status.
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
