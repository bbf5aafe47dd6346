//! Character cards: any of the forms in circulation, read into one shape.
//!
//! A card is kept as the whole document it came as. **Invariant:** `Card::document` is an object
//! with a `data` object in which every V2 field has its right type; fields we do not know are where
//! they were. Files come from strangers, so size, depth and number of values are bounded.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::characters::{card_versions, repair};
use crate::import_warning::ImportWarning;

/// The largest card document that is read, in bytes.
pub const MAX_BYTES: usize = 5 * 1024 * 1024;
/// A document nested this deep is refused; the JSON reader itself would go no further.
pub const MAX_DEPTH: usize = 128;
/// The most values a document may hold: small numbers take thirty times their size in memory.
pub const MAX_VALUES: usize = 250_000;
/// An object takes as much memory as so many values, if it has only one.
const VALUES_PER_OBJECT: usize = 6;

/// Why something is not taken as a card. Each is a sentence for whoever brought the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CardError {
    /// It cannot be read as a card at all.
    #[error("{0}")]
    NotACard(String),
    /// It is past one of the limits.
    #[error("{0}")]
    TooLarge(String),
}

impl CardError {
    /// Not a card, and this is why.
    pub fn reason(reason: impl Into<String>) -> Self {
        Self::NotACard(reason.into())
    }
}

/// The form in which a card came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardSpec {
    /// Flat fields; also what older tools wrote under other names.
    V1,
    /// `chara_card_v2`.
    V2,
    /// `chara_card_v3`.
    V3,
}

/// A card in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// The form in which it came. A V1 card is a V2 document from then on.
    pub spec: CardSpec,
    /// The whole document; what is stored and exported.
    pub document: Value,
    /// What had to be put right, for whoever brought it.
    pub warnings: Vec<ImportWarning>,
}

/// Text that a card wants inside the history, so many messages before its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DepthPrompt {
    /// What it says.
    pub prompt: String,
    /// How many messages follow it.
    pub depth: usize,
    /// `system`, `user` or `assistant`.
    pub role: String,
}

impl Card {
    /// Reads the bytes of a JSON file.
    pub fn parse(bytes: &[u8]) -> Result<Self, CardError> {
        let document = parse_json(bytes)?;
        Self::from_document(document)
    }

    /// Reads a document that is JSON already: the body of a request, or a stored card.
    pub fn from_document(document: Value) -> Result<Self, CardError> {
        let mut warnings = Vec::new();
        let (spec, mut document) = card_versions::normalize(document, &mut warnings)?;
        repair::repair(&mut document, spec, &mut warnings)?;
        Self::check_depth(spec, document, warnings)
    }

    /// Reads the flat fields of a V2 `data`.
    pub fn from_flat(fields: Map<String, Value>) -> Result<Self, CardError> {
        let mut warnings = Vec::new();
        let mut document = card_versions::wrap_data(fields);
        repair::repair(&mut document, CardSpec::V2, &mut warnings)?;
        Self::check_depth(CardSpec::V2, document, warnings)
    }

    /// What is put around a field makes it deeper: what cannot be read again is not taken.
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

    /// The same card with some fields of its `data` replaced; all others stay as they are. It may
    /// not become larger than one that is brought whole.
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

    /// The version of its form, as a card states it: `1.0`, `2.0`, `3.0`.
    pub fn spec_version(&self) -> String {
        let stated = self.document.get("spec_version").and_then(Value::as_str);
        match self.spec {
            CardSpec::V1 => "1.0".into(),
            CardSpec::V2 => stated.unwrap_or("2.0").into(),
            CardSpec::V3 => stated.unwrap_or("3.0").into(),
        }
    }

    /// What the character is called. Never blank.
    pub fn name(&self) -> &str {
        self.text("name").trim()
    }

    /// What `{{char}}` stands for: the nickname of a V3 card, else the name.
    pub fn display_name(&self) -> &str {
        self.nickname().unwrap_or_else(|| self.name())
    }

    /// The name that a V3 card wants to be called by.
    pub fn nickname(&self) -> Option<&str> {
        let nickname = self.text("nickname").trim();
        (!nickname.is_empty()).then_some(nickname)
    }

    /// Who the character is.
    pub fn description(&self) -> &str {
        self.text("description")
    }

    /// The character in a few words.
    pub fn personality(&self) -> &str {
        self.text("personality")
    }

    /// Where the story takes place.
    pub fn scenario(&self) -> &str {
        self.text("scenario")
    }

    /// The greeting.
    pub fn first_mes(&self) -> &str {
        self.text("first_mes")
    }

    /// Example dialogue, in blocks begun by `<START>`.
    pub fn mes_example(&self) -> &str {
        self.text("mes_example")
    }

    /// Replaces the main prompt when it is not blank.
    pub fn system_prompt(&self) -> &str {
        self.text("system_prompt")
    }

    /// Comes after the history when it is not blank.
    pub fn post_history_instructions(&self) -> &str {
        self.text("post_history_instructions")
    }

    /// Other greetings to choose from.
    pub fn alternate_greetings(&self) -> Vec<&str> {
        self.texts("alternate_greetings")
    }

    /// Greetings for spaces with two or more characters.
    pub fn group_only_greetings(&self) -> Vec<&str> {
        self.texts("group_only_greetings")
    }

    /// What its maker calls this version of it.
    pub fn character_version(&self) -> &str {
        self.text("character_version")
    }

    /// What its maker tells whoever uses it. Never part of a prompt.
    pub fn creator_notes(&self) -> &str {
        self.text("creator_notes")
    }

    /// What it is filed under.
    pub fn tags(&self) -> Vec<&str> {
        self.texts("tags")
    }

    /// How readily the character joins in, 0.0 to 1.0, if the card says so.
    pub fn talkativeness(&self) -> Option<f64> {
        let stated = self.extension("talkativeness")?;
        let number = stated
            .as_f64()
            .or_else(|| stated.as_str()?.trim().parse().ok())?;
        number.is_finite().then(|| number.clamp(0.0, 1.0))
    }

    /// The text that goes inside the history, if the card has any.
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

    /// How many entries its own lorebook has.
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

    /// The lorebook that it names, whether it has one in it or not.
    pub fn world_name(&self) -> Option<&str> {
        let world = self.extension("world")?.as_str()?.trim();
        (!world.is_empty()).then_some(world)
    }

    /// The lorebook that it names without having one in it.
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

/// Reads JSON, within the limits of a card.
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

/// The SHA-256 of a document, in hexadecimal, whatever the order of its keys.
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

/// Counts depth and values before anything is built from them.
fn check_limits(text: &str) -> Result<(), CardError> {
    let (depth, n_values) = count_depth_and_values(text.as_bytes());
    if depth >= MAX_DEPTH {
        return Err(too_deep());
    }
    match n_values > MAX_VALUES {
        true => Err(CardError::TooLarge(format!(
            "The card holds more than {MAX_VALUES} values."
        ))),
        false => Ok(()),
    }
}

/// How deep the lists and objects of a JSON text stand in each other, and how many values it would
/// take memory for: an object counts as several.
pub fn count_depth_and_values(text: &[u8]) -> (usize, usize) {
    let (mut depth, mut deepest, mut n_values) = (0_usize, 0_usize, 0_usize);
    let (mut in_text, mut escaped) = (false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
                n_values += if *byte == b'{' { VALUES_PER_OBJECT } else { 1 };
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => n_values += 1,
            _ => {}
        }
    }
    (deepest, n_values)
}

/// How many lists and objects stand in each other.
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
