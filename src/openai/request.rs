//! `POST /v1/responses`: everything that the text of a request alone can be judged by, before
//! anything is written.

use crate::llm::openai_chat_logprobs::MAX_TOP_LOGPROBS;
use crate::openai::error::Answer;
use crate::openai::error::Problem;
use crate::openai::fields::Fields;
use crate::openai::fields::inside;
use crate::openai::fields::unsupported;
use crate::openai::fields::wrong_type;
use crate::openai::fields::wrong_value;
use crate::openai::format;
use crate::openai::items;
use crate::openai::list::INCLUDED;
use crate::openai::tools;
use crate::responses::spec::Kept;
use crate::responses::spec::Sampling;
use crate::responses::spec::Spec;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

const KNOWN: [&str; 29] = [
    "background",
    "conversation",
    "frequency_penalty",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "parallel_tool_calls",
    "presence_penalty",
    "previous_response_id",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
];

/// Known to the API, and nothing that this house does.
const UNSUPPORTED: [&str; 3] = ["prompt", "context_management", "moderation"];

const EFFORTS: [&str; 6] = ["none", "minimal", "low", "medium", "high", "xhigh"];
const SUMMARIES: [&str; 3] = ["auto", "concise", "detailed"];

/// The field of `stream_options`.
pub const PADDING: &str = "include_obfuscation";

/// Reads a request.
///
/// # Errors
/// 400, with the name of what is wrong.
pub fn parse(body: &Map<String, Value>) -> Answer<Spec> {
    let fields = Fields(body);
    if let Some(name) = UNSUPPORTED.iter().find(|it| fields.get(it).is_some()) {
        return Err(unsupported(name));
    }
    must_be_known(&fields)?;
    let model = fields.text("model")?.filter(|it| !it.is_empty());
    let model = model.ok_or_else(|| missing("model"))?.to_owned();
    let previous = fields.text("previous_response_id")?.map(str::to_owned);
    let conversation = conversation(&fields)?;
    let input = match fields.get("input") {
        Some(input) => items::input(input)?,
        None if previous.is_some() || conversation.is_some() => Vec::new(),
        None => return Err(missing("input")),
    };
    let store = fields.flag("store", true)?;
    let background = fields.flag("background", false)?;
    let stream = fields.flag("stream", false)?;
    must_go_together(store, background, previous.as_ref(), conversation.as_ref())?;
    let kept = kept(&fields, &model, (store, background))?;
    Ok(Spec {
        model,
        input,
        previous,
        prior: None,
        conversation,
        store,
        stream,
        background,
        kept,
    })
}

fn must_be_known(fields: &Fields) -> Answer<()> {
    let also = ["user", "prompt", "context_management", "moderation"];
    let known: Vec<&str> = KNOWN.iter().chain(&also).copied().collect();
    fields.only(&known)
}

fn missing(name: &str) -> Problem {
    let message = "This parameter is required.";
    Problem::invalid("missing_required_parameter", name, message)
}

fn conversation(fields: &Fields) -> Answer<Option<String>> {
    let id = match fields.get("conversation") {
        None => return Ok(None),
        Some(Value::Object(object)) => object.get("id").and_then(Value::as_str),
        Some(value) => value.as_str(),
    };
    let takes = "the id of a conversation, or an object with it";
    let id = id.ok_or_else(|| wrong_type("conversation", takes))?;
    Ok(Some(id.to_owned()))
}

fn must_go_together(
    store: bool,
    background: bool,
    previous: Option<&String>,
    conversation: Option<&String>,
) -> Answer<()> {
    let problem = |code, param: &str, message: &str| Err(Problem::invalid(code, param, message));
    if previous.is_some() && conversation.is_some() {
        return problem(
            "mutually_exclusive_parameters",
            "previous_response_id",
            "Give either `previous_response_id` or `conversation`.",
        );
    }
    if background && !store {
        return problem(
            "background_requires_store",
            "background",
            "A background response is stored: leave `store` out.",
        );
    }
    if conversation.is_some() && !store {
        return problem(
            "conversation_requires_store",
            "conversation",
            "What is said in a conversation is stored: leave `store` out.",
        );
    }
    Ok(())
}

fn kept(fields: &Fields, model: &str, (store, background): (bool, bool)) -> Answer<Kept> {
    let sampling = sampling(fields)?;
    let truncation = fields.word("truncation", &["auto", "disabled"])?;
    let truncation = truncation.unwrap_or("disabled");
    let instructions = fields.text("instructions")?;
    let mut echo = Map::new();
    let mut put = |name: &str, value: Value| {
        echo.insert(name.to_owned(), value);
    };
    put("model", json!(model));
    put(
        "previous_response_id",
        json!(fields.text("previous_response_id")?),
    );
    if let Some(id) = conversation(fields)? {
        put("conversation", json!({ "id": id }));
    }
    put("instructions", json!(instructions));
    put("max_output_tokens", json!(sampling.max_output_tokens));
    put("metadata", fields.metadata()?);
    put("reasoning", reasoning(fields)?);
    put("store", json!(store));
    put("background", json!(background));
    put("temperature", json!(sampling.temperature.unwrap_or(1.0)));
    put("top_p", json!(sampling.top_p.unwrap_or(1.0)));
    put(
        "presence_penalty",
        json!(sampling.presence_penalty.unwrap_or(0.0)),
    );
    put(
        "frequency_penalty",
        json!(sampling.frequency_penalty.unwrap_or(0.0)),
    );
    let (format, text) = format::text(fields)?;
    put("text", text);
    put("truncation", json!(truncation));
    put(
        "top_logprobs",
        json!(sampling.top_logprobs.unwrap_or_default()),
    );
    hints(fields, &mut put)?;
    let tools = tools::toolbox(fields, &mut echo)?;
    Ok(Kept {
        instructions: instructions.map(str::to_owned),
        sampling,
        truncates: truncation == "auto",
        tools,
        format,
        echo,
    })
}

fn sampling(fields: &Fields) -> Answer<Sampling> {
    let most = i64::from(u32::MAX);
    let max_output_tokens = fields.whole("max_output_tokens", 16..=most)?;
    let n_others = fields.whole("top_logprobs", 0..=i64::from(MAX_TOP_LOGPROBS))?;
    let n_others = n_others.and_then(|it| u8::try_from(it).ok());
    let is_asked = include(fields)? || n_others.is_some_and(|it| it > 0);
    Ok(Sampling {
        temperature: fields.number("temperature", 0.0..=2.0)?,
        top_p: fields.number("top_p", 0.0..=1.0)?,
        presence_penalty: fields.number("presence_penalty", -2.0..=2.0)?,
        frequency_penalty: fields.number("frequency_penalty", -2.0..=2.0)?,
        max_output_tokens: max_output_tokens.and_then(|it| u32::try_from(it).ok()),
        top_logprobs: is_asked.then(|| n_others.unwrap_or_default()),
    })
}

/// Whether how likely each token was is to be told.
fn include(fields: &Fields) -> Answer<bool> {
    let mut is_asked = false;
    for (at, value) in fields.list("include")?.into_iter().flatten().enumerate() {
        let param = format!("include[{at}]");
        match value.as_str() {
            // Reasoning that has a sealed form would be shown with it; none here has.
            Some("reasoning.encrypted_content") => {}
            Some("message.output_text.logprobs") => is_asked = true,
            Some(_) => return Err(wrong_value(&param, &INCLUDED.join(" or "))),
            None => return Err(wrong_type(&param, "a string")),
        }
    }
    Ok(is_asked)
}

fn reasoning(fields: &Fields) -> Answer<Value> {
    let Some(reasoning) = fields.object("reasoning")? else {
        return Ok(Value::Null);
    };
    let inner = Fields(reasoning);
    let read = || {
        inner.only(&["effort", "summary", "generate_summary"])?;
        let effort = inner.word("effort", &EFFORTS)?;
        // As `summary` was called before.
        let before = inner.word("generate_summary", &SUMMARIES)?;
        let summary = inner.word("summary", &SUMMARIES)?.or(before);
        Ok(json!({ "effort": effort, "summary": summary }))
    };
    read().map_err(|it| inside("reasoning", it))
}

/// What may guide, and may as well do nothing.
fn hints(fields: &Fields, put: &mut impl FnMut(&str, Value)) -> Answer<()> {
    fields.text("service_tier")?;
    put("service_tier", json!("default"));
    put(
        "safety_identifier",
        json!(fields.text("safety_identifier")?),
    );
    put("prompt_cache_key", json!(fields.text("prompt_cache_key")?));
    fields.text("prompt_cache_retention")?;
    fields.object("prompt_cache_options")?;
    fields.text("user")?;
    let Some(options) = fields.object("stream_options")? else {
        return Ok(());
    };
    let options = Fields(options);
    let known = options.only(&[PADDING]);
    let read = known.and_then(|()| options.flag(PADDING, false));
    read.map(drop).map_err(|it| inside("stream_options", it))
}

/// Whether the pieces of a stream are to be padded, by a request that can be granted.
pub fn is_padded(body: &Map<String, Value>) -> bool {
    let options = body.get("stream_options");
    options.is_some_and(|it| it[PADDING] == true)
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
