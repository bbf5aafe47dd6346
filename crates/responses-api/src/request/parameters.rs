//! Parses parameters of the request for a response: sampling, `include`, `metadata`, `reasoning`,
//! `stream_options`, and identifiers that are only echoed.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::request::object_reader::ObjectReader;

/// The values of `include` that have an effect.
pub const INCLUDABLE: [&str; 2] = [
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
];

/// The values of `include` that are accepted without effect: they name output that this server does
/// not have.
pub const INCLUDABLE_WITHOUT_EFFECT: [&str; 6] = [
    "web_search_call.action.sources",
    "web_search_call.results",
    "file_search_call.results",
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "message.input_image.image_url",
];

/// The field of `stream_options`.
pub const INCLUDE_OBFUSCATION: &str = "include_obfuscation";

/// The highest value of `top_logprobs`.
pub const MAX_TOP_LOGPROBS: i64 = 20;

/// Additional output that a client requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncludedOutput {
    EncryptedReasoning,
    Logprobs,
}

/// What happens when the prompt is too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TruncationMode {
    /// The oldest messages are dropped.
    Auto,
    /// The request fails.
    #[default]
    Disabled,
}

/// How long a model reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum EffortLevel {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
}

/// How reasoning is summarized. Models choose the style themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SummaryStyle {
    Auto,
    Concise,
    Detailed,
}

/// `reasoning`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ReasoningConfig {
    pub effort: Option<EffortLevel>,
    pub summary: Option<SummaryStyle>,
}

/// The parameters of the model call; unset ones are not sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SamplingParameters {
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub presence_penalty: Option<f64>,
    pub frequency_penalty: Option<f64>,
    pub max_output_tokens: Option<u32>,
    pub top_logprobs: Option<u8>,
}

/// Identifiers that are echoed without effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallerHints {
    pub safety_identifier: Option<String>,
    pub prompt_cache_key: Option<String>,
}

/// Returns the sampling parameters and the included output.
pub(super) fn sampling(body: &ObjectReader) -> (SamplingParameters, Vec<IncludedOutput>) {
    let max_output_tokens = body.integer("max_output_tokens", 1..=i64::from(u32::MAX));
    let top_logprobs = body.integer("top_logprobs", 0..=MAX_TOP_LOGPROBS);
    let include = include(body);
    let sampling = SamplingParameters {
        temperature: body.number("temperature", 0.0..=2.0),
        top_p: body.number("top_p", 0.0..=1.0),
        presence_penalty: body.number("presence_penalty", -2.0..=2.0),
        frequency_penalty: body.number("frequency_penalty", -2.0..=2.0),
        max_output_tokens: max_output_tokens.and_then(|it| u32::try_from(it).ok()),
        top_logprobs: top_logprobs.and_then(|it| u8::try_from(it).ok()),
    };
    (sampling, include)
}

fn include(body: &ObjectReader) -> Vec<IncludedOutput> {
    let list = body.list("include").unwrap_or_default();
    let each = list.iter().enumerate();
    each.filter_map(|(at, value)| {
        let param = format!("include[{at}]");
        match value.as_str() {
            Some("reasoning.encrypted_content") => {
                return Some(IncludedOutput::EncryptedReasoning);
            }
            Some("message.output_text.logprobs") => return Some(IncludedOutput::Logprobs),
            Some(it) if INCLUDABLE_WITHOUT_EFFECT.contains(&it) => {}
            Some(_) => {
                let all = [&INCLUDABLE[..], &INCLUDABLE_WITHOUT_EFFECT[..]].concat();
                body.wrong_value(&param, &format!("one of {}", all.join(", ")));
            }
            None => body.wrong_type(&param, "a string"),
        }
        None
    })
    .collect()
}

/// Returns the caller's metadata: up to 16 short texts.
pub(super) fn metadata(body: &ObjectReader) -> Map<String, Value> {
    let Some(metadata) = body.object("metadata") else {
        return Map::new();
    };
    body.require(metadata.fields.len() <= 16, "metadata", "at most 16 pairs");
    for name in metadata.fields.keys() {
        match metadata.fields[name].as_str() {
            None => metadata.wrong_type(name, "a string"),
            Some(text) => metadata.require(
                name.chars().count() <= 64 && text.chars().count() <= 512,
                name,
                "at most 512 characters, with a name of at most 64",
            ),
        }
    }
    metadata.fields.clone()
}

pub(super) fn reasoning(body: &ObjectReader) -> Option<ReasoningConfig> {
    let reasoning = body.object("reasoning")?;
    reasoning.require_known(&["effort", "summary", "generate_summary"]);
    let effort = reasoning.word("effort");
    // The former name of `summary`.
    let before = reasoning.word("generate_summary");
    let summary = reasoning.word("summary").or(before);
    Some(ReasoningConfig { effort, summary })
}

/// Checks the fields that have no effect, and returns those that are echoed.
pub(super) fn caller_hints(body: &ObjectReader) -> CallerHints {
    body.text("service_tier");
    let hints = CallerHints {
        safety_identifier: body.text("safety_identifier").map(str::to_owned),
        prompt_cache_key: body.text("prompt_cache_key").map(str::to_owned),
    };
    body.text("prompt_cache_retention");
    body.object("prompt_cache_options");
    body.text("user");
    body.object("client_metadata");
    hints
}

/// Returns whether stream events are to be padded.
pub(super) fn include_obfuscation(body: &ObjectReader) -> bool {
    let Some(options) = body.object("stream_options") else {
        return false;
    };
    options.require_known(&[INCLUDE_OBFUSCATION]);
    options.flag(INCLUDE_OBFUSCATION).unwrap_or_default()
}
