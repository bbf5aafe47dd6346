//! Loads all a prompt needs whose history is handed in: nobody posted it, and nobody keeps it here.
//!
//! What a room would remember starts empty: variables, and lore that stays or rests.

use crate::characters::character;
use crate::clock::Timestamp;
use crate::conversations::message::MessageRole;
use crate::ids::MembershipId;
use crate::presets::document::GenerationTrigger;
use crate::presets::resolve;
use crate::presets::resolve::PresetLayers;
use crate::prompt::context::Context;
use crate::prompt::context::Line;
use crate::prompt::context::Member;
use crate::prompt::context::User;
use crate::prompt::load;
use crate::prompt::load::Speaking;
use crate::prompt::shelf;
use crate::prompt::shelf::Shelf;
use crate::providers::provider;
use crate::spaces::membership;
use crate::spaces::membership::MembershipKind;
use crate::spaces::membership::MembershipStatus;
use crate::spaces::membership::Participation;
use crate::spaces::space;
use sea_orm::ConnectionTrait;
use sea_orm::DbErr;
use serde_json::Value;

/// The seat of a person who is alone with a character.
pub const PERSON: MembershipId = MembershipId(1);
/// The seat of that character.
pub const CHARACTER: MembershipId = MembershipId(2);

/// A turn, but for who speaks in it.
#[derive(Clone, Debug)]
pub struct Chain<'a> {
    /// What has been said, oldest first.
    pub lines: Vec<Line>,
    /// What a program says beside the cards.
    pub directions: Option<String>,
    /// The most tokens of the answer, where the program says so.
    pub max_tokens: Option<u32>,
    pub provider: &'a provider::Model,
    pub now: Timestamp,
}

/// The context of a turn of a character that is by itself, and with whom.
///
/// # Errors
/// When the database fails.
pub async fn alone(
    db: &impl ConnectionTrait,
    character: &character::Model,
    user: &str,
    chain: Chain<'_>,
) -> Result<Context, DbErr> {
    let nothing = Value::Null;
    let layers = PresetLayers {
        membership: &nothing,
        membership_preset: None,
        space: &nothing,
        provider: &chain.provider.settings,
    };
    let preset = resolve::resolve(db, layers).await?;
    let blank = load::blank(&speaking(&chain, CHARACTER), preset);
    let person = member(PERSON, user, MembershipKind::Human);
    let own = Member {
        // A stored card was read before it was stored.
        card: character.card().ok(),
        character: Some(character.id),
        ..member(CHARACTER, &character.name, MembershipKind::Character)
    };
    let mut context = Context {
        cast: vec![person, own],
        user: User {
            name: user.to_owned(),
            persona: String::new(),
        },
        ..blank
    };
    goes_on(&mut context, chain);
    let shelf = Shelf {
        conversation: None,
        space: None,
        settings: &nothing,
        variables: &nothing,
        user: None,
        speaker: Some((character.id, character.owner_id)),
    };
    context.lore = shelf::load(db, &context, shelf).await?;
    Ok(context)
}

/// The context of a turn of this seat among those of its space; `user` is the seat of whom the prompt
/// calls the user.
///
/// # Errors
/// When the database fails.
pub async fn in_space(
    db: &impl ConnectionTrait,
    speaker: MembershipId,
    space: &space::Model,
    seats: &[membership::Model],
    user: &membership::Model,
    chain: Chain<'_>,
) -> Result<Context, DbErr> {
    let speaking = speaking(&chain, speaker);
    let (mut context, owners) = load::of_space(db, &speaking, space, seats).await?;
    context.note = load::note_of(&Value::Null, speaker, space, seats);
    context.user = load::user(Some(user));
    goes_on(&mut context, chain);
    let shelf = Shelf {
        conversation: None,
        space: Some(space.id),
        settings: &space.settings,
        variables: &Value::Null,
        user: Some(user.id),
        speaker: load::character_of(&context, seats, &owners),
    };
    context.lore = shelf::load(db, &context, shelf).await?;
    Ok(context)
}

fn speaking<'a>(chain: &Chain<'a>, speaker: MembershipId) -> Speaking<'a> {
    Speaking {
        speaker,
        provider: chain.provider,
        kind: GenerationTrigger::Normal,
        now: chain.now,
    }
}

/// Puts in what was said.
fn goes_on(context: &mut Context, chain: Chain<'_>) {
    let by_user = chain.lines.iter().filter(|it| it.role == MessageRole::User);
    let n_user_turns = by_user.filter(|it| it.carried.answers.is_none()).count();
    context.n_user_turns = i64::try_from(n_user_turns).unwrap_or(i64::MAX).max(1);
    context.history = chain.lines;
    context.directions = chain.directions;
    if chain.max_tokens.is_some() {
        context.preset.max_tokens = chain.max_tokens;
    }
}

fn member(id: MembershipId, name: &str, kind: MembershipKind) -> Member {
    Member {
        id,
        name: name.to_owned(),
        aliases: Vec::new(),
        kind,
        participation: Participation::Active,
        status: MembershipStatus::Active,
        character: None,
        card: None,
        persona: None,
    }
}
