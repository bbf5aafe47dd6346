//! Parses the body of `POST /v1/chat/completions`. Its messages become the input items of a response that
//! is not stored, and its tools and output format become those of this response.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::request::chat::{chat_messages, chat_tools};
use crate::request::error::RequestError;
use crate::request::object_reader::ObjectReader;
use crate::request::parameters::{
    EffortLevel, IncludedOutput, MAX_TOP_LOGPROBS, SamplingParameters,
};
use crate::request::text_config::{TextFormat, TextSchema, Verbosity};
use crate::request::tools::tool::RequestTool;
use crate::request::tools::tool_choice::RequestedChoice;
use crate::request::{object_reader, parameters};

/// The fields that have an effect, at least with some of their values. All other fields are ignored.
const KNOWN_FIELDS: [&str; 27] = [
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "modalities",
    "model",
    "n",
    "parallel_tool_calls",
    "presence_penalty",
    "reasoning_effort",
    "response_format",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
];

/// The maximum number of stop sequences, as in OpenAI's API.
const MAX_STOPS: usize = 4;

/// The maximum length of a stop sequence, in characters. In a stream, the end of the text is held back
/// while it may be the beginning of a stop sequence, so this limits how much is held back.
const MAX_STOP_CHARS: usize = 512;

/// The maximum number of tokens with a bias.
const MAX_BIASED_TOKENS: usize = 1_024;

/// The maximum number of answers to one request.
const MAX_CHOICES: i64 = 4;

/// A request to complete a chat.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateChatCompletion {
    pub model: String,
    /// The messages as input items, each with its id.
    pub input: Vec<Value>,
    /// For each item, the position of its message.
    pub message_positions: Vec<usize>,
    pub stream: bool,
    /// Whether the stream ends with a chunk that contains the usage.
    pub include_usage: bool,
    /// How many answers are generated, 1 to 4.
    pub n_choices: usize,
    pub sampling: SamplingParameters,
    pub effort: Option<EffortLevel>,
    pub include: Vec<IncludedOutput>,
    /// The answer ends before any of these.
    pub stop: Vec<String>,
    pub seed: Option<i64>,
    /// Changes of the probability of tokens, by the id of the token.
    pub logit_bias: BTreeMap<String, f64>,
    pub format: TextFormat,
    pub tools: Vec<RequestTool>,
    pub tool_choice: RequestedChoice,
    pub parallel_tool_calls: bool,
    /// The fields that were accepted without effect.
    pub ignored: Vec<String>,
}

impl CreateChatCompletion {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// Returns the first invalid field.
    pub fn parse(body: &Map<String, Value>) -> Result<Self, RequestError> {
        object_reader::parse(body, Self::read)
    }

    fn read(body: &ObjectReader) -> Self {
        let model = body.text("model").unwrap_or_default();
        if model.is_empty() {
            body.missing("model", "This parameter is required.");
        }
        let (input, message_positions) = chat_messages::messages(body);
        let stream = body.flag("stream").unwrap_or(false);
        reject_unsupported(body);
        let n_choices = body.integer("n", 1..=MAX_CHOICES).unwrap_or(1);
        let (sampling, include) = sampling(body);
        let effort = body.word("reasoning_effort");
        let stop = stops(body);
        let seed = body.integer("seed", i64::MIN..=i64::MAX);
        let logit_bias = logit_bias(body);
        let format = response_format(body);
        let tools = chat_tools::tools(body);
        let tool_choice = chat_tools::choice(body, &tools);
        let parallel_tool_calls = body.flag("parallel_tool_calls").unwrap_or(true);
        Self {
            model: model.to_owned(),
            input,
            message_positions,
            stream,
            include_usage: include_usage(body),
            n_choices: usize::try_from(n_choices).unwrap_or(1),
            sampling,
            effort,
            include,
            stop,
            seed,
            logit_bias,
            format,
            tools,
            tool_choice,
            parallel_tool_calls,
            ignored: ignored(body),
        }
    }
}

/// Rejects parameters that would change the answer and are not supported.
fn reject_unsupported(body: &ObjectReader) {
    if body.get("audio").is_some() {
        body.unsupported("audio");
    }
    let modalities = body.list("modalities").unwrap_or_default();
    if modalities.iter().any(|it| it != "text") {
        body.unsupported("modalities");
    }
}

fn sampling(body: &ObjectReader) -> (SamplingParameters, Vec<IncludedOutput>) {
    let most = i64::from(u32::MAX);
    let deprecated = body.integer("max_tokens", 1..=most);
    let max_tokens = body
        .integer("max_completion_tokens", 1..=most)
        .or(deprecated);
    let has_logprobs = body.flag("logprobs").unwrap_or(false);
    let top_logprobs = body.integer("top_logprobs", 0..=MAX_TOP_LOGPROBS);
    let is_valid = has_logprobs || top_logprobs.is_none_or(|it| it == 0);
    body.require(is_valid, "logprobs", "true if `top_logprobs` is given");
    let sampling = SamplingParameters {
        temperature: body.number("temperature", 0.0..=2.0),
        top_p: body.number("top_p", 0.0..=1.0),
        presence_penalty: body.number("presence_penalty", -2.0..=2.0),
        frequency_penalty: body.number("frequency_penalty", -2.0..=2.0),
        max_output_tokens: max_tokens.and_then(|it| u32::try_from(it).ok()),
        top_logprobs: top_logprobs.and_then(|it| u8::try_from(it).ok()),
    };
    let include = has_logprobs.then_some(IncludedOutput::Logprobs);
    (sampling, include.into_iter().collect())
}

/// Returns the stop sequences: one text, or a list.
fn stops(body: &ObjectReader) -> Vec<String> {
    let stops = match body.get("stop") {
        None => return Vec::new(),
        Some(Value::String(stop)) => vec![stop.clone()],
        Some(Value::Array(list)) => body.strings("stop", list),
        Some(_) => {
            body.wrong_type("stop", "a string or a list of strings");
            return Vec::new();
        }
    };
    body.require(stops.len() <= MAX_STOPS, "stop", "at most 4 strings");
    let is_short = |it: &String| it.chars().count() <= MAX_STOP_CHARS;
    let expected = "at most 512 characters for each string";
    body.require(stops.iter().all(is_short), "stop", expected);
    stops
}

fn logit_bias(body: &ObjectReader) -> BTreeMap<String, f64> {
    let Some(biases) = body.object("logit_bias") else {
        return BTreeMap::new();
    };
    let n_tokens = biases.fields.len();
    body.require(
        n_tokens <= MAX_BIASED_TOKENS,
        "logit_bias",
        "at most 1024 tokens",
    );
    let names = biases.fields.keys().take(MAX_BIASED_TOKENS);
    let each = names.filter_map(|name| {
        let bias = biases.number(name, -100.0..=100.0)?;
        Some((name.clone(), bias))
    });
    each.collect()
}

/// Reads `response_format`, an object.
pub(in crate::request) fn response_format(body: &ObjectReader) -> TextFormat {
    let Some(format) = body.object("response_format") else {
        return TextFormat::Text;
    };
    match format.fields.get("type").and_then(Value::as_str) {
        Some("text") => TextFormat::Text,
        Some("json_object") => TextFormat::JsonObject,
        Some("json_schema") => {
            let Some(schema) = format.object("json_schema") else {
                format.missing("json_schema", "This format requires a schema.");
                return TextFormat::Text;
            };
            TextSchema::read(&schema).map_or(TextFormat::Text, TextFormat::JsonSchema)
        }
        _ => {
            format.wrong_value("type", "text, json_object or json_schema");
            TextFormat::Text
        }
    }
}

fn include_usage(body: &ObjectReader) -> bool {
    let options = body.object("stream_options");
    options.is_some_and(|it| it.flag("include_usage").unwrap_or(false))
}

/// Checks the types of known fields without effect, and returns all fields that have no effect.
fn ignored(body: &ObjectReader) -> Vec<String> {
    body.word::<Verbosity>("verbosity");
    parameters::metadata(body);
    for name in ["user", "prompt_cache_key", "safety_identifier"] {
        body.text(name);
    }
    let names = body.fields.keys().map(String::as_str);
    let names = names.filter(|it| body.get(it).is_some());
    let mut ignored: Vec<String> = names
        .filter(|it| !KNOWN_FIELDS.contains(it))
        .map(str::to_owned)
        .collect();
    if body.flag("store") == Some(true) {
        ignored.push("store".to_owned());
    }
    let tier = body.text("service_tier");
    if tier.is_some_and(|it| it != "auto" && it != "default") {
        ignored.push("service_tier".to_owned());
    }
    ignored
}

#[cfg(test)]
#[path = "chat_completion_tests.rs"]
mod tests;
