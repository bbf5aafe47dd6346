//! Loads all inputs of a prompt of a stored conversation: members, cards, preset, author's note,
//! messages, variables, lorebooks and memories.

use std::collections::HashMap;

use base::clock::Timestamp;
use base::ids::{CharacterId, ConversationId, MembershipId, MessageId};
use llm::registry::ProviderKind;
use sea_orm::{ConnectionTrait, DbErr};
use serde::Deserialize;
use serde_json::Value;
use tavern::macros::variables::{VariableMap, Variables};
use tavern::presets::complete_preset::{GenerationTrigger, Preset};

use crate::characters::card_cache::{CardCache, CharacterCard};
use crate::conversations::audience::viewer::Viewer;
use crate::conversations::conversation;
use crate::conversations::message::MessageRole;
use crate::db::connect::Db;
use crate::memories::embedding::query_embedding::QueryEmbedder;
use crate::memories::index_cache::MemoryIndexes;
use crate::memories::tool::allowed_tools;
use crate::presets::resolve;
use crate::presets::resolve::PresetLayers;
use crate::prompt::author_note::AuthorNote;
use crate::prompt::context::{LoreInput, PromptContext, PromptMember, RecalledMemories};
use crate::prompt::history::history_window;
use crate::prompt::loading::history_cache::HistoryCache;
use crate::prompt::loading::history_filter::HistoryFilter;
use crate::prompt::loading::lore::content_vectors::ContentVectors;
use crate::prompt::loading::lore::lore_loader::LoreLoader;
use crate::prompt::loading::lore::{lore_loader, vector_matches};
use crate::prompt::loading::{
    history_lines, history_query, memory_loader, persona_loader, picture_loader, quotes,
    summary_loader, translated_history,
};
use crate::prompt::scripts::prompt_scripts::PromptScripts;
use crate::prompt::text_completion::templates;
use crate::prompt::{author_note, space_variable};
use crate::providers::detected::token_calibration;
use crate::providers::{preset_overrides, provider};
use crate::regex_scripts::script_cache::ScriptCache;
use crate::spaces::{membership, space};

/// Which prompt to load.
#[derive(Clone, Copy, Debug)]
pub struct PromptRequest<'a> {
    pub conversation: ConversationId,
    pub speaker: MembershipId,
    /// The newest message that it may include.
    pub cutoff_seq: i64,
    /// The message that it replies to; its author becomes the user.
    pub reply_to: Option<MessageId>,
    pub provider: &'a provider::Model,
    /// The generation trigger; ignored for a human speaker, who is always impersonated.
    pub kind: GenerationTrigger,
    pub now: Timestamp,
    /// To whom the prompt is shown: it contains only what they see, too. `Server`: all that the speaker
    /// sees.
    pub reader: Viewer,
}

impl<'a> PromptRequest<'a> {
    /// Returns a request for the prompt of a reply after the newest message.
    pub fn next_reply(
        conversation: ConversationId,
        speaker: MembershipId,
        provider: &'a provider::Model,
        now: Timestamp,
    ) -> Self {
        Self {
            conversation,
            speaker,
            cutoff_seq: i64::MAX,
            reply_to: None,
            provider,
            kind: GenerationTrigger::Normal,
            now,
            reader: Viewer::Server,
        }
    }
}

/// The conversation of a prompt, with its space and members.
#[derive(Clone, Debug)]
pub struct PromptScope {
    pub conversation: conversation::Model,
    pub space: space::Model,
    /// The active ones in the order of the roster, and the speaker.
    pub memberships: Vec<membership::Model>,
}

/// What a node remembers for its next prompts. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct PromptCaches {
    pub histories: HistoryCache,
    pub cards: CardCache,
    pub memories: MemoryIndexes,
    pub lore_vectors: ContentVectors,
    pub scripts: ScriptCache,
}

impl PromptCaches {
    /// Creates empty caches.
    pub fn new(queries: QueryEmbedder) -> Self {
        Self {
            histories: HistoryCache::default(),
            cards: CardCache::default(),
            lore_vectors: ContentVectors::new(queries.clone()),
            memories: MemoryIndexes::new(queries),
            scripts: ScriptCache::default(),
        }
    }
}

/// Loads the inputs of a prompt. Returns `None` if the conversation does not exist.
pub async fn load(
    pools: &Db,
    caches: &PromptCaches,
    request: PromptRequest<'_>,
) -> Result<Option<PromptContext>, DbErr> {
    let db = pools.reader();
    let found = conversation::find_with_space(db, request.conversation).await?;
    let Some((conversation, space)) = found else {
        return Ok(None);
    };
    let mut memberships = membership::list_active(db, space.id).await?;
    memberships
        .extend(membership::load_missing(db, space.id, &memberships, [request.speaker]).await?);
    let scope = PromptScope {
        conversation,
        space,
        memberships,
    };
    let prompt = load_in_scope(pools, caches, request, scope).await?;
    Ok(Some(prompt))
}

/// Loads the inputs of a prompt in a conversation that is already loaded.
pub async fn load_in_scope(
    pools: &Db,
    caches: &PromptCaches,
    request: PromptRequest<'_>,
    scope: PromptScope,
) -> Result<PromptContext, DbErr> {
    let db = pools.reader();
    let PromptScope {
        conversation,
        space,
        mut memberships,
    } = scope;
    let speaking = SpeakerContext {
        speaker: request.speaker,
        provider: request.provider,
        kind: request.kind,
        now: request.now,
    };
    let (mut context, mut characters) =
        space_settings(db, caches, &speaking, &space, &memberships).await?;
    // A continue calls no tools.
    let calls_tools = request.kind != GenerationTrigger::Continue
        && !allowed_tools::allowed_in(&space).is_empty();
    let provider = preset_overrides::apply(request.provider, &context.preset);
    templates::apply(&mut context, &provider, calls_tools);
    // A copilot calls no tools.
    context.accepts_prefill = !calls_tools || context.is_impersonation();
    let id = conversation.id;
    let limits = context.limits().in_counted_tokens(context.token_factors);
    let cutoff_seq = request.cutoff_seq;
    let filter = HistoryFilter::new(request.speaker, &memberships, request.reader);
    let history = caches
        .histories
        .load(db, &conversation, cutoff_seq, limits, &filter)
        .await?;
    let named = history_lines::named_members(&history);
    let removed = membership::load_missing(db, space.id, &memberships, named).await?;
    if !removed.is_empty() {
        let of_removed = removed.iter().filter_map(|it| it.character_id);
        characters.extend(caches.cards.load(db, of_removed).await?);
        context
            .members
            .extend(removed.iter().map(|it| to_prompt_member(it, &characters)));
        memberships.extend(removed);
    }
    let cutoff_seq = history.last().map_or(0, |it| it.seq);
    let answers = (request.speaker, request.reply_to);
    let user_membership = history_lines::find_user_membership(&memberships, &history, answers);
    context.conversation = id;
    context.note = author_note_of(
        &conversation.settings,
        request.speaker,
        &space,
        &memberships,
    );
    context.n_user_turns = match context.note.interval {
        ..=1 => 1,
        _ => history_query::count_by_role(db, id, MessageRole::User, cutoff_seq, &filter)
            .await?
            .max(1),
    };
    let own_scenario = non_blank_text(&conversation.settings, "scenario_override");
    context.scenario_override = own_scenario.or(context.scenario_override);
    let personas = persona_loader::load(db, &memberships, &history, (user_membership, answers));
    (context.user, context.personas) = personas.await?;
    context.history = history_lines::to_history_lines(&history, &memberships);
    quotes::add(db, &history, &mut context.history, &filter).await?;
    picture_loader::add(db, &history, &mut context.history).await?;
    translated_history::apply(db, &space, &mut context.history).await?;
    context.n_swipes = history_lines::count_swipes(db, &context.history).await?;
    context.history_starts = Some(history_window::parse_starts(&conversation.prompt_starts));
    let of_conversation = (&conversation, request.cutoff_seq);
    context.summaries = summary_loader::load(db, of_conversation, &space.settings, &filter).await?;
    context.variables = Variables {
        space: space_variable::load_for_space(db, space.id).await?,
        conversation: VariableMap::deserialize(&conversation.variables["macros"])
            .unwrap_or_default(),
        ..Variables::default()
    };
    let loader = LoreLoader {
        conversation: Some((id, filter)),
        space: Some(space.id),
        settings: &space.settings,
        variables: &conversation.variables,
        user: user_membership.map(|it| it.id),
    };
    context.lore = lore_loader::load(db, &context, loader).await?;
    let (indexes, of_space) = (&caches.memories, (&space, memberships.as_slice()));
    // Both may wait for the provider of the embedding model.
    let (memories, similar) = tokio::join!(
        memory_loader::load(pools, indexes, &context, of_space, Some(of_conversation)),
        vector_matches::find(pools, &caches.lore_vectors, &context, &space.settings),
    );
    context.memories = memories;
    similar.add_to(&mut context);
    Ok(context)
}

/// The speaker and how it speaks.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpeakerContext<'a> {
    pub speaker: MembershipId,
    pub provider: &'a provider::Model,
    pub kind: GenerationTrigger,
    pub now: Timestamp,
}

/// Builds the part of a context that the space determines, without history and lore. Also returns
/// the characters of the members.
pub(super) async fn space_settings(
    db: &impl ConnectionTrait,
    caches: &PromptCaches,
    speaking: &SpeakerContext<'_>,
    space: &space::Model,
    memberships: &[membership::Model],
) -> Result<(PromptContext, HashMap<CharacterId, CharacterCard>), DbErr> {
    let ids = memberships.iter().filter_map(|it| it.character_id);
    let characters = caches.cards.load(db, ids).await?;
    let speaker = memberships.iter().find(|it| it.id == speaking.speaker);
    let is_human = speaker.is_some_and(|it| it.kind == membership::MembershipKind::Human);
    let mut preset = resolve_preset(db, speaking.provider, space, speaker).await?;
    if let Some(nudge) = space.settings["group_nudge_prompt"].as_str() {
        preset.texts.group_nudge_prompt = nudge.to_owned();
    }
    let scripts = caches.scripts.load(db, space.id, space.into()).await?;
    let text = |key| non_blank_text(&space.settings, key).unwrap_or_default();
    let mut context = PromptContext {
        space_name: space.name.clone(),
        members: memberships
            .iter()
            .map(|it| to_prompt_member(it, &characters))
            .collect(),
        card_handling: space.card_handling_mode,
        field_affixes: (text("join_prefix"), text("join_suffix")),
        scenario_override: non_blank_text(&space.settings, "scenario_override"),
        trigger: match is_human {
            true => GenerationTrigger::Impersonate,
            false => speaking.kind,
        },
        scripts: scripts.map_or_else(PromptScripts::default, PromptScripts::OfSpace),
        allows_other_speakers: space.settings["relax_message_trim"] == Value::Bool(true),
        ..empty_context(speaking, preset)
    };
    context.preset = match (is_human, context.is_group()) {
        (true, _) => context.preset.for_impersonation(),
        (false, true) => context.preset.for_group(),
        (false, false) => context.preset,
    };
    Ok((context, characters))
}

/// Returns a context that contains only the speaker and the preset.
pub(super) fn empty_context(speaking: &SpeakerContext<'_>, preset: Preset) -> PromptContext {
    PromptContext {
        conversation: ConversationId(0),
        space_name: String::new(),
        speaker: speaking.speaker,
        members: Vec::new(),
        user: persona_loader::to_prompt_user(None),
        personas: Vec::new(),
        card_handling: space::CardHandlingMode::Swap,
        field_affixes: Default::default(),
        scenario_override: None,
        preset,
        templates: None,
        warnings: Vec::new(),
        trigger: speaking.kind,
        note: AuthorNote::default(),
        lore: LoreInput::default(),
        memories: RecalledMemories::default(),
        n_user_turns: 1,
        allows_other_speakers: false,
        is_openai: speaking.provider.kind == ProviderKind::Openai,
        accepts_prefill: false,
        continuation: None,
        continue_request: None,
        impersonation_request: None,
        n_swipes: None,
        picture_cost: speaking.provider.picture_cost(),
        instructions: None,
        history: Vec::new(),
        history_starts: None,
        summaries: None,
        scripts: PromptScripts::default(),
        token_factors: token_calibration::factors(speaking.provider),
        budget_percent: 100,
        variables: Variables::default(),
        model: speaking.provider.model.clone(),
        now: speaking.now,
    }
}

/// Returns the author's note of this speaker.
pub(super) fn author_note_of(
    conversation: &Value,
    speaker: MembershipId,
    space: &space::Model,
    memberships: &[membership::Model],
) -> AuthorNote {
    let membership = memberships.iter().find(|it| it.id == speaker);
    let of_speaker = membership.map_or(&Value::Null, |it| &it.settings);
    author_note::resolve(conversation, of_speaker, &space.settings)
}

fn to_prompt_member(
    membership: &membership::Model,
    characters: &HashMap<CharacterId, CharacterCard>,
) -> PromptMember {
    let character = membership.character_id.and_then(|it| characters.get(&it));
    PromptMember {
        id: membership.id,
        name: membership.cached_display_name.clone(),
        aliases: membership.alias_list(),
        kind: membership.kind,
        participation: membership.participation,
        status: membership.status,
        character: membership.character_id,
        owner: character.and_then(|it| it.owner),
        card: character.and_then(|it| it.card.clone()),
        persona: membership.persona.clone(),
    }
}

/// Resolves the preset of this speaker.
async fn resolve_preset(
    db: &impl ConnectionTrait,
    provider: &provider::Model,
    space: &space::Model,
    speaker: Option<&membership::Model>,
) -> Result<Preset, DbErr> {
    let of_space = resolve::space_layer(&space.settings);
    let of_provider = provider.preset_layer();
    let layers = PresetLayers {
        membership: speaker.map_or(&Value::Null, |it| &it.settings["preset"]),
        membership_preset: speaker.and_then(|it| it.preset_id),
        space: &of_space,
        provider: &of_provider,
    };
    resolve::resolve(db, layers).await
}

fn non_blank_text(settings: &Value, key: &str) -> Option<String> {
    settings[key]
        .as_str()
        .filter(|it| !it.trim().is_empty())
        .map(str::to_owned)
}
