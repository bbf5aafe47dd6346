//! Adds to the requests of the Chat Completions API the samplers that the backend knows, under its
//! names.
//!
//! OpenAI's own API rejects unknown fields. A compatible server of an unknown kind gets the
//! widespread samplers, and mostly ignores those that it does not know. A sampler without effect is
//! never sent, so that a server that lacks it cannot reject it.

use std::collections::BTreeSet;

use base::samplers::Samplers;
use serde_json::{Map, Value, json};

use crate::compatibility::backend::ModelBackend;
use crate::openai_chat::variant::ChatVariant;

/// The name of a sampler in presets, and its name in requests to one backend.
type Names = &'static [(&'static str, &'static str)];

const OPENAI: Names = &[
    ("frequency_penalty", "frequency_penalty"),
    ("presence_penalty", "presence_penalty"),
    ("seed", "seed"),
];
const OTHER: Names = &[
    ("top_k", "top_k"),
    ("min_p", "min_p"),
    ("top_a", "top_a"),
    ("typical_p", "typical_p"),
    ("repetition_penalty", "repetition_penalty"),
    // llama.cpp's name, for servers that are built on it.
    ("repetition_penalty", "repeat_penalty"),
    ("frequency_penalty", "frequency_penalty"),
    ("presence_penalty", "presence_penalty"),
    ("seed", "seed"),
];
/// The samplers that have the same names in llama.cpp and in KoboldCpp, which is based on it.
const LLAMA_FAMILY: Names = &[
    ("dry_multiplier", "dry_multiplier"),
    ("dry_base", "dry_base"),
    ("dry_allowed_length", "dry_allowed_length"),
    ("dry_penalty_last_n", "dry_penalty_last_n"),
    ("dry_sequence_breakers", "dry_sequence_breakers"),
    ("xtc_threshold", "xtc_threshold"),
    ("xtc_probability", "xtc_probability"),
    ("mirostat_mode", "mirostat"),
    ("mirostat_tau", "mirostat_tau"),
    ("mirostat_eta", "mirostat_eta"),
    ("dynatemp_range", "dynatemp_range"),
    ("dynatemp_exponent", "dynatemp_exponent"),
];
const LLAMA_CPP: Names = &[
    ("top_k", "top_k"),
    ("min_p", "min_p"),
    ("typical_p", "typical_p"),
    ("repetition_penalty", "repeat_penalty"),
    ("repetition_range", "repeat_last_n"),
    ("frequency_penalty", "frequency_penalty"),
    ("presence_penalty", "presence_penalty"),
    ("top_n_sigma", "top_n_sigma"),
    ("grammar", "grammar"),
    ("seed", "seed"),
];
const KOBOLD_CPP: Names = &[
    ("top_k", "top_k"),
    ("min_p", "min_p"),
    ("top_a", "top_a"),
    ("tfs", "tfs"),
    ("typical_p", "typical"),
    ("repetition_penalty", "rep_pen"),
    ("repetition_range", "rep_pen_range"),
    ("repetition_slope", "rep_pen_slope"),
    ("presence_penalty", "presence_penalty"),
    ("smoothing_factor", "smoothing_factor"),
    ("top_n_sigma", "nsigma"),
    ("banned_strings", "banned_tokens"),
    ("grammar", "grammar"),
    ("seed", "sampler_seed"),
];
const VLLM: Names = &[
    ("top_k", "top_k"),
    ("min_p", "min_p"),
    ("repetition_penalty", "repetition_penalty"),
    ("frequency_penalty", "frequency_penalty"),
    ("presence_penalty", "presence_penalty"),
    ("banned_strings", "bad_words"),
    ("grammar", "guided_grammar"),
    ("seed", "seed"),
];
const TABBY_API: Names = &[
    ("top_k", "top_k"),
    ("min_p", "min_p"),
    ("top_a", "top_a"),
    ("tfs", "tfs"),
    ("typical_p", "typical"),
    ("repetition_penalty", "repetition_penalty"),
    ("repetition_range", "penalty_range"),
    ("frequency_penalty", "frequency_penalty"),
    ("presence_penalty", "presence_penalty"),
    ("dry_multiplier", "dry_multiplier"),
    ("dry_base", "dry_base"),
    ("dry_allowed_length", "dry_allowed_length"),
    ("dry_penalty_last_n", "dry_range"),
    ("dry_sequence_breakers", "dry_sequence_breakers"),
    ("xtc_threshold", "xtc_threshold"),
    ("xtc_probability", "xtc_probability"),
    ("mirostat_mode", "mirostat_mode"),
    ("mirostat_tau", "mirostat_tau"),
    ("mirostat_eta", "mirostat_eta"),
    ("smoothing_factor", "smoothing_factor"),
    ("banned_strings", "banned_strings"),
    ("grammar", "grammar_string"),
];
const OPEN_ROUTER: Names = &[
    ("top_k", "top_k"),
    ("min_p", "min_p"),
    ("top_a", "top_a"),
    ("repetition_penalty", "repetition_penalty"),
    ("frequency_penalty", "frequency_penalty"),
    ("presence_penalty", "presence_penalty"),
    ("seed", "seed"),
];
const MISTRAL: Names = &[
    ("frequency_penalty", "frequency_penalty"),
    ("presence_penalty", "presence_penalty"),
    ("seed", "random_seed"),
];
/// All tables, to find the samplers of a list that an admin has written.
const ALL: [Names; 9] = [
    OPENAI,
    OTHER,
    LLAMA_FAMILY,
    LLAMA_CPP,
    KOBOLD_CPP,
    VLLM,
    TABBY_API,
    OPEN_ROUTER,
    MISTRAL,
];

/// Adds the samplers that this variant of the API and the backend support, or only those that an admin
/// has listed by their names in requests.
pub fn insert_samplers(
    body: &mut Map<String, Value>,
    samplers: &Samplers,
    (variant, backend): (ChatVariant, ModelBackend),
    listed: Option<&BTreeSet<String>>,
) {
    let tables: &[Names] = match (listed, variant) {
        (Some(_), _) => &ALL[..],
        (None, ChatVariant::Openai) => &[OPENAI],
        (None, ChatVariant::Compatible) => match backend {
            ModelBackend::LlamaCpp => &[LLAMA_FAMILY, LLAMA_CPP],
            ModelBackend::KoboldCpp => &[LLAMA_FAMILY, KOBOLD_CPP],
            ModelBackend::Vllm => &[VLLM],
            ModelBackend::TabbyApi => &[TABBY_API],
            ModelBackend::OpenRouter => &[OPEN_ROUTER],
            ModelBackend::Mistral => &[MISTRAL],
            ModelBackend::Other => &[OTHER],
        },
    };
    let stated = stated(samplers);
    for (key, name) in tables.iter().copied().flatten() {
        if let Some(value) = stated.get(*key) {
            body.insert((*name).to_owned(), value.clone());
        }
    }
    if let Some(listed) = listed {
        let is_sampler = |name: &str| {
            let mut names = ALL.iter().copied().flatten();
            matches!(name, "temperature" | "top_p") || names.any(|(_, it)| *it == name)
        };
        body.retain(|name, _| !is_sampler(name) || listed.contains(name));
    }
}

/// Returns the samplers that have an effect, by their names in presets.
fn stated(samplers: &Samplers) -> Map<String, Value> {
    let mut stated = Map::new();
    let mut insert = |key: &str, value: Value| stated.insert(key.to_owned(), value);
    for (key, value, idle) in [
        ("min_p", samplers.min_p, 0.0),
        ("top_a", samplers.top_a, 0.0),
        ("typical_p", samplers.typical_p, 1.0),
        ("frequency_penalty", samplers.frequency_penalty, 0.0),
        ("presence_penalty", samplers.presence_penalty, 0.0),
        ("tfs", samplers.tfs, 1.0),
        ("smoothing_factor", samplers.smoothing_factor, 0.0),
        ("top_n_sigma", samplers.top_n_sigma, 0.0),
    ] {
        if let Some(value) = value.filter(|it| *it != idle) {
            insert(key, json!(value));
        }
    }
    if let Some(top_k) = samplers.top_k.filter(|it| *it > 0) {
        insert("top_k", json!(top_k));
    }
    if let Some(seed) = samplers.seed {
        insert("seed", json!(seed));
    }
    let Samplers {
        banned_strings,
        grammar,
        ..
    } = samplers;
    if let Some(texts) = banned_strings.as_ref().filter(|it| !it.is_empty()) {
        insert("banned_strings", json!(texts));
    }
    if let Some(grammar) = grammar.as_ref().filter(|it| !it.trim().is_empty()) {
        insert("grammar", json!(grammar));
    }
    for group in groups(samplers) {
        let present = group.into_iter().filter(|(_, it)| !it.is_null());
        stated.extend(present.map(|(key, value)| (key.to_owned(), value)));
    }
    stated
}

/// Returns the samplers that belong together and are on.
fn groups(samplers: &Samplers) -> Vec<Vec<(&'static str, Value)>> {
    let is_on = |switch: Option<f64>, idle: f64| switch.is_some_and(|it| it != idle);
    let mut groups = Vec::new();
    if is_on(samplers.repetition_penalty, 1.0) {
        groups.push(vec![
            ("repetition_penalty", json!(samplers.repetition_penalty)),
            ("repetition_range", json!(samplers.repetition_range)),
            ("repetition_slope", json!(samplers.repetition_slope)),
        ]);
    }
    if is_on(samplers.dry_multiplier, 0.0) {
        groups.push(vec![
            ("dry_multiplier", json!(samplers.dry_multiplier)),
            ("dry_base", json!(samplers.dry_base)),
            ("dry_allowed_length", json!(samplers.dry_allowed_length)),
            ("dry_penalty_last_n", json!(samplers.dry_penalty_last_n)),
            (
                "dry_sequence_breakers",
                json!(samplers.dry_sequence_breakers),
            ),
        ]);
    }
    if is_on(samplers.xtc_probability, 0.0) {
        groups.push(vec![
            ("xtc_probability", json!(samplers.xtc_probability)),
            ("xtc_threshold", json!(samplers.xtc_threshold)),
        ]);
    }
    if samplers.mirostat_mode.is_some_and(|it| it != 0) {
        groups.push(vec![
            ("mirostat_mode", json!(samplers.mirostat_mode)),
            ("mirostat_tau", json!(samplers.mirostat_tau)),
            ("mirostat_eta", json!(samplers.mirostat_eta)),
        ]);
    }
    if is_on(samplers.dynatemp_range, 0.0) {
        groups.push(vec![
            ("dynatemp_range", json!(samplers.dynatemp_range)),
            ("dynatemp_exponent", json!(samplers.dynatemp_exponent)),
        ]);
    }
    groups
}

#[cfg(test)]
#[path = "samplers_tests.rs"]
mod tests;
