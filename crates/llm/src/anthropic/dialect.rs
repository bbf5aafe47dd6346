//! Implements `Dialect` for Anthropic's Messages API: paths, headers, capabilities, and the body of
//! streaming requests.

use reqwest::header::HeaderName;
use serde_json::{Map, Value, json};

use crate::anthropic::events::AnthropicEventParser;
use crate::anthropic::thinking::ThinkingPlan;
use crate::anthropic::{cache_marks, request_parts, thinking};
use crate::dialect::{ChunkParser, Dialect, DialectRequest};
use crate::error::LlmError;
use crate::provider::Capability;
use crate::provider_options::{Prefill, ProviderOptions};
use crate::request::Request;
use crate::role_alternation::AlternatingMessages;
use crate::secret::Secret;
use crate::tool::OutputFormat;

/// The API version that this module implements.
const VERSION: &str = "2023-06-01";

/// The API with the options of its provider.
#[derive(Debug, Clone)]
pub struct Anthropic {
    pub options: ProviderOptions,
}

impl Dialect for Anthropic {
    fn kind(&self) -> &'static str {
        "anthropic"
    }

    fn root_path(&self, path: &str) -> String {
        let path = path.trim_end_matches('/');
        let path = path.strip_suffix("/messages").unwrap_or(path);
        match path {
            "" => "/v1".to_owned(),
            path => path.to_owned(),
        }
    }

    fn build_request(&self, request: &Request) -> Result<DialectRequest, LlmError> {
        Ok(DialectRequest {
            path: "/messages".to_owned(),
            query: None,
            body: body(request, &self.options),
        })
    }

    fn options(&self) -> &ProviderOptions {
        &self.options
    }

    fn auth_header(&self, key: &Secret) -> (HeaderName, String) {
        (
            HeaderName::from_static("x-api-key"),
            key.expose().to_owned(),
        )
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", VERSION)]
    }

    fn min_output_tokens(&self, request: &Request) -> u32 {
        thinking::min_output_tokens(request)
    }

    fn can_prefill(&self, request: &Request) -> bool {
        let is_text = request.format == OutputFormat::Text;
        let is_off = self.options.prefill == Prefill::Off;
        is_text
            && !is_off
            && !self.options.reasons(request)
            && thinking::accepts_prefill(&request.model)
    }

    /// The API has no JSON mode without a schema.
    fn has_capability(&self, capability: Capability) -> bool {
        !matches!(capability, Capability::Json | Capability::Logprobs)
    }

    fn chunk_parser(&self) -> Box<dyn ChunkParser> {
        Box::new(AnthropicEventParser::default())
    }

    fn model_list_path(&self) -> (&'static str, Option<&'static str>) {
        ("/models", Some("limit=1000"))
    }
}

fn body(request: &Request, options: &ProviderOptions) -> Value {
    let mut prompt = AlternatingMessages::from_messages(request);
    prompt.trim_prefill();
    let thinking = ThinkingPlan::new(request, options, &prompt);
    let mut body = Map::new();
    let mut put = |field: &str, value: Value| body.insert(field.to_owned(), value);
    put("model", json!(request.model));
    put("max_tokens", json!(thinking.max_tokens));
    put("stream", json!(true));
    if !prompt.system.is_empty() {
        put("system", cache_marks::system(&prompt.system));
    }
    put("messages", cache_marks::messages(&prompt.groups));
    // The API rejects stop sequences that consist of white space.
    let stops = request.stop.iter().filter(|it| !it.trim().is_empty());
    let stops: Vec<&String> = stops.collect();
    if !stops.is_empty() {
        put("stop_sequences", json!(stops));
    }
    let mut output = request_parts::format(&request.format);
    if let Some(field) = thinking.field {
        put("thinking", field);
    } else {
        // With thinking enabled, the API rejects samplers.
        body.extend(samplers(request));
    }
    if let Some(level) = thinking.level {
        output.insert("effort".to_owned(), json!(level));
    }
    if !output.is_empty() {
        body.insert("output_config".to_owned(), Value::Object(output));
    }
    request_parts::insert_tools(&mut body, request, &prompt);
    Value::Object(body)
}

/// Returns the samplers that have an effect. Neutral values are left out, because newer models
/// reject samplers; the API accepts only one of temperature and `top_p`.
fn samplers(request: &Request) -> Map<String, Value> {
    let mut samplers = Map::new();
    #[expect(clippy::float_cmp, reason = "exactly 1 means no effect")]
    let counts = |it: &f64| *it != 1.0;
    let temperature = request.temperature.map(|it| it.clamp(0.0, 1.0));
    if let Some(temperature) = temperature.filter(counts) {
        samplers.insert("temperature".to_owned(), json!(temperature));
    } else if let Some(top_p) = request.top_p.filter(counts) {
        samplers.insert("top_p".to_owned(), json!(top_p));
    }
    if let Some(top_k) = request.samplers.top_k.filter(|it| *it > 0) {
        samplers.insert("top_k".to_owned(), json!(top_k));
    }
    samplers
}

#[cfg(test)]
mod tests {
    use base::prompt_role::PromptRole;
    use base::samplers::Samplers;
    use serde_json::json;

    use super::{Anthropic, body};
    use crate::dialect::Dialect;
    use crate::provider_options::{ProviderOptions, ReasoningEffort};
    use crate::request::{Message, Request};
    use crate::tool::{Tool, ToolChoice};

    fn request() -> Request {
        Request {
            model: "m".to_owned(),
            messages: vec![
                Message::new(PromptRole::System, "Be Ada."),
                Message::new(PromptRole::User, "Hi.").with_name("Eve"),
            ],
            ..Request::default()
        }
    }

    #[test]
    fn the_beginning_of_a_response_is_possible_without_reasoning() {
        let api = |reasoning| Anthropic {
            options: ProviderOptions {
                reasoning,
                ..ProviderOptions::default()
            },
        };
        let request = Request {
            model: "claude-sonnet-4-5".to_owned(),
            ..request()
        };

        assert!(api(None).can_prefill(&request));
        assert!(!api(Some(ReasoningEffort::Low)).can_prefill(&request));
    }

    #[test]
    fn only_requested_settings_and_the_length_limit_are_sent() {
        assert_eq!(
            body(&request(), &ProviderOptions::default()),
            json!({
                "model": "m",
                "max_tokens": 4_096,
                "stream": true,
                "system": [{ "type": "text", "text": "Be Ada.", "cache_control": { "type": "ephemeral" } }],
                "messages": [{ "role": "user", "content": "Eve: Hi." }],
            })
        );
    }

    #[test]
    fn only_supported_samplers_with_an_effect_are_sent() {
        let request = Request {
            temperature: Some(1.4),
            top_p: Some(1.0),
            max_tokens: Some(300),
            stop: vec!["\n".to_owned(), "Eve:".to_owned()],
            samplers: Samplers {
                top_k: Some(40),
                min_p: Some(0.1),
                ..Samplers::default()
            },
            ..request()
        };
        let sent = body(&request, &ProviderOptions::default());

        assert_eq!(sent["max_tokens"], 300);
        assert_eq!(sent["stop_sequences"], json!(["Eve:"]));
        assert_eq!(sent["top_k"], 40);
        assert!(sent.get("temperature").is_none(), "1 is the default");
        assert!(sent.get("min_p").is_none() && sent.get("top_p").is_none());

        let cooler = Request {
            temperature: Some(0.5),
            top_p: Some(0.9),
            ..request
        };
        let sent = body(&cooler, &ProviderOptions::default());
        assert_eq!(
            (&sent["temperature"], sent.get("top_p")),
            (&json!(0.5), None)
        );
    }

    #[test]
    fn reasoning_raises_the_length_limit_and_drops_samplers() {
        let options = ProviderOptions {
            reasoning: Some(ReasoningEffort::Low),
            ..ProviderOptions::default()
        };
        let request = Request {
            temperature: Some(0.5),
            max_tokens: Some(300),
            ..request()
        };

        let sent = body(&request, &options);

        assert_eq!(sent["max_tokens"], 1_324);
        assert_eq!(sent["thinking"]["type"], "adaptive");
        assert_eq!(sent["output_config"], json!({ "effort": "low" }));
        assert!(sent.get("temperature").is_none());
    }

    #[test]
    fn a_required_tool_call_disables_reasoning() {
        let options = ProviderOptions {
            reasoning: Some(ReasoningEffort::Low),
            ..ProviderOptions::default()
        };
        let request = Request {
            tools: vec![Tool {
                name: "f".to_owned(),
                description: None,
                parameters: json!({ "type": "object" }),
                strict: None,
            }],
            tool_choice: ToolChoice::Required,
            ..request()
        };

        let sent = body(&request, &options);

        assert!(sent.get("thinking").is_none() && sent.get("output_config").is_none());
        assert_eq!(sent["tool_choice"], json!({ "type": "any" }));
    }

    #[test]
    fn a_pasted_base_url_is_normalized() {
        let api = Anthropic {
            options: ProviderOptions::default(),
        };
        for path in ["", "/", "/v1", "/v1/", "/v1/messages"] {
            assert_eq!(api.root_path(path), "/v1", "{path}");
        }
        assert_eq!(api.root_path("/anthropic/v1"), "/anthropic/v1");
    }
}
