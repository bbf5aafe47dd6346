//! Prepares a response: resolves the model, builds the prompt and checks that the provider supports
//! the request.

use agent::trim::ReplyTrimmer;
use agent::usage;
use base::ids::UserId;
use leased_jobs::concurrency_limit::ConcurrencyPermit;
use leased_jobs::lease::CancelHandle;
use llm::provider::Capability;
use llm::request::Request;
use serde_json::Value;

use crate::providers::detected::token_calibration;
use crate::providers::{provider, usable_providers};
use crate::responses::error::ResponseEngineError;
use crate::responses::execution::mcp::plan::McpPlan;
use crate::responses::execution::response_task::{ResponseOutput, ResponseTask};
use crate::responses::execution::speaker_call::SpeakerCall;
use crate::responses::execution::tool_config::ToolConfig;
use crate::responses::input::sealed_reasoning::ReasoningSealer;
use crate::responses::input::{continuation, prompt};
use crate::responses::persona_models::model_names;
use crate::responses::persona_models::model_names::PersonaModel;
use crate::responses::persona_models::speaker_queue::SpeakerQueue;
use crate::responses::request::{RequestedReasoning, StoredRequest};
use crate::responses::services::ResponseServices;
use crate::responses::{model_list, model_provider};
use crate::spaces::space;

/// A response that is ready to run.
pub struct PreparedResponse {
    /// The position of the conversation when its history was read.
    pub conversation_position: Option<i64>,
    into_call: SpeakerCall,
    /// The speakers after the first one.
    speakers: Option<SpeakerQueue>,
    tools: ToolConfig,
    /// MCP work before the first model call.
    pub mcp_plan: McpPlan,
}

/// Prepares a response from its history `prior` and the new `input`.
///
/// # Errors
/// Returns `ModelUnavailable`, `UnsupportedParameter` or `NoSpeaker` when the model cannot answer
/// the request, and `PromptTooLong` when it does not fit the context window.
pub async fn prepare(
    services: &ResponseServices,
    target: ModelTarget,
    stored: &StoredRequest,
    prior: Vec<Value>,
    input: Vec<Value>,
) -> Result<PreparedResponse, ResponseEngineError> {
    match target {
        ModelTarget::Provider(row) => {
            prepare_for_provider(services, *row, stored, prior, input).await
        }
        // Replies of personas are trimmed, so the tokens would not match the text.
        ModelTarget::Persona(_) if stored.sampling.top_logprobs.is_some() => {
            Err(ResponseEngineError::UnsupportedParameter("top_logprobs"))
        }
        ModelTarget::Persona(persona) => {
            let mut speakers =
                SpeakerQueue::load(services, persona, stored, &prior, &input).await?;
            let first = speakers
                .next()
                .await?
                .ok_or(ResponseEngineError::NoSpeaker)?;
            Ok(PreparedResponse {
                conversation_position: None,
                into_call: first,
                speakers: Some(speakers),
                tools: stored.tools.clone(),
                mcp_plan: McpPlan::default(),
            })
        }
    }
}

/// Prepares a call of the model alone: for a persona model, the default provider without a card.
///
/// # Errors
/// As [`prepare`], and `ModelNotFound` when the user has no such model.
pub async fn prepare_plain(
    services: &ResponseServices,
    user: UserId,
    model: &str,
    stored: &StoredRequest,
    prior: Vec<Value>,
    input: Vec<Value>,
) -> Result<PreparedResponse, ResponseEngineError> {
    let row = match find_target(services, user, model).await? {
        ModelTarget::Provider(row) => *row,
        ModelTarget::Persona(_) => {
            let default = usable_providers::find(services.db.reader(), None, None).await?;
            default.ok_or(ResponseEngineError::ModelUnavailable)?
        }
    };
    prepare_for_provider(services, row, stored, prior, input).await
}

async fn prepare_for_provider(
    services: &ResponseServices,
    row: provider::Model,
    stored: &StoredRequest,
    prior: Vec<Value>,
    input: Vec<Value>,
) -> Result<PreparedResponse, ResponseEngineError> {
    let provider = model_provider::load_provider(services, &row, stored)?;
    let window = model_provider::context_window(&row, stored);
    let mut request = Request {
        context_tokens: window.and_then(|it| u32::try_from(it).ok()),
        seed: rand::random(),
        format: stored.format.clone(),
        effort: stored.reasoning.effort,
        ..stored.sampling.request(&row.model)
    };
    stored.tools.apply_to_request(&mut request);
    stored.chat_sampling.apply_to_request(&mut request);
    let answer = stored.sampling.max_output_tokens.map_or(0, i64::from);
    let tools = request.tools.clone();
    let (instructions, truncates) = (stored.instructions.clone(), stored.truncates);
    let factors = token_calibration::factors(&row);
    let continues_text = stored.continues_text && !input.is_empty();
    // Tokenizing is CPU-bound, and there may be many items.
    let fitting = services.shutdown.main().spawn_blocking(move || {
        let entries = prompt::assemble(instructions.as_deref(), &prior, &input);
        let reserve = answer + window.map_or(0, |_| usage::tool_tokens(&tools));
        prompt::fit(entries, window, reserve, truncates, &|text| {
            factors.count(text)
        })
    });
    request.messages = fitting
        .await?
        .map_err(|too_long| ResponseEngineError::PromptTooLong {
            n_tokens: too_long.n_tokens,
            window: window.unwrap_or_default(),
        })?;
    if continues_text {
        continuation::continue_last_message(&mut request, provider.as_ref());
    }
    model_provider::require_readable_attachments(provider.as_ref(), &request)?;
    let call = SpeakerCall {
        provider,
        provider_name: row.name,
        request,
        calls: services.provider_queues.calls_of(row.id),
        trim: ReplyTrimmer::verbatim().with_stops(&stored.chat_sampling.stop),
        speaker_metadata: None,
        memory: None,
    };
    Ok(PreparedResponse {
        conversation_position: None,
        into_call: call,
        speakers: None,
        tools: stored.tools.clone(),
        mcp_plan: McpPlan::default(),
    })
}

/// What answers a request: a provider's model or a persona.
pub enum ModelTarget {
    Provider(Box<provider::Model>),
    Persona(PersonaModel),
}

impl ModelTarget {
    /// Returns the space whose characters answer.
    pub fn space(&self) -> Option<&space::Model> {
        match self {
            Self::Persona(PersonaModel::Space { space, .. }) => Some(space),
            Self::Persona(PersonaModel::Character { .. }) | Self::Provider(_) => None,
        }
    }
}

/// Resolves a model name for a user.
///
/// # Errors
/// Returns `ModelNotFound` when the user has no such model, and the errors of [`model_names::find`]
/// when the persona cannot answer now.
pub async fn find_target(
    services: &ResponseServices,
    user: UserId,
    model: &str,
) -> Result<ModelTarget, ResponseEngineError> {
    let db = services.db.reader();
    if let Some(model_ref) = model_names::parse(model) {
        return Ok(ModelTarget::Persona(
            model_names::find(db, user, model_ref).await?,
        ));
    }
    let found = model_list::find_provider(db, model).await?;
    let found = found.ok_or_else(|| ResponseEngineError::ModelNotFound(model.to_owned()))?;
    Ok(ModelTarget::Provider(Box::new(found)))
}

/// Returns the parameters about reasoning that have no effect on a request, because the API of the
/// model does not support them; `effort_name` is the name of the effort in the request. All speakers of a
/// space are treated as if they used the default provider.
///
/// # Errors
/// As [`find_target`].
pub async fn ignored_reasoning(
    services: &ResponseServices,
    user: UserId,
    model: &str,
    reasoning: RequestedReasoning,
    effort_name: &str,
) -> Result<Vec<String>, ResponseEngineError> {
    let RequestedReasoning {
        effort,
        wants_summary,
        includes_encrypted: _,
    } = reasoning;
    if effort.is_none() && !wants_summary {
        return Ok(Vec::new());
    }
    let row = match find_target(services, user, model).await? {
        ModelTarget::Provider(row) => Some(*row),
        ModelTarget::Persona(_) => usable_providers::find(services.db.reader(), None, None).await?,
    };
    // If there is no usable provider, the request fails when it is prepared.
    let Some(provider) = row.and_then(|it| services.models.create(&it).ok()) else {
        return Ok(Vec::new());
    };
    let parameters = [
        (effort.is_some(), Capability::Effort, effort_name),
        (
            wants_summary,
            Capability::ReasoningSummary,
            "reasoning.summary",
        ),
    ];
    let ignored = parameters
        .into_iter()
        .filter(|(is_given, capability, _)| *is_given && !provider.has_capability(*capability));
    Ok(ignored.map(|(_, _, name)| name.to_owned()).collect())
}

impl PreparedResponse {
    /// Returns the first model request.
    pub fn request(&self) -> &Request {
        &self.into_call.request
    }

    /// Acquires a response permit of the first speaker's provider.
    ///
    /// # Errors
    /// Returns `ProviderBusy` or `UserLimitReached` when no further response of this user may wait.
    pub fn acquire_response_permit(
        &self,
        user: UserId,
    ) -> Result<ConcurrencyPermit<UserId>, ResponseEngineError> {
        self.into_call.calls.acquire_response_permit(user)
    }

    /// Returns a copy for one choice of a chat completion, which declares no MCP servers. The seeds differ,
    /// because equal ones would give equal answers.
    pub fn for_choice(&self, index: usize) -> Self {
        let mut call = self.into_call.clone();
        if let Some(seed) = &mut call.request.samplers.seed {
            *seed = seed.wrapping_add(index as u32);
        }
        call.request.seed = rand::random();
        Self {
            conversation_position: None,
            into_call: call,
            speakers: self.speakers.clone(),
            tools: self.tools.clone(),
            mcp_plan: McpPlan::default(),
        }
    }

    /// Returns the first call, without a task.
    pub fn into_call(self) -> SpeakerCall {
        self.into_call
    }

    /// Returns the task that runs the response.
    pub fn into_task(
        self,
        services: &ResponseServices,
        sealer: Option<ReasoningSealer>,
        cancel: CancelHandle,
        mut output: ResponseOutput,
    ) -> ResponseTask {
        output.end_log.set_provider(&self.into_call);
        ResponseTask {
            call: self.into_call,
            speakers: self.speakers,
            tools: self.tools,
            tool_runtime: services.tool_runtime.clone(),
            mcp_plan: self.mcp_plan,
            limits: services.settings.call_limits,
            sealer,
            cancel,
            clock: services.clock.clone(),
            output,
        }
    }
}
