//! Adds to the requests of the Chat Completions API the samplers that only some models support.
//!
//! OpenAI's own API rejects unknown fields. Compatible servers, which serve many kinds of models,
//! support most of the samplers and ignore the rest. Neutral values are never sent, so that a
//! server without the sampler cannot reject them.

use base::samplers::Samplers;
use serde_json::{Map, Value, json};

use crate::openai_chat::variant::ChatVariant;

/// Adds the samplers that this variant of the API supports.
pub fn insert_samplers(body: &mut Map<String, Value>, samplers: &Samplers, variant: ChatVariant) {
    let mut number = |name: &str, value: Option<f64>, nothing: f64| {
        if let Some(value) = value.filter(|it| *it != nothing) {
            body.insert(name.to_owned(), json!(value));
        }
    };
    number("frequency_penalty", samplers.frequency_penalty, 0.0);
    number("presence_penalty", samplers.presence_penalty, 0.0);
    if variant == ChatVariant::Compatible {
        number("min_p", samplers.min_p, 0.0);
        number("top_a", samplers.top_a, 0.0);
        number("typical_p", samplers.typical_p, 1.0);
        number("repetition_penalty", samplers.repetition_penalty, 1.0);
        // llama.cpp uses another name for the same sampler.
        number("repeat_penalty", samplers.repetition_penalty, 1.0);
        if let Some(top_k) = samplers.top_k.filter(|it| *it > 0) {
            body.insert("top_k".to_owned(), json!(top_k));
        }
    }
    if let Some(seed) = samplers.seed {
        body.insert("seed".to_owned(), json!(seed));
    }
}

#[cfg(test)]
mod tests {
    use base::samplers::Samplers;
    use serde_json::{Map, Value, json};

    use super::insert_samplers;
    use crate::openai_chat::variant::ChatVariant;

    fn all() -> Samplers {
        Samplers {
            top_k: Some(40),
            min_p: Some(0.05),
            top_a: Some(0.2),
            typical_p: Some(0.9),
            frequency_penalty: Some(-0.5),
            presence_penalty: Some(0.25),
            repetition_penalty: Some(1.1),
            seed: Some(7),
        }
    }

    fn sent(samplers: &Samplers, flavor: ChatVariant) -> Value {
        let mut body = Map::new();
        insert_samplers(&mut body, samplers, flavor);
        Value::Object(body)
    }

    #[test]
    fn openai_gets_only_supported_samplers() {
        let expected = json!({"frequency_penalty": -0.5, "presence_penalty": 0.25, "seed": 7});

        assert_eq!(sent(&all(), ChatVariant::Openai), expected);
    }

    #[test]
    fn compatible_endpoints_get_all_samplers() {
        let expected = json!({
            "frequency_penalty": -0.5, "presence_penalty": 0.25, "min_p": 0.05, "top_a": 0.2,
            "typical_p": 0.9, "repetition_penalty": 1.1, "repeat_penalty": 1.1, "top_k": 40, "seed": 7,
        });

        assert_eq!(sent(&all(), ChatVariant::Compatible), expected);
    }

    #[test]
    fn a_sampler_without_effect_is_not_sent() {
        let idle = Samplers {
            top_k: Some(0),
            min_p: Some(0.0),
            top_a: Some(0.0),
            typical_p: Some(1.0),
            frequency_penalty: Some(0.0),
            presence_penalty: Some(0.0),
            repetition_penalty: Some(1.0),
            seed: None,
        };

        for flavor in [ChatVariant::Openai, ChatVariant::Compatible] {
            assert_eq!(sent(&idle, flavor), json!({}));
            assert_eq!(sent(&Samplers::default(), flavor), json!({}));
        }
    }
}
