//! Loads all a prompt needs: the only I/O of this room.

use crate::characters::card::Card;
use crate::characters::character;
use crate::clock::Timestamp;
use crate::conversations::conversation;
use crate::conversations::message;
use crate::conversations::message::Role;
use crate::ids::CharacterId;
use crate::ids::ConversationId;
use crate::ids::MembershipId;
use crate::ids::MessageId;
use crate::ids::UserId;
use crate::presets::document::Preset;
use crate::presets::document::Trigger;
use crate::presets::resolve;
use crate::presets::resolve::Layers;
use crate::prompt::context::Context;
use crate::prompt::context::Limits;
use crate::prompt::context::Line;
use crate::prompt::context::Member;
use crate::prompt::context::User;
use crate::prompt::lore::Library;
use crate::prompt::macros::variables::Values;
use crate::prompt::macros::variables::Variables;
use crate::prompt::note;
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
    pub kind: Trigger,
    pub now: Timestamp,
}

/// Where a turn is taken.
#[derive(Clone, Debug)]
pub struct Place {
    pub conversation: conversation::Model,
    pub space: space::Model,
    /// Every one, in the order of the roster.
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
    let seats = membership::in_space(db, space.id).await?;
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
        seats,
    } = place;
    let (cards, owners) = cards(db, &seats).await?;
    let speaker = seats.iter().find(|it| it.id == turn.speaker);
    let is_human = speaker.is_some_and(|it| it.kind == membership::Kind::Human);
    let mut preset = preset(db, &turn, &space, speaker).await?;
    if let Some(nudge) = space.settings["group_nudge_prompt"].as_str() {
        preset.texts.group_nudge_prompt = nudge.to_owned();
    }
    let id = conversation.id;
    let history = read::history(db, id, turn.cutoff_seq, Limits::of(&preset)).await?;
    let no_settings = Value::Null;
    let of_speaker = speaker.map_or(&no_settings, |it| &it.settings);
    let note = note::resolve(&conversation.settings, of_speaker, &space.settings);
    let cutoff_seq = history.last().map_or(0, |it| it.seq);
    let text = |key| text_of(&space.settings, key).unwrap_or_default();
    let user_seat = user_seat(&seats, &history, &turn);
    let mut context = Context {
        conversation: id,
        space_name: space.name.clone(),
        speaker: turn.speaker,
        user: user(user_seat),
        cast: seats.iter().map(|it| member(it, &cards)).collect(),
        card_handling: space.card_handling_mode,
        join: (text("join_prefix"), text("join_suffix")),
        scenario_override: text_of(&conversation.settings, "scenario_override")
            .or_else(|| text_of(&space.settings, "scenario_override")),
        preset,
        trigger: if is_human {
            Trigger::Impersonate
        } else {
            turn.kind
        },
        n_user_turns: match note.interval {
            ..=1 => 1,
            _ => read::n_by(db, id, Role::User, cutoff_seq).await?.max(1),
        },
        note,
        lore: Library::default(),
        lets_others_speak: space.settings["relax_message_trim"] == Value::Bool(true),
        instruction: None,
        history: lines(history, &seats),
        variables: Variables {
            space: space_variable::of_space(db, space.id).await?,
            conversation: Values::deserialize(&conversation.variables["macros"])
                .unwrap_or_default(),
            ..Variables::default()
        },
        model: turn.provider.model.clone(),
        now: turn.now,
    };
    let character = context.character().map(|it| it.id);
    let seat = seats.iter().find(|it| Some(it.id) == character);
    let character = seat.and_then(|it| it.character_id);
    let shelf = Shelf {
        space: space.id,
        settings: &space.settings,
        variables: &conversation.variables,
        user: user_seat.map(|it| it.id),
        speaker: character.map(|it| (it, owners.get(&it).copied())),
    };
    context.lore = shelf::load(db, &context, shelf).await?;
    Ok(context)
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
        card: seat.character_id.and_then(|it| cards.get(&it)).cloned(),
        persona: seat.persona.clone(),
    }
}

/// What this turn goes by.
async fn preset(
    db: &impl ConnectionTrait,
    turn: &Turn<'_>,
    space: &space::Model,
    speaker: Option<&membership::Model>,
) -> Result<Preset, DbErr> {
    let layers = Layers {
        seat: speaker.map_or(&Value::Null, |it| &it.settings["preset"]),
        seat_preset: speaker.and_then(|it| it.preset_id),
        space: &space.settings["preset"],
        provider: &turn.provider.settings,
    };
    let preset = resolve::resolve(db, layers).await?;
    let is_human = speaker.is_some_and(|it| it.kind == membership::Kind::Human);
    Ok(if is_human { preset.for_human() } else { preset })
}

/// The seat of whom the prompt calls the user: the human for whom the model writes, else the author
/// of what is answered, else the first human by position.
fn user_seat<'a>(
    seats: &'a [membership::Model],
    history: &[message::Model],
    turn: &Turn<'_>,
) -> Option<&'a membership::Model> {
    let human = |it: &&membership::Model| it.kind == membership::Kind::Human;
    let speaker = seats.iter().find(|it| it.id == turn.speaker).filter(human);
    let author = history
        .iter()
        .find(|it| Some(it.id) == turn.trigger)
        .and_then(|it| seats.iter().find(|seat| seat.id == it.space_membership_id))
        .filter(human);
    let here = |it: &&membership::Model| it.status == membership::Status::Active;
    let first = || seats.iter().filter(human).find(here);
    speaker.or(author).or_else(first)
}

fn user(seat: Option<&membership::Model>) -> User {
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
        })
        .collect()
}

fn text_of(settings: &Value, key: &str) -> Option<String> {
    settings[key]
        .as_str()
        .filter(|it| !it.trim().is_empty())
        .map(str::to_owned)
}
