//! Loads the facts that the planner needs, under the conversation's lock.

use std::collections::{HashMap, HashSet};

use base::ids::{CharacterId, ConversationId, MembershipId, MessageId};
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter};
use utoipa::ToSchema;

use crate::characters::character;
use crate::conversations::{conversation, message, swipe, timeline};
use crate::providers::provider;
use crate::rounds::active_round::ActiveRound;
use crate::runs::scheduling::command::Command;
use crate::runs::store::run;
use crate::spaces::space::{RepliesPerTurn, ReplyOrder};
use crate::spaces::{membership, space};
use crate::speakers::from_memberships;
use crate::speakers::selection::Candidate;

/// The state of one conversation at one instant.
#[derive(Clone, Debug)]
pub struct ScheduleState {
    pub conversation: conversation::Model,
    pub space: space::Model,
    /// The active memberships in roster order, then the removed ones that are referred to by a run,
    /// a slot, a loaded message, or the command.
    pub members: Vec<membership::Model>,
    /// The active round.
    pub round: Option<ActiveRound>,
    pub queued: Option<run::Model>,
    pub running: Option<run::Model>,
    /// The newest message that is not hidden.
    pub tail: Option<message::Model>,
    /// The author of the newest assistant message that is not hidden.
    pub last_speaker: Option<MembershipId>,
    /// Who has spoken since the newest message of role user; loaded when the speaker choice needs
    /// it.
    pub spoken_in_epoch: HashSet<MembershipId>,
    /// The talkativeness on the characters' cards; loaded when the speaker choice needs it.
    pub talkativeness: HashMap<CharacterId, f64>,
    /// The newest run, whatever its status; loaded for commands that continue after a stop.
    pub newest_run: Option<run::Model>,
    /// The message that the command refers to.
    pub target_message: Option<message::Model>,
    /// Whether a branch starts at that message.
    pub is_target_fork_point: bool,
    /// How many swipes that message has.
    pub n_target_swipes: i64,
    /// The swipe of it that the command refers to.
    pub swipe: Option<swipe::Model>,
    /// The newest visible message of role user before it, which it answers.
    pub answered_message: Option<message::Model>,
    /// The messages since then, loaded if a whole turn may be regenerated.
    pub last_turn_messages: Vec<message::Model>,
    /// Whether a branch starts at one of them.
    pub has_fork_point_in_last_turn: bool,
    /// Whether the conversation contains only greetings; loaded for a greeting.
    pub is_untouched: bool,
    /// The members that have greeted; loaded for a greeting.
    pub greeted_members: HashSet<MembershipId>,
    /// The provider of the queued run's speaker; loaded for a claim.
    pub provider: Option<provider::Model>,
}

impl ScheduleState {
    /// Returns the membership with this id, removed or not.
    pub fn member(&self, id: MembershipId) -> Option<&membership::Model> {
        self.members.iter().find(|it| it.id == id)
    }

    /// Returns the memberships that the loaded data refers to.
    fn referenced_members(&self) -> impl Iterator<Item = MembershipId> {
        let runs = [&self.queued, &self.running, &self.newest_run];
        let runs = runs.into_iter().flatten();
        let slots = self.round.iter().flat_map(|it| &it.slots);
        let messages = [&self.tail, &self.target_message, &self.answered_message];
        let messages = messages
            .into_iter()
            .flatten()
            .chain(&self.last_turn_messages);
        (self.last_speaker.into_iter())
            .chain(runs.map(|it| it.speaker_space_membership_id))
            .chain(slots.map(|it| it.space_membership_id))
            .chain(messages.map(|it| it.space_membership_id))
    }

    /// Returns the characters as input for the speaker choice.
    pub fn candidates(&self) -> Vec<Candidate> {
        from_memberships::candidates(&self.members, &self.talkativeness)
    }
}

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

/// Locks the conversation and loads what `command` needs. Returns `None` if it does not exist.
pub async fn load(
    tx: &impl ConnectionTrait,
    id: ConversationId,
    command: &Command,
) -> Result<Option<ScheduleState>, DbErr> {
    let Some((conversation, space)) = conversation::lock_with_space(tx, id).await? else {
        return Ok(None);
    };
    // A job is filling or deleting it: only the command that ends its runs may change it.
    if (conversation.is_hidden || space.is_hidden) && !matches!(command, Command::SpaceClosed(_)) {
        return Ok(None);
    }
    let members = membership::list_active(tx, space.id).await?;
    let state = load_locked(tx, conversation, space, members, command);
    state.await.map(Some)
}

/// As [`load`], for a conversation that this transaction has locked. `members` are the active ones.
pub(super) async fn load_locked(
    tx: &impl ConnectionTrait,
    conversation: conversation::Model,
    space: space::Model,
    members: Vec<membership::Model>,
    command: &Command,
) -> Result<ScheduleState, DbErr> {
    let id = conversation.id;
    let (queued, running) = run::find_active(tx, id).await?;
    let tail = timeline::tail(tx, id).await?;
    let last_speaker = conversation.last_speaker_membership_id;
    let mut state = ScheduleState {
        round: ActiveRound::find(tx, id).await?,
        conversation,
        space,
        members,
        queued,
        running,
        tail,
        last_speaker,
        spoken_in_epoch: HashSet::new(),
        talkativeness: HashMap::new(),
        newest_run: None,
        target_message: None,
        is_target_fork_point: false,
        n_target_swipes: 0,
        swipe: None,
        answered_message: None,
        last_turn_messages: Vec::new(),
        has_fork_point_in_last_turn: false,
        is_untouched: false,
        greeted_members: HashSet::new(),
        provider: None,
    };
    load_command_facts(tx, command, &mut state).await?;
    let named = state
        .referenced_members()
        .chain(command.referenced_members());
    let space = state.space.id;
    let removed = membership::load_missing(tx, space, &state.members, named).await?;
    state.members.extend(removed);
    Ok(state)
}

/// Loads the facts that only some commands need.
async fn load_command_facts(
    tx: &impl ConnectionTrait,
    command: &Command,
    state: &mut ScheduleState,
) -> Result<(), DbErr> {
    let id = state.conversation.id;
    match command {
        Command::Claim { .. } => {
            let seat = state
                .queued
                .as_ref()
                .map(|it| it.speaker_space_membership_id);
            let seat = seat.and_then(|it| state.member(it));
            let own = seat.and_then(|it| it.llm_provider_id);
            let model = seat.and_then(membership::Model::model_override);
            let provider = provider::find_usable(tx, own, model).await?;
            state.provider = provider;
        }
        Command::Retry | Command::Resume | Command::Skip | Command::CancelRun { .. } => {
            state.newest_run = run::find_newest(tx, id).await?;
        }
        Command::ForceTalk { speaker: None, .. } => {
            state.spoken_in_epoch =
                timeline::speakers_since_last_user_message(tx, &state.conversation).await?;
        }
        Command::MessagePosted(_) | Command::ReplyToTail => load_talkativeness(tx, state).await?,
        Command::RunEnded { .. } => {
            load_talkativeness(tx, state).await?;
            let space = &state.space;
            if space.auto_mode_enabled && space.reply_order == ReplyOrder::Pooled {
                state.spoken_in_epoch =
                    timeline::speakers_since_last_user_message(tx, &state.conversation).await?;
            }
            // A regenerate run adds its text to its target message.
            let running = state.running.as_ref();
            if let Some(target) = running.and_then(|it| it.debug.target_message_id) {
                load_target_message(tx, target, state).await?;
            }
        }
        Command::SetVisibility { message, .. } => {
            load_target_message(tx, *message, state).await?;
        }
        Command::EditMessage(edit) => load_target_message(tx, edit.message, state).await?,
        Command::SelectSwipe {
            message, position, ..
        } => {
            load_target_message(tx, *message, state).await?;
            state.swipe = swipe::find_at(tx, *message, *position).await?;
        }
        Command::Regenerate { message, .. } => {
            if let Some(id) = message.or(state.tail.as_ref().map(|it| it.id)) {
                load_target_message(tx, id, state).await?;
            }
            load_last_turn(tx, state).await?;
        }
        Command::InsertGreetings(_) => {
            state.is_untouched = timeline::has_only_greetings(tx, &state.conversation).await?;
            if state.is_untouched {
                state.greeted_members = timeline::list_authors(tx, id).await?;
            }
        }
        _ => {}
    }
    Ok(())
}

async fn load_target_message(
    tx: &impl ConnectionTrait,
    id: MessageId,
    state: &mut ScheduleState,
) -> Result<(), DbErr> {
    state.target_message = find_message(tx, state.conversation.id, id).await?;
    state.is_target_fork_point = timeline::has_fork_point(tx, [id]).await?;
    let counts = swipe::count_by_message(tx, &[id]).await?;
    state.n_target_swipes = counts.get(&id).copied().unwrap_or_default();
    Ok(())
}

/// Loads the answered message, and the messages since then if the whole turn may be regenerated.
async fn load_last_turn(tx: &impl ConnectionTrait, state: &mut ScheduleState) -> Result<(), DbErr> {
    let id = state.conversation.id;
    let Some(row) = &state.target_message else {
        return Ok(());
    };
    state.answered_message = timeline::last_user_message(tx, id, row.seq).await?;
    let Some(said) = &state.answered_message else {
        return Ok(());
    };
    if state.space.group_regenerate_mode == space::GroupRegenerateMode::LastTurn {
        state.last_turn_messages = timeline::visible_since(tx, id, said.seq).await?;
        state.has_fork_point_in_last_turn =
            timeline::has_fork_point(tx, state.last_turn_messages.iter().map(|it| it.id)).await?;
        // The new speakers are chosen as if no character had replied.
        state.last_speaker = timeline::last_speaker(tx, id, said.seq).await?;
        load_talkativeness(tx, state).await?;
    }
    Ok(())
}

/// Loads talkativeness if the reply order uses it: natural order with several replies per turn.
async fn load_talkativeness(
    tx: &impl ConnectionTrait,
    state: &mut ScheduleState,
) -> Result<(), DbErr> {
    let space = &state.space;
    let several = space.replies_per_turn == RepliesPerTurn::Activated;
    if several && space.reply_order == ReplyOrder::Natural {
        let cards = state.members.iter().filter_map(|it| it.character_id);
        state.talkativeness = character::load_talkativeness(tx, cards).await?;
    }
    Ok(())
}

/// Returns a message of this conversation.
pub(in crate::runs) async fn find_message(
    tx: &impl ConnectionTrait,
    conversation: ConversationId,
    id: MessageId,
) -> Result<Option<message::Model>, DbErr> {
    message::Entity::find_by_id(id)
        .filter(message::Column::ConversationId.eq(conversation))
        .one(tx)
        .await
}
