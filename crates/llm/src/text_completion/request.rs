//! Builds the JSON bodies of requests to the text completion APIs. Samplers without effect are not
//! sent.

use serde_json::{Map, Value, json};

use crate::compatibility::backend::ModelBackend;
use crate::openai_chat::samplers;
use crate::openai_chat::variant::ChatVariant;
use crate::provider_options::ProviderOptions;
use crate::request::Request;
use crate::text_completion::completion_api::CompletionApi;

/// Some servers with OpenAI's API reject more.
pub const MAX_OPENAI_STOPS: usize = 4;

/// Returns the body of a streaming request for `prompt`.
pub fn body(
    request: &Request,
    prompt: &str,
    api: CompletionApi,
    options: &ProviderOptions,
) -> Value {
    let body = match api {
        CompletionApi::Auto | CompletionApi::Openai => openai_body(request, prompt, options),
        CompletionApi::LlamaCpp => llama_cpp_body(request, prompt, options),
        CompletionApi::Koboldcpp => koboldcpp_body(request, prompt, options),
    };
    Value::Object(body)
}

fn openai_body(request: &Request, prompt: &str, options: &ProviderOptions) -> Map<String, Value> {
    let mut body = Map::new();
    insert(&mut body, "model", json!(request.model));
    insert(&mut body, "prompt", json!(prompt));
    insert(&mut body, "stream", json!(true));
    insert(
        &mut body,
        "stream_options",
        json!({ "include_usage": true }),
    );
    if let Some(max_tokens) = options.token_limit(request) {
        insert(&mut body, "max_tokens", json!(max_tokens));
    }
    insert_samplers(&mut body, request, options, options.backend);
    insert_stops(&mut body, "stop", request, MAX_OPENAI_STOPS);
    if !request.logit_bias.is_empty() {
        insert(&mut body, "logit_bias", json!(request.logit_bias));
    }
    body
}

fn llama_cpp_body(
    request: &Request,
    prompt: &str,
    options: &ProviderOptions,
) -> Map<String, Value> {
    let mut body = Map::new();
    insert(&mut body, "prompt", json!(prompt));
    insert(&mut body, "stream", json!(true));
    // The next prompt usually begins with this one.
    insert(&mut body, "cache_prompt", json!(true));
    if let Some(max_tokens) = options.token_limit(request) {
        insert(&mut body, "n_predict", json!(max_tokens));
    }
    insert_samplers(&mut body, request, options, ModelBackend::LlamaCpp);
    insert_stops(&mut body, "stop", request, usize::MAX);
    if !request.logit_bias.is_empty() {
        let pairs = request.logit_bias.iter();
        // Ids of tokens are numbers; anything else is a text.
        let id = |id: &str| id.parse::<i64>().map_or_else(|_| json!(id), |it| json!(it));
        let pairs: Vec<Value> = pairs
            .map(|(token, bias)| json!([id(token), bias]))
            .collect();
        insert(&mut body, "logit_bias", json!(pairs));
    }
    body
}

fn koboldcpp_body(
    request: &Request,
    prompt: &str,
    options: &ProviderOptions,
) -> Map<String, Value> {
    let mut body = Map::new();
    insert(&mut body, "prompt", json!(prompt));
    insert_integer(&mut body, "max_length", options.token_limit(request));
    insert_integer(&mut body, "max_context_length", request.context_tokens);
    insert_samplers(&mut body, request, options, ModelBackend::KoboldCpp);
    insert_stops(&mut body, "stop_sequence", request, usize::MAX);
    if !request.logit_bias.is_empty() {
        insert(&mut body, "logit_bias", json!(request.logit_bias));
    }
    body
}

fn insert(body: &mut Map<String, Value>, name: &str, value: Value) {
    body.insert(name.to_owned(), value);
}

fn insert_samplers(
    body: &mut Map<String, Value>,
    request: &Request,
    options: &ProviderOptions,
    backend: ModelBackend,
) {
    for (name, value) in [
        ("temperature", request.temperature),
        ("top_p", request.top_p),
    ] {
        if let Some(value) = value {
            insert(body, name, json!(value));
        }
    }
    let of = (ChatVariant::Compatible, backend);
    samplers::insert_samplers(body, &request.samplers, of, options.samplers.as_ref());
}

fn insert_integer(body: &mut Map<String, Value>, name: &str, value: Option<u32>) {
    if let Some(value) = value {
        insert(body, name, json!(value));
    }
}

fn insert_stops(body: &mut Map<String, Value>, name: &str, request: &Request, max: usize) {
    let stops = request.stop.iter().filter(|it| !it.is_empty()).take(max);
    let stops: Vec<&String> = stops.collect();
    if !stops.is_empty() {
        insert(body, name, json!(stops));
    }
}

#[cfg(test)]
mod tests {
    use base::samplers::Samplers;
    use serde_json::{Value, json};

    use super::body;
    use crate::provider_options::ProviderOptions;
    use crate::request::Request;
    use crate::text_completion::completion_api::CompletionApi;

    fn sent(request: &Request, api: CompletionApi) -> Value {
        body(request, "Once", api, &ProviderOptions::default())
    }

    fn full() -> Request {
        Request {
            model: "m".to_owned(),
            temperature: Some(0.7),
            top_p: Some(0.9),
            max_tokens: Some(9),
            context_tokens: Some(4096),
            stop: ["a", "", "b", "c", "d", "e"].map(str::to_owned).to_vec(),
            samplers: Samplers {
                top_k: Some(40),
                min_p: Some(0.05),
                top_a: Some(0.2),
                typical_p: Some(0.9),
                frequency_penalty: Some(0.5),
                presence_penalty: Some(0.25),
                repetition_penalty: Some(1.1),
                seed: Some(7),
                ..Samplers::default()
            },
            logit_bias: [("50".to_owned(), -1.0)].into(),
            ..Request::default()
        }
    }

    #[test]
    fn each_api_gets_its_own_names() {
        assert_eq!(
            sent(&full(), CompletionApi::LlamaCpp),
            json!({
                "prompt": "Once", "stream": true, "cache_prompt": true, "n_predict": 9,
                "temperature": 0.7, "top_p": 0.9, "min_p": 0.05, "typical_p": 0.9,
                "repeat_penalty": 1.1, "frequency_penalty": 0.5, "presence_penalty": 0.25,
                "top_k": 40, "seed": 7, "stop": ["a", "b", "c", "d", "e"], "logit_bias": [[50, -1.0]],
            })
        );
        assert_eq!(
            sent(&full(), CompletionApi::Koboldcpp),
            json!({
                "prompt": "Once", "max_length": 9, "max_context_length": 4096,
                "temperature": 0.7, "top_p": 0.9, "min_p": 0.05, "top_a": 0.2, "typical": 0.9,
                "rep_pen": 1.1, "presence_penalty": 0.25, "top_k": 40, "sampler_seed": 7,
                "stop_sequence": ["a", "b", "c", "d", "e"], "logit_bias": {"50": -1.0},
            })
        );
        let openai = sent(&full(), CompletionApi::Openai);
        assert_eq!(openai["stop"], json!(["a", "b", "c", "d"]));
        assert_eq!(
            (&openai["max_tokens"], &openai["prompt"]),
            (&json!(9), &json!("Once"))
        );
        assert!(openai.get("messages").is_none());
    }

    #[test]
    fn what_has_no_effect_is_not_sent() {
        let idle = Request {
            samplers: Samplers {
                top_k: Some(0),
                min_p: Some(0.0),
                top_a: Some(0.0),
                typical_p: Some(1.0),
                frequency_penalty: Some(0.0),
                presence_penalty: Some(0.0),
                repetition_penalty: Some(1.0),
                seed: None,
                ..Samplers::default()
            },
            ..Request::default()
        };

        assert_eq!(
            sent(&idle, CompletionApi::LlamaCpp),
            json!({ "prompt": "Once", "stream": true, "cache_prompt": true })
        );
        assert_eq!(
            sent(&idle, CompletionApi::Koboldcpp),
            json!({ "prompt": "Once" })
        );
        assert_eq!(
            sent(&idle, CompletionApi::Auto),
            json!({ "model": "", "prompt": "Once", "stream": true, "stream_options": {"include_usage": true} })
        );
    }
}
