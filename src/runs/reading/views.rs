//! Loads the active round and runs of a conversation, and builds the JSON documents of the
//! conversation, its state and its round.

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, MessageId, RoundId, SpaceId};
use sea_orm::{ConnectionTrait, DbErr};
use serde::Serialize;
use utoipa::ToSchema;

use crate::conversations::conversation;
use crate::conversations::newest_messages::NewestMessages;
use crate::db::connect::Db;
use crate::rounds::{round, slot};
use crate::runs::scheduling::auto_mode;
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::runs::store::{failed_run, run};
use crate::spaces::space;

/// The state of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, ToSchema)]
#[schema(as = ConversationState)]
#[serde(rename_all = "snake_case")]
pub enum ConversationState {
    Idle,
    Queued,
    Generating,
    Paused,
    Failed,
}

/// The ordered speakers that one trigger activated.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Round)]
pub struct RoundView {
    pub id: RoundId,
    pub status: round::RoundStatus,
    pub state: round::RoundState,
    pub cursor: i64,
    pub trigger_message_id: Option<MessageId>,
    pub slots: Vec<SlotView>,
}

/// One position of a round.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Slot)]
pub struct SlotView {
    pub position: i64,
    pub membership_id: MembershipId,
    pub status: slot::SlotStatus,
    /// Whether a user forced it.
    pub forced: bool,
    pub skip_reason: Option<String>,
    pub chosen_because: String,
}

impl round::Model {
    /// Returns the API document of this round.
    pub fn view(&self) -> RoundView {
        RoundView {
            id: self.id,
            status: self.status,
            state: self.state,
            cursor: self.cursor,
            trigger_message_id: self.trigger_message_id,
            slots: self.slots.0.iter().map(slot_view).collect(),
        }
    }
}

fn slot_view(slot: &slot::Slot) -> SlotView {
    SlotView {
        position: slot.position,
        membership_id: slot.space_membership_id,
        status: slot.status,
        forced: slot.forced,
        skip_reason: slot.skip_reason.clone(),
        chosen_because: slot.chosen_because.clone(),
    }
}

/// The active round of a conversation, and its queued, running and failed run.
#[derive(Clone, Debug)]
pub struct RuntimeView {
    pub round: Option<round::Model>,
    pub queued: Option<run::Model>,
    pub running: Option<run::Model>,
    /// The newest run, if it failed; loaded only when a conversation is read.
    pub failed: Option<run::Model>,
}

impl RuntimeView {
    /// Loads the round and runs of a conversation. Consistent only within one transaction.
    ///
    /// # Errors
    /// Returns the database's error when it fails.
    pub async fn load(tx: &impl ConnectionTrait, id: ConversationId) -> Result<Self, DbErr> {
        let (queued, running) = run::find_active(tx, id).await?;
        Ok(Self {
            round: round::find_active(tx, id).await?,
            queued,
            running,
            failed: failed_run::list_newest_failed(tx, &[id]).await?.pop(),
        })
    }

    /// Returns the state of the conversation.
    pub fn state(&self) -> ConversationState {
        match self.round.as_ref().map(|it| it.state) {
            Some(round::RoundState::Paused) => ConversationState::Paused,
            Some(round::RoundState::Failed) => ConversationState::Failed,
            _ if self.running.is_some() => ConversationState::Generating,
            _ if self.queued.is_some() => ConversationState::Queued,
            _ => ConversationState::Idle,
        }
    }

    /// Returns the failed run that Retry would queue again.
    pub fn failed_run(&self, row: &conversation::Model) -> Option<run::RunView> {
        let is_active = self.queued.is_some() || self.running.is_some();
        let failed = self.failed.as_ref().filter(|_| !is_active)?;
        let is_shown = match (&self.round, failed.round_id) {
            (Some(round), Some(id)) => round.id == id && round.state == round::RoundState::Failed,
            (None, None) => failed.cutoff_seq >= Some(NewestMessages::from_row(row).seq()),
            _ => false,
        };
        is_shown.then(|| failed.view())
    }
}

impl ScheduleState {
    /// Returns the round and runs of the conversation.
    pub fn runtime(&self) -> RuntimeView {
        RuntimeView {
            round: self.round.clone(),
            queued: self.queued.clone(),
            running: self.running.clone(),
            failed: None,
        }
    }
}

/// A timeline and its current state.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Conversation)]
pub struct ConversationView {
    pub id: ConversationId,
    pub space_id: SpaceId,
    pub kind: conversation::ConversationKind,
    pub title: String,
    #[schema(value_type = Object)]
    pub settings: serde_json::Value,
    /// Null while auto mode is off.
    pub auto_mode_turns_left: Option<i64>,
    pub last_seq: i64,
    pub parent_conversation_id: Option<ConversationId>,
    pub forked_from_message_id: Option<MessageId>,
    pub rev: i64,
    pub state: ConversationState,
    pub round: Option<RoundView>,
    pub queued_run: Option<run::RunView>,
    pub running_run: Option<run::RunView>,
    /// The newest run, if it failed: the one that Retry repeats.
    pub failed_run: Option<run::RunView>,
    pub created_at: Timestamp,
}

/// Loads the document of a conversation.
///
/// # Errors
/// Returns `RecordNotFound` when the conversation does not exist, or the database's error when it
/// fails.
pub async fn load_conversation(db: &Db, id: ConversationId) -> Result<ConversationView, DbErr> {
    let read = db.read(move |tx| {
        Box::pin(async move {
            let Some((row, space)) = conversation::find_with_space(tx, id).await? else {
                return Err(DbErr::RecordNotFound("a conversation".to_owned()));
            };
            let runtime = RuntimeView::load(tx, id).await?;
            Ok(conversation_view(&row, &space, &runtime))
        })
    });
    read.await
}

/// Builds the document of a conversation.
pub fn conversation_view(
    row: &conversation::Model,
    space: &space::Model,
    runtime: &RuntimeView,
) -> ConversationView {
    ConversationView {
        id: row.id,
        space_id: row.space_id,
        kind: row.kind,
        title: row.title.clone(),
        settings: row.settings.clone(),
        auto_mode_turns_left: auto_mode::turns_left(row, space),
        last_seq: row.last_seq,
        parent_conversation_id: row.parent_conversation_id,
        forked_from_message_id: row.forked_from_message_id,
        rev: row.rev,
        state: runtime.state(),
        round: runtime.round.as_ref().map(round::Model::view),
        queued_run: run::Model::optional_view(&runtime.queued),
        running_run: run::Model::optional_view(&runtime.running),
        failed_run: runtime.failed_run(row),
        created_at: row.created_at,
    }
}
