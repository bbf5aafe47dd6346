//! Loads the inputs of a prompt for a `/v1` request, which contains its own message history: for a
//! character outside a space, or for a speaker of a space.
//!
//! Macro variables, also those of the space, and timed effects of lorebook entries start empty.

use std::sync::Arc;

use base::clock::Timestamp;
use base::ids::MembershipId;
use sea_orm::{ConnectionTrait, DbErr};
use serde_json::Value;
use tavern::presets::complete_preset::GenerationTrigger;

use crate::characters::character;
use crate::conversations::message::MessageRole;
use crate::db::connect::Db;
use crate::presets::resolve;
use crate::presets::resolve::PresetLayers;
use crate::prompt::context::{HistoryLine, PromptContext, PromptMember, PromptUser};
use crate::prompt::loading::loader::{PromptCaches, SpeakerContext};
use crate::prompt::loading::lore::lore_loader::LoreLoader;
use crate::prompt::loading::lore::{lore_loader, vector_matches};
use crate::prompt::loading::{loader, memory_loader, persona_loader};
use crate::prompt::scripts::prompt_scripts::PromptScripts;
use crate::providers::provider;
use crate::spaces::membership::{MembershipKind, MembershipStatus, Participation};
use crate::spaces::{membership, space};

/// The membership of a user who is alone with a character.
pub const USER_MEMBERSHIP: MembershipId = MembershipId(1);
/// The membership of that character.
pub const CHARACTER_MEMBERSHIP: MembershipId = MembershipId(2);

/// The history and settings of a request, without the speaker.
#[derive(Clone, Debug)]
pub struct ExternalHistory<'a> {
    /// The messages, oldest first.
    pub lines: Vec<HistoryLine>,
    /// Instructions of the request, in addition to the cards.
    pub instructions: Option<String>,
    /// The maximum number of tokens of the reply, if the request states it.
    pub max_tokens: Option<u32>,
    pub provider: &'a provider::Model,
    pub now: Timestamp,
}

/// Loads the inputs for a character outside a space; `user` is the name of the user.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn for_character(
    db: &impl ConnectionTrait,
    character: &character::Model,
    user: &str,
    history: ExternalHistory<'_>,
) -> Result<PromptContext, DbErr> {
    let nothing = Value::Null;
    let of_provider = history.provider.preset_layer();
    let layers = PresetLayers {
        membership: &nothing,
        membership_preset: None,
        space: &nothing,
        provider: &of_provider,
    };
    let preset = resolve::resolve(db, layers).await?;
    let blank = loader::empty_context(&speaker_context(&history, CHARACTER_MEMBERSHIP), preset);
    let person = new_member(USER_MEMBERSHIP, user, MembershipKind::Human);
    let own = PromptMember {
        // Stored cards were validated when they were stored.
        card: character.card().ok().map(Arc::new),
        character: Some(character.id),
        owner: character.owner_id,
        ..new_member(
            CHARACTER_MEMBERSHIP,
            &character.name,
            MembershipKind::Character,
        )
    };
    let mut context = PromptContext {
        members: vec![person, own],
        scripts: PromptScripts::of_character(character),
        user: PromptUser {
            name: user.to_owned(),
            ..PromptUser::default()
        },
        ..blank
    };
    apply_history(&mut context, history);
    let loader = LoreLoader {
        conversation: None,
        space: None,
        settings: &nothing,
        variables: &nothing,
        user: None,
    };
    context.lore = lore_loader::load(db, &context, loader).await?;
    Ok(context)
}

/// Loads the inputs for a speaker of a space; `user` is the membership of the prompt's user. What was
/// learned in branches is not recalled.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn for_space(
    pools: &Db,
    caches: &PromptCaches,
    speaker: MembershipId,
    space: &space::Model,
    memberships: &[membership::Model],
    user: &membership::Model,
    history: ExternalHistory<'_>,
) -> Result<PromptContext, DbErr> {
    let db = pools.reader();
    let speaking = speaker_context(&history, speaker);
    let (mut context, _) =
        loader::space_settings(db, caches, &speaking, space, memberships).await?;
    context.note = loader::author_note_of(&Value::Null, speaker, space, memberships);
    context.user = persona_loader::to_prompt_user(Some(user));
    apply_history(&mut context, history);
    let loader = LoreLoader {
        conversation: None,
        space: Some(space.id),
        settings: &space.settings,
        variables: &Value::Null,
        user: Some(user.id),
    };
    context.lore = lore_loader::load(db, &context, loader).await?;
    let (indexes, of_space) = (&caches.memories, (space, memberships));
    let (memories, similar) = tokio::join!(
        memory_loader::load(pools, indexes, &context, of_space, None),
        vector_matches::find(pools, &caches.lore_vectors, &context, &space.settings),
    );
    context.memories = memories;
    similar.add_to(&mut context);
    Ok(context)
}

fn speaker_context<'a>(history: &ExternalHistory<'a>, speaker: MembershipId) -> SpeakerContext<'a> {
    SpeakerContext {
        speaker,
        provider: history.provider,
        kind: GenerationTrigger::Normal,
        now: history.now,
    }
}

/// Adds the history to the context.
fn apply_history(context: &mut PromptContext, history: ExternalHistory<'_>) {
    let by_user = history
        .lines
        .iter()
        .filter(|it| it.role == MessageRole::User);
    let n_user_turns = by_user.filter(|it| it.payload.answers.is_none()).count();
    context.n_user_turns = i64::try_from(n_user_turns).unwrap_or(i64::MAX).max(1);
    context.history = history.lines;
    context.instructions = history.instructions;
    if history.max_tokens.is_some() {
        context.preset.max_tokens = history.max_tokens;
    }
}

fn new_member(id: MembershipId, name: &str, kind: MembershipKind) -> PromptMember {
    PromptMember {
        id,
        name: name.to_owned(),
        aliases: Vec::new(),
        kind,
        participation: Participation::Active,
        status: MembershipStatus::Active,
        character: None,
        owner: None,
        card: None,
        persona: None,
    }
}
