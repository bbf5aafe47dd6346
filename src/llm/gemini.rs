//! Google's Gemini API, streamed as events.

use reqwest::header::HeaderName;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use crate::llm::dialect::Ask;
use crate::llm::dialect::Dialect;
use crate::llm::dialect::Reader;
use crate::llm::error::LlmError;
use crate::llm::gemini_chunk::Chunks;
use crate::llm::gemini_parts;
use crate::llm::provider::Ability;
use crate::llm::request::Request;
use crate::llm::secret::Secret;
use crate::llm::tuning::Tuning;
use crate::llm::turns::Turns;

/// The API refuses more.
const MAX_STOPS: usize = 5;

/// The API, with what its provider's settings say to it.
#[derive(Debug, Clone)]
pub struct Gemini {
    pub tuning: Tuning,
}

impl Dialect for Gemini {
    fn kind(&self) -> &'static str {
        "gemini"
    }

    fn root(&self, path: &str) -> String {
        let path = path.trim_end_matches('/');
        let path = path.strip_suffix("/openai").unwrap_or(path);
        match path.strip_suffix("/models").unwrap_or(path) {
            "" => "/v1beta".to_owned(),
            path => path.to_owned(),
        }
    }

    fn ask(&self, request: &Request) -> Result<Ask, LlmError> {
        let model = path_of(&request.model).ok_or_else(|| LlmError::Unusable {
            message: "The model's name holds characters that no model of Gemini has.".to_owned(),
        })?;
        Ok(Ask {
            path: format!("/{model}:streamGenerateContent"),
            query: Some("alt=sse"),
            body: body(request, &self.tuning),
        })
    }

    fn key(&self, key: &Secret) -> (HeaderName, String) {
        (
            HeaderName::from_static("x-goog-api-key"),
            key.expose().to_owned(),
        )
    }

    fn can(&self, ability: Ability) -> bool {
        // Its words for it are taken by a few of its models only.
        ability != Ability::Logprobs
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(Chunks::default())
    }

    fn list(&self) -> (&'static str, Option<&'static str>) {
        ("/models", Some("pageSize=1000"))
    }

    fn model(&self, entry: &Value) -> Option<String> {
        let methods = entry["supportedGenerationMethods"].as_array();
        let talks = methods.is_none_or(|all| all.iter().any(|it| it == "generateContent"));
        let name = entry["name"].as_str().filter(|_| talks)?;
        Some(name.strip_prefix("models/").unwrap_or(name).to_owned())
    }
}

/// Where a model answers: its name is a part of the address here, and must not be able to lead
/// elsewhere.
fn path_of(model: &str) -> Option<String> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    let model = match model.contains('/') {
        true => model.to_owned(),
        false => format!("models/{model}"),
    };
    let is_name = |it: &str| !matches!(it, "" | "." | "..") && it.chars().all(is_plain);
    model.split('/').all(is_name).then_some(model)
}

fn body(request: &Request, tuning: &Tuning) -> Value {
    let prompt = Turns::of(request);
    let turn = |it| gemini_parts::turn(it, &request.model);
    let contents: Vec<Value> = prompt.turns.iter().map(turn).collect();
    let mut body = json!({ "contents": contents });
    if !prompt.system.is_empty() {
        body["systemInstruction"] = json!({ "parts": [{ "text": prompt.system }] });
    }
    let mut config = config(&tuning.widened(request), tuning);
    config.extend(gemini_parts::format(&request.format));
    if !config.is_empty() {
        body["generationConfig"] = Value::Object(config);
    }
    gemini_parts::put_tools(&mut body, request);
    body
}

fn config(request: &Request, tuning: &Tuning) -> Map<String, Value> {
    let mut config = Map::new();
    let samplers = &request.samplers;
    // A penalty of zero is none; not every model knows them.
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
        ("maxOutputTokens", request.max_tokens),
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
    if let Some(effort) = tuning.reasoning {
        let tokens = effort.tokens();
        let thinking = json!({ "includeThoughts": tokens > 0, "thinkingBudget": tokens });
        config.insert("thinkingConfig".to_owned(), thinking);
    }
    config
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Gemini;
    use super::body;
    use super::path_of;
    use crate::llm::dialect::Dialect;
    use crate::llm::request::Message;
    use crate::llm::request::PromptRole;
    use crate::llm::request::Request;
    use crate::llm::request::Samplers;
    use crate::llm::tuning::Effort;
    use crate::llm::tuning::Tuning;

    #[test]
    fn a_prompt_is_contents_and_an_instruction() {
        let request = Request {
            messages: vec![
                Message::new(PromptRole::System, "Be Ada."),
                Message::new(PromptRole::User, "Hi.").named("Eve"),
                Message::new(PromptRole::Assistant, "Oh."),
                Message::new(PromptRole::User, "Well?"),
            ],
            ..Request::default()
        };

        assert_eq!(
            body(&request, &Tuning::default()),
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
    fn settings_are_sent_in_its_words_and_within_its_bounds() {
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
        let tuning = Tuning {
            reasoning: Some(Effort::Low),
            ..Tuning::default()
        };

        assert_eq!(
            body(&request, &tuning)["generationConfig"],
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
    fn a_models_name_leads_to_a_model_and_nowhere_else() {
        for (name, path) in [
            ("gemini-2.5-pro", "models/gemini-2.5-pro"),
            ("models/gemini-2.5-pro", "models/gemini-2.5-pro"),
            ("tunedModels/my_own-1", "tunedModels/my_own-1"),
        ] {
            assert_eq!(path_of(name).as_deref(), Some(path), "{name}");
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
            assert_eq!(path_of(name), None, "{name}");
        }
    }

    #[test]
    fn only_models_that_can_be_talked_to_are_listed() {
        let api = Gemini {
            tuning: Tuning::default(),
        };
        let entry = |name: &str, methods: &[&str]| json!({ "name": name, "supportedGenerationMethods": methods });

        let talks = api.model(&entry(
            "models/gemini-3-pro",
            &["generateContent", "countTokens"],
        ));
        let embeds = api.model(&entry("models/embedding-001", &["embedContent"]));

        assert_eq!(talks.as_deref(), Some("gemini-3-pro"));
        assert_eq!(embeds, None);
    }

    #[test]
    fn the_address_is_understood_however_it_was_pasted() {
        let api = Gemini {
            tuning: Tuning::default(),
        };
        for path in [
            "",
            "/",
            "/v1beta",
            "/v1beta/",
            "/v1beta/models",
            "/v1beta/openai/",
        ] {
            assert_eq!(api.root(path), "/v1beta", "{path}");
        }
    }
}
