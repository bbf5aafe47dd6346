//! Detects, imports and exports SillyTavern's sampler presets for text completion. They contain no
//! prompts.

use serde_json::{Map, Value, json};

use crate::import_warning::ImportWarning;
use crate::presets::formats::field_reader::{FieldReader, is_blank, number};

/// The name of this format in `origin`.
pub const FORM: &str = "text_completion";

/// Their name, our name, minimum, maximum. Of two names for one value, the later wins.
const FRACTIONS: [(&str, &str, f64, f64); 11] = [
    ("temperature", "temperature", 0.0, 5.0),
    ("temp", "temperature", 0.0, 5.0),
    ("top_p", "top_p", 0.0, 1.0),
    ("min_p", "min_p", 0.0, 1.0),
    ("top_a", "top_a", 0.0, 1.0),
    ("typical", "typical_p", 0.0, 1.0),
    ("typical_p", "typical_p", 0.0, 1.0),
    ("repetition_penalty", "repetition_penalty", 0.1, 5.0),
    ("rep_pen", "repetition_penalty", 0.1, 5.0),
    ("freq_pen", "frequency_penalty", -2.0, 2.0),
    ("presence_pen", "presence_penalty", -2.0, 2.0),
];
const INTEGERS: [(&str, &str, i64, i64); 4] = [
    ("top_k", "top_k", 0, 100_000),
    ("seed", "seed", 0, 4_294_967_295),
    ("max_length", "context_tokens", 64, 10_000_000),
    ("genamt", "max_tokens", 1, 1_000_000),
];
/// Samplers that no provider here supports, and the value at which each has no effect.
const UNSUPPORTED: [(&str, f64); 10] = [
    ("tfs", 1.0),
    ("epsilon_cutoff", 0.0),
    ("eta_cutoff", 0.0),
    ("mirostat_mode", 0.0),
    ("smoothing_factor", 0.0),
    ("dry_multiplier", 0.0),
    ("xtc_probability", 0.0),
    ("penalty_alpha", 0.0),
    ("no_repeat_ngram_size", 0.0),
    ("nsigma", 0.0),
];

/// Returns whether this is a text-completion preset.
pub fn is_text_completion(fields: &Map<String, Value>) -> bool {
    let has = |name: &str| fields.contains_key(name);
    let has_temperature = has("temp") || has("temperature");
    has_temperature && (has("rep_pen") || has("repetition_penalty") || has("top_p"))
}

/// Reads the preset; returns its `origin`.
pub fn read(reading: &mut FieldReader) -> Value {
    reading.remove_secrets();
    for (field, key, least, most) in FRACTIONS {
        reading.copy_number(field, key, least, most);
    }
    for (field, key, least, most) in INTEGERS {
        reading.copy_integer(field, key, least, most);
    }
    let used = |fields: &Map<String, Value>, name: &str, unused: f64| {
        fields
            .get(name)
            .and_then(number)
            .is_some_and(|it| it != unused)
    };
    let mut idle: Vec<&str> = UNSUPPORTED
        .iter()
        .filter(|(name, idle)| used(&reading.fields, name, *idle))
        .map(|(name, _)| *name)
        .collect();
    let is_on = |name: &str| reading.fields.get(name) == Some(&json!(true));
    idle.extend(["dynatemp"].into_iter().filter(|it| is_on(it)));
    let says = |name: &str| reading.fields.get(name).is_some_and(|it| !is_blank(it));
    let texts = [
        "grammar_string",
        "negative_prompt",
        "banned_tokens",
        "logit_bias",
    ];
    idle.extend(texts.into_iter().filter(|it| says(it)));
    if !idle.is_empty() {
        let idle = idle.join(", ");
        let sentence = format!(
            "No provider here supports these samplers; they are kept, but not used: {idle}."
        );
        reading.warn(ImportWarning::new("samplers_unused", sentence).with("names", idle));
    }
    json!({"form": FORM, "fields": std::mem::take(&mut reading.fields)})
}

/// Returns the samplers as a text-completion file.
pub fn write(document: &Value, origin: Option<&Value>) -> Value {
    let origin = origin.filter(|it| it["form"] == FORM);
    let fields = origin.and_then(|it| it["fields"].as_object());
    let mut file = fields.cloned().unwrap_or_default();
    for (ours, theirs) in [
        ("temperature", "temp"),
        ("top_p", "top_p"),
        ("top_k", "top_k"),
        ("min_p", "min_p"),
        ("top_a", "top_a"),
        ("typical_p", "typical_p"),
        ("repetition_penalty", "rep_pen"),
        ("frequency_penalty", "freq_pen"),
        ("presence_penalty", "presence_pen"),
        ("seed", "seed"),
        ("context_tokens", "max_length"),
        ("max_tokens", "genamt"),
    ] {
        if let Some(value) = document.get(ours).filter(|it| !it.is_null()) {
            file.insert(theirs.to_owned(), value.clone());
        }
    }
    Value::Object(file)
}
