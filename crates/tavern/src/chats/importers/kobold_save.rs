//! Converts a save of KoboldAI or Kobold Lite: the story as messages, memory as scenario, author's
//! note, and World Info as a lorebook.

use serde_json::{Value, json};

use crate::chats::importers::chat_builder::{
    ChatBuilder, DraftMessage, ImportedChat, add_lorebook, flag, list, settings, text,
    warn_left_out,
};
use crate::chats::importers::kobold_turns;
use crate::chats::importers::kobold_turns::StorySettings;
use crate::chats::message::ChatHeader;
use crate::import_warning::ImportWarning;

/// The name of the lorebook of a save, which has no name.
const BOOK_NAME: &str = "World Info";
/// The place of the note in its template.
const NOTE_PLACE: &str = "<|>";

/// Returns whether this is such a save.
pub fn is_save(document: &Value) -> bool {
    let has = |field: &str| document.get(field).is_some();
    let has_story = document.get("actions").is_some_and(Value::is_array);
    has_story && (has("gamestarted") || has("prompt") || has("worldinfo"))
}

/// Converts the save.
pub fn convert(document: &Value) -> ImportedChat {
    let note = text(document, "authorsnote").unwrap_or_default();
    let template = text(document, "anotetemplate").unwrap_or_default();
    let note = match template.contains(NOTE_PLACE) && !note.trim().is_empty() {
        true => template.replace(NOTE_PLACE, note),
        false => note.to_owned(),
    };
    let mut header = ChatHeader {
        settings: settings(Some(&json!(note)), document.get("memory")),
        ..ChatHeader::default()
    };
    read_world_info(&mut header, document);
    warn_left_out(
        &mut header,
        document,
        &["documentdb_data", "completed_imgs_meta"],
    );
    let story = read_story(document);
    let options = StorySettings::read(&document["savedsettings"]);
    header.user_name.clone_from(&options.user);
    if let [only] = options.characters.as_slice() {
        header.character_name = Some(only.clone());
    }
    let mut builder = ChatBuilder::new(header);
    for turn in kobold_turns::split(&story, &options) {
        builder.push(DraftMessage {
            name: turn.name,
            ..DraftMessage::new(turn.role, turn.text)
        });
    }
    builder.finish()
}

/// Returns the pieces of the story: the prompt, then what followed.
fn read_story(document: &Value) -> Vec<&str> {
    let prompt = text(document, "prompt").into_iter();
    let actions = list(document, "actions").iter().filter_map(Value::as_str);
    prompt.chain(actions).collect()
}

fn read_world_info(header: &mut ChatHeader, document: &Value) {
    let mut n_anti = 0;
    let entries = list(document, "worldinfo").iter().filter_map(|it| {
        let is_filled = |field: &str| text(it, field).is_some_and(|it| !it.trim().is_empty());
        if !is_filled("content") {
            return None;
        }
        let excludes = is_filled("keyanti");
        let selects = flag(it, "selective") && is_filled("keysecondary");
        // Keys that exclude are secondary keys with the logic "not any"; an entry has one logic.
        n_anti += usize::from(excludes && selects);
        let (secondary, logic) = match (selects, excludes) {
            (true, _) => (&it["keysecondary"], 0),
            (false, true) => (&it["keyanti"], 2),
            (false, false) => (&Value::Null, 0),
        };
        let mut extensions = json!({"selectiveLogic": logic});
        if let Some(probability) = probability(it) {
            extensions["probability"] = json!(probability);
        }
        Some(json!({
            "keys": it["key"], "secondary_keys": secondary, "content": it["content"],
            "comment": it["comment"], "constant": flag(it, "constant"), "enabled": true,
            "selective": selects || excludes, "extensions": extensions,
        }))
    });
    let entries: Vec<Value> = entries.collect();
    if n_anti > 0 {
        let sentence = format!(
            "Keys that exclude were left out of {n_anti} World Info entries, because these have \
             secondary keys, too."
        );
        let warning = ImportWarning::new("excluding_keys_left_out", sentence);
        header.warnings.push(warning.with("n", n_anti));
    }
    if !entries.is_empty() {
        let book = json!({"name": BOOK_NAME, "entries": entries});
        add_lorebook(header, book, BOOK_NAME);
    }
}

/// Returns the probability in percent; some versions write it as text.
fn probability(entry: &Value) -> Option<f64> {
    let stated = entry.get("probability")?;
    let number = stated.as_f64();
    let number = number.or_else(|| stated.as_str()?.trim().parse().ok());
    number.filter(|it| (0.0..=100.0).contains(it))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::convert;
    use crate::chats::message::ChatRole;

    #[test]
    fn story_memory_note_and_world_info_are_read() {
        let chat = convert(&json!({
            "gamestarted": true, "prompt": "Rain over the mill.",
            "memory": "Ada runs a mill.", "authorsnote": "Be brief.", "anotetemplate": "[Note: <|>]",
            "actions": ["\n> look around", "\nGears everywhere."],
            "worldinfo": [
                {"key": "mill,engine", "keysecondary": "", "keyanti": "fire", "content": "Brass.",
                 "comment": "Mill", "constant": false, "selective": false, "probability": "50"},
                {"key": "", "content": ""},
            ],
        }));

        assert_eq!(
            chat.header.settings["scenario_override"],
            "Ada runs a mill."
        );
        assert_eq!(
            chat.header.settings["author_note"]["text"],
            "[Note: Be brief.]"
        );
        let book = chat.header.lorebook.as_ref().expect("a lorebook");
        let [entry] = book.entries.as_slice() else {
            panic!("{:?}", book.entries)
        };
        assert_eq!(entry["keys"], json!(["mill", "engine"]));
        assert_eq!(entry["secondary_keys"], json!(["fire"]));
        assert_eq!(entry["extensions"]["selectiveLogic"], 2);
        assert_eq!(entry["extensions"]["probability"], 50.0);
        let read: Vec<_> = chat
            .messages
            .iter()
            .map(|it| (it.role, it.texts[0].content.as_str()))
            .collect();
        assert_eq!(
            read,
            [
                (ChatRole::Assistant, "Rain over the mill."),
                (ChatRole::User, "look around"),
                (ChatRole::Assistant, "Gears everywhere."),
            ]
        );
    }
}
