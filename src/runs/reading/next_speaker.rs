//! Previews who speaks next: the turns that are decided, and the odds of the choice after them. Read
//! only; nothing is drawn.
//!
//! **Invariant:** a preview is made of what its viewer sees. Whispers to others, and the turns that follow
//! from them, change nothing in it.

use std::collections::HashMap;

use base::ids::{CharacterId, ConversationId, MembershipId};
use sea_orm::{ConnectionTrait, DbErr};
use serde::Serialize;
use utoipa::ToSchema;

use crate::characters::character;
use crate::conversations::audience::message_audience::Audience;
use crate::conversations::audience::viewer::Viewer;
use crate::conversations::{conversation, timeline};
use crate::db::connect::Db;
use crate::rounds::round::RoundKind;
use crate::rounds::slot::SlotStatus;
use crate::runs::reading::views::RuntimeView;
use crate::runs::scheduling::auto_mode;
use crate::runs::store::run;
use crate::runs::store::run::RunKind;
use crate::spaces::membership::MembershipKind;
use crate::spaces::space::ReplyOrder;
use crate::spaces::{membership, space};
use crate::speakers::selection::{Candidate, SelectionInput, SelectionTrigger};
use crate::speakers::{from_memberships, odds};

/// Who speaks next in a conversation.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NextSpeaker {
    /// The turns that are decided, in order; the first one may be speaking.
    pub decided: Vec<DecidedTurn>,
    /// The choice after them, if no message mentions a member: each member that can be chosen, with its
    /// probability. Where people take turns, it is for a message of the caller. While the director has a
    /// turn to decide: the choice of that turn.
    pub odds: Vec<SpeakerOddsView>,
    /// What the odds are for: the next message of a person, the next turn of auto mode after the decided
    /// ones, or a reply that a person generates, in manual order.
    pub trigger: PreviewTrigger,
}

/// A turn that is decided.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct DecidedTurn {
    pub membership_id: MembershipId,
    pub because: String,
}

/// How likely a member is to be chosen.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = SpeakerOdds)]
pub struct SpeakerOddsView {
    pub membership_id: MembershipId,
    /// From 0 to 1. With several replies per turn those of all characters may add up to more than 1.
    /// Null if it is unknown: the director chooses.
    #[schema(minimum = 0, maximum = 1)]
    pub probability: Option<f64>,
    pub because: String,
}

/// What a choice follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PreviewTrigger {
    Message,
    AutoMode,
    Generate,
}

/// Loads the preview of a conversation for a viewer, all of one state of the database.
///
/// # Errors
/// Returns `RecordNotFound` when the conversation does not exist, or the database's error when it
/// fails.
pub async fn load(db: &Db, id: ConversationId, viewer: Viewer) -> Result<NextSpeaker, DbErr> {
    db.read(move |tx| Box::pin(async move { load_in(tx, id, viewer).await }))
        .await
}

async fn load_in(
    tx: &impl ConnectionTrait,
    id: ConversationId,
    viewer: Viewer,
) -> Result<NextSpeaker, DbErr> {
    let Some((row, space)) = conversation::find_with_space(tx, id).await? else {
        return Err(DbErr::RecordNotFound("a conversation".to_owned()));
    };
    let members = membership::list_active(tx, space.id).await?;
    let runtime = RuntimeView::load(tx, id).await?.seen_by(viewer);
    let cards = members.iter().filter_map(|it| it.character_id);
    let talkativeness = match space.reply_order {
        ReplyOrder::Natural => character::load_talkativeness(tx, cards).await?,
        _ => HashMap::new(),
    };
    let (last_speaker, spoken) = timeline::speakers_seen(tx, id, viewer).await?;
    let decided = decided_turns(&runtime);
    let has_turns = auto_mode::turns_left(&row, &space) > Some(n_uncounted_turns(&runtime));
    let is_after_character =
        (decided.last()).is_some_and(|it| is_character(it.membership_id, &members));
    let undecided = undecided_turn(&runtime);
    let audience = undecided.as_ref().and_then(|it| it.audience.clone());
    let undecided = undecided.map(|it| it.trigger);
    let order = match undecided {
        // The director chooses for a turn that is planned, whatever the order is now.
        Some(_) => ReplyOrder::Director,
        None => space.reply_order,
    };
    let trigger = match (undecided, order) {
        (Some(trigger), _) => trigger,
        (None, ReplyOrder::Manual) => PreviewTrigger::Generate,
        // Without a decided turn, auto mode rests until a person posts or generates.
        _ if is_after_character && has_turns => PreviewTrigger::AutoMode,
        _ => PreviewTrigger::Message,
    };
    let mut input = SelectionInput {
        candidates: candidates(&members, &talkativeness, audience.as_ref()),
        last_speaker,
        speakers_since_last_user_message: spoken,
        allow_self_responses: space.allow_self_responses,
        ..SelectionInput::default()
    };
    for turn in &decided {
        input.newest_author = Some(turn.membership_id);
        if is_character(turn.membership_id, &members) {
            input.last_speaker = Some(turn.membership_id);
            input
                .speakers_since_last_user_message
                .insert(turn.membership_id);
        }
    }
    let selection = match trigger {
        PreviewTrigger::Message => SelectionTrigger::Human,
        PreviewTrigger::AutoMode => SelectionTrigger::Auto,
        PreviewTrigger::Generate => SelectionTrigger::Generate,
    };
    if selection == SelectionTrigger::Human && space.humans_take_turns {
        add_people(tx, (id, viewer), (&space, &members), &mut input).await?;
    }
    if selection == SelectionTrigger::Human {
        // The message starts a new epoch, in which no character has spoken.
        input.speakers_since_last_user_message.clear();
    }
    let odds = odds::compute(order, space.replies_per_turn, selection, &input);
    Ok(NextSpeaker {
        decided,
        odds: odds.into_iter().map(to_view).collect(),
        trigger,
    })
}

/// Adds the people to the candidates, for the next message of the viewer, who gets no turn then. In the order
/// `list` the turn passes from the author of the message before.
async fn add_people(
    tx: &impl ConnectionTrait,
    (id, viewer): (ConversationId, Viewer),
    (space, members): (&space::Model, &[membership::Model]),
    input: &mut SelectionInput,
) -> Result<(), DbErr> {
    let author = match viewer {
        Viewer::Member(member) => Some(member),
        Viewer::Server | Viewer::Outsider => None,
    };
    input
        .candidates
        .extend(from_memberships::people(members, author));
    if space.reply_order == ReplyOrder::List {
        let newest = timeline::list_newest(tx, id, viewer, 1).await?;
        let newest = newest.first().map(|it| it.space_membership_id);
        input.last_speaker = input.newest_author.or(newest);
    }
    Ok(())
}

/// Returns the turns that are running, pending in the active round, or queued. A run that adds a swipe to
/// a message is no turn.
fn decided_turns(runtime: &RuntimeView) -> Vec<DecidedTurn> {
    let round = runtime.round.as_ref();
    let is_slot = |it: &&run::Model| round.is_some_and(|round| it.round_id == Some(round.id));
    let is_turn = |it: &&run::Model| it.debug.target_message_id.is_none() && !is_slot(it);
    let turn = |it: &run::Model| {
        Some(DecidedTurn {
            membership_id: it.speaker_space_membership_id?,
            because: it.debug.chosen_because.clone().unwrap_or_default(),
        })
    };
    let slots = round.iter().flat_map(|round| &round.slots.0);
    let pending = slots.filter(|it| it.status == SlotStatus::Pending);
    let running = runtime.running.iter().filter(is_turn).filter_map(turn);
    let queued = runtime.queued.iter().filter(is_turn).filter_map(turn);
    let pending = pending.filter_map(|it| {
        Some(DecidedTurn {
            membership_id: it.space_membership_id?,
            because: it.chosen_because.clone(),
        })
    });
    running.chain(pending).chain(queued).collect()
}

/// Returns the characters that see what they answer; `None`: everyone does.
fn candidates(
    members: &[membership::Model],
    talkativeness: &HashMap<CharacterId, f64>,
    audience: Option<&Audience>,
) -> Vec<Candidate> {
    let mut all = from_memberships::candidates(members, talkativeness);
    all.retain(|it| audience.is_none_or(|audience| audience.contains(it.id)));
    all
}

/// A turn for which the director has not chosen yet.
struct UndecidedTurn {
    trigger: PreviewTrigger,
    audience: Option<Audience>,
}

fn undecided_turn(runtime: &RuntimeView) -> Option<UndecidedTurn> {
    let runs = [&runtime.running, &runtime.queued].into_iter().flatten();
    let of_run = runs
        .filter(|it| it.speaker_space_membership_id.is_none())
        .map(|it| UndecidedTurn {
            trigger: match it.kind {
                RunKind::AutoMode => PreviewTrigger::AutoMode,
                RunKind::ForceTalk => PreviewTrigger::Generate,
                RunKind::UserTurn | RunKind::Regenerate | RunKind::Continue => {
                    PreviewTrigger::Message
                }
            },
            audience: it.audience.clone(),
        });
    // That of a paused or failed round has no run.
    let slots = runtime.round.iter().flat_map(|round| {
        let mut pending = round.slots.from(round.cursor);
        let is_undecided = pending.any(|it| it.space_membership_id.is_none());
        is_undecided.then(|| UndecidedTurn {
            trigger: match round.kind {
                RoundKind::AutoMode => PreviewTrigger::AutoMode,
                RoundKind::UserTurn => PreviewTrigger::Message,
            },
            audience: round.audience.clone(),
        })
    });
    of_run.chain(slots).next()
}

/// Returns how many turns of auto mode the pending slots will use; that of the current slot is counted
/// already.
fn n_uncounted_turns(runtime: &RuntimeView) -> i64 {
    let round = runtime.round.as_ref();
    let round = round.filter(|it| it.kind == RoundKind::AutoMode);
    round.map_or(0, |it| it.slots.from(it.cursor + 1).count() as i64)
}

fn is_character(id: MembershipId, members: &[membership::Model]) -> bool {
    let member = members.iter().find(|it| it.id == id);
    member.is_some_and(|it| it.kind == MembershipKind::Character)
}

fn to_view(odds: odds::SpeakerOdds) -> SpeakerOddsView {
    SpeakerOddsView {
        membership_id: odds.id,
        probability: odds.probability,
        because: odds.reason,
    }
}
