//! Tests of the samplers that each backend gets.

use std::collections::BTreeSet;

use base::samplers::Samplers;
use serde_json::{Map, Value, json};

use super::insert_samplers;
use crate::compatibility::backend::ModelBackend;
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
        repetition_range: Some(512),
        tfs: Some(0.9),
        dry_multiplier: Some(0.8),
        dry_base: Some(1.75),
        xtc_probability: Some(0.5),
        xtc_threshold: Some(0.1),
        mirostat_mode: Some(2),
        mirostat_tau: Some(5.0),
        dynatemp_range: Some(0.5),
        smoothing_factor: Some(0.3),
        top_n_sigma: Some(1.0),
        banned_strings: Some(vec!["shivers".to_owned()]),
        grammar: Some("root ::= \"a\"".to_owned()),
        ..Samplers::default()
    }
}

fn sent(samplers: &Samplers, variant: ChatVariant, backend: ModelBackend) -> Value {
    let mut body = Map::new();
    insert_samplers(&mut body, samplers, (variant, backend), None);
    Value::Object(body)
}

#[test]
fn openai_gets_only_supported_samplers() {
    let expected = json!({"frequency_penalty": -0.5, "presence_penalty": 0.25, "seed": 7});

    let sent = sent(&all(), ChatVariant::Openai, ModelBackend::Other);

    assert_eq!(sent, expected);
}

#[test]
fn each_backend_gets_its_samplers_under_its_names() {
    let local = json!({
        "top_k": 40, "min_p": 0.05, "dry_multiplier": 0.8, "dry_base": 1.75,
        "xtc_probability": 0.5, "xtc_threshold": 0.1, "mirostat_tau": 5.0, "presence_penalty": 0.25,
    });
    for (backend, of_local, own) in [
        (
            ModelBackend::Other,
            false,
            json!({
                "frequency_penalty": -0.5, "presence_penalty": 0.25, "min_p": 0.05, "top_a": 0.2,
                "typical_p": 0.9, "repetition_penalty": 1.1, "repeat_penalty": 1.1, "top_k": 40,
                "seed": 7,
            }),
        ),
        (
            ModelBackend::LlamaCpp,
            true,
            json!({
                "typical_p": 0.9, "repeat_penalty": 1.1, "repeat_last_n": 512, "mirostat": 2,
                "frequency_penalty": -0.5, "dynatemp_range": 0.5, "top_n_sigma": 1.0,
                "grammar": "root ::= \"a\"", "seed": 7,
            }),
        ),
        (
            ModelBackend::KoboldCpp,
            true,
            json!({
                "top_a": 0.2, "tfs": 0.9, "typical": 0.9, "rep_pen": 1.1, "rep_pen_range": 512,
                "mirostat": 2, "dynatemp_range": 0.5, "smoothing_factor": 0.3, "nsigma": 1.0,
                "banned_tokens": ["shivers"], "grammar": "root ::= \"a\"", "sampler_seed": 7,
            }),
        ),
        (
            ModelBackend::TabbyApi,
            true,
            json!({
                "top_a": 0.2, "tfs": 0.9, "typical": 0.9, "repetition_penalty": 1.1,
                "penalty_range": 512, "frequency_penalty": -0.5, "mirostat_mode": 2,
                "smoothing_factor": 0.3, "banned_strings": ["shivers"],
                "grammar_string": "root ::= \"a\"",
            }),
        ),
        (
            ModelBackend::Vllm,
            false,
            json!({
                "top_k": 40, "min_p": 0.05, "repetition_penalty": 1.1, "frequency_penalty": -0.5,
                "presence_penalty": 0.25, "bad_words": ["shivers"],
                "guided_grammar": "root ::= \"a\"", "seed": 7,
            }),
        ),
        (
            ModelBackend::OpenRouter,
            false,
            json!({
                "top_k": 40, "min_p": 0.05, "top_a": 0.2, "repetition_penalty": 1.1,
                "frequency_penalty": -0.5, "presence_penalty": 0.25, "seed": 7,
            }),
        ),
        (
            ModelBackend::Mistral,
            false,
            json!({"frequency_penalty": -0.5, "presence_penalty": 0.25, "random_seed": 7}),
        ),
    ] {
        let mut expected = match of_local {
            true => local.as_object().cloned().unwrap(),
            false => Map::new(),
        };
        expected.extend(own.as_object().cloned().unwrap());

        let sent = sent(&all(), ChatVariant::Compatible, backend);

        assert_eq!(sent, Value::Object(expected), "{backend:?}");
    }
}

#[test]
fn only_listed_samplers_are_sent_if_an_admin_lists_them() {
    let listed = BTreeSet::from(["rep_pen", "top_p", "dry_base"].map(str::to_owned));
    let mut body = Map::from_iter([
        ("temperature".to_owned(), json!(0.7)),
        ("top_p".to_owned(), json!(0.9)),
        ("model".to_owned(), json!("m")),
    ]);

    let of = (ChatVariant::Compatible, ModelBackend::Other);
    insert_samplers(&mut body, &all(), of, Some(&listed));

    let expected = json!({"top_p": 0.9, "model": "m", "rep_pen": 1.1, "dry_base": 1.75});
    assert_eq!(Value::Object(body), expected);
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
        repetition_range: Some(512),
        tfs: Some(1.0),
        dry_multiplier: Some(0.0),
        dry_base: Some(1.75),
        xtc_probability: Some(0.0),
        xtc_threshold: Some(0.1),
        mirostat_mode: Some(0),
        mirostat_tau: Some(5.0),
        dynatemp_range: Some(0.0),
        smoothing_factor: Some(0.0),
        top_n_sigma: Some(0.0),
        banned_strings: Some(Vec::new()),
        grammar: Some(" ".to_owned()),
        ..Samplers::default()
    };

    for backend in [
        ModelBackend::Other,
        ModelBackend::LlamaCpp,
        ModelBackend::KoboldCpp,
    ] {
        let compatible = ChatVariant::Compatible;
        assert_eq!(sent(&idle, compatible, backend), json!({}));
        assert_eq!(sent(&Samplers::default(), compatible, backend), json!({}));
    }
    assert_eq!(
        sent(&idle, ChatVariant::Openai, ModelBackend::Other),
        json!({})
    );
}
