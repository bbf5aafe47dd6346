//! Loads all a prompt needs: the only I/O of this room.

use crate::characters::card::Card;
use crate::characters::character;
use crate::clock::Timestamp;
use crate::conversations::conversation;
use crate::conversations::message;
use crate::conversations::message::MessageRole;
use crate::ids::CharacterId;
use crate::ids::ConversationId;
use crate::ids::MembershipId;
use crate::ids::MessageId;
use crate::ids::UserId;
use crate::presets::document::GenerationTrigger;
use crate::presets::document::Preset;
use crate::presets::resolve;
use crate::presets::resolve::PresetLayers;
use crate::prompt::blocks::Carried;
use crate::prompt::context::Context;
use crate::prompt::context::Line;
use crate::prompt::context::Member;
use crate::prompt::context::User;
use crate::prompt::lore::Library;
use crate::prompt::macros::variables::VariableMap;
use crate::prompt::macros::variables::Variables;
use crate::prompt::note;
use crate::prompt::note::Note;
use crate::prompt::read;
use crate::prompt::shelf;
use crate::prompt::shelf::Shelf;
use crate::prompt::space_variable;
use crate::providers::provider;
use crate::spaces::membership;
use crate::spaces::space;
use sea_orm::ColumnTrait;
use sea_orm::ConnectionTrait;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::QueryFilter;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;

/// Whose turn is to be put into words.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    pub conversation: ConversationId,
    pub speaker: MembershipId,
    /// The newest message it may contain.
    pub cutoff_seq: i64,
    /// What it answers: its author is the user.
    pub trigger: Option<MessageId>,
    pub provider: &'a provider::Model,
    /// What kind of turn it is; for a human the model always writes as one.
    pub kind: GenerationTrigger,
    pub now: Timestamp,
}

/// Where a turn is taken.
#[derive(Clone, Debug)]
pub struct Place {
    pub conversation: conversation::Model,
    pub space: space::Model,
    /// The active ones in the order of the roster, and the speaker.
    pub seats: Vec<membership::Model>,
}

/// The context of a turn. `None`: the conversation is gone.
pub async fn load(db: &impl ConnectionTrait, turn: Turn<'_>) -> Result<Option<Context>, DbErr> {
    let found = conversation::Entity::find_by_id(turn.conversation)
        .find_also_related(space::Entity)
        .one(db)
        .await?;
    let Some((conversation, Some(space))) = found else {
        return Ok(None);
    };
    let mut seats = membership::active_in(db, space.id).await?;
    seats.extend(membership::missing(db, space.id, &seats, [turn.speaker]).await?);
    let place = Place {
        conversation,
        space,
        seats,
    };
    load_in(db, turn, place).await.map(Some)
}

/// The context of a turn at a place that is known.
pub async fn load_in(
    db: &impl ConnectionTrait,
    turn: Turn<'_>,
    place: Place,
) -> Result<Context, DbErr> {
    let Place {
        conversation,
        space,
        mut seats,
    } = place;
    let speaking = Speaking {
        speaker: turn.speaker,
        provider: turn.provider,
        kind: turn.kind,
        now: turn.now,
    };
    let (mut context, mut owners) = of_space(db, &speaking, &space, &seats).await?;
    let id = conversation.id;
    let history = read::history(db, id, turn.cutoff_seq, context.limits()).await?;
    let authors = history.iter().map(|it| it.space_membership_id);
    let removed = membership::missing(db, space.id, &seats, authors).await?;
    if !removed.is_empty() {
        let (cards, more) = cards(db, &removed).await?;
        owners.extend(more);
        context
            .cast
            .extend(removed.iter().map(|it| member(it, &cards)));
        seats.extend(removed);
    }
    let cutoff_seq = history.last().map_or(0, |it| it.seq);
    let user_seat = user_seat(&seats, &history, &turn);
    context.conversation = id;
    context.note = note_of(&conversation.settings, turn.speaker, &space, &seats);
    context.n_user_turns = match context.note.interval {
        ..=1 => 1,
        _ => read::n_by(db, id, MessageRole::User, cutoff_seq)
            .await?
            .max(1),
    };
    let own_scenario = text_of(&conversation.settings, "scenario_override");
    context.scenario_override = own_scenario.or(context.scenario_override);
    context.user = user(user_seat);
    context.history = lines(history, &seats);
    context.variables = Variables {
        space: space_variable::of_space(db, space.id).await?,
        conversation: VariableMap::deserialize(&conversation.variables["macros"])
            .unwrap_or_default(),
        ..Variables::default()
    };
    let shelf = Shelf {
        conversation: Some(id),
        space: Some(space.id),
        settings: &space.settings,
        variables: &conversation.variables,
        user: user_seat.map(|it| it.id),
        speaker: character_of(&context, &seats, &owners),
    };
    context.lore = shelf::load(db, &context, shelf).await?;
    Ok(context)
}

/// Who is about to speak, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speaking<'a> {
    pub speaker: MembershipId,
    pub provider: &'a provider::Model,
    pub kind: GenerationTrigger,
    pub now: Timestamp,
}

/// What of a context is the space's: nothing has been said in it yet, and no lore is loaded. With it
/// whose the characters are.
pub(super) async fn of_space(
    db: &impl ConnectionTrait,
    speaking: &Speaking<'_>,
    space: &space::Model,
    seats: &[membership::Model],
) -> Result<(Context, HashMap<CharacterId, UserId>), DbErr> {
    let (cards, owners) = cards(db, seats).await?;
    let speaker = seats.iter().find(|it| it.id == speaking.speaker);
    let is_human = speaker.is_some_and(|it| it.kind == membership::MembershipKind::Human);
    let mut preset = preset(db, speaking.provider, space, speaker).await?;
    if let Some(nudge) = space.settings["group_nudge_prompt"].as_str() {
        preset.texts.group_nudge_prompt = nudge.to_owned();
    }
    let text = |key| text_of(&space.settings, key).unwrap_or_default();
    let context = Context {
        space_name: space.name.clone(),
        cast: seats.iter().map(|it| member(it, &cards)).collect(),
        card_handling: space.card_handling_mode,
        join: (text("join_prefix"), text("join_suffix")),
        scenario_override: text_of(&space.settings, "scenario_override"),
        trigger: match is_human {
            true => GenerationTrigger::Impersonate,
            false => speaking.kind,
        },
        lets_others_speak: space.settings["relax_message_trim"] == Value::Bool(true),
        ..blank(speaking, preset)
    };
    Ok((context, owners))
}

/// A context of which nothing is known but who speaks, and how.
pub(super) fn blank(speaking: &Speaking<'_>, preset: Preset) -> Context {
    Context {
        conversation: ConversationId(0),
        space_name: String::new(),
        speaker: speaking.speaker,
        cast: Vec::new(),
        user: user(None),
        card_handling: space::CardHandlingMode::Swap,
        join: Default::default(),
        scenario_override: None,
        preset,
        trigger: speaking.kind,
        note: Note::default(),
        lore: Library::default(),
        n_user_turns: 1,
        lets_others_speak: false,
        instruction: None,
        directions: None,
        history: Vec::new(),
        variables: Variables::default(),
        model: speaking.provider.model.clone(),
        now: speaking.now,
    }
}

/// The note of a turn of this seat.
pub(super) fn note_of(
    conversation: &Value,
    speaker: MembershipId,
    space: &space::Model,
    seats: &[membership::Model],
) -> Note {
    let seat = seats.iter().find(|it| it.id == speaker);
    let of_speaker = seat.map_or(&Value::Null, |it| &it.settings);
    note::resolve(conversation, of_speaker, &space.settings)
}

/// The character of a context, and whose it is.
pub(super) fn character_of(
    context: &Context,
    seats: &[membership::Model],
    owners: &HashMap<CharacterId, UserId>,
) -> Option<(CharacterId, Option<UserId>)> {
    let character = context.character()?.id;
    let seat = seats.iter().find(|it| it.id == character)?;
    let id = seat.character_id?;
    Some((id, owners.get(&id).copied()))
}

async fn cards(
    db: &impl ConnectionTrait,
    seats: &[membership::Model],
) -> Result<(HashMap<CharacterId, Card>, HashMap<CharacterId, UserId>), DbErr> {
    let ids = seats.iter().filter_map(|it| it.character_id);
    let rows = character::Entity::find()
        .filter(character::Column::Id.is_in(ids))
        .all(db)
        .await?;
    let owners = rows.iter().filter_map(|it| Some((it.id, it.owner_id?)));
    let owners = owners.collect();
    // A stored card was read before it was stored; one that is no card any more has no words.
    let read = |it: character::Model| Some((it.id, Card::from_document(it.card).ok()?));
    Ok((rows.into_iter().filter_map(read).collect(), owners))
}

fn member(seat: &membership::Model, cards: &HashMap<CharacterId, Card>) -> Member {
    Member {
        id: seat.id,
        name: seat.cached_display_name.clone(),
        aliases: seat.alias_list(),
        kind: seat.kind,
        participation: seat.participation,
        status: seat.status,
        character: seat.character_id,
        card: seat.character_id.and_then(|it| cards.get(&it)).cloned(),
        persona: seat.persona.clone(),
    }
}

/// What this turn goes by.
async fn preset(
    db: &impl ConnectionTrait,
    provider: &provider::Model,
    space: &space::Model,
    speaker: Option<&membership::Model>,
) -> Result<Preset, DbErr> {
    let layers = PresetLayers {
        membership: speaker.map_or(&Value::Null, |it| &it.settings["preset"]),
        membership_preset: speaker.and_then(|it| it.preset_id),
        space: &space.settings["preset"],
        provider: &provider.settings,
    };
    let preset = resolve::resolve(db, layers).await?;
    let is_human = speaker.is_some_and(|it| it.kind == membership::MembershipKind::Human);
    Ok(if is_human {
        preset.for_impersonation()
    } else {
        preset
    })
}

/// The seat of whom the prompt calls the user: the human for whom the model writes, else the author
/// of what is answered, else the first human by position.
fn user_seat<'a>(
    seats: &'a [membership::Model],
    history: &[message::Model],
    turn: &Turn<'_>,
) -> Option<&'a membership::Model> {
    let human = |it: &&membership::Model| it.kind == membership::MembershipKind::Human;
    let speaker = seats.iter().find(|it| it.id == turn.speaker).filter(human);
    let author = history
        .iter()
        .find(|it| Some(it.id) == turn.trigger)
        .and_then(|it| seats.iter().find(|seat| seat.id == it.space_membership_id))
        .filter(human);
    let here = |it: &&membership::Model| it.status == membership::MembershipStatus::Active;
    let first = || seats.iter().filter(human).find(here);
    speaker.or(author).or_else(first)
}

pub(super) fn user(seat: Option<&membership::Model>) -> User {
    seat.map_or_else(
        || User {
            name: "User".to_owned(),
            persona: String::new(),
        },
        |it| User {
            name: it.cached_display_name.clone(),
            persona: it.persona.clone().unwrap_or_default(),
        },
    )
}

fn lines(history: Vec<message::Model>, seats: &[membership::Model]) -> Vec<Line> {
    let name = |id: MembershipId| {
        let seat = seats.iter().find(|it| it.id == id);
        seat.map_or_else(String::new, |it| it.cached_display_name.clone())
    };
    history
        .into_iter()
        .map(|it| Line {
            seq: it.seq,
            message_id: it.id,
            swipe: it.active_swipe,
            author: it.space_membership_id,
            name: name(it.space_membership_id),
            role: it.role,
            text: it.content,
            tokens: it.token_count,
            at: it.created_at,
            carried: Carried::default(),
            stays: false,
        })
        .collect()
}

fn text_of(settings: &Value, key: &str) -> Option<String> {
    settings[key]
        .as_str()
        .filter(|it| !it.trim().is_empty())
        .map(str::to_owned)
}
