//! Builds the model request for one speaker of a persona model (a character, or a space with its
//! members): loads its prompt inputs from the database, uses the response items as message history,
//! and returns the request with the trimmer for the reply.

use agent::trim::ReplyTrimmer;
use base::clock::Timestamp;
use base::ids::{MembershipId, MessageId};
use base::prompt_role::PromptRole;
use llm::provider::Provider;
use llm::request::{Message, Request};
use llm::tokens;
use tavern::presets::complete_preset::{GenerationTrigger, Preset};

use crate::conversations::message;
use crate::prompt::blocks::BlockPayload;
use crate::prompt::builder;
use crate::prompt::context::{Continuation, HistoryLine};
use crate::prompt::loading::external_history;
use crate::prompt::loading::external_history::ExternalHistory;
use crate::prompt::prompt_error::PromptError;
use crate::providers::provider;
use crate::responses::error::ResponseEngineError;
use crate::responses::input::continuation;
use crate::responses::input::prompt_assembler::PromptItem;
use crate::responses::persona_models::model_names::PersonaModel;
use crate::responses::request::{Sampling, StoredRequest};
use crate::responses::services::ResponseServices;

/// The author of lines that no member wrote.
const NO_MEMBER: MembershipId = MembershipId(0);
/// The id of every line, because none of them is stored as a message.
const NO_MESSAGE: MessageId = MessageId(0);

/// Builds the request for the next text of `speaker`, and the trimmer for it. `prior_items` are all
/// earlier messages, including those of this response. With `continuing`, the provider of the speaker,
/// a text of the speaker at their end is continued.
///
/// # Errors
/// Returns `PromptTooLong` when it does not fit the context window, and `Database` when a query
/// fails.
pub async fn build_request(
    services: &ResponseServices,
    persona: &PersonaModel,
    speaker: MembershipId,
    prior_items: &[PromptItem],
    stored: &StoredRequest,
    row: &provider::Model,
    continuing: Option<&dyn Provider>,
) -> Result<(Request, ReplyTrimmer), ResponseEngineError> {
    let (db, now) = (services.db.reader(), services.clock.now());
    let chain = ExternalHistory {
        lines: lines(persona, prior_items, stored.truncates, now),
        instructions: stored.instructions.clone(),
        max_tokens: stored.sampling.max_output_tokens,
        provider: row,
        now,
    };
    let mut context = match persona {
        PersonaModel::Character { row, user } => {
            external_history::for_character(db, row, user, chain).await?
        }
        PersonaModel::Space {
            space,
            memberships,
            membership,
        } => {
            let (db, caches) = (&services.db, &services.prompt_caches);
            external_history::for_space(db, caches, speaker, space, memberships, membership, chain)
                .await?
        }
    };
    apply_sampling(&mut context.preset, stored.sampling);
    let last = prior_items.last().map(|it| &it.message);
    let is_own = context
        .history
        .last()
        .is_some_and(|it| it.author == context.speaker);
    if let Some(provider) = continuing
        && is_own
        && last.is_some_and(continuation::is_text_of_model)
    {
        context.trigger = GenerationTrigger::Continue;
        context.continuation = Some(Continuation {
            message: NO_MESSAGE,
            is_prefill: continuation::can_prefill(&prefilled_request(stored, row), provider),
        });
    }
    let (own, others) = context.reply_names();
    let (limits, mut trim) = (context.limits(), ReplyTrimmer::new(&own, &others));
    if let Some(continuation) = context.continuation {
        trim = trim.continuing(continuation.is_prefill);
    }
    // Tokenizing is CPU-bound, and there may be many lines.
    let building = services
        .shutdown
        .main()
        .spawn_blocking(move || builder::build(&context, &tokens::count));
    let built = building.await?;
    let window = limits.context_tokens;
    let built = built.map_err(|error| match error {
        PromptError::ContextOverflow(overflow) => ResponseEngineError::PromptTooLong {
            n_tokens: window + overflow.over_by,
            window,
        },
        PromptError::InvalidMacro(error) => ResponseEngineError::InvalidMacro(error),
    })?;
    let mut request = Request {
        format: stored.format.clone(),
        context_tokens: u32::try_from(window).ok(),
        effort: stored.reasoning.effort,
        ..built.into_request(&row.model, rand::random())
    };
    // The limit of a request includes the reasoning, that of the preset is meant for the reply only.
    if let Some(limit) = stored.sampling.max_output_tokens {
        request.max_tokens = Some(limit);
    } else if let Some(effort) = request.effort {
        request.max_tokens = request.max_tokens.map(|it| effort.add_tokens(it));
    }
    stored.tools.apply_to_request(&mut request);
    stored.chat_sampling.apply_to_request(&mut request);
    let trim = trim.with_stops(&stored.chat_sampling.stop);
    Ok((request, trim))
}

/// Returns what decides whether the model can continue a text: model, format, effort and tools.
fn prefilled_request(stored: &StoredRequest, row: &provider::Model) -> Request {
    let mut request = Request {
        model: row.model.clone(),
        format: stored.format.clone(),
        effort: stored.reasoning.effort,
        ..Request::default()
    };
    stored.tools.apply_to_request(&mut request);
    request
}

/// Overrides the sampling of the preset by that of the request.
fn apply_sampling(preset: &mut Preset, sampling: Sampling) {
    preset.temperature = sampling.temperature.or(preset.temperature);
    preset.top_p = sampling.top_p.or(preset.top_p);
    let samplers = &mut preset.samplers;
    samplers.presence_penalty = sampling.presence_penalty.or(samplers.presence_penalty);
    samplers.frequency_penalty = sampling.frequency_penalty.or(samplers.frequency_penalty);
}

fn lines(
    persona: &PersonaModel,
    prior_items: &[PromptItem],
    truncates: bool,
    now: Timestamp,
) -> Vec<HistoryLine> {
    let line = |(entry, seq): (&PromptItem, i64)| {
        let message = &entry.message;
        let (author, name) = author(persona, message);
        HistoryLine {
            seq,
            message_id: NO_MESSAGE,
            swipe: 0,
            author,
            name,
            role: match message.role {
                PromptRole::System => message::MessageRole::System,
                PromptRole::User => message::MessageRole::User,
                PromptRole::Assistant => message::MessageRole::Assistant,
            },
            text: message.content.clone(),
            translated_to: None,
            whisper: None,
            quote: None,
            pictures: Vec::new(),
            tokens: 0,
            created_at: now,
            payload: BlockPayload {
                calls: message.calls.clone(),
                thoughts: message.thoughts.clone(),
                answers: message.answers.clone(),
                attachments: message.attachments.clone(),
            },
            is_required: !(truncates && entry.is_droppable),
        }
    };
    prior_items.iter().zip(1..).map(line).collect()
}

/// Returns the author of a message: everything with the user role belongs to the requester, who may
/// give another name.
fn author(persona: &PersonaModel, message: &Message) -> (MembershipId, String) {
    let (user, name) = match persona {
        PersonaModel::Character { user, .. } => (external_history::USER_MEMBERSHIP, user),
        PersonaModel::Space { membership, .. } => (membership.id, &membership.cached_display_name),
    };
    match (message.role, persona) {
        (PromptRole::System, _) => (NO_MEMBER, String::new()),
        (PromptRole::User, _) if message.answers.is_some() => (user, String::new()),
        (PromptRole::User, _) => (user, message.name.as_ref().unwrap_or(name).clone()),
        (PromptRole::Assistant, PersonaModel::Character { row, .. }) => {
            let name = message.name.as_ref().unwrap_or(&row.name);
            let is_own = *name == row.name;
            let author = if is_own {
                external_history::CHARACTER_MEMBERSHIP
            } else {
                NO_MEMBER
            };
            (author, name.clone())
        }
        (PromptRole::Assistant, PersonaModel::Space { memberships, .. }) => {
            let name = message.name.clone().unwrap_or_default();
            let membership = memberships.iter().find(|it| it.cached_display_name == name);
            (membership.map_or(NO_MEMBER, |it| it.id), name)
        }
    }
}
