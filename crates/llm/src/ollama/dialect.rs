//! Implements `Dialect` for Ollama's native API: paths, headers, capabilities, and the body of
//! streaming requests. Unlike Ollama's OpenAI-compatible API, this one accepts a context size,
//! without which Ollama would cut the beginning of a prompt that exceeds its default context.

use reqwest::header::{AUTHORIZATION, HeaderName};
use serde_json::{Map, Value, json};

use crate::dialect::{ChunkParser, Dialect, DialectRequest, Framing};
use crate::error::LlmError;
use crate::ollama::request_parts;
use crate::ollama::stream::OllamaLineParser;
use crate::openai_chat::result_files;
use crate::provider::Capability;
use crate::provider_options::ProviderOptions;
use crate::request::Request;
use crate::secret::Secret;

/// The API with the options of its provider.
#[derive(Debug, Clone)]
pub struct Ollama {
    pub options: ProviderOptions,
}

impl Dialect for Ollama {
    fn kind(&self) -> &'static str {
        "ollama"
    }

    fn root_path(&self, path: &str) -> String {
        let mut path = path.trim_end_matches('/');
        for end in ["/chat", "/tags", "/api", "/v1"] {
            path = path.strip_suffix(end).unwrap_or(path);
        }
        path.to_owned()
    }

    fn build_request(&self, request: &Request) -> Result<DialectRequest, LlmError> {
        Ok(DialectRequest {
            path: "/api/chat".to_owned(),
            query: None,
            body: body(request, &self.options),
        })
    }

    fn options(&self) -> &ProviderOptions {
        &self.options
    }

    fn auth_header(&self, key: &Secret) -> (HeaderName, String) {
        (AUTHORIZATION, format!("Bearer {}", key.expose()))
    }

    fn framing(&self) -> Framing {
        Framing::Lines
    }

    /// The API cannot force a tool call.
    fn has_capability(&self, capability: Capability) -> bool {
        matches!(
            capability,
            Capability::Json | Capability::Schema | Capability::Effort
        )
    }

    fn embeddings_path(&self) -> Option<&'static str> {
        Some("/v1/embeddings")
    }

    fn chunk_parser(&self) -> Box<dyn ChunkParser> {
        Box::new(OllamaLineParser::default())
    }

    fn model_list_path(&self) -> (&'static str, Option<&'static str>) {
        ("/api/tags", None)
    }
}

fn body(request: &Request, tuning: &ProviderOptions) -> Value {
    let messages = result_files::in_own_messages(&request.messages);
    let messages: Vec<Value> = messages
        .iter()
        .map(|it| request_parts::message(it))
        .collect();
    let mut body = json!({ "model": request.model, "messages": messages, "stream": true });
    let options = options(request, tuning);
    if !options.is_empty() {
        body["options"] = Value::Object(options);
    }
    if let Some(keep_alive) = &tuning.keep_alive {
        // A number means seconds; a string has a unit.
        let seconds = keep_alive.parse::<i64>().map(Value::from);
        body["keep_alive"] = seconds.unwrap_or_else(|_| json!(keep_alive));
    }
    if let Some(effort) = tuning.effort(request) {
        body["think"] = effort.as_level().map_or(json!(false), |it| json!(it));
    }
    request_parts::insert_tools_and_format(&mut body, request);
    body
}

fn options(request: &Request, tuning: &ProviderOptions) -> Map<String, Value> {
    let mut options = Map::new();
    let samplers = &request.samplers;
    for (option, value) in [
        ("num_ctx", request.context_tokens),
        ("num_predict", tuning.token_limit(request)),
        ("top_k", samplers.top_k),
        ("seed", samplers.seed),
    ] {
        if let Some(value) = value {
            options.insert(option.to_owned(), json!(value));
        }
    }
    for (option, value) in [
        ("temperature", request.temperature),
        ("top_p", request.top_p),
        ("min_p", samplers.min_p),
        ("typical_p", samplers.typical_p),
        ("repeat_penalty", samplers.repetition_penalty),
        ("frequency_penalty", samplers.frequency_penalty),
        ("presence_penalty", samplers.presence_penalty),
    ] {
        if let Some(value) = value {
            options.insert(option.to_owned(), json!(value));
        }
    }
    let stops = request.stop.iter().filter(|it| !it.is_empty());
    let stops: Vec<&String> = stops.collect();
    if !stops.is_empty() {
        options.insert("stop".to_owned(), json!(stops));
    }
    options
}

#[cfg(test)]
mod tests {
    use base::prompt_role::PromptRole;
    use base::samplers::Samplers;
    use serde_json::json;

    use super::{Ollama, body};
    use crate::dialect::Dialect;
    use crate::provider_options::{ProviderOptions, ReasoningEffort};
    use crate::request::{Message, Request};

    #[test]
    fn only_requested_settings_are_sent() {
        let request = Request {
            model: "m".to_owned(),
            messages: vec![Message::new(PromptRole::User, "Hi.").with_name("Eve")],
            ..Request::default()
        };

        assert_eq!(
            body(&request, &ProviderOptions::default()),
            json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": "Eve: Hi." }] })
        );
    }

    #[test]
    fn settings_are_converted_to_options() {
        let request = Request {
            temperature: Some(0.5),
            max_tokens: Some(300),
            context_tokens: Some(8_192),
            stop: vec!["Eve:".to_owned(), String::new()],
            samplers: Samplers {
                top_k: Some(40),
                repetition_penalty: Some(1.1),
                top_a: Some(0.2),
                seed: Some(7),
                ..Samplers::default()
            },
            ..Request::default()
        };
        let options = ProviderOptions {
            reasoning: Some(ReasoningEffort::Off),
            keep_alive: Some("-1".to_owned()),
            ..ProviderOptions::default()
        };

        let sent = body(&request, &options);

        assert_eq!(
            sent["options"],
            json!({
                "num_ctx": 8_192,
                "num_predict": 300,
                "top_k": 40,
                "seed": 7,
                "temperature": 0.5,
                "repeat_penalty": 1.1,
                "stop": ["Eve:"],
            })
        );
        assert_eq!(
            (&sent["think"], &sent["keep_alive"]),
            (&json!(false), &json!(-1))
        );
    }

    #[test]
    fn a_pasted_base_url_is_normalized() {
        let api = Ollama {
            options: ProviderOptions::default(),
        };
        for path in ["", "/", "/v1", "/v1/", "/api", "/api/chat", "/api/tags"] {
            assert_eq!(api.root_path(path), "", "{path}");
        }
        assert_eq!(api.root_path("/ollama/api"), "/ollama");
    }
}
