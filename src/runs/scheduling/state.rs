//! Loads the facts that the planner needs, under the conversation's lock.

use std::collections::{HashMap, HashSet};

use base::ids::{CharacterId, ConversationId, MembershipId, MessageId};
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter};

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
    /// What the command alone needs.
    pub facts: CommandFacts,
}

/// What only some commands need. Each variant is loaded for its commands alone.
#[derive(Clone, Debug)]
pub enum CommandFacts {
    /// All other commands.
    None,
    /// For a claim.
    Claim {
        /// The usable provider of the queued run's speaker.
        provider: Option<provider::Model>,
    },
    /// For commands that continue after a stop.
    Continuation {
        /// The newest run, whatever its status.
        newest_run: Option<run::Model>,
    },
    /// For changes of a message, and for the end of a regenerate run; `None` if there is no such
    /// message.
    Message(Option<TargetMessage>),
    /// For the choice of a swipe.
    Swipe {
        target: Option<TargetMessage>,
        swipe: Option<swipe::Model>,
    },
    /// For a regenerate; `None` if there is no such message.
    Regenerate(Option<RegenerateFacts>),
    /// For greetings.
    Greetings {
        /// The members that have greeted; `None` once other messages than greetings exist.
        greeted: Option<HashSet<MembershipId>>,
    },
}

/// The message that a command refers to.
#[derive(Clone, Debug)]
pub struct TargetMessage {
    pub row: message::Model,
    /// Whether a branch starts at it.
    pub is_fork_point: bool,
    pub n_swipes: i64,
}

/// What a regenerate replaces.
#[derive(Clone, Debug)]
pub struct RegenerateFacts {
    pub target: TargetMessage,
    /// The newest visible message of role user before the target, which it answers.
    pub answered: Option<message::Model>,
    /// The messages since then, loaded if a whole turn may be regenerated.
    pub last_turn: Vec<message::Model>,
    /// Whether a branch starts at one of them.
    pub has_fork_point_in_last_turn: bool,
}

impl CommandFacts {
    /// Returns the message that the command refers to, if it refers to one that exists.
    pub fn target(&self) -> Option<&TargetMessage> {
        match self {
            Self::Message(target) | Self::Swipe { target, .. } => target.as_ref(),
            Self::Regenerate(facts) => facts.as_ref().map(|it| &it.target),
            Self::None
            | Self::Claim { .. }
            | Self::Continuation { .. }
            | Self::Greetings { .. } => None,
        }
    }

    /// As [`Self::target`], to be changed.
    pub fn target_mut(&mut self) -> Option<&mut TargetMessage> {
        match self {
            Self::Message(target) | Self::Swipe { target, .. } => target.as_mut(),
            Self::Regenerate(facts) => facts.as_mut().map(|it| &mut it.target),
            Self::None
            | Self::Claim { .. }
            | Self::Continuation { .. }
            | Self::Greetings { .. } => None,
        }
    }

    /// Returns the newest run, if the command continues after a stop.
    pub fn newest_run(&self) -> Option<&run::Model> {
        match self {
            Self::Continuation { newest_run } => newest_run.as_ref(),
            _ => None,
        }
    }

    /// Returns the memberships that the facts refer to.
    fn referenced_members(&self) -> impl Iterator<Item = MembershipId> {
        let (answered, last_turn) = match self {
            Self::Regenerate(Some(facts)) => (facts.answered.as_ref(), facts.last_turn.as_slice()),
            _ => (None, [].as_slice()),
        };
        let target = self.target().map(|it| &it.row);
        let messages = target.into_iter().chain(answered).chain(last_turn);
        let speaker = self.newest_run().map(|it| it.speaker_space_membership_id);
        messages.map(|it| it.space_membership_id).chain(speaker)
    }
}

impl ScheduleState {
    /// Returns the membership with this id, removed or not.
    pub fn member(&self, id: MembershipId) -> Option<&membership::Model> {
        self.members.iter().find(|it| it.id == id)
    }

    /// Returns the memberships that the loaded data refers to.
    fn referenced_members(&self) -> impl Iterator<Item = MembershipId> {
        let runs = [&self.queued, &self.running].into_iter().flatten();
        let slots = self.round.iter().flat_map(|it| &it.slots);
        (self.last_speaker.into_iter())
            .chain(runs.map(|it| it.speaker_space_membership_id))
            .chain(slots.map(|it| it.space_membership_id))
            .chain(self.tail.iter().map(|it| it.space_membership_id))
            .chain(self.facts.referenced_members())
    }

    /// Returns the characters as input for the speaker choice.
    pub fn candidates(&self) -> Vec<Candidate> {
        from_memberships::candidates(&self.members, &self.talkativeness)
    }
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
        facts: CommandFacts::None,
    };
    load_speaker_facts(tx, command, &mut state).await?;
    state.facts = load_command_facts(tx, command, &mut state).await?;
    let named = state
        .referenced_members()
        .chain(command.referenced_members());
    let space = state.space.id;
    let removed = membership::load_missing(tx, space, &state.members, named).await?;
    state.members.extend(removed);
    Ok(state)
}

/// Loads what the choice of speakers needs, for the commands that choose them.
async fn load_speaker_facts(
    tx: &impl ConnectionTrait,
    command: &Command,
    state: &mut ScheduleState,
) -> Result<(), DbErr> {
    match command {
        Command::ForceTalk { speaker: None, .. } => load_spoken_in_epoch(tx, state).await,
        Command::MessagePosted(_) | Command::ReplyToTail => load_talkativeness(tx, state).await,
        Command::RunEnded { .. } => {
            load_talkativeness(tx, state).await?;
            let space = &state.space;
            if space.auto_mode_enabled && space.reply_order == ReplyOrder::Pooled {
                load_spoken_in_epoch(tx, state).await?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Loads the facts that only some commands need.
async fn load_command_facts(
    tx: &impl ConnectionTrait,
    command: &Command,
    state: &mut ScheduleState,
) -> Result<CommandFacts, DbErr> {
    let id = state.conversation.id;
    Ok(match command {
        Command::Claim { .. } => {
            let seat = state
                .queued
                .as_ref()
                .map(|it| it.speaker_space_membership_id);
            let seat = seat.and_then(|it| state.member(it));
            let own = seat.and_then(|it| it.llm_provider_id);
            let model = seat.and_then(membership::Model::model_override);
            CommandFacts::Claim {
                provider: provider::find_usable(tx, own, model).await?,
            }
        }
        Command::Retry | Command::Resume | Command::Skip | Command::CancelRun { .. } => {
            CommandFacts::Continuation {
                newest_run: run::find_newest(tx, id).await?,
            }
        }
        Command::RunEnded { .. } => {
            // A regenerate run adds its text to its target message.
            let running = state.running.as_ref();
            match running.and_then(|it| it.debug.target_message_id) {
                Some(target) => CommandFacts::Message(find_target(tx, id, target).await?),
                None => CommandFacts::None,
            }
        }
        Command::SetVisibility { message, .. } => {
            CommandFacts::Message(find_target(tx, id, *message).await?)
        }
        Command::EditMessage(edit) => {
            CommandFacts::Message(find_target(tx, id, edit.message).await?)
        }
        Command::SelectSwipe {
            message, position, ..
        } => CommandFacts::Swipe {
            target: find_target(tx, id, *message).await?,
            swipe: swipe::find_at(tx, *message, *position).await?,
        },
        Command::Regenerate { message, .. } => {
            let target = match message.or(state.tail.as_ref().map(|it| it.id)) {
                Some(message) => find_target(tx, id, message).await?,
                None => None,
            };
            CommandFacts::Regenerate(match target {
                Some(target) => Some(load_regenerate(tx, target, state).await?),
                None => None,
            })
        }
        Command::InsertGreetings(_) => CommandFacts::Greetings {
            greeted: match timeline::has_only_greetings(tx, &state.conversation).await? {
                true => Some(timeline::list_authors(tx, id).await?),
                false => None,
            },
        },
        Command::MessagePosted(_)
        | Command::ReplyToTail
        | Command::ForceTalk { .. }
        | Command::LeaseExpired { .. }
        | Command::RunReleased { .. }
        | Command::RoundStalled
        | Command::Stop { .. }
        | Command::Pause
        | Command::CopilotStarted { .. }
        | Command::EditQueue { .. }
        | Command::ApplyChanges
        | Command::SpaceClosed(_) => CommandFacts::None,
    })
}

async fn find_target(
    tx: &impl ConnectionTrait,
    conversation: ConversationId,
    id: MessageId,
) -> Result<Option<TargetMessage>, DbErr> {
    let Some(row) = find_message(tx, conversation, id).await? else {
        return Ok(None);
    };
    let is_fork_point = timeline::has_fork_point(tx, [id]).await?;
    let counts = swipe::count_by_message(tx, &[id]).await?;
    Ok(Some(TargetMessage {
        row,
        is_fork_point,
        n_swipes: counts.get(&id).copied().unwrap_or_default(),
    }))
}

/// Loads the message that the target answers, and the messages since then if the whole turn may be
/// regenerated.
async fn load_regenerate(
    tx: &impl ConnectionTrait,
    target: TargetMessage,
    state: &mut ScheduleState,
) -> Result<RegenerateFacts, DbErr> {
    let id = state.conversation.id;
    let mut facts = RegenerateFacts {
        answered: timeline::last_user_message(tx, id, target.row.seq).await?,
        target,
        last_turn: Vec::new(),
        has_fork_point_in_last_turn: false,
    };
    if let Some(said) = &facts.answered
        && state.space.group_regenerate_mode == space::GroupRegenerateMode::LastTurn
    {
        facts.last_turn = timeline::visible_since(tx, id, said.seq).await?;
        let ids = facts.last_turn.iter().map(|it| it.id);
        facts.has_fork_point_in_last_turn = timeline::has_fork_point(tx, ids).await?;
        // The new speakers are chosen as if no character had replied.
        state.last_speaker = timeline::last_speaker(tx, id, said.seq).await?;
        load_talkativeness(tx, state).await?;
    }
    Ok(facts)
}

async fn load_spoken_in_epoch(
    tx: &impl ConnectionTrait,
    state: &mut ScheduleState,
) -> Result<(), DbErr> {
    state.spoken_in_epoch =
        timeline::speakers_since_last_user_message(tx, &state.conversation).await?;
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
