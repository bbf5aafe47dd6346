//! Loads the active round and runs of a conversation, and builds the JSON documents of the
//! conversation, its state and its round.

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, MessageId, RoundId, SpaceId};
use sea_orm::{ConnectionTrait, DbErr};
use serde::Serialize;
use utoipa::ToSchema;

use crate::conversations::audience::message_audience::Audience;
use crate::conversations::audience::seen_messages;
use crate::conversations::audience::viewer::Viewer;
use crate::conversations::conversation;
use crate::conversations::newest_messages::NewestMessages;
use crate::db::connect::Db;
use crate::rounds::{round, slot};
use crate::runs::scheduling::auto_mode;
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::runs::store::run_view::RunDocument;
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
    /// The round waits for the message of a person.
    Waiting,
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
    /// When the turn of the person for whom the round waits began.
    pub turn_started_at: Option<Timestamp>,
    /// When that turn is skipped; null: never.
    pub deadline_at: Option<Timestamp>,
    pub trigger_message_id: Option<MessageId>,
    /// The memberships that see it and its replies; null: everyone.
    pub audience: Option<Audience>,
    /// False; true in the document of a [`PrivateRoundView`].
    pub private: bool,
    pub slots: Vec<SlotView>,
}

/// One position of a round.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Slot)]
pub struct SlotView {
    pub position: i64,
    /// Null until the director chooses.
    pub membership_id: Option<MembershipId>,
    pub status: slot::SlotStatus,
    /// Whether a user forced it.
    pub forced: bool,
    pub skip_reason: Option<String>,
    /// The message with which the member spoke.
    pub message_id: Option<MessageId>,
    pub chosen_because: String,
}

/// A round as one viewer sees it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = AnyRound)]
#[serde(untagged)]
pub enum RoundDocument {
    Whole(RoundView),
    Private(PrivateRoundView),
}

/// What people outside the audience of a round see of it: that it exists, and its state.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = PrivateRound)]
pub struct PrivateRoundView {
    pub id: RoundId,
    pub status: round::RoundStatus,
    pub state: round::RoundState,
    /// Always empty.
    pub slots: Vec<SlotView>,
    /// Always true.
    pub private: bool,
}

impl round::Model {
    /// Returns the document of this round for a viewer.
    pub fn document(&self, viewer: Viewer) -> RoundDocument {
        match viewer.sees(self.audience.as_ref()) {
            true => RoundDocument::Whole(self.view()),
            false => RoundDocument::Private(PrivateRoundView {
                id: self.id,
                status: self.status,
                state: self.state,
                slots: Vec::new(),
                private: true,
            }),
        }
    }

    /// Returns the API document of this round for a person in its audience.
    pub fn view(&self) -> RoundView {
        RoundView {
            id: self.id,
            status: self.status,
            state: self.state,
            cursor: self.cursor,
            turn_started_at: self.turn_started_at,
            deadline_at: self.deadline_at,
            trigger_message_id: self.trigger_message_id,
            audience: self.audience.clone(),
            private: false,
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
        message_id: slot.message_id,
        chosen_because: slot.chosen_because.clone(),
    }
}

/// Returns the document of a run, if any, for a viewer.
pub fn document(run: &Option<run::Model>, viewer: Viewer) -> Option<RunDocument> {
    run.as_ref().map(|it| it.document(viewer))
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
            Some(round::RoundState::Waiting) => ConversationState::Waiting,
            Some(round::RoundState::Paused) => ConversationState::Paused,
            Some(round::RoundState::Failed) => ConversationState::Failed,
            _ if self.running.is_some() => ConversationState::Generating,
            _ if self.queued.is_some() => ConversationState::Queued,
            _ => ConversationState::Idle,
        }
    }

    /// Returns the part that the viewer sees: nothing of the round and the runs of a whisper to others.
    pub fn seen_by(mut self, viewer: Viewer) -> Self {
        self.round = self.round.filter(|it| viewer.sees(it.audience.as_ref()));
        for run in [&mut self.queued, &mut self.running, &mut self.failed] {
            run.take_if(|it| !viewer.sees(it.audience.as_ref()));
        }
        self
    }

    /// Returns the document of the active round.
    pub fn round_document(&self, viewer: Viewer) -> Option<RoundDocument> {
        self.round.as_ref().map(|it| it.document(viewer))
    }

    /// Returns the failed run that Retry would queue again.
    pub fn failed_run(&self, row: &conversation::Model, viewer: Viewer) -> Option<RunDocument> {
        let is_active = self.queued.is_some() || self.running.is_some();
        let failed = self.failed.as_ref().filter(|_| !is_active)?;
        let is_shown = match (&self.round, failed.round_id) {
            (Some(round), Some(id)) => round.id == id && round.state == round::RoundState::Failed,
            (None, None) => failed.cutoff_seq >= Some(NewestMessages::from_row(row).seq()),
            _ => false,
        };
        is_shown.then(|| failed.document(viewer))
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
    /// The message of the parent at which it begins; null also for a whisper to others.
    pub forked_from_message_id: Option<MessageId>,
    pub rev: i64,
    pub state: ConversationState,
    pub round: Option<RoundDocument>,
    pub queued_run: Option<RunDocument>,
    pub running_run: Option<RunDocument>,
    /// The newest run, if it failed: the one that Retry repeats.
    pub failed_run: Option<RunDocument>,
    pub created_at: Timestamp,
}

/// Loads the document of a conversation.
///
/// # Errors
/// Returns `RecordNotFound` when the conversation does not exist, or the database's error when it
/// fails.
pub async fn load_conversation(
    db: &Db,
    id: ConversationId,
    viewer: Viewer,
) -> Result<ConversationView, DbErr> {
    let read = db.read(move |tx| {
        Box::pin(async move {
            let Some((row, space)) = conversation::find_with_space(tx, id).await? else {
                return Err(DbErr::RecordNotFound("a conversation".to_owned()));
            };
            let runtime = RuntimeView::load(tx, id).await?;
            let mut view = conversation_view(&row, &space, &runtime, viewer);
            show_forks(tx, [(&row, &mut view)], viewer).await?;
            Ok(view)
        })
    });
    read.await
}

/// Builds the document of a conversation, without its fork: see [`show_forks`].
pub fn conversation_view(
    row: &conversation::Model,
    space: &space::Model,
    runtime: &RuntimeView,
    viewer: Viewer,
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
        forked_from_message_id: None,
        rev: row.rev,
        state: runtime.state(),
        round: runtime.round_document(viewer),
        queued_run: document(&runtime.queued, viewer),
        running_run: document(&runtime.running, viewer),
        failed_run: runtime.failed_run(row, viewer),
        created_at: row.created_at,
    }
}

/// Adds to the documents of conversations the messages at which they begin, if the viewer sees them.
pub async fn show_forks<'a>(
    tx: &impl ConnectionTrait,
    views: impl IntoIterator<Item = (&'a conversation::Model, &'a mut ConversationView)>,
    viewer: Viewer,
) -> Result<(), DbErr> {
    let views = views.into_iter();
    let forks: Vec<_> = views
        .filter_map(|(row, view)| Some((row.forked_from_message_id?, view)))
        .collect();
    let seen = seen_messages::list_seen(tx, forks.iter().map(|(fork, _)| *fork), viewer).await?;
    for (fork, view) in forks {
        view.forked_from_message_id = Some(fork).filter(|it| seen.contains(it));
    }
    Ok(())
}
