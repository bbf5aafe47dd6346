//! Detects, imports and exports SillyTavern's files of templates for text completion: one template, or
//! a master file with all of them. Older names of keys are read, too.

use serde_json::{Map, Value, json};

use crate::import_warning::ImportWarning;
use crate::instruct::instruct_template::InstructTemplate;
use crate::presets::formats::field_reader::{FieldReader, boolean};

/// The `form` of a master file in `origin`.
pub const MASTER_FORM: &str = "master";

/// The kind of a template. A preset has the template under the key of this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateKind {
    Instruct,
    Context,
    SystemPrompt,
    Reasoning,
}

/// The order matters for detection: an older instruct file may contain the keys of later kinds.
const KINDS: [TemplateKind; 4] = [
    TemplateKind::Context,
    TemplateKind::Instruct,
    TemplateKind::SystemPrompt,
    TemplateKind::Reasoning,
];

/// Settings of context templates that have no effect here, and their neutral value.
const UNUSED: [(&str, i64); 2] = [("story_string_position", 0), ("trim_sentences", 0)];

impl TemplateKind {
    /// Returns the key in a preset and in a master file.
    pub fn key(self) -> &'static str {
        match self {
            Self::Instruct => "instruct",
            Self::Context => "context",
            Self::SystemPrompt => "sysprompt",
            Self::Reasoning => "reasoning",
        }
    }

    fn texts(self) -> Vec<&'static str> {
        let others: &[&str] = match self {
            Self::Instruct => &[
                "name",
                "user_alignment_message",
                "activation_regex",
                "names_behavior",
            ],
            Self::Context => &["name", "story_string", "example_separator", "chat_start"],
            Self::SystemPrompt => &["name", "content", "post_history"],
            Self::Reasoning => &["name", "prefix", "suffix", "separator"],
        };
        let sequences: &[&str] = match self {
            Self::Instruct => &InstructTemplate::SEQUENCE_KEYS,
            _ => &[],
        };
        [others, sequences].concat()
    }

    fn switches(self) -> &'static [&'static str] {
        match self {
            Self::Instruct => &[
                "wrap",
                "macro",
                "system_same_as_user",
                "skip_examples",
                "bind_to_context",
                "sequences_as_stop_strings",
            ],
            Self::Context => &[
                "use_stop_strings",
                "names_as_stop_strings",
                "always_force_name2",
                "single_line",
            ],
            Self::SystemPrompt | Self::Reasoning => &[],
        }
    }
}

/// Returns the kind of a file with one template; `None`: it is none.
pub fn detect(fields: &Map<String, Value>) -> Option<TemplateKind> {
    let is_text = |name: &str| fields.get(name).is_some_and(Value::is_string);
    KINDS.into_iter().find(|kind| match kind {
        TemplateKind::Context => is_text("story_string"),
        TemplateKind::Instruct => is_text("input_sequence") || is_text("output_sequence"),
        TemplateKind::SystemPrompt => {
            is_text("content") && (is_text("name") || is_text("post_history")) && !is_text("role")
        }
        TemplateKind::Reasoning => is_text("prefix") && is_text("suffix") && is_text("separator"),
    })
}

/// Returns whether the file has templates in fields of their names.
pub fn is_master(fields: &Map<String, Value>) -> bool {
    KINDS.iter().any(|kind| part_of(fields, *kind).is_some())
}

fn part_of(fields: &Map<String, Value>, kind: TemplateKind) -> Option<&Map<String, Value>> {
    let part = fields.get(kind.key())?.as_object()?;
    (detect(part) == Some(kind)).then_some(part)
}

/// Reads a file with one template; returns its `origin`.
pub fn read(reading: &mut FieldReader, kind: TemplateKind) -> Value {
    let fields = std::mem::take(&mut reading.fields);
    read_part(reading, kind, fields);
    json!({ "form": kind.key() })
}

/// Reads the templates of a master file, and removes them from its fields.
pub fn read_master(reading: &mut FieldReader) {
    for kind in KINDS {
        if part_of(&reading.fields, kind).is_some()
            && let Some(Value::Object(part)) = reading.fields.shift_remove(kind.key())
        {
            read_part(reading, kind, part);
        }
    }
}

fn read_part(reading: &mut FieldReader, kind: TemplateKind, fields: Map<String, Value>) {
    let mut part = FieldReader::new(fields);
    part.remove_secrets();
    match kind {
        TemplateKind::Instruct => read_older_names(reading, &mut part.fields),
        TemplateKind::Context => warn_unused(reading, &part.fields),
        TemplateKind::SystemPrompt | TemplateKind::Reasoning => {}
    }
    for name in kind.texts() {
        part.copy_text(name, name);
    }
    for name in kind.switches() {
        if let Some(found) = part.fields.shift_remove(*name) {
            match boolean(&found) {
                Some(is_on) => {
                    part.document.insert((*name).to_owned(), json!(is_on));
                }
                None => reading.warn(
                    ImportWarning::new(
                        "template_value_skipped",
                        format!("`{name}` of the template is neither on nor off; it was skipped."),
                    )
                    .with("name", *name),
                ),
            }
        }
    }
    // Unknown keys are exported again.
    part.document.extend(std::mem::take(&mut part.fields));
    reading.warnings.append(&mut part.warnings);
    let document = Value::Object(part.document);
    reading.document.insert(kind.key().to_owned(), document);
}

/// Replaces the keys of older instruct files by those of newer ones.
fn read_older_names(reading: &mut FieldReader, fields: &mut Map<String, Value>) {
    for (older, newer) in [
        ("system_sequence_prefix", "story_string_prefix"),
        ("system_sequence_suffix", "story_string_suffix"),
        ("separator_sequence", "output_suffix"),
    ] {
        if let Some(value) = fields.shift_remove(older)
            && !fields.contains_key(newer)
        {
            fields.insert(newer.to_owned(), value);
        }
    }
    let names = fields.shift_remove("names");
    let in_groups = fields.shift_remove("names_force_groups");
    let is_on = |it: Option<Value>| it.as_ref().and_then(boolean).unwrap_or(false);
    let is_known = |it: &Value| matches!(it.as_str(), Some("none" | "force" | "always"));
    if !fields.get("names_behavior").is_some_and(is_known) {
        let has_older = names.is_some() || in_groups.is_some();
        let behavior = match (is_on(names), is_on(in_groups)) {
            (true, _) => "always",
            (false, false) if has_older => "none",
            _ => "force",
        };
        fields.insert("names_behavior".to_owned(), json!(behavior));
    }
    if let Some(Value::String(content)) = fields.shift_remove("system_prompt")
        && !content.trim().is_empty()
    {
        let key = TemplateKind::SystemPrompt.key().to_owned();
        let name = fields.get("name").cloned().unwrap_or_default();
        let part = json!({ "name": name, "content": content });
        reading.document.entry(key).or_insert(part);
    }
}

fn warn_unused(reading: &mut FieldReader, fields: &Map<String, Value>) {
    let is_used = |name: &str, neutral: i64| {
        let value = fields.get(name);
        value.is_some_and(|it| it == &json!(true) || it.as_i64().is_some_and(|it| it != neutral))
    };
    let names = UNUSED.iter().filter(|(name, it)| is_used(name, *it));
    let names: Vec<&str> = names.map(|(name, _)| *name).collect();
    if !names.is_empty() {
        let names = names.join(", ");
        let sentence =
            format!("These settings of the template are kept, but have no effect: {names}.");
        let warning = ImportWarning::new("template_settings_unused", sentence);
        reading.warn(warning.with("names", names));
    }
}

/// Returns the kind of the one template in a document.
pub fn only_template(document: &Value) -> Option<TemplateKind> {
    let fields = document.as_object()?;
    let mut kinds = KINDS.into_iter();
    let kind = kinds.find(|it| fields.contains_key(it.key()))?;
    (fields.len() == 1).then_some(kind)
}

/// Returns whether a document has templates.
pub fn has_templates(document: &Value) -> bool {
    KINDS.iter().any(|it| document[it.key()].is_object())
}

/// Returns a template of a document as a file.
pub fn write(kind: TemplateKind, name: &str, document: &Value) -> Value {
    let mut part = document[kind.key()].clone();
    let is_unnamed = part["name"].as_str().is_none_or(str::is_empty);
    if is_unnamed && !name.is_empty() && part.is_object() {
        part["name"] = json!(name);
    }
    part
}

/// Returns the templates of a document as a master file, with the samplers.
pub fn write_master(name: &str, document: &Value, samplers: Value) -> Value {
    let mut file = Map::new();
    for kind in KINDS
        .into_iter()
        .filter(|it| document[it.key()].is_object())
    {
        file.insert(kind.key().to_owned(), write(kind, name, document));
    }
    if samplers.as_object().is_some_and(|it| !it.is_empty()) {
        file.insert("preset".to_owned(), samplers);
    }
    Value::Object(file)
}

#[cfg(test)]
#[path = "template_files_tests.rs"]
mod tests;
