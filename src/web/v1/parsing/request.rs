//! `POST /v1/responses`: all validation that needs only the text of the request, before anything is
//! written.

use llm::openai_chat::logprobs::MAX_TOP_LOGPROBS;
use serde_json::{Map, Value, json};

use crate::responses::request::{ResponseRequest, Sampling, StoredRequest};
use crate::web::v1::error::{V1Error, V1Result};
use crate::web::v1::pagination::INCLUDABLE;
use crate::web::v1::parsing::fields::{Fields, nested_in, unsupported, wrong_type, wrong_value};
use crate::web::v1::parsing::{format, items, tools};

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

/// Known to the API, but not supported here.
const UNSUPPORTED: [&str; 3] = ["prompt", "context_management", "moderation"];

const EFFORTS: [&str; 6] = ["none", "minimal", "low", "medium", "high", "xhigh"];
const SUMMARIES: [&str; 3] = ["auto", "concise", "detailed"];

/// The field of `stream_options`.
pub const INCLUDE_OBFUSCATION: &str = "include_obfuscation";

/// Parses a request.
///
/// # Errors
/// Returns 400 with the path of the invalid field.
pub fn parse(body: &Map<String, Value>) -> V1Result<ResponseRequest> {
    let fields = Fields(body);
    if let Some(name) = UNSUPPORTED.iter().find(|it| fields.get(it).is_some()) {
        return Err(unsupported(name));
    }
    require_known_parameters(&fields)?;
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
    require_compatible_parameters(store, background, previous.as_ref(), conversation.as_ref())?;
    let stored = stored_request(&fields, &model, (store, background))?;
    Ok(ResponseRequest {
        model,
        input,
        previous_response_id: previous,
        prior_items: None,
        conversation_id: conversation,
        store,
        stream,
        background,
        stored,
    })
}

fn require_known_parameters(fields: &Fields) -> V1Result<()> {
    let also = ["user", "prompt", "context_management", "moderation"];
    let known: Vec<&str> = KNOWN.iter().chain(&also).copied().collect();
    fields.require_known(&known)
}

fn missing(name: &str) -> V1Error {
    let message = "This parameter is required.";
    V1Error::invalid("missing_required_parameter", name, message)
}

fn conversation(fields: &Fields) -> V1Result<Option<String>> {
    let id = match fields.get("conversation") {
        None => return Ok(None),
        Some(Value::Object(object)) => object.get("id").and_then(Value::as_str),
        Some(value) => value.as_str(),
    };
    let takes = "the id of a conversation, or an object with it";
    let id = id.ok_or_else(|| wrong_type("conversation", takes))?;
    Ok(Some(id.to_owned()))
}

fn require_compatible_parameters(
    store: bool,
    background: bool,
    previous: Option<&String>,
    conversation: Option<&String>,
) -> V1Result<()> {
    let problem = |code, param: &str, message: &str| Err(V1Error::invalid(code, param, message));
    if previous.is_some() && conversation.is_some() {
        return problem(
            "mutually_exclusive_parameters",
            "previous_response_id",
            "Give either `previous_response_id` or `conversation`, not both.",
        );
    }
    if background && !store {
        return problem(
            "background_requires_store",
            "background",
            "A background response must be stored. Omit `store`.",
        );
    }
    if conversation.is_some() && !store {
        return problem(
            "conversation_requires_store",
            "conversation",
            "A response in a conversation must be stored. Omit `store`.",
        );
    }
    Ok(())
}

fn stored_request(
    fields: &Fields,
    model: &str,
    (store, background): (bool, bool),
) -> V1Result<StoredRequest> {
    let sampling = sampling(fields)?;
    let truncation = fields.one_of("truncation", &["auto", "disabled"])?;
    let truncation = truncation.unwrap_or("disabled");
    let instructions = fields.text("instructions")?;
    let mut echo = Map::new();
    let mut insert = |name: &str, value: Value| {
        echo.insert(name.to_owned(), value);
    };
    insert("model", json!(model));
    insert(
        "previous_response_id",
        json!(fields.text("previous_response_id")?),
    );
    if let Some(id) = conversation(fields)? {
        insert("conversation", json!({ "id": id }));
    }
    insert("instructions", json!(instructions));
    insert("max_output_tokens", json!(sampling.max_output_tokens));
    insert("metadata", fields.metadata()?);
    insert("reasoning", reasoning(fields)?);
    insert("store", json!(store));
    insert("background", json!(background));
    insert("temperature", json!(sampling.temperature.unwrap_or(1.0)));
    insert("top_p", json!(sampling.top_p.unwrap_or(1.0)));
    insert(
        "presence_penalty",
        json!(sampling.presence_penalty.unwrap_or(0.0)),
    );
    insert(
        "frequency_penalty",
        json!(sampling.frequency_penalty.unwrap_or(0.0)),
    );
    let (format, text) = format::text(fields)?;
    insert("text", text);
    insert("truncation", json!(truncation));
    insert(
        "top_logprobs",
        json!(sampling.top_logprobs.unwrap_or_default()),
    );
    parse_hints(fields, &mut insert)?;
    let tools = tools::tool_config(fields, &mut echo)?;
    Ok(StoredRequest {
        instructions: instructions.map(str::to_owned),
        sampling,
        truncates: truncation == "auto",
        tools,
        format,
        echo,
    })
}

fn sampling(fields: &Fields) -> V1Result<Sampling> {
    let most = i64::from(u32::MAX);
    let max_output_tokens = fields.integer("max_output_tokens", 16..=most)?;
    let n_others = fields.integer("top_logprobs", 0..=i64::from(MAX_TOP_LOGPROBS))?;
    let n_others = n_others.and_then(|it| u8::try_from(it).ok());
    let is_asked = parse_include(fields)? || n_others.is_some_and(|it| it > 0);
    Ok(Sampling {
        temperature: fields.number("temperature", 0.0..=2.0)?,
        top_p: fields.number("top_p", 0.0..=1.0)?,
        presence_penalty: fields.number("presence_penalty", -2.0..=2.0)?,
        frequency_penalty: fields.number("frequency_penalty", -2.0..=2.0)?,
        max_output_tokens: max_output_tokens.and_then(|it| u32::try_from(it).ok()),
        top_logprobs: is_asked.then(|| n_others.unwrap_or_default()),
    })
}

/// Returns whether the logprobs of the output are requested.
fn parse_include(fields: &Fields) -> V1Result<bool> {
    let mut is_asked = false;
    for (at, value) in fields.list("include")?.into_iter().flatten().enumerate() {
        let param = format!("include[{at}]");
        match value.as_str() {
            // Accepted without effect: no reasoning item has encrypted content.
            Some("reasoning.encrypted_content") => {}
            Some("message.output_text.logprobs") => is_asked = true,
            Some(_) => return Err(wrong_value(&param, &INCLUDABLE.join(" or "))),
            None => return Err(wrong_type(&param, "a string")),
        }
    }
    Ok(is_asked)
}

fn reasoning(fields: &Fields) -> V1Result<Value> {
    let Some(reasoning) = fields.object("reasoning")? else {
        return Ok(Value::Null);
    };
    let inner = Fields(reasoning);
    let read = || {
        inner.require_known(&["effort", "summary", "generate_summary"])?;
        let effort = inner.one_of("effort", &EFFORTS)?;
        // The former name of `summary`.
        let before = inner.one_of("generate_summary", &SUMMARIES)?;
        let summary = inner.one_of("summary", &SUMMARIES)?.or(before);
        Ok(json!({ "effort": effort, "summary": summary }))
    };
    read().map_err(|it| nested_in("reasoning", it))
}

/// Validates the fields that are echoed but may have no effect.
fn parse_hints(fields: &Fields, insert: &mut impl FnMut(&str, Value)) -> V1Result<()> {
    fields.text("service_tier")?;
    insert("service_tier", json!("default"));
    insert(
        "safety_identifier",
        json!(fields.text("safety_identifier")?),
    );
    insert("prompt_cache_key", json!(fields.text("prompt_cache_key")?));
    fields.text("prompt_cache_retention")?;
    fields.object("prompt_cache_options")?;
    fields.text("user")?;
    let Some(options) = fields.object("stream_options")? else {
        return Ok(());
    };
    let options = Fields(options);
    let known = options.require_known(&[INCLUDE_OBFUSCATION]);
    let read = known.and_then(|()| options.flag(INCLUDE_OBFUSCATION, false));
    read.map(drop).map_err(|it| nested_in("stream_options", it))
}

/// Returns whether stream events are to be padded. The request must have been parsed successfully.
pub fn is_obfuscated(body: &Map<String, Value>) -> bool {
    let options = body.get("stream_options");
    options.is_some_and(|it| it[INCLUDE_OBFUSCATION] == true)
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
