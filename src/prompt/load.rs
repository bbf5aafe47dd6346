//! Loads all a prompt needs: the only I/O of this room.

use crate::characters::card::Card;
use crate::characters::character;
use crate::clock::Timestamp;
use crate::conversations::conversation;
use crate::conversations::message;
use crate::conversations::timeline;
use crate::ids::CharacterId;
use crate::ids::ConversationId;
use crate::ids::MembershipId;
use crate::ids::MessageId;
use crate::prompt::budget;
use crate::prompt::context::Context;
use crate::prompt::context::GROUP_NUDGE;
use crate::prompt::context::HUMAN_MAIN_PROMPT;
use crate::prompt::context::Limits;
use crate::prompt::context::Line;
use crate::prompt::context::MAIN_PROMPT;
use crate::prompt::context::Member;
use crate::prompt::context::Sampling;
use crate::prompt::context::User;
use crate::providers::provider;
use crate::spaces::membership;
use crate::spaces::space;
use sea_orm::ColumnTrait;
use sea_orm::ConnectionTrait;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::QueryFilter;
use serde_json::Value;
use std::collections::HashMap;

/// How many messages are read at a time.
const PIECE: u64 = 200;

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
    let cards = cards(db, &seats).await?;
    let preset = Preset::new(turn.provider, &space);
    let history = history(db, conversation.id, turn.cutoff_seq, preset.limits()).await?;
    Ok(Context {
        space_name: space.name.clone(),
        speaker: turn.speaker,
        user: user(&seats, &history, &turn),
        cast: seats.iter().map(|it| member(it, &cards)).collect(),
        scenario_override: text_of(&conversation.settings, "scenario_override")
            .or_else(|| text_of(&space.settings, "scenario_override")),
        main_prompt: preset
            .text("main_prompt")
            .unwrap_or_else(|| usual_main_prompt(&seats, turn.speaker).to_owned()),
        post_history: preset.text("post_history_instructions").unwrap_or_default(),
        group_nudge: space.settings["group_nudge_prompt"]
            .as_str()
            .unwrap_or(GROUP_NUDGE)
            .to_owned(),
        instruction: None,
        history: lines(history, &seats),
        limits: preset.limits(),
        sampling: preset.sampling(),
        now: turn.now,
    })
}

/// The newest messages that can fit, and a few more, ascending: a long conversation costs no more
/// than what the model's window takes of it.
async fn history(
    db: &impl ConnectionTrait,
    id: ConversationId,
    cutoff_seq: i64,
    limits: Limits,
) -> Result<Vec<message::Model>, DbErr> {
    let mut room = limits.context_tokens - limits.response_tokens;
    let mut cutoff_seq = cutoff_seq;
    let mut pieces = Vec::new();
    loop {
        let piece = timeline::for_prompt(db, id, cutoff_seq, PIECE).await?;
        let is_last = (piece.len() as u64) < PIECE;
        room -= piece.iter().map(budget::cost_of_line).sum::<i64>();
        cutoff_seq = piece.first().map_or(0, |it| it.seq - 1);
        pieces.push(piece);
        if is_last || room < 0 {
            return Ok(pieces.into_iter().rev().flatten().collect());
        }
    }
}

async fn cards(
    db: &impl ConnectionTrait,
    seats: &[membership::Model],
) -> Result<HashMap<CharacterId, Card>, DbErr> {
    let ids = seats.iter().filter_map(|it| it.character_id);
    let rows = character::Entity::find()
        .filter(character::Column::Id.is_in(ids))
        .all(db)
        .await?;
    // A stored card was read before it was stored; one that is no card any more has no words.
    let read = |it: character::Model| Some((it.id, Card::from_document(it.card).ok()?));
    Ok(rows.into_iter().filter_map(read).collect())
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

/// The main prompt of a space that sets none.
fn usual_main_prompt(seats: &[membership::Model], speaker: MembershipId) -> &'static str {
    let speaker = seats.iter().find(|it| it.id == speaker);
    match speaker.map(|it| it.kind) {
        Some(membership::Kind::Human) => HUMAN_MAIN_PROMPT,
        _ => MAIN_PROMPT,
    }
}

/// The human for whom the model writes, else the author of what is answered, else the first human
/// by position.
fn user(seats: &[membership::Model], history: &[message::Model], turn: &Turn<'_>) -> User {
    let human = |it: &&membership::Model| it.kind == membership::Kind::Human;
    let speaker = seats.iter().find(|it| it.id == turn.speaker).filter(human);
    let author = history
        .iter()
        .find(|it| Some(it.id) == turn.trigger)
        .and_then(|it| seats.iter().find(|seat| seat.id == it.space_membership_id))
        .filter(human);
    let first = || {
        seats
            .iter()
            .filter(human)
            .find(|it| it.status == membership::Status::Active)
    };
    speaker.or(author).or_else(first).map_or_else(
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
            author: it.space_membership_id,
            name: name(it.space_membership_id),
            role: it.role,
            text: it.content,
            tokens: it.token_count,
        })
        .collect()
}

/// Generation settings: the space's, else the provider's, else the defaults.
struct Preset<'a> {
    space: &'a Value,
    provider: &'a Value,
}

impl<'a> Preset<'a> {
    fn new(provider: &'a provider::Model, space: &'a space::Model) -> Self {
        Self {
            space: &space.settings["preset"],
            provider: &provider.settings,
        }
    }

    fn get(&self, key: &str) -> &Value {
        match &self.space[key] {
            Value::Null => &self.provider[key],
            value => value,
        }
    }

    fn text(&self, key: &str) -> Option<String> {
        self.get(key).as_str().map(str::to_owned)
    }

    fn limits(&self) -> Limits {
        let usual = Limits::default();
        let positive = |key| self.get(key).as_i64().filter(|it| *it > 0);
        Limits {
            context_tokens: positive("context_tokens").unwrap_or(usual.context_tokens),
            response_tokens: positive("max_tokens").unwrap_or(usual.response_tokens),
        }
    }

    fn sampling(&self) -> Sampling {
        let stop = self.get("stop").as_array().cloned().unwrap_or_default();
        Sampling {
            temperature: self.get("temperature").as_f64(),
            top_p: self.get("top_p").as_f64(),
            max_tokens: self
                .get("max_tokens")
                .as_u64()
                .and_then(|it| it.try_into().ok()),
            stop: stop
                .iter()
                .filter_map(|it| it.as_str().map(str::to_owned))
                .collect(),
        }
    }
}

fn text_of(settings: &Value, key: &str) -> Option<String> {
    settings[key]
        .as_str()
        .filter(|it| !it.trim().is_empty())
        .map(str::to_owned)
}
