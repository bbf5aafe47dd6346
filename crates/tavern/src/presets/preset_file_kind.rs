//! Detects the kind of a JSON file: a kind of preset file that can be read, or another kind, which the error
//! names.

use serde_json::{Map, Value};

use crate::documents::document;
use crate::instruct::template_files;
use crate::instruct::template_files::TemplateKind;
use crate::presets::formats::{chat_completion, text_completion};

/// The `spec` of our own files.
pub const OWN_SPEC: &str = "troupe_preset";

/// A kind of file from which a preset can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PresetFileKind {
    /// Troupe's own.
    Own,
    /// SillyTavern's `settings.json`: its active presets.
    Settings,
    /// Several templates and samplers in one file.
    Master,
    ChatCompletion,
    /// Samplers for text completion, KoboldAI or NovelAI.
    Samplers,
    Template(TemplateKind),
}

/// A kind of file that is not a preset: the keys of each of its forms, and a sentence that names the kind and
/// says where to import it.
type OtherKind = (&'static [&'static [&'static str]], &'static str);

/// The kinds of objects that are not presets. The first match applies.
const OTHER_KINDS: [OtherKind; 21] = [
    (
        &[
            &["spec", "data"],
            &["first_mes"],
            &["char_name", "char_persona"],
            &["char_greeting"],
        ],
        "This is a character card. Import it as a character.",
    ),
    (
        &[
            &["kind", "persona"],
            &["name", "greeting", "context"],
            &["name", "sampleChat"],
        ],
        "This is a character. Import it as a character.",
    ),
    (
        &[
            &["lorebookVersion", "entries"],
            &["entries"],
            &["type", "ver", "data"],
        ],
        "This is a lorebook. Import it as a lorebook.",
    ),
    (
        &[&["qrList"], &["quickReplySlots"]],
        "This is a set of quick replies. Import it in the settings of a space.",
    ),
    (
        &[&["scriptName", "findRegex"]],
        "This is a regex script. Import the card or the preset that contains it.",
    ),
    (
        &[
            &["blur_strength", "main_text_color"],
            &["main_text_color"],
            &["custom_css", "chat_display"],
        ],
        "This is a SillyTavern theme. Themes cannot be imported.",
    ),
    (
        &[&["movingUIState"]],
        "This is a MovingUI layout of SillyTavern. Layouts cannot be imported.",
    ),
    (
        &[
            &["personas", "persona_descriptions"],
            &["persona_descriptions"],
        ],
        "This is a backup of personas. Import it under Personas.",
    ),
    (
        &[
            &["chat_metadata"],
            &["histories"],
            &["internal", "visible"],
            &["gamestarted"],
            &["savedsettings"],
            &["type", "data", "message"],
        ],
        "This is a chat. Import it as a conversation of a space.",
    ),
    (
        &[
            &["members", "activation_strategy"],
            &["members", "generation_mode"],
        ],
        "This is a SillyTavern group. Create a space with its characters instead.",
    ),
    (
        &[&["model", "messages"], &["model", "prompt"]],
        "This is a request to a model, not a preset.",
    ),
    (
        &[
            &["choices"],
            &["candidates", "usageMetadata"],
            &["content", "stop_reason"],
        ],
        "This is a reply of a model, not a preset.",
    ),
    (
        &[&["display_name", "loading_order"], &["display_name", "js"]],
        "This is the manifest of a SillyTavern extension. Extensions cannot be installed.",
    ),
    (
        &[&["last_node_id", "nodes"], &["nodes", "links"]],
        "This is a workflow for ComfyUI. Workflows cannot be imported.",
    ),
    (
        &[
            &["prompt", "negative", "name"],
            &["sd_model", "steps"],
            &["sampler", "steps", "cfg"],
        ],
        "These are image generation settings. Troupe does not generate images.",
    ),
    (
        &[&["voiceMap"], &["voice", "rate", "pitch"]],
        "These are text-to-speech settings. Troupe does not generate speech.",
    ),
    (
        &[&["api_key"], &["api_key_openai"], &["api_key_claude"]],
        "This file contains API keys of providers. Enter a key under Models; the file was not stored.",
    ),
    (
        &[&["bias_presets"], &["bias_preset", "entries"]],
        "These are logit biases. They cannot be imported, because tokens differ between models.",
    ),
    (
        &[&["dependencies"], &["devDependencies"]],
        "This is a package.json file, not a preset.",
    ),
    (
        &[&["vocab", "merges"], &["added_tokens"], &["chat_template"]],
        "This is a tokenizer file. Its chat template cannot be imported; import an instruct template instead.",
    ),
    (
        &[&["$schema"], &["openapi"]],
        "This is a schema, not a preset.",
    ),
];

/// The kinds of lists that are not presets, by the keys of their first item.
const OTHER_LISTS: [OtherKind; 6] = [
    (
        &[&["scriptName", "findRegex"]],
        "These are regex scripts. Import the card or the preset that contains them.",
    ),
    (
        &[&["role", "content"], &["mes"], &["is_user"]],
        "These are messages. Import a chat as a conversation of a space.",
    ),
    (
        &[&["keys", "content"], &["key", "content"]],
        "These are entries of a lorebook. Import a lorebook instead.",
    ),
    (
        &[&["label", "message"], &["qrList"]],
        "These are quick replies. Import a set of them in the settings of a space.",
    ),
    (
        &[&["text", "value"], &["token", "bias"]],
        "These are logit biases. They cannot be imported, because tokens differ between models.",
    ),
    (
        &[&["data", "spec"], &["first_mes"]],
        "These are several character cards. Import each as a character.",
    ),
];

/// Returns the kind of a preset file.
///
/// # Errors
/// Returns a sentence that names what the file is instead, or the keys of an unknown file.
pub fn detect(file: &Value) -> Result<PresetFileKind, String> {
    match file {
        Value::Object(fields) => detect_object(fields).ok_or_else(|| describe_object(file, fields)),
        Value::Array(items) => Err(describe_list(items)),
        Value::String(_) => Err("The file is a single text, not a preset.".to_owned()),
        _ => Err("The file is a single value, not a preset.".to_owned()),
    }
}

fn detect_object(fields: &Map<String, Value>) -> Option<PresetFileKind> {
    if fields.get("spec").and_then(Value::as_str) == Some(OWN_SPEC) {
        return Some(PresetFileKind::Own);
    }
    if fields.contains_key("power_user") && fields.contains_key("main_api") {
        return Some(PresetFileKind::Settings);
    }
    if template_files::is_master(fields) {
        return Some(PresetFileKind::Master);
    }
    let is_request =
        has_all(fields, &["model", "messages"]) || has_all(fields, &["model", "prompt"]);
    if chat_completion::is_chat_completion(fields) {
        return Some(PresetFileKind::ChatCompletion);
    }
    if text_completion::is_text_completion(fields) && !is_request {
        return Some(PresetFileKind::Samplers);
    }
    template_files::detect(fields).map(PresetFileKind::Template)
}

fn describe_object(file: &Value, fields: &Map<String, Value>) -> String {
    if let Some(what) = find(&OTHER_KINDS, fields) {
        return what.to_owned();
    }
    let keys = document::describe_keys(file);
    format!("The file is not a known kind of preset. {keys}")
}

fn describe_list(items: &[Value]) -> String {
    let first = items.iter().find_map(Value::as_object);
    let known = first.and_then(|it| find(&OTHER_LISTS, it));
    known
        .unwrap_or("The file is a list, not a preset.")
        .to_owned()
}

/// Returns the sentence for an object with these fields, if its kind is among `kinds`.
fn find(kinds: &[OtherKind], fields: &Map<String, Value>) -> Option<&'static str> {
    let matches = |(forms, _): &&OtherKind| forms.iter().any(|keys| has_all(fields, keys));
    kinds.iter().find(matches).map(|(_, what)| *what)
}

fn has_all(fields: &Map<String, Value>, keys: &[&str]) -> bool {
    keys.iter().all(|it| fields.contains_key(*it))
}

#[cfg(test)]
#[path = "preset_file_kind_tests.rs"]
mod tests;
