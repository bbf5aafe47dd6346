//! Imports and exports SillyTavern's sampler presets for text completion, KoboldAI and NovelAI. They
//! contain no prompts.

use serde_json::{Map, Value, json};

use crate::import_warning::ImportWarning;
use crate::presets::formats::field_reader::{FieldReader, boolean, is_blank, number};

/// The name of this format in `origin`.
pub const FORM: &str = "text_completion";

/// Their name, our name, minimum, maximum. If a file has two names for one value, the later in this list
/// wins. The first is used in exports.
const FRACTIONS: [(&str, &str, f64, f64); 27] = [
    ("temp", "temperature", 0.0, 5.0),
    ("temperature", "temperature", 0.0, 5.0),
    ("top_p", "top_p", 0.0, 1.0),
    ("min_p", "min_p", 0.0, 1.0),
    ("top_a", "top_a", 0.0, 1.0),
    ("typical_p", "typical_p", 0.0, 1.0),
    ("typical", "typical_p", 0.0, 1.0),
    ("rep_pen", "repetition_penalty", 0.1, 5.0),
    ("repetition_penalty", "repetition_penalty", 0.1, 5.0),
    ("rep_pen_slope", "repetition_slope", 0.0, 10.0),
    ("repetition_penalty_slope", "repetition_slope", 0.0, 10.0),
    ("freq_pen", "frequency_penalty", -2.0, 2.0),
    (
        "repetition_penalty_frequency",
        "frequency_penalty",
        -2.0,
        2.0,
    ),
    ("presence_pen", "presence_penalty", -2.0, 2.0),
    ("repetition_penalty_presence", "presence_penalty", -2.0, 2.0),
    ("tfs", "tfs", 0.0, 1.0),
    ("tail_free_sampling", "tfs", 0.0, 1.0),
    ("dry_multiplier", "dry_multiplier", 0.0, 100.0),
    ("dry_base", "dry_base", 0.0, 100.0),
    ("xtc_threshold", "xtc_threshold", 0.0, 1.0),
    ("xtc_probability", "xtc_probability", 0.0, 1.0),
    ("mirostat_tau", "mirostat_tau", 0.0, 100.0),
    ("mirostat_eta", "mirostat_eta", 0.0, 1.0),
    ("smoothing_factor", "smoothing_factor", 0.0, 10.0),
    ("nsigma", "top_n_sigma", 0.0, 100.0),
    ("top_n_sigma", "top_n_sigma", 0.0, 100.0),
    ("dynatemp_exponent", "dynatemp_exponent", 0.0, 10.0),
];
const INTEGERS: [(&str, &str, i64, i64); 8] = [
    ("top_k", "top_k", 0, 100_000),
    ("seed", "seed", 0, 4_294_967_295),
    ("genamt", "max_tokens", 1, 1_000_000),
    ("rep_pen_range", "repetition_range", 0, 10_000_000),
    (
        "repetition_penalty_range",
        "repetition_range",
        0,
        10_000_000,
    ),
    ("dry_allowed_length", "dry_allowed_length", 0, 10_000),
    ("dry_penalty_last_n", "dry_penalty_last_n", 0, 10_000_000),
    ("mirostat_mode", "mirostat_mode", 0, 2),
];
/// The fields that NovelAI's presets use differently: there, `max_length` is the maximum length of a reply.
const LENGTHS: [(&str, &str, i64, i64); 1] = [("max_length", "context_tokens", 64, 10_000_000)];
const NOVEL_LENGTHS: [(&str, &str, i64, i64); 2] = [
    ("max_context", "context_tokens", 64, 10_000_000),
    ("max_length", "max_tokens", 1, 1_000_000),
];
/// Samplers whose values are lists, which a file contains as text: their name, our name.
const BREAKERS: (&str, &str) = ("dry_sequence_breakers", "dry_sequence_breakers");
const BANNED: (&str, &str) = ("banned_tokens", "banned_strings");
/// Their name, our name.
const GRAMMAR: (&str, &str) = ("grammar_string", "grammar");
/// Samplers that no provider here supports, and the value at which each has no effect.
const UNSUPPORTED: [(&str, f64); 9] = [
    ("epsilon_cutoff", 0.0),
    ("eta_cutoff", 0.0),
    ("penalty_alpha", 0.0),
    ("no_repeat_ngram_size", 0.0),
    ("encoder_rep_pen", 1.0),
    ("smoothing_curve", 1.0),
    ("math1_temp", 0.0),
    ("cfg_scale", 1.0),
    ("guidance_scale", 1.0),
];

/// Returns whether this is a text-completion preset.
pub fn is_text_completion(fields: &Map<String, Value>) -> bool {
    let has = |name: &str| fields.contains_key(name);
    let has_temperature = has("temp") || has("temperature");
    let others = ["rep_pen", "repetition_penalty", "top_p", "top_k", "min_p"];
    has_temperature && others.into_iter().any(has)
}

/// Returns the fields of the context window and of the reply length that apply to this kind of preset.
fn lengths(fields: &Map<String, Value>) -> &'static [(&'static str, &'static str, i64, i64)] {
    let novel = ["tail_free_sampling", "phrase_rep_pen", "max_context"];
    match novel.into_iter().any(|it| fields.contains_key(it)) {
        true => &NOVEL_LENGTHS,
        false => &LENGTHS,
    }
}

/// Reads the preset; returns its `origin`.
pub fn read(reading: &mut FieldReader) -> Value {
    reading.remove_secrets();
    let lengths = lengths(&reading.fields);
    for (field, key, least, most) in FRACTIONS {
        reading.copy_number(field, key, least, most);
    }
    for (field, key, least, most) in INTEGERS.iter().chain(lengths) {
        reading.copy_integer(field, key, *least, *most);
    }
    read_dynamic_temperature(reading);
    read_list(reading, BREAKERS, |text| serde_json::from_str(text).ok());
    read_list(reading, BANNED, |text| Some(lines(text)));
    if reading
        .fields
        .get(GRAMMAR.0)
        .is_some_and(|it| !is_blank(it))
    {
        reading.copy_text(GRAMMAR.0, GRAMMAR.1);
    }
    warn_unsupported(reading);
    json!({"form": FORM, "fields": std::mem::take(&mut reading.fields)})
}

/// Reads a dynamic temperature: the file has its bounds, our document the midpoint and half of the range.
fn read_dynamic_temperature(reading: &mut FieldReader) {
    let is_on = reading.fields.get("dynatemp").and_then(boolean) == Some(true);
    let bound = |name: &str| reading.fields.get(name).and_then(number);
    if let (true, Some(low), Some(high)) = (is_on, bound("min_temp"), bound("max_temp"))
        && (0.0..=5.0).contains(&low)
        && (low..=5.0).contains(&high)
    {
        for (key, value) in [
            ("temperature", f64::midpoint(low, high)),
            ("dynatemp_range", (high - low) / 2.0),
        ] {
            reading.document.insert(key.to_owned(), json!(value));
        }
        for name in ["dynatemp", "min_temp", "max_temp"] {
            reading.fields.shift_remove(name);
        }
    }
}

/// Moves a list, which may be a text in the file, to its key. One that is empty or invalid is not moved.
fn read_list(
    reading: &mut FieldReader,
    (field, key): (&str, &str),
    parse: fn(&str) -> Option<Vec<String>>,
) {
    let found = match reading.fields.get(field) {
        Some(Value::String(text)) => parse(text),
        Some(list @ Value::Array(_)) => serde_json::from_value(list.clone()).ok(),
        _ => None,
    };
    if let Some(list) = found.filter(|it| !it.is_empty()) {
        reading.fields.shift_remove(field);
        reading.document.insert(key.to_owned(), json!(list));
    }
}

/// Returns the items of a text with one item in each line. An item may be quoted.
fn lines(text: &str) -> Vec<String> {
    let each = text.lines().map(str::trim).filter(|it| !it.is_empty());
    let unquoted = each.map(|it| {
        it.strip_prefix('"')
            .and_then(|it| it.strip_suffix('"'))
            .unwrap_or(it)
    });
    unquoted.map(str::to_owned).collect()
}

/// Warns about samplers that are kept, but never sent.
fn warn_unsupported(reading: &mut FieldReader) {
    let fields = &reading.fields;
    let is_used = |name: &str, unused: f64| {
        let value = fields.get(name).and_then(number);
        value.is_some_and(|it| it != unused)
    };
    let is_set = |name: &str| fields.get(name).is_some_and(|it| !is_blank(it));
    let numbers = UNSUPPORTED
        .iter()
        .filter(|(name, neutral)| is_used(name, *neutral));
    let texts = ["negative_prompt", "logit_bias", "phrase_rep_pen"];
    let mut names: Vec<&str> = numbers.map(|(name, _)| *name).collect();
    names.extend(texts.into_iter().filter(|it| is_set(it)));
    if !names.is_empty() {
        let names = names.join(", ");
        let sentence = format!(
            "No provider here supports these samplers; they are kept, but not used: {names}."
        );
        reading.warn(ImportWarning::new("samplers_unused", sentence).with("names", names));
    }
}

/// Returns the samplers as a text-completion file.
pub fn write(document: &Value, origin: Option<&Value>) -> Value {
    let origin = origin.filter(|it| it["form"] == FORM);
    let fields = origin.and_then(|it| it["fields"].as_object());
    let mut file = fields.cloned().unwrap_or_default();
    let set = |key: &str| document.get(key).filter(|it| !it.is_null());
    let name_of = |it: &(&'static str, &'static str, i64, i64)| (it.0, it.1);
    let names = FRACTIONS.iter().map(|it| (it.0, it.1));
    let names = names.chain(lengths(&file).iter().map(name_of));
    let names: Vec<_> = names.chain(INTEGERS.iter().map(name_of)).collect();
    let mut written: Vec<&str> = Vec::new();
    for (name, key) in names.into_iter().chain([GRAMMAR]) {
        if let Some(value) = set(key).filter(|_| !written.contains(&key)) {
            written.push(key);
            file.insert(name.to_owned(), value.clone());
        }
    }
    if let Some(list) = set(BREAKERS.1) {
        file.insert(BREAKERS.0.to_owned(), json!(list.to_string()));
    }
    if let Some(Value::Array(list)) = set(BANNED.1) {
        let lines: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
        file.insert(BANNED.0.to_owned(), json!(lines.join("\n")));
    }
    let (middle, range) = (set("temperature"), set("dynatemp_range"));
    if let (Some(middle), Some(range)) = (middle.and_then(number), range.and_then(number))
        && range > 0.0
    {
        file.insert("dynatemp".to_owned(), json!(true));
        file.insert("min_temp".to_owned(), json!((middle - range).max(0.0)));
        file.insert("max_temp".to_owned(), json!(middle + range));
    }
    Value::Object(file)
}
