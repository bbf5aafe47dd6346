//! The facts a decision needs, loaded under the conversation's lock.

use crate::characters::character;
use crate::conversations::conversation;
use crate::conversations::message;
use crate::conversations::swipe;
use crate::conversations::timeline;
use crate::ids::CharacterId;
use crate::ids::ConversationId;
use crate::ids::MembershipId;
use crate::ids::MessageId;
use crate::providers::provider;
use crate::rounds::round;
use crate::rounds::slot;
use crate::runs::command::Command;
use crate::runs::run;
use crate::runs::views::Runtime;
use crate::spaces::membership;
use crate::spaces::space;
use crate::spaces::space::RepliesPerTurn;
use crate::spaces::space::ReplyOrder;
use crate::speakers::from_memberships;
use crate::speakers::selection::Candidate;
use sea_orm::ColumnTrait;
use sea_orm::ConnectionTrait;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::QueryFilter;
use std::collections::HashMap;
use std::collections::HashSet;
use utoipa::ToSchema;

/// One conversation at one instant.
#[derive(Clone, Debug)]
pub struct Situation {
    pub conversation: conversation::Model,
    pub space: space::Model,
    /// The active seats in the order of the roster, then the removed ones that are named: by a run,
    /// a slot, a message that is loaded, or the command.
    pub members: Vec<membership::Model>,
    /// The active round.
    pub round: Option<Round>,
    pub queued: Option<run::Model>,
    pub running: Option<run::Model>,
    /// The newest message that is not hidden.
    pub tail: Option<message::Model>,
    /// The author of the newest assistant message that is not hidden.
    pub last_speaker: Option<MembershipId>,
    /// Who has spoken since the newest message of role user; loaded when somebody is drawn.
    pub spoken_in_epoch: HashSet<MembershipId>,
    /// What the cards say of how readily they join in; loaded when that decides.
    pub talkativeness: HashMap<CharacterId, f64>,
    /// The newest run, whatever became of it; loaded for what goes on after a stop.
    pub newest_run: Option<run::Model>,
    /// The message the command is about.
    pub subject: Option<message::Model>,
    /// Whether a branch hangs on that message.
    pub subject_is_fork_point: bool,
    /// How many alternative texts that message has.
    pub subject_n_swipes: i64,
    /// The text of it that the command is about.
    pub swipe: Option<swipe::Model>,
    /// The newest message of role user before it, that is not hidden: what it answers.
    pub answered: Option<message::Model>,
    /// What was said since that, where a whole turn may be written anew.
    pub turn: Vec<message::Model>,
    /// Whether a branch hangs on any of it.
    pub turn_has_fork_point: bool,
    /// Nobody has spoken but in greeting; looked up for a greeting.
    pub is_untouched: bool,
    /// Who has greeted already; looked up for a greeting.
    pub greeted: HashSet<MembershipId>,
    /// The endpoint that the queued run's speaker speaks through; looked up for a claim.
    pub provider: Option<provider::Model>,
}

/// An active round with its slots, in order.
#[derive(Clone, Debug)]
pub struct Round {
    pub row: round::Model,
    pub slots: Vec<slot::Model>,
}

impl Round {
    /// The slot whose turn it is.
    pub fn current(&self) -> Option<&slot::Model> {
        self.slots.iter().find(|it| it.position == self.row.cursor)
    }
}

impl Situation {
    /// The seat with this id, removed or not.
    pub fn member(&self, id: MembershipId) -> Option<&membership::Model> {
        self.members.iter().find(|it| it.id == id)
    }

    /// The seats that something loaded refers to.
    fn named(&self) -> impl Iterator<Item = MembershipId> {
        let runs = [&self.queued, &self.running, &self.newest_run];
        let runs = runs.into_iter().flatten();
        let slots = self.round.iter().flat_map(|it| &it.slots);
        let messages = [&self.tail, &self.subject, &self.answered];
        let messages = messages.into_iter().flatten().chain(&self.turn);
        (self.last_speaker.into_iter())
            .chain(runs.map(|it| it.speaker_space_membership_id))
            .chain(slots.map(|it| it.space_membership_id))
            .chain(messages.map(|it| it.space_membership_id))
    }

    /// The characters as the selector knows them.
    pub fn candidates(&self) -> Vec<Candidate> {
        from_memberships::candidates(&self.members, &self.talkativeness)
    }
}

/// What a conversation is doing, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, ToSchema)]
#[schema(as = ConversationState)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Idle,
    Queued,
    Generating,
    Paused,
    Failed,
}

/// Locks the conversation and loads what `command` needs to be decided. `None`: it is not there.
pub async fn load(
    tx: &impl ConnectionTrait,
    id: ConversationId,
    command: &Command,
) -> Result<Option<Situation>, DbErr> {
    let Some((conversation, space)) = conversation::lock_with_space(tx, id).await? else {
        return Ok(None);
    };
    // A job fills or deletes it: only what ends its runs still reaches it.
    if (conversation.is_hidden || space.is_hidden) && !matches!(command, Command::Closed(_)) {
        return Ok(None);
    }
    let members = membership::list_active(tx, space.id).await?;
    let situation = load_locked(tx, conversation, space, members, command);
    situation.await.map(Some)
}

/// The same for a conversation that this transaction has locked. `members`: the active ones.
pub(super) async fn load_locked(
    tx: &impl ConnectionTrait,
    conversation: conversation::Model,
    space: space::Model,
    members: Vec<membership::Model>,
    command: &Command,
) -> Result<Situation, DbErr> {
    let id = conversation.id;
    let (queued, running) = run::active_in(tx, id).await?;
    let tail = timeline::tail(tx, id).await?;
    let last_speaker = conversation.last_speaker_membership_id;
    let mut situation = Situation {
        round: active_round(tx, id).await?,
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
        subject: None,
        subject_is_fork_point: false,
        subject_n_swipes: 0,
        swipe: None,
        answered: None,
        turn: Vec::new(),
        turn_has_fork_point: false,
        is_untouched: false,
        greeted: HashSet::new(),
        provider: None,
    };
    load_for(tx, command, &mut situation).await?;
    let named = situation.named().chain(command.named());
    let space = situation.space.id;
    let removed = membership::load_missing(tx, space, &situation.members, named).await?;
    situation.members.extend(removed);
    Ok(situation)
}

/// What only some commands ask about.
async fn load_for(
    tx: &impl ConnectionTrait,
    command: &Command,
    situation: &mut Situation,
) -> Result<(), DbErr> {
    let id = situation.conversation.id;
    match command {
        Command::Due { .. } => {
            let seat = situation
                .queued
                .as_ref()
                .map(|it| it.speaker_space_membership_id);
            let seat = seat.and_then(|it| situation.member(it));
            let own = seat.and_then(|it| it.llm_provider_id);
            let model = seat.and_then(membership::Model::model_override);
            let provider = provider::find_usable(tx, own, model).await?;
            situation.provider = provider;
        }
        Command::Retry | Command::Resume | Command::Skip | Command::Cancel { .. } => {
            situation.newest_run = run::newest_in(tx, id).await?;
        }
        Command::ForceTalk { speaker: None, .. } => {
            situation.spoken_in_epoch =
                timeline::speakers_since_last_user_message(tx, &situation.conversation).await?;
        }
        Command::Posted(_) | Command::AnswerAgain => load_talkativeness(tx, situation).await?,
        Command::Ended { .. } => {
            load_talkativeness(tx, situation).await?;
            let space = &situation.space;
            if space.auto_mode_enabled && space.reply_order == ReplyOrder::Pooled {
                situation.spoken_in_epoch =
                    timeline::speakers_since_last_user_message(tx, &situation.conversation).await?;
            }
            // What a regenerate wrote goes to the message that it was for.
            let running = situation.running.as_ref();
            if let Some(target) = running.and_then(|it| it.debug.target_message_id) {
                load_subject(tx, target, situation).await?;
            }
        }
        Command::VisibilityChanged { message, .. } => {
            load_subject(tx, *message, situation).await?;
        }
        Command::Edited(edit) => load_subject(tx, edit.message, situation).await?,
        Command::SwipeSelected {
            message, position, ..
        } => {
            load_subject(tx, *message, situation).await?;
            situation.swipe = swipe::find_at(tx, *message, *position).await?;
        }
        Command::Regenerate { message, .. } => {
            if let Some(id) = message.or(situation.tail.as_ref().map(|it| it.id)) {
                load_subject(tx, id, situation).await?;
            }
            load_turn(tx, situation).await?;
        }
        Command::Greet(_) => {
            situation.is_untouched =
                timeline::has_only_greetings(tx, &situation.conversation).await?;
            if situation.is_untouched {
                situation.greeted = timeline::list_authors(tx, id).await?;
            }
        }
        _ => {}
    }
    Ok(())
}

async fn load_subject(
    tx: &impl ConnectionTrait,
    id: MessageId,
    situation: &mut Situation,
) -> Result<(), DbErr> {
    situation.subject = message_in(tx, situation.conversation.id, id).await?;
    situation.subject_is_fork_point = timeline::has_fork_point(tx, [id]).await?;
    let counts = swipe::count_by_message(tx, &[id]).await?;
    situation.subject_n_swipes = counts.get(&id).copied().unwrap_or_default();
    Ok(())
}

/// What the subject answers, and what was said since, if all of that may have to go.
async fn load_turn(tx: &impl ConnectionTrait, situation: &mut Situation) -> Result<(), DbErr> {
    let id = situation.conversation.id;
    let Some(row) = &situation.subject else {
        return Ok(());
    };
    situation.answered = timeline::last_user_message(tx, id, row.seq).await?;
    let Some(said) = &situation.answered else {
        return Ok(());
    };
    if situation.space.group_regenerate_mode == space::GroupRegenerateMode::LastTurn {
        situation.turn = timeline::visible_since(tx, id, said.seq).await?;
        situation.turn_has_fork_point =
            timeline::has_fork_point(tx, situation.turn.iter().map(|it| it.id)).await?;
        // Who answers again is chosen as if nobody had.
        situation.last_speaker = timeline::last_speaker(tx, id, said.seq).await?;
        load_talkativeness(tx, situation).await?;
    }
    Ok(())
}

/// Only `natural` for several asks for it.
async fn load_talkativeness(
    tx: &impl ConnectionTrait,
    situation: &mut Situation,
) -> Result<(), DbErr> {
    let space = &situation.space;
    let several = space.replies_per_turn == RepliesPerTurn::Activated;
    if several && space.reply_order == ReplyOrder::Natural {
        let cards = situation.members.iter().filter_map(|it| it.character_id);
        situation.talkativeness = character::load_talkativeness(tx, cards).await?;
    }
    Ok(())
}

/// A message of this conversation.
pub(super) async fn message_in(
    tx: &impl ConnectionTrait,
    conversation: ConversationId,
    id: MessageId,
) -> Result<Option<message::Model>, DbErr> {
    message::Entity::find_by_id(id)
        .filter(message::Column::ConversationId.eq(conversation))
        .one(tx)
        .await
}

/// The active round of a conversation with its slots.
pub async fn active_round(
    db: &impl ConnectionTrait,
    conversation: ConversationId,
) -> Result<Option<Round>, DbErr> {
    let found = round::active_in(db, conversation).await?;
    Ok(found.map(|(row, slots)| Round { row, slots }))
}

impl Situation {
    /// What the conversation is doing.
    pub fn runtime(&self) -> Runtime {
        Runtime {
            round: self.round.clone(),
            queued: self.queued.clone(),
            running: self.running.clone(),
            failed: None,
        }
    }
}
