//! Prepares the model call of a run or a copilot candidate: provider, prompt, request and tools.

use std::sync::Arc;

use agent::outcome::{FailureCode, GenerationFailure};
use agent::trim::ReplyTrimmer;
use base::ids::{ConversationId, MembershipId, ProviderId};
use llm::provider::Provider;
use llm::request::Request;
use sea_orm::DbErr;
use tavern::presets::complete_preset::GenerationTrigger;

use crate::conversations::audience::viewer::Viewer;
use crate::conversations::{branching, message};
use crate::memories::memory_settings::MemberSwitches;
use crate::memories::tool::allowed_tools;
use crate::memories::tool::allowed_tools::MEMORY_TOOL;
use crate::memories::tool::memory_tool::MemoryTool;
use crate::memories::tool::pending_changes::PendingChanges;
use crate::prompt::context::{Continuation, PromptContext, PromptMember};
use crate::prompt::history::whisper_marker;
use crate::prompt::loading::loader::{PromptRequest, PromptScope};
use crate::prompt::loading::{loader, model_language, picture_loader};
use crate::prompt::prefill;
use crate::prompt::prompt_error::PromptError;
use crate::prompt::record::whispered_blocks;
use crate::providers::detected::token_calibration;
use crate::providers::{preset_overrides, provider, usable_providers};
use crate::regex_scripts::writer_scripts::WriterScripts;
use crate::runs::execution::ends::{reply_scripts, sent_record};
use crate::runs::execution::preparation::tool_offers::ToolOffer;
use crate::runs::execution::preparation::{prompt_building, tool_offers};
use crate::runs::scheduling::command::SentPromptRef;
use crate::runs::scheduling::state::command_facts::{CommandFacts, no_provider};
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::runs::services::RunServices;
use crate::runs::store::run;
use crate::spaces::membership;
use crate::spaces::posts::heard_messages;

/// The maximum length of a candidate if the preset does not set one.
const DEFAULT_CANDIDATE_TOKENS: u32 = 200;

/// Everything that a run needs to call its model.
pub struct PreparedRun {
    pub provider: Arc<dyn Provider>,
    /// The provider's row.
    pub provider_id: ProviderId,
    pub request: Request,
    /// Cleans the reply.
    pub trim: ReplyTrimmer,
    pub sent: SentPromptRef,
    /// The tools that the speaker may call.
    pub offers: Vec<ToolOffer>,
    /// The changes of memories that these tools request, written if the run succeeds.
    pub memory_changes: PendingChanges,
    /// The message whose text the reply extends.
    pub continued: Option<message::Model>,
    /// The estimated number of tokens of its prompt.
    pub estimated_tokens: i64,
    /// The correction in this estimate; `None`: it is not calibrated.
    pub token_correction: Option<f64>,
    /// The scripts that change the reply before it is stored.
    pub scripts: Option<WriterScripts>,
}

/// Prepares a claimed run from the state that its claim loaded; `budget_percent` is the share of the token limit
/// that its prompt may use.
///
/// # Errors
/// Returns the failure with which the run must end.
pub async fn prepare(
    context: &RunServices,
    run: &run::Model,
    state: ScheduleState,
    budget_percent: i64,
) -> Result<PreparedRun, GenerationFailure> {
    let CommandFacts::Claim {
        provider: Some(row),
        continued,
        ..
    } = state.facts
    else {
        return Err(no_provider());
    };
    let continued = require_continued(run, continued)?;
    let Some(speaker) = run.speaker_space_membership_id else {
        return Err(internal_failure("the run has no speaker"));
    };
    let request = PromptRequest {
        conversation: run.conversation_id,
        speaker,
        cutoff_seq: prompt_cutoff(context, run, continued.as_ref())
            .await
            .map_err(internal_failure)?,
        reply_to: run.debug.trigger_message_id,
        provider: &row,
        kind: prompt_trigger(run),
        now: context.clock.now(),
        reader: Viewer::Server,
    };
    let allowed = allowed_tools::allowed_in(&state.space);
    let owner = state.space.owner_id;
    let scope = PromptScope {
        conversation: state.conversation,
        space: state.space,
        memberships: state.members,
    };
    let memory = match allowed.allows_builtin(MEMORY_TOOL) {
        true => Some(memory_tool(context, &scope, request.speaker).await),
        false => None,
    };
    let memory = memory.transpose().map_err(internal_failure)?;
    let read = (request.speaker, request.cutoff_seq);
    model_language::await_translations(&context.db, &context.translations, &scope, read).await;
    let prompt = loader::load_in_scope(&context.db, &context.prompt_caches, request, scope).await;
    let mut prompt = prompt.map_err(internal_failure)?;
    prompt.continuation = continued.as_ref().map(|it| Continuation {
        message: it.id,
        is_prefill: false,
    });
    prompt.continue_request.clone_from(&run.debug.instruction);
    prompt.budget_percent = budget_percent;
    let is_character = prompt
        .find_speaker()
        .is_some_and(PromptMember::is_character);
    let seed = run.id.0.as_u64_pair().1;
    // What a tool remembers, everybody could recall.
    let has_whispers = run.audience.is_some() || prompt.whispers().next().is_some();
    let public = load_without_whispers(context, request, &prompt).await?;
    let mut prepared = prepare_with_provider(context, &row, prompt, public, seed).await?;
    if let Some(message) = continued {
        let is_mid_line = prepared.request.is_prefilled && !message.content.ends_with('\n');
        if !prepared.trim.has_stored_prefix() {
            prepared.trim = prepared.trim.continuing(is_mid_line);
        }
        prepared.continued = Some(message);
    // A copilot, which writes for a user, calls no tools. Neither does a continue, whose text must
    // follow the existing one directly.
    } else if is_character && !allowed.is_empty() {
        let mut registry = context.tool_runtime.registry.clone();
        if let Some(mut tool) = memory {
            tool.changes = tool.changes.filter(|_| !has_whispers);
            prepared.memory_changes = tool.changes.clone().unwrap_or_default();
            registry = registry.with(MEMORY_TOOL, Arc::new(tool));
        }
        prepared.offers = tool_offers::list_for_space(context, &registry, allowed, owner).await;
        let tools = prepared.offers.iter().map(|it| it.declaration.clone());
        prepared.request.tools = tools.collect();
    }
    Ok(prepared)
}

/// Creates the memory tool of a speaker, and the list of its changes.
async fn memory_tool(
    context: &RunServices,
    scope: &PromptScope,
    speaker: MembershipId,
) -> Result<MemoryTool, DbErr> {
    let db = &context.db;
    Ok(MemoryTool {
        db: db.clone(),
        indexes: context.prompt_caches.memories.clone(),
        space: scope.space.clone(),
        speaker,
        switches: MemberSwitches::of(&scope.memberships, speaker),
        heard_since: heard_messages::heard_since(&scope.memberships, speaker),
        lineage: branching::load_lineage(db.reader(), &scope.conversation).await?,
        members: MemoryTool::names_of(&scope.memberships),
        changes: Some(PendingChanges::default()),
    })
}

/// Prepares a text without a run: what this user might write now, following `instruction`.
///
/// # Errors
/// Returns the reason why it cannot be written.
pub async fn prepare_candidate(
    context: &RunServices,
    conversation: ConversationId,
    speaker: MembershipId,
    instruction: Option<String>,
    seed: u64,
) -> Result<PreparedRun, GenerationFailure> {
    let row = require_provider(context, speaker).await?;
    let now = context.clock.now();
    let request = PromptRequest::next_reply(conversation, speaker, &row, now);
    let mut prompt = load_prompt(context, request).await?;
    prompt.impersonation_request = instruction;
    prompt
        .preset
        .max_tokens
        .get_or_insert(DEFAULT_CANDIDATE_TOKENS);
    prepare_with_provider(context, &row, prompt, None, seed).await
}

/// Returns how preset prompts and lorebook entries classify a run.
fn prompt_trigger(run: &run::Model) -> GenerationTrigger {
    match run.kind {
        run::RunKind::Regenerate => GenerationTrigger::Regenerate,
        run::RunKind::Continue => GenerationTrigger::Continue,
        _ => GenerationTrigger::Normal,
    }
}

/// Returns the message that a run continues, if any. Its text cannot change before the run ends.
fn require_continued(
    run: &run::Model,
    continued: Option<message::Model>,
) -> Result<Option<message::Model>, GenerationFailure> {
    match (run.kind, continued) {
        (run::RunKind::Continue, None) => Err(internal_failure("the message to continue is gone")),
        (_, continued) => Ok(continued),
    }
}

/// Returns the provider for the model of this membership.
async fn require_provider(
    context: &RunServices,
    speaker: MembershipId,
) -> Result<provider::Model, GenerationFailure> {
    let row = find_provider(context, speaker)
        .await
        .map_err(internal_failure)?;
    row.ok_or_else(no_provider)
}

async fn load_prompt(
    context: &RunServices,
    request: PromptRequest<'_>,
) -> Result<PromptContext, GenerationFailure> {
    let prompt = loader::load(&context.db, &context.prompt_caches, request).await;
    let prompt = prompt.map_err(internal_failure)?;
    prompt.ok_or_else(|| internal_failure("the conversation does not exist"))
}

/// Loads a prompt once more, without the whispers that it contains; `None` if it contains none.
async fn load_without_whispers(
    context: &RunServices,
    request: PromptRequest<'_>,
    prompt: &PromptContext,
) -> Result<Option<PromptContext>, GenerationFailure> {
    if prompt.whispers().next().is_none() {
        return Ok(None);
    }
    let public = PromptRequest {
        reader: Viewer::Outsider,
        ..request
    };
    load_prompt(context, public).await.map(Some)
}

/// Builds the request of the speaker in `prompt` for this provider. `public` is the prompt without
/// whispers, if it contains any and is stored.
async fn prepare_with_provider(
    context: &RunServices,
    row: &provider::Model,
    mut prompt: PromptContext,
    public: Option<PromptContext>,
    seed: u64,
) -> Result<PreparedRun, GenerationFailure> {
    let row = &*preset_overrides::apply(row, &prompt.preset);
    let provider = context
        .models
        .create(row)
        .map_err(|error| GenerationFailure {
            code: FailureCode::NoProvider,
            message: error.to_string(),
            is_retryable: true,
        })?;
    prefill::apply_provider(&mut prompt, provider.as_ref());
    let context_tokens = u32::try_from(prompt.limits().context_tokens).ok();
    let counted = prompt_building::build_counted(context, Some(provider.as_ref()), prompt).await;
    let counted = counted.map_err(internal_failure)?;
    let prompt = counted.context;
    let mut built = counted.built.map_err(|error| GenerationFailure {
        code: match error {
            PromptError::ContextOverflow(_) => FailureCode::ContextOverflow,
            PromptError::InvalidMacro(_) => FailureCode::InvalidMacro,
        },
        message: error.to_string(),
        is_retryable: false,
    })?;
    let db = context.db.reader();
    let attached = picture_loader::attach(db, &mut built).await;
    attached.map_err(internal_failure)?;
    if prompt.find_speaker().is_none() {
        return Err(internal_failure("the speaker has no membership"));
    }
    if let Some(mut public) = public {
        public.continuation = prompt.continuation;
        public.accepts_prefill = prompt.accepts_prefill;
        public.budget_percent = prompt.budget_percent;
        public.continue_request.clone_from(&prompt.continue_request);
        let public = prompt_building::build_prompt(context, public).await;
        let (_, public) = public.map_err(internal_failure)?;
        whispered_blocks::mark(&mut built, public.ok().as_ref());
    }
    let (own, others) = prompt.reply_names();
    let mut trim = ReplyTrimmer::new(&own, &others)
        .without_marker(whisper_marker::find_in(&prompt))
        .with_stops(&built.preset.stop);
    if let Some(stored_prefix) = built.stored_prefix.clone() {
        trim = trim.with_stored_prefix(stored_prefix);
    }
    Ok(PreparedRun {
        trim,
        sent: sent_record::of_built(row, &built, provider.max_stops(), seed)
            .map_err(internal_failure)?,
        request: Request {
            context_tokens,
            ..built.into_request(&row.model, seed)
        },
        provider,
        provider_id: row.id,
        offers: Vec::new(),
        memory_changes: PendingChanges::default(),
        continued: None,
        estimated_tokens: counted.estimated_tokens,
        token_correction: token_calibration::correction(row),
        scripts: reply_scripts::of_prompt(&prompt),
    })
}

/// Returns the newest message that the prompt of a run may contain. To regenerate a message, the
/// prompt omits it and everything after it; to continue one, everything after it.
async fn prompt_cutoff(
    context: &RunServices,
    run: &run::Model,
    continued: Option<&message::Model>,
) -> Result<i64, DbErr> {
    let seen = run.cutoff_seq.unwrap_or(i64::MAX);
    if let Some(continued) = continued {
        return Ok(seen.min(continued.seq));
    }
    let regenerated =
        (run.debug.target_message_id).filter(|_| run.kind == run::RunKind::Regenerate);
    let Some(target) = regenerated else {
        return Ok(seen);
    };
    let found = message::find(context.db.reader(), target).await?;
    Ok(found.map_or(seen, |it| seen.min(it.seq - 1)))
}

pub async fn find_provider(
    context: &RunServices,
    speaker: MembershipId,
) -> Result<Option<provider::Model>, DbErr> {
    let db = context.db.reader();
    let membership = membership::find(db, speaker).await?;
    let own = membership.as_ref().and_then(|it| it.llm_provider_id);
    let model = membership
        .as_ref()
        .and_then(membership::Model::model_override);
    usable_providers::find(db, own, model).await
}

fn internal_failure(cause: impl std::fmt::Display) -> GenerationFailure {
    tracing::error!(error = %cause, "failed to prepare a run");
    GenerationFailure::internal()
}
