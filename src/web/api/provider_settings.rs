//! Validates the `settings` object of a model provider: known fields must have valid values;
//! unknown fields are kept for clients that use them.

use std::collections::BTreeMap;

use base::display_name;
use llm::compatibility::role_handling::{RoleHandling, SystemRole};
use llm::compatibility::token_factors::Tokenizer;
use llm::compatibility::{extra_body, request_headers};
use llm::provider_options::{Prefill, ReasoningEffort, StreamOptions};
use llm::text_completion::completion_api::{CompletionApi, ProviderMode};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa::openapi::schema::{SchemaType, Type};
use utoipa::openapi::{Object, ObjectBuilder, Schema};

use crate::accounts::name_schemas::TitleSchema;
use crate::providers::detected::detected_settings;
use crate::providers::extra_headers::MAX_HEADERS;
use crate::providers::vision::Vision;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::deserialize;

/// Large enough for any list of stop sequences, in bytes.
const MAX_BYTES: usize = 64 * 1024;
const MAX_KEEP_ALIVE_CHARS: usize = 20;
const MAX_MODEL_CHARS: usize = 200;
const MAX_SAMPLERS: usize = 100;

/// The known settings of a provider: defaults for its models, which a preset can override, and two
/// options of its API.
#[derive(Deserialize, ToSchema)]
#[schema(as = ProviderSettings)]
pub struct KnownProviderSettings {
    #[schema(minimum = 64, maximum = 10_000_000)]
    context_tokens: Option<i64>,
    #[schema(minimum = 1, maximum = 1_000_000)]
    max_tokens: Option<i64>,
    #[schema(minimum = 0, maximum = 5)]
    temperature: Option<f64>,
    #[schema(minimum = 0, maximum = 1)]
    top_p: Option<f64>,
    #[schema(minimum = 0, maximum = 100_000)]
    top_k: Option<i64>,
    #[schema(minimum = 0, maximum = 1)]
    min_p: Option<f64>,
    #[schema(minimum = 0, maximum = 1)]
    top_a: Option<f64>,
    #[schema(minimum = 0, maximum = 1)]
    typical_p: Option<f64>,
    #[schema(minimum = -2, maximum = 2)]
    frequency_penalty: Option<f64>,
    #[schema(minimum = -2, maximum = 2)]
    presence_penalty: Option<f64>,
    #[schema(minimum = 0, maximum = 10)]
    repetition_penalty: Option<f64>,
    #[serde(rename = "stop")]
    _stop: Option<Vec<String>>,
    /// The reasoning effort of the model.
    #[serde(rename = "reasoning")]
    _reasoning: Option<ReasoningEffort>,
    /// Whether pictures are sent to the models; by default the server decides for each model.
    #[serde(rename = "vision")]
    _vision: Option<Vision>,
    /// How messages are arranged for the chat template of the model; only for kinds `openai` and
    /// `openai_compatible`.
    #[serde(rename = "role_handling")]
    _role_handling: Option<RoleHandling>,
    /// The role of the leading system text; only for kinds `openai` and `openai_compatible`.
    #[serde(rename = "system_role")]
    _system_role: Option<SystemRole>,
    /// Whether the field `stream_options` is sent, which asks for token counts.
    #[serde(rename = "stream_options")]
    _stream_options: Option<StreamOptions>,
    /// Whether the beginning of a reply is sent as the last message, for the model to continue.
    #[serde(rename = "prefill")]
    _prefill: Option<Prefill>,
    /// The samplers to send, by their names in requests; null: those that the server is known to support.
    #[schema(max_items = 100)]
    samplers: Option<Vec<String>>,
    /// Whether the model gets messages or one text; only for the kind `openai_compatible`. Runs with tools
    /// get messages in both modes, and so do requests under `/v1`.
    #[serde(rename = "mode")]
    _mode: Option<ProviderMode>,
    /// The API that gets the text; by default the one that a test of the provider detects.
    #[serde(rename = "text_completion_api")]
    _text_completion_api: Option<CompletionApi>,
    /// The tokenizer for which tokens are estimated; by default, the name of each model determines it.
    #[serde(rename = "tokenizer")]
    _tokenizer: Option<Tokenizer>,
    /// The number of tokens of a text, as a multiple of its tokens in `o200k_base`; null: estimated for the
    /// tokenizer and corrected by what the provider reports.
    #[schema(minimum = 0.5, maximum = 5)]
    token_factor: Option<f64>,
    /// Fields that are merged into the body of every request: objects are merged, `null` removes a
    /// field. `model`, `messages`, `prompt` and `stream` cannot be set.
    extra_body: Option<Map<String, Value>>,
    /// The values are stored encrypted and never returned.
    #[schema(schema_with = extra_headers_schema)]
    extra_headers: Option<BTreeMap<String, Option<String>>>,
    /// How long Ollama keeps the model in memory after a call: `10m`, `-1`.
    #[schema(max_length = 20, pattern = r"^-?[0-9][0-9a-z.]*$")]
    keep_alive: Option<String>,
    /// The model that embeds the memories of spaces whose settings name none, if this is the default
    /// provider.
    #[schema(value_type = Option<TitleSchema>)]
    embedding_model: Option<String>,
    /// Sent to the embedding model, and expected in its response.
    #[schema(minimum = 1, maximum = 16_384)]
    embedding_dimensions: Option<i64>,
    /// The time limit of a request for embeddings. 0: the provider is not called for them.
    #[schema(minimum = 0, maximum = 600)]
    embedding_timeout_s: Option<f64>,
    /// How often a failed request for embeddings is repeated. 0: never.
    #[schema(minimum = 0, maximum = 10)]
    embedding_max_retries: Option<i64>,
    /// Whether the vectors of the last 1,024 texts are kept in memory; true by default.
    #[serde(rename = "embedding_cache")]
    _embedding_cache: Option<bool>,
}

/// The schema of additional headers, without the names that the server sets.
fn extra_headers_schema() -> Object {
    let name = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some("^[A-Za-z0-9-]{3,64}$"));
    let value = ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
        .pattern(Some("^[ -~]*$"));
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Object, Type::Null]))
        .property_names(Some(Schema::Object(name.build())))
        .additional_properties(Some(value))
        .max_properties(Some(MAX_HEADERS))
        .description(Some(
            "Headers that are added to every request, by their names. The values are stored encrypted and never \
             returned; null keeps a value.",
        ))
        .build()
}

/// Validates the `settings` object of a provider.
///
/// # Errors
/// Returns 400 for a wrong type and 422 for an invalid value, naming the field.
pub fn parse(settings: Map<String, Value>) -> ApiResult<Value> {
    let settings = Value::Object(settings);
    if settings.to_string().len() > MAX_BYTES {
        let message = format!("Must not exceed {} KiB.", MAX_BYTES / 1024);
        return Err(ApiError::invalid_value("settings", message));
    }
    let known: KnownProviderSettings = deserialize::from_value(settings.clone())
        .map_err(ApiError::from)
        .map_err(|error| error.within("settings"))?;
    for (name, value, least, most) in [
        ("context_tokens", known.context_tokens, 64, 10_000_000),
        ("max_tokens", known.max_tokens, 1, 1_000_000),
        ("top_k", known.top_k, 0, 100_000),
        (
            "embedding_dimensions",
            known.embedding_dimensions,
            1,
            16_384,
        ),
        ("embedding_max_retries", known.embedding_max_retries, 0, 10),
    ] {
        let fits = value.is_none_or(|it| (least..=most).contains(&it));
        require_range(name, fits, &least, &most)?;
    }
    for (name, value, least, most) in [
        ("temperature", known.temperature, 0.0, 5.0),
        ("top_p", known.top_p, 0.0, 1.0),
        ("min_p", known.min_p, 0.0, 1.0),
        ("top_a", known.top_a, 0.0, 1.0),
        ("typical_p", known.typical_p, 0.0, 1.0),
        ("frequency_penalty", known.frequency_penalty, -2.0, 2.0),
        ("presence_penalty", known.presence_penalty, -2.0, 2.0),
        ("repetition_penalty", known.repetition_penalty, 0.0, 10.0),
        ("token_factor", known.token_factor, 0.5, 5.0),
        ("embedding_timeout_s", known.embedding_timeout_s, 0.0, 600.0),
    ] {
        let fits = value.is_none_or(|it| (least..=most).contains(&it));
        require_range(name, fits, &least, &most)?;
    }
    let n_samplers = known.samplers.as_ref().map_or(0, Vec::len);
    if n_samplers > MAX_SAMPLERS {
        let message = format!("Must have at most {MAX_SAMPLERS} items.");
        return Err(ApiError::invalid_value("settings.samplers", message));
    }
    let headers = known.extra_headers.unwrap_or_default();
    if headers.len() > MAX_HEADERS {
        let message = format!("Must have at most {MAX_HEADERS} headers.");
        return Err(ApiError::invalid_value("settings.extra_headers", message));
    }
    let mut headers = headers.iter();
    if let Some(message) =
        headers.find_map(|(name, value)| request_headers::find_problem(name, value.as_deref()))
    {
        return Err(ApiError::invalid_value("settings.extra_headers", message));
    }
    let extra = known.extra_body.unwrap_or_default();
    if let Some(name) = extra_body::RESERVED
        .into_iter()
        .find(|it| extra.contains_key(*it))
    {
        let message = format!("`{name}` cannot be set, because the server sets it.");
        return Err(ApiError::invalid_value("settings.extra_body", message));
    }
    if let Some(model) = known.embedding_model {
        display_name::parse(&model, MAX_MODEL_CHARS).map_err(|error| {
            ApiError::invalid_value("settings.embedding_model", error.to_string())
        })?;
    }
    match known.keep_alive.is_none_or(|it| is_duration(&it)) {
        // A client that sends the settings back does not decide what the server has detected.
        true => Ok(detected_settings::without_detected(settings)),
        false => Err(ApiError::invalid_value(
            "settings.keep_alive",
            "Must be a duration such as `10m`, or `-1` for no limit.",
        )),
    }
}

fn require_range(name: &str, fits: bool, min: &dyn ToString, max: &dyn ToString) -> ApiResult<()> {
    if fits {
        return Ok(());
    }
    let message = format!(
        "Must be between {} and {}.",
        min.to_string(),
        max.to_string()
    );
    Err(ApiError::invalid_value(
        &format!("settings.{name}"),
        message,
    ))
}

/// Returns whether the text is a number with an optional unit.
fn is_duration(text: &str) -> bool {
    let number = text.strip_prefix('-').unwrap_or(text);
    let is_plain = |it: char| it.is_ascii_digit() || it.is_ascii_lowercase() || it == '.';
    text.len() <= MAX_KEEP_ALIVE_CHARS
        && number.starts_with(|it: char| it.is_ascii_digit())
        && number.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::parse;

    fn validate(settings: &Value) -> Result<Value, (u16, Option<String>)> {
        let settings = settings.as_object().cloned().unwrap();
        parse(settings).map_err(|it| (it.status.as_u16(), it.param))
    }

    #[test]
    fn valid_settings_are_kept_unchanged() {
        for settings in [
            json!({}),
            json!({ "temperature": 0.7, "top_k": 40, "frequency_penalty": -2.0, "something_new": [1] }),
            json!({ "reasoning": "off", "keep_alive": "1h30m", "context_tokens": null }),
            json!({ "keep_alive": "-1" }),
            json!({ "mode": "text_completion", "text_completion_api": "koboldcpp" }),
            json!({ "role_handling": "auto", "system_role": "developer", "stream_options": "off" }),
            json!({ "prefill": "on", "samplers": ["top_k", "rep_pen"], "tokenizer": "llama3" }),
            json!({ "extra_body": { "provider": { "order": ["a"] }, "top_k": null } }),
            json!({ "embedding_model": "m", "embedding_timeout_s": 0, "embedding_max_retries": 0 }),
        ] {
            assert_eq!(validate(&settings), Ok(settings));
        }
    }

    #[test]
    fn an_invalid_field_is_named() {
        for (field, value, status) in [
            ("temperature", json!(5.1), 422),
            ("temperature", json!("hot"), 400),
            ("top_p", json!(-0.1), 422),
            ("top_k", json!(-1), 422),
            ("repetition_penalty", json!(11), 422),
            ("max_tokens", json!(0), 422),
            ("context_tokens", json!(63), 422),
            ("reasoning", json!("much"), 422),
            ("vision", json!("sometimes"), 422),
            ("role_handling", json!("any"), 422),
            ("system_role", json!("assistant"), 422),
            ("stream_options", json!("maybe"), 422),
            ("prefill", json!("sometimes"), 422),
            ("samplers", json!("auto"), 400),
            ("samplers", json!(vec!["top_k"; 101]), 422),
            ("mode", json!("both"), 422),
            ("text_completion_api", json!("ollama"), 422),
            ("tokenizer", json!("gpt2"), 422),
            ("tokenizer", json!(1), 400),
            ("extra_body", json!([]), 400),
            ("extra_body", json!({ "stream": false }), 422),
            ("keep_alive", json!(""), 422),
            ("keep_alive", json!("-"), 422),
            ("keep_alive", json!("10 m"), 422),
            ("keep_alive", json!(7), 400),
            ("stop", json!("a"), 400),
            ("embedding_model", json!(" "), 422),
            ("embedding_dimensions", json!(0), 422),
            ("embedding_timeout_s", json!(-1), 422),
            ("embedding_max_retries", json!(11), 422),
            ("embedding_cache", json!("no"), 400),
        ] {
            let refused = validate(&json!({ (field): value }));

            let expected = Err((status, Some(format!("settings.{field}"))));
            assert_eq!(refused, expected, "{field} {value}");
        }
        let long = json!({ "stop": ["x".repeat(70_000)] });
        assert_eq!(validate(&long), Err((422, Some("settings".to_owned()))));
    }
}
