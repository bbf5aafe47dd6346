//! Parses a character card in JSON of any known format into one validated form, returns its fields,
//! and computes its content hash.
//!
//! A card is stored as its whole document. **Invariant:** `Card::document` is an object with a
//! `data` object in which every V2 field has its right type; unknown fields are preserved. Files
//! are untrusted, so size, depth and number of values are limited.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::cards::card_error::CardError;
use crate::cards::card_versions::{CardSpec, V1_FIELDS};
use crate::cards::{card_versions, repair};
use crate::documents::limits::{MAX_BYTES, MAX_DEPTH, MAX_VALUES, count_depth_and_values};
use crate::import_warning::ImportWarning;

/// A validated card.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// The format of the import. A V1 card becomes a V2 document.
    pub spec: CardSpec,
    /// The whole document, as it is stored and exported.
    pub document: Value,
    /// What was repaired, for the user.
    pub warnings: Vec<ImportWarning>,
}

/// A card's depth prompt (Character's Note): a text inserted among the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DepthPrompt {
    pub prompt: String,
    /// The number of messages after it.
    pub depth: usize,
    /// `system`, `user` or `assistant`.
    pub role: String,
}

impl Card {
    /// Parses a JSON file.
    pub fn parse(bytes: &[u8]) -> Result<Self, CardError> {
        let document = parse_json(bytes)?;
        Self::from_document(document)
    }

    /// Parses a JSON document: the body of a request, or a stored card.
    pub fn from_document(document: Value) -> Result<Self, CardError> {
        let mut warnings = Vec::new();
        let (spec, mut document) = card_versions::normalize(document, &mut warnings)?;
        repair::repair(&mut document, spec, &mut warnings)?;
        Self::check_depth(spec, document, warnings)
    }

    /// Parses the fields of a V2 `data` object.
    pub fn from_flat(fields: Map<String, Value>) -> Result<Self, CardError> {
        let mut warnings = Vec::new();
        let mut document = card_versions::wrap_data(fields);
        repair::repair(&mut document, CardSpec::V2, &mut warnings)?;
        Self::check_depth(CardSpec::V2, document, warnings)
    }

    /// Checks that the character has more than a name, so that no file of another kind becomes an
    /// empty character.
    ///
    /// # Errors
    /// Returns `NotACard` when description, personality, scenario, first message and examples are
    /// all blank.
    pub fn require_content(&self) -> Result<(), CardError> {
        let texts = V1_FIELDS.iter().filter(|it| **it != "name");
        let mut texts = texts.map(|it| self.text(it));
        match texts.any(|it| !it.trim().is_empty()) {
            true => Ok(()),
            false => Err(CardError::reason(
                "The character has no description, personality, scenario, first message or \
                 examples of dialogue.",
            )),
        }
    }

    /// Checks the final depth: wrapping fields in `data` adds levels, and a deeper document could
    /// not be parsed again.
    fn check_depth(
        spec: CardSpec,
        document: Map<String, Value>,
        warnings: Vec<ImportWarning>,
    ) -> Result<Self, CardError> {
        let document = Value::Object(document);
        match depth(&document) < MAX_DEPTH {
            true => Ok(Self {
                spec,
                document,
                warnings,
            }),
            false => Err(too_deep()),
        }
    }

    /// Returns the card with some fields of its `data` replaced. The limits of an import apply.
    pub fn with_changes(&self, changes: Map<String, Value>) -> Result<Self, CardError> {
        let mut document = self.document.clone();
        if let Some(data) = document.get_mut("data").and_then(Value::as_object_mut) {
            data.extend(changes);
        }
        match document.to_string().len() <= MAX_BYTES {
            true => Self::from_document(document),
            false => Err(too_large()),
        }
    }

    /// Returns the version that the card states for its format: `1.0`, `2.0`, `3.0`.
    pub fn spec_version(&self) -> String {
        let stated = self.document.get("spec_version").and_then(Value::as_str);
        match self.spec {
            CardSpec::V1 => "1.0".into(),
            CardSpec::V2 => stated.unwrap_or("2.0").into(),
            CardSpec::V3 => stated.unwrap_or("3.0").into(),
        }
    }

    /// Returns the name of the character. Never blank.
    pub fn name(&self) -> &str {
        self.text("name").trim()
    }

    /// Returns the value of `{{char}}`: the nickname of a V3 card, else the name.
    pub fn display_name(&self) -> &str {
        self.nickname().unwrap_or_else(|| self.name())
    }

    /// Returns the nickname of a V3 card.
    pub fn nickname(&self) -> Option<&str> {
        let nickname = self.text("nickname").trim();
        (!nickname.is_empty()).then_some(nickname)
    }

    pub fn description(&self) -> &str {
        self.text("description")
    }

    /// Returns the personality summary.
    pub fn personality(&self) -> &str {
        self.text("personality")
    }

    pub fn scenario(&self) -> &str {
        self.text("scenario")
    }

    /// Returns the first message.
    pub fn first_mes(&self) -> &str {
        self.text("first_mes")
    }

    /// Returns the examples of dialogue, in blocks that start with `<START>`.
    pub fn mes_example(&self) -> &str {
        self.text("mes_example")
    }

    /// Returns the text that replaces the main prompt if it is not blank.
    pub fn system_prompt(&self) -> &str {
        self.text("system_prompt")
    }

    /// Returns the text inserted after the history if it is not blank.
    pub fn post_history_instructions(&self) -> &str {
        self.text("post_history_instructions")
    }

    pub fn alternate_greetings(&self) -> Vec<&str> {
        self.texts("alternate_greetings")
    }

    /// Returns the greetings for spaces with two or more characters.
    pub fn group_only_greetings(&self) -> Vec<&str> {
        self.texts("group_only_greetings")
    }

    /// Returns the version that the creator states for the card.
    pub fn character_version(&self) -> &str {
        self.text("character_version")
    }

    /// Returns the creator's notes for users. Never part of a prompt.
    pub fn creator_notes(&self) -> &str {
        self.text("creator_notes")
    }

    pub fn tags(&self) -> Vec<&str> {
        self.texts("tags")
    }

    /// Returns how often the character joins in, 0.0 to 1.0, if the card states it.
    pub fn talkativeness(&self) -> Option<f64> {
        let stated = self.extension("talkativeness")?;
        let number = stated
            .as_f64()
            .or_else(|| stated.as_str()?.trim().parse().ok())?;
        number.is_finite().then(|| number.clamp(0.0, 1.0))
    }

    /// Returns the depth prompt, if the card has one.
    pub fn depth_prompt(&self) -> Option<DepthPrompt> {
        const USUAL_DEPTH: usize = 4;
        let stated = self.extension("depth_prompt")?;
        let prompt = stated.get("prompt")?.as_str()?.trim();
        let depth = stated
            .get("depth")
            .and_then(|it| it.as_u64().or_else(|| it.as_str()?.trim().parse().ok()));
        let role = stated.get("role").and_then(Value::as_str);
        (!prompt.is_empty()).then(|| DepthPrompt {
            prompt: prompt.to_owned(),
            depth: depth.map_or(USUAL_DEPTH, |it| usize::try_from(it).unwrap_or(usize::MAX)),
            role: role
                .filter(|it| ["user", "assistant"].contains(it))
                .unwrap_or("system")
                .to_owned(),
        })
    }

    /// Returns the number of entries in the embedded lorebook.
    pub fn n_lore_entries(&self) -> usize {
        match self
            .field("character_book")
            .and_then(|it| it.get("entries"))
        {
            Some(Value::Array(entries)) => entries.len(),
            Some(Value::Object(entries)) => entries.len(),
            _ => 0,
        }
    }

    /// Returns the texts of the entries in the embedded lorebook.
    pub fn lore_texts(&self) -> Vec<&str> {
        let entries = self
            .field("character_book")
            .and_then(|it| it.get("entries"));
        let entries: Vec<&Value> = match entries {
            Some(Value::Array(entries)) => entries.iter().collect(),
            Some(Value::Object(entries)) => entries.values().collect(),
            _ => Vec::new(),
        };
        let texts = entries.iter().filter_map(|it| it.get("content")?.as_str());
        texts.collect()
    }

    /// Returns the name of the linked lorebook, even if one is embedded.
    pub fn world_name(&self) -> Option<&str> {
        let world = self.extension("world")?.as_str()?.trim();
        (!world.is_empty()).then_some(world)
    }

    /// Returns the name of the linked lorebook, if none is embedded.
    pub fn linked_world(&self) -> Option<&str> {
        self.world_name().filter(|_| self.n_lore_entries() == 0)
    }

    fn field(&self, name: &str) -> Option<&Value> {
        self.document.get("data")?.get(name)
    }

    fn extension(&self, name: &str) -> Option<&Value> {
        self.field("extensions")?.get(name)
    }

    fn text(&self, name: &str) -> &str {
        self.field(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn texts(&self, name: &str) -> Vec<&str> {
        let list = self.field(name).and_then(Value::as_array);
        let texts = list.into_iter().flatten().filter_map(Value::as_str);
        texts.filter(|it| !it.trim().is_empty()).collect()
    }
}

/// Parses JSON within the limits of a card.
pub fn parse_json(bytes: &[u8]) -> Result<Value, CardError> {
    if bytes.len() > MAX_BYTES {
        return Err(too_large());
    }
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let text =
        str::from_utf8(bytes).map_err(|_| CardError::reason("The file is not text in UTF-8."))?;
    check_limits(text)?;
    serde_json::from_str(text)
        .map_err(|error| CardError::reason(format!("The file is not valid JSON: {error}.")))
}

/// Returns the SHA-256 of a document, in hexadecimal, independent of the order of keys.
pub fn content_hash(document: &Value) -> String {
    let mut canonical = String::new();
    write_canonical(document, &mut canonical);
    hex::encode(Sha256::digest(canonical))
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort();
            out.push('{');
            for key in keys {
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write_canonical(&fields[key], out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write_canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        plain => out.push_str(&plain.to_string()),
    }
}

/// Checks depth and number of values before the text is parsed.
fn check_limits(text: &str) -> Result<(), CardError> {
    let (depth, n_values) = count_depth_and_values(text.as_bytes());
    if depth >= MAX_DEPTH {
        return Err(too_deep());
    }
    match n_values > MAX_VALUES {
        true => Err(CardError::TooLarge(format!(
            "The card contains more than {MAX_VALUES} values."
        ))),
        false => Ok(()),
    }
}

/// Returns the nesting depth of a value.
fn depth(value: &Value) -> usize {
    let inner = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
        _ => return 0,
    };
    1 + inner.unwrap_or(0)
}

fn too_large() -> CardError {
    CardError::TooLarge("The card is larger than 5 MiB.".into())
}

fn too_deep() -> CardError {
    CardError::TooLarge(format!(
        "The card is nested {MAX_DEPTH} levels deep or deeper."
    ))
}

#[cfg(test)]
#[path = "card_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "card_limit_tests.rs"]
mod limit_tests;
