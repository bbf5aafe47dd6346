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
use crate::speakers::candidates::Candidate;
use sea_orm::ColumnTrait;
use sea_orm::ConnectionTrait;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::QueryFilter;
use std::collections::HashMap;
use std::collections::HashSet;
use utoipa::ToSchema;

/// Of a character whose seat and card do not say.
const USUAL_TALKATIVENESS: f64 = 0.5;

/// One conversation at one instant.
#[derive(Clone, Debug)]
pub struct Situation {
    pub conversation: conversation::Model,
    pub space: space::Model,
    /// Every seat, removed ones too, in the order of the roster.
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

    /// The characters as the selector knows them.
    pub fn candidates(&self) -> Vec<Candidate> {
        self.members
            .iter()
            .filter(|it| {
                it.kind == membership::Kind::Character && it.status == membership::Status::Active
            })
            .map(|it| Candidate {
                id: it.id,
                position: it.position,
                names: std::iter::once(it.cached_display_name.clone())
                    .chain(it.alias_list())
                    .collect(),
                talkativeness: self.talkativeness_of(it),
                schedulable: it.can_be_scheduled(),
            })
            .collect()
    }

    fn talkativeness_of(&self, seat: &membership::Model) -> f64 {
        let of_card = seat.character_id.and_then(|it| self.talkativeness.get(&it));
        let stated = seat.talkativeness.or(of_card.copied());
        stated.unwrap_or(USUAL_TALKATIVENESS)
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
    let members = membership::in_space(tx, space.id).await?;
    let situation = load_locked(tx, conversation, space, members, command);
    situation.await.map(Some)
}

/// The same for a conversation that this transaction has locked.
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
    let last_speaker = match &tail {
        Some(it) if it.role == message::Role::Assistant => Some(it.space_membership_id),
        Some(_) => timeline::last_speaker(tx, id).await?,
        None => None,
    };
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
        is_untouched: false,
        greeted: HashSet::new(),
        provider: None,
    };
    load_for(tx, command, &mut situation).await?;
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
            let own = seat
                .and_then(|it| situation.member(it))
                .and_then(|it| it.llm_provider_id);
            situation.provider = provider::usable(tx, own).await?;
        }
        Command::Retry | Command::Resume | Command::Skip | Command::Cancel { .. } => {
            situation.newest_run = run::newest_in(tx, id).await?;
        }
        Command::ForceTalk { speaker: None, .. } => {
            situation.spoken_in_epoch = timeline::spoken_in_epoch(tx, id).await?;
        }
        Command::Posted(_) => load_talkativeness(tx, situation).await?,
        Command::Ended { .. } => {
            load_talkativeness(tx, situation).await?;
            let space = &situation.space;
            if space.auto_mode_enabled && space.reply_order == ReplyOrder::Pooled {
                situation.spoken_in_epoch = timeline::spoken_in_epoch(tx, id).await?;
            }
        }
        Command::VisibilityChanged { message, .. } | Command::Edited { message, .. } => {
            situation.subject = message_in(tx, id, *message).await?;
            situation.subject_is_fork_point = timeline::is_fork_point(tx, *message).await?;
            let counts = swipe::counts(tx, &[*message]).await?;
            situation.subject_n_swipes = counts.get(message).copied().unwrap_or_default();
        }
        Command::Greet(_) => {
            situation.is_untouched = timeline::is_untouched(tx, id).await?;
            situation.greeted = timeline::authors(tx, id).await?;
        }
        _ => {}
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
        situation.talkativeness = character::talkativeness_of(tx, cards).await?;
    }
    Ok(())
}

async fn message_in(
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
        }
    }
}
