//! Implements `Dialect` for Google's Gemini API: paths, headers, capabilities, and the body of
//! streaming requests.

use reqwest::header::HeaderName;
use serde_json::{Map, Value, json};

use crate::dialect::{ChunkParser, Dialect, DialectRequest};
use crate::error::LlmError;
use crate::gemini::chunk::GeminiChunkParser;
use crate::gemini::request_parts;
use crate::provider::Capability;
use crate::provider_options::ProviderOptions;
use crate::reasoning::effort::Effort;
use crate::request::Request;
use crate::role_alternation::AlternatingMessages;
use crate::secret::Secret;

/// The API rejects more.
const MAX_STOPS: usize = 5;

/// The lowest budget for reasoning of models that always reason, in tokens.
const MIN_PRO_BUDGET: u32 = 128;

/// The API with the options of its provider.
#[derive(Debug, Clone)]
pub struct Gemini {
    pub options: ProviderOptions,
}

impl Dialect for Gemini {
    fn kind(&self) -> &'static str {
        "gemini"
    }

    fn root_path(&self, path: &str) -> String {
        let path = path.trim_end_matches('/');
        let path = path.strip_suffix("/openai").unwrap_or(path);
        match path.strip_suffix("/models").unwrap_or(path) {
            "" => "/v1beta".to_owned(),
            path => path.to_owned(),
        }
    }

    fn build_request(&self, request: &Request) -> Result<DialectRequest, LlmError> {
        let model = model_path(&request.model).ok_or_else(|| LlmError::Unusable {
            message: "The model name contains characters that Gemini model names cannot have."
                .to_owned(),
        })?;
        Ok(DialectRequest {
            path: format!("/{model}:streamGenerateContent"),
            query: Some("alt=sse"),
            body: body(request, &self.options),
        })
    }

    fn options(&self) -> &ProviderOptions {
        &self.options
    }

    fn auth_header(&self, key: &Secret) -> (HeaderName, String) {
        (
            HeaderName::from_static("x-goog-api-key"),
            key.expose().to_owned(),
        )
    }

    fn has_capability(&self, capability: Capability) -> bool {
        // Only a few models support log probabilities.
        capability != Capability::Logprobs
    }

    fn max_stops(&self) -> usize {
        MAX_STOPS
    }

    fn chunk_parser(&self) -> Box<dyn ChunkParser> {
        Box::new(GeminiChunkParser::default())
    }

    fn embeddings_path(&self) -> Option<&'static str> {
        Some("/openai/embeddings")
    }

    fn model_list_path(&self) -> (&'static str, Option<&'static str>) {
        ("/models", Some("pageSize=1000"))
    }

    fn model_name(&self, entry: &Value) -> Option<String> {
        let methods = entry["supportedGenerationMethods"].as_array();
        let talks = methods.is_none_or(|all| all.iter().any(|it| it == "generateContent"));
        let name = entry["name"].as_str().filter(|_| talks)?;
        Some(name.strip_prefix("models/").unwrap_or(name).to_owned())
    }
}

/// Returns the path of a model. The model name is part of the URL, so it must not be able to change
/// the path to another resource.
fn model_path(model: &str) -> Option<String> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    let model = match model.contains('/') {
        true => model.to_owned(),
        false => format!("models/{model}"),
    };
    let is_name = |it: &str| !matches!(it, "" | "." | "..") && it.chars().all(is_plain);
    model.split('/').all(is_name).then_some(model)
}

fn body(request: &Request, options: &ProviderOptions) -> Value {
    let prompt = AlternatingMessages::from_messages(request);
    let turn = |it| request_parts::content(it, &request.model);
    let contents: Vec<Value> = prompt.groups.iter().map(turn).collect();
    let mut body = json!({ "contents": contents });
    if !prompt.system.is_empty() {
        body["systemInstruction"] = json!({ "parts": [{ "text": prompt.system }] });
    }
    let mut config = config(request, options);
    config.extend(request_parts::format(&request.format));
    if !config.is_empty() {
        body["generationConfig"] = Value::Object(config);
    }
    request_parts::insert_tools(&mut body, request);
    body
}

fn config(request: &Request, options: &ProviderOptions) -> Map<String, Value> {
    let mut config = Map::new();
    let samplers = &request.samplers;
    // A penalty of zero has no effect, and some models do not support penalties.
    let penalty = |it: Option<f64>| it.filter(|it| *it != 0.0);
    for (field, value) in [
        (
            "temperature",
            request.temperature.map(|it| it.clamp(0.0, 2.0)),
        ),
        ("topP", request.top_p),
        ("frequencyPenalty", penalty(samplers.frequency_penalty)),
        ("presencePenalty", penalty(samplers.presence_penalty)),
    ] {
        if let Some(value) = value {
            config.insert(field.to_owned(), json!(value));
        }
    }
    let top_k = samplers.top_k.filter(|it| *it > 0);
    for (field, value) in [
        ("topK", top_k),
        ("maxOutputTokens", options.token_limit(request)),
        ("seed", samplers.seed),
    ] {
        if let Some(value) = value {
            config.insert(field.to_owned(), json!(value));
        }
    }
    let stops = request.stop.iter().filter(|it| !it.is_empty());
    let stops: Vec<&String> = stops.take(MAX_STOPS).collect();
    if !stops.is_empty() {
        config.insert("stopSequences".to_owned(), json!(stops));
    }
    if let Some(effort) = options.effort(request) {
        config.insert(
            "thinkingConfig".to_owned(),
            thinking(effort, &request.model),
        );
    }
    config
}

/// Returns the budget for reasoning, which all generations accept. Models whose name contains `pro`
/// cannot be prevented from reasoning, so they get the lowest budget.
fn thinking(effort: Effort, model: &str) -> Value {
    let min = match model.contains("pro") {
        true => MIN_PRO_BUDGET,
        false => 0,
    };
    let budget = effort.max_tokens().max(min);
    json!({ "includeThoughts": effort > Effort::None, "thinkingBudget": budget })
}

#[cfg(test)]
mod tests {
    use base::prompt_role::PromptRole;
    use base::samplers::Samplers;
    use serde_json::json;

    use super::{Gemini, body, model_path};
    use crate::dialect::Dialect;
    use crate::provider_options::{ProviderOptions, ReasoningEffort};
    use crate::reasoning::effort::Effort;
    use crate::request::{Message, Request};

    #[test]
    fn a_prompt_is_contents_and_an_instruction() {
        let request = Request {
            messages: vec![
                Message::new(PromptRole::System, "Be Ada."),
                Message::new(PromptRole::User, "Hi.").with_name("Eve"),
                Message::new(PromptRole::Assistant, "Oh."),
                Message::new(PromptRole::User, "Well?"),
            ],
            ..Request::default()
        };

        assert_eq!(
            body(&request, &ProviderOptions::default()),
            json!({
                "systemInstruction": { "parts": [{ "text": "Be Ada." }] },
                "contents": [
                    { "role": "user", "parts": [{ "text": "Eve: Hi." }] },
                    { "role": "model", "parts": [{ "text": "Oh." }] },
                    { "role": "user", "parts": [{ "text": "Well?" }] },
                ],
            })
        );
    }

    #[test]
    fn settings_are_converted_and_clamped_to_the_limits_of_the_api() {
        let request = Request {
            temperature: Some(3.0),
            top_p: Some(0.9),
            max_tokens: Some(300),
            stop: ["a", "", "b", "c", "d", "e", "f"]
                .map(str::to_owned)
                .to_vec(),
            samplers: Samplers {
                top_k: Some(40),
                min_p: Some(0.1),
                frequency_penalty: Some(0.5),
                presence_penalty: Some(0.0),
                seed: Some(7),
                ..Samplers::default()
            },
            ..Request::default()
        };
        let options = ProviderOptions {
            reasoning: Some(ReasoningEffort::Low),
            ..ProviderOptions::default()
        };

        assert_eq!(
            body(&request, &options)["generationConfig"],
            json!({
                "temperature": 2.0,
                "topP": 0.9,
                "frequencyPenalty": 0.5,
                "topK": 40,
                "maxOutputTokens": 1_324,
                "seed": 7,
                "stopSequences": ["a", "b", "c", "d", "e"],
                "thinkingConfig": { "includeThoughts": true, "thinkingBudget": 1_024 },
            })
        );
    }

    #[test]
    fn the_effort_of_a_request_replaces_the_setting() {
        let options = ProviderOptions {
            reasoning: Some(ReasoningEffort::Low),
            ..ProviderOptions::default()
        };
        let sent = |model: &str, effort| {
            let request = Request {
                model: model.to_owned(),
                effort: Some(effort),
                ..Request::default()
            };
            body(&request, &options)["generationConfig"]["thinkingConfig"].clone()
        };
        let thinking = |has_thoughts: bool, budget: u32| json!({ "includeThoughts": has_thoughts, "thinkingBudget": budget });

        assert_eq!(
            sent("gemini-2.5-flash", Effort::High),
            thinking(true, 24_576)
        );
        assert_eq!(sent("gemini-2.5-flash", Effort::None), thinking(false, 0));
        assert_eq!(sent("gemini-2.5-pro", Effort::None), thinking(false, 128));
    }

    #[test]
    fn a_model_name_cannot_change_the_path() {
        for (name, path) in [
            ("gemini-2.5-pro", "models/gemini-2.5-pro"),
            ("models/gemini-2.5-pro", "models/gemini-2.5-pro"),
            ("tunedModels/my_own-1", "tunedModels/my_own-1"),
        ] {
            assert_eq!(model_path(name).as_deref(), Some(path), "{name}");
        }
        for name in [
            "",
            "..",
            "../files",
            "models/../files",
            "a?key=b",
            "a#b",
            "a b",
            "a:b",
            "/a",
            "a%2fb",
        ] {
            assert_eq!(model_path(name), None, "{name}");
        }
    }

    #[test]
    fn only_chat_models_are_listed() {
        let api = Gemini {
            options: ProviderOptions::default(),
        };
        let entry = |name: &str, methods: &[&str]| json!({ "name": name, "supportedGenerationMethods": methods });

        let talks = api.model_name(&entry(
            "models/gemini-3-pro",
            &["generateContent", "countTokens"],
        ));
        let embeds = api.model_name(&entry("models/embedding-001", &["embedContent"]));

        assert_eq!(talks.as_deref(), Some("gemini-3-pro"));
        assert_eq!(embeds, None);
    }

    #[test]
    fn a_pasted_base_url_is_normalized() {
        let api = Gemini {
            options: ProviderOptions::default(),
        };
        for path in [
            "",
            "/",
            "/v1beta",
            "/v1beta/",
            "/v1beta/models",
            "/v1beta/openai/",
        ] {
            assert_eq!(api.root_path(path), "/v1beta", "{path}");
        }
    }
}
