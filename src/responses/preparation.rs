//! What a turn needs before its model can speak: whom to ask, and what to say.

use crate::generation::trim::ReplyTrimmer;
use crate::generation::usage;
use crate::ids::UserId;
use crate::llm::provider::Capability;
use crate::llm::provider::Provider;
use crate::llm::request::Request;
use crate::llm::tokens;
use crate::llm::tool::OutputFormat;
use crate::llm::tool::ToolChoice;
use crate::providers::provider;
use crate::responses::cast::Cast;
use crate::responses::models;
use crate::responses::parts::Parts;
use crate::responses::prompt;
use crate::responses::refusal::Refusal;
use crate::responses::remote::Errand;
use crate::responses::spec::Kept;
use crate::responses::speech::Call;
use crate::responses::stop::Stop;
use crate::responses::toolbox::Toolbox;
use crate::responses::turn::Stage;
use crate::responses::turn::Turn;
use crate::responses::voice;
use crate::responses::voice::Voice;
use sea_orm::DbErr;
use serde_json::Value;
use std::sync::Arc;

/// A call that can be made.
pub struct Prepared {
    /// How long its conversation was when it was read.
    pub seen: Option<i64>,
    call: Call,
    /// Those who speak after it.
    cast: Option<Cast>,
    toolbox: Toolbox,
    /// What is to be done with servers elsewhere before the call.
    pub errand: Errand,
}

/// Prepares the call of a response: `prior` is what it goes on from, `input` is new.
///
/// # Errors
/// Whoever answers cannot be asked now or for that, or it is too much for their window.
pub async fn prepare(
    parts: &Parts,
    answers: Answers,
    kept: &Kept,
    prior: Vec<Value>,
    input: Vec<Value>,
) -> Result<Prepared, Refusal> {
    match answers {
        Answers::Provider(row) => of_model(parts, *row, kept, prior, input).await,
        // Of their words some are cut: tokens would not add up to what is said.
        Answers::Voice(_) if kept.sampling.top_logprobs.is_some() => {
            Err(Refusal::CannotKeep("top_logprobs"))
        }
        Answers::Voice(voice) => {
            let mut cast = Cast::assemble(parts, voice, kept, &prior, &input).await?;
            let first = cast.next().await?.ok_or(Refusal::NoSpeaker)?;
            Ok(Prepared {
                seen: None,
                call: first,
                cast: Some(cast),
                toolbox: kept.tools.clone(),
                errand: Errand::default(),
            })
        }
    }
}

/// The same, but asked of the model alone: a character's or a space's, without its words.
///
/// # Errors
/// As [`prepare`], and when there is no such model for this user.
pub async fn prepare_plain(
    parts: &Parts,
    user: UserId,
    model: &str,
    kept: &Kept,
    prior: Vec<Value>,
    input: Vec<Value>,
) -> Result<Prepared, Refusal> {
    let row = match find(parts, user, model).await? {
        Answers::Provider(row) => *row,
        Answers::Voice(_) => {
            let usual = provider::find_usable(parts.db.reader(), None, None).await?;
            usual.ok_or(Refusal::Unusable)?
        }
    };
    of_model(parts, row, kept, prior, input).await
}

async fn of_model(
    parts: &Parts,
    row: provider::Model,
    kept: &Kept,
    prior: Vec<Value>,
    input: Vec<Value>,
) -> Result<Prepared, Refusal> {
    let provider = provider(parts, &row, kept)?;
    let window = row.settings["context_tokens"].as_i64().filter(|it| *it > 0);
    let mut request = Request {
        context_tokens: window.and_then(|it| u32::try_from(it).ok()),
        seed: rand::random(),
        format: kept.format.clone(),
        ..kept.sampling.request(&row.model)
    };
    kept.tools.lay_out(&mut request);
    let answer = kept.sampling.max_output_tokens.map_or(0, i64::from);
    let tools = request.tools.clone();
    let (instructions, truncates) = (kept.instructions.clone(), kept.truncates);
    // Counting is work for a processor, and the items may be many.
    let fitting = parts.shutdown.main().spawn_blocking(move || {
        let entries = prompt::entries(instructions.as_deref(), &prior, &input);
        let reserve = answer + window.map_or(0, |_| usage::tool_tokens(&tools));
        prompt::fit(entries, window, reserve, truncates, &tokens::count)
    });
    let fitted = fitting
        .await
        .map_err(|_| DbErr::Custom("the prompt could not be built".to_owned()))?;
    request.messages = fitted.map_err(|too_long| Refusal::TooLong {
        n_tokens: too_long.n_tokens,
        window: window.unwrap_or_default(),
    })?;
    must_read(provider.as_ref(), &request)?;
    let call = Call {
        provider,
        request,
        permits: parts.calls(row.id),
        trim: ReplyTrimmer::verbatim(),
        speaks: None,
    };
    Ok(Prepared {
        seen: None,
        call,
        cast: None,
        toolbox: kept.tools.clone(),
        errand: Errand::default(),
    })
}

/// Whoever answers for this row, if they can do what is asked.
///
/// # Errors
/// They cannot, or cannot be asked at all.
pub fn provider(
    parts: &Parts,
    row: &provider::Model,
    kept: &Kept,
) -> Result<Arc<dyn Provider>, Refusal> {
    let provider = parts.models.create(row).map_err(|error| {
        tracing::warn!(%error, "provider {} cannot be asked: {error}", row.id);
        Refusal::Unusable
    })?;
    must_keep(provider.as_ref(), kept)?;
    Ok(provider)
}

/// Whether a model's API has words for all that is asked of it.
///
/// # Errors
/// The first that it has none for.
fn must_keep(provider: &dyn Provider, kept: &Kept) -> Result<(), Refusal> {
    let has_form = match &kept.format {
        OutputFormat::Text => true,
        OutputFormat::Json => provider.has_capability(Capability::Json),
        OutputFormat::Schema(_) => provider.has_capability(Capability::Schema),
    };
    let is_free = matches!(kept.tools.choice, ToolChoice::Auto | ToolChoice::None);
    let asks_for_logprobs = kept.sampling.top_logprobs.is_some();
    if !has_form {
        Err(Refusal::CannotKeep("text.format"))
    } else if !is_free && !provider.has_capability(Capability::RequiredToolCall) {
        Err(Refusal::CannotKeep("tool_choice"))
    } else if asks_for_logprobs && !provider.has_capability(Capability::Logprobs) {
        Err(Refusal::CannotKeep("top_logprobs"))
    } else {
        Ok(())
    }
}

/// Whether a model can read all that is attached to its prompt.
///
/// # Errors
/// It cannot.
pub fn must_read(provider: &dyn Provider, request: &Request) -> Result<(), Refusal> {
    let mut attached = request.messages.iter().flat_map(|it| &it.attachments);
    match attached.all(|it| it.is_image()) || provider.has_capability(Capability::Documents) {
        true => Ok(()),
        false => Err(Refusal::CannotKeep("input")),
    }
}

/// Who answers.
pub enum Answers {
    Provider(Box<provider::Model>),
    Voice(Voice),
}

/// Who answers for this name when this user asks.
///
/// # Errors
/// Nobody does, or not now.
pub async fn find(parts: &Parts, user: UserId, model: &str) -> Result<Answers, Refusal> {
    let db = parts.db.reader();
    if let Some(named) = voice::named(model) {
        return Ok(Answers::Voice(voice::find(db, user, named).await?));
    }
    let found = models::find(db, model).await?;
    let found = found.ok_or_else(|| Refusal::ModelNotFound(model.to_owned()))?;
    Ok(Answers::Provider(Box::new(found)))
}

impl Prepared {
    /// What will be sent.
    pub fn request(&self) -> &Request {
        &self.call.request
    }

    /// The call alone.
    pub fn call(self) -> Call {
        self.call
    }

    /// The turn that makes the call.
    pub fn turn(self, parts: &Parts, stop: Stop, stage: Stage) -> Turn {
        Turn {
            call: self.call,
            cast: self.cast,
            toolbox: self.toolbox,
            workshop: parts.workshop.clone(),
            errand: self.errand,
            watches: parts.settings.watches,
            stop,
            clock: parts.clock.clone(),
            stage,
        }
    }
}
