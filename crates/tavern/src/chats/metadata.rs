//! Converts in both directions: author's note and scenario of a chat file to settings of a
//! conversation, and reasoning and other fields of its messages to metadata of our messages.

use serde_json::{Map, Value, json};

use crate::chats::message::ChatRole;
use crate::documents::line_ends;

/// The metadata key for fields that only the file format has, kept so that an export restores them.
pub const IMPORTED: &str = "imported";

/// The key in `extra` of a message that is out of character.
pub const OOC_KEY: &str = "is_ooc";

/// The key in `extra` of a whisper: the names of the members who see it.
pub const AUDIENCE_KEY: &str = "audience";

/// Maximum size of such fields without the reasoning; more than any known frontend writes.
const MAX_EXTRA_BYTES: usize = 4 * 1024;

/// Fields of a line that name the pictures of its author, by which SillyTavern finds the members of
/// a group.
pub const AVATAR_FIELDS: [&str; 2] = ["original_avatar", "force_avatar"];

/// Maximum size of such a name: a path or an address.
const MAX_AVATAR_BYTES: usize = 1024;

/// Maximum size of stored reasoning, and of an author's note.
const MAX_REASONING_BYTES: usize = 64 * 1024;
const MAX_NOTE_BYTES: usize = 16 * 1024;

const POSITIONS: [&str; 3] = ["after", "in_chat", "before"];
const ROLES: [&str; 3] = ["system", "user", "assistant"];

/// The value of `extra.type` that marks a narrator; in our data, the role does.
const NARRATOR: &str = "narrator";

/// Returns whether the line is a narrator's.
pub fn is_narrator(line: &Map<String, Value>) -> bool {
    let kind = line.get("extra").and_then(|it| it.get("type"));
    kind.is_some_and(|it| it == NARRATOR)
}

/// Returns the names in the audience of a line; `None` if it is no whisper.
pub fn audience(line: &Map<String, Value>) -> Option<Vec<String>> {
    let names = line.get("extra")?.get(AUDIENCE_KEY)?.as_array()?;
    let names = names.iter().map(|it| it.as_str().map(str::to_owned));
    names.collect()
}

/// Returns the metadata of a text from its line or its entry in `swipe_info`. `role` is the
/// message's.
pub fn metadata(fields: &Map<String, Value>, role: ChatRole) -> Value {
    let mut notes = Map::new();
    let mut all = Map::new();
    if let Some(Value::Object(extra)) = fields.get("extra") {
        let mut extra = extra.clone();
        if let Some(Value::String(reasoning)) = extra.shift_remove("reasoning") {
            let to = reasoning.floor_char_boundary(MAX_REASONING_BYTES);
            let reasoning = line_ends::normalize(&reasoning[..to]).replace('\0', "");
            if !reasoning.trim().is_empty() {
                all.insert("reasoning".to_owned(), Value::String(reasoning));
            }
        }
        // These two are fields of the message itself.
        extra.shift_remove(OOC_KEY);
        if audience(fields).is_some() {
            extra.shift_remove(AUDIENCE_KEY);
        }
        if role == ChatRole::System && extra.get("type").is_some_and(|it| it == NARRATOR) {
            extra.shift_remove("type");
        }
        if !extra.is_empty() {
            notes.insert("extra".to_owned(), Value::Object(extra));
        }
    }
    for key in ["gen_started", "gen_finished", "title"] {
        if let Some(value) = fields.get(key).filter(|it| !it.is_null() && *it != "") {
            notes.insert(key.to_owned(), value.clone());
        }
    }
    if !notes.is_empty() && is_within_limit(&notes) {
        all.insert(IMPORTED.to_owned(), Value::Object(notes));
    }
    Value::Object(all)
}

/// Adds the avatars of a line to the metadata of a text, so that an export restores them whichever
/// swipe is shown.
pub fn keep_avatars(line: &Map<String, Value>, metadata: &mut Value) {
    for field in AVATAR_FIELDS {
        let avatar = line.get(field).and_then(Value::as_str);
        let is_kept =
            |it: &&str| !it.is_empty() && it.len() <= MAX_AVATAR_BYTES && !it.contains('\0');
        if let Some(avatar) = avatar.filter(is_kept) {
            metadata[IMPORTED][field] = json!(avatar);
        }
    }
}

/// Returns whether the fields are small and contain no NUL, which PostgreSQL cannot store.
fn is_within_limit(notes: &Map<String, Value>) -> bool {
    let text = serde_json::to_string(notes).unwrap_or_default();
    text.len() <= MAX_EXTRA_BYTES && !text.contains("\\u0000")
}

/// Returns the fields of a file entry besides the text: `extra` and its siblings. `role` is the
/// message's.
pub fn extra_of_message(metadata: &Value, role: ChatRole) -> Map<String, Value> {
    let mut fields = match metadata.get(IMPORTED) {
        Some(Value::Object(notes)) => notes.clone(),
        _ => Map::new(),
    };
    let mut extra = match fields.shift_remove("extra") {
        Some(Value::Object(extra)) => extra,
        _ => Map::new(),
    };
    if let Some(reasoning) = metadata.get("reasoning").filter(|it| it.is_string()) {
        extra.insert("reasoning".to_owned(), reasoning.clone());
    }
    if role == ChatRole::System && !extra.contains_key("type") {
        extra.insert("type".to_owned(), json!(NARRATOR));
    }
    fields.insert("extra".to_owned(), Value::Object(extra));
    fields
}

/// Like [`extra_of_message`], for a line: exactly the lines of narrators have the `extra.type` of
/// narrators, whatever type is stored.
pub fn extra_of_line(metadata: &Value, role: ChatRole) -> Map<String, Value> {
    let mut fields = extra_of_message(metadata, role);
    if role == ChatRole::System {
        fields["extra"]["type"] = json!(NARRATOR);
    } else if is_narrator(&fields)
        && let Some(Value::Object(extra)) = fields.get_mut("extra")
    {
        extra.shift_remove("type");
    }
    fields
}

/// Returns settings of a conversation from the metadata of a chat.
pub fn settings(chat: &Map<String, Value>) -> Map<String, Value> {
    let text = |key: &str| {
        let text = line_ends::normalize(chat.get(key)?.as_str()?).replace('\0', "");
        let to = text.floor_char_boundary(MAX_NOTE_BYTES);
        let text = text[..to].to_owned();
        (!text.trim().is_empty()).then_some(text)
    };
    let number = |key: &str| {
        chat.get(key)?
            .as_i64()
            .filter(|it| (0..=10_000).contains(it))
    };
    let word = |key: &str, words: [&'static str; 3]| {
        let at = usize::try_from(number(key)?).ok()?;
        words.get(at).copied()
    };
    let mut settings = Map::new();
    if let Some(note) = text("note_prompt") {
        let note = json!({
            "text": note,
            "position": word("note_position", POSITIONS).unwrap_or("in_chat"),
            "depth": number("note_depth").unwrap_or(4),
            "role": word("note_role", ROLES).unwrap_or("system"),
            "interval": number("note_interval").unwrap_or(1),
        });
        settings.insert("author_note".to_owned(), note);
    }
    if let Some(scenario) = text("scenario") {
        settings.insert("scenario_override".to_owned(), Value::String(scenario));
    }
    settings
}

/// Returns the metadata of a chat from settings of a conversation.
pub fn to_chat_metadata(settings: &Value) -> Map<String, Value> {
    let mut chat = Map::new();
    if let Some(note) = settings.get("author_note") {
        let place = |key: &str, words: [&str; 3]| {
            let word = note.get(key).and_then(Value::as_str)?;
            words.iter().position(|it| *it == word)
        };
        let number = |key: &str| note.get(key).and_then(Value::as_i64);
        chat.insert("note_prompt".to_owned(), note["text"].clone());
        chat.insert(
            "note_interval".to_owned(),
            json!(number("interval").unwrap_or(1)),
        );
        chat.insert("note_depth".to_owned(), json!(number("depth").unwrap_or(4)));
        let position = place("position", POSITIONS).unwrap_or(1);
        chat.insert("note_position".to_owned(), json!(position));
        chat.insert(
            "note_role".to_owned(),
            json!(place("role", ROLES).unwrap_or(0)),
        );
    }
    if let Some(scenario) = settings
        .get("scenario_override")
        .filter(|it| it.is_string())
    {
        chat.insert("scenario".to_owned(), scenario.clone());
    }
    chat
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{
        audience, extra_of_line, extra_of_message, is_narrator, metadata, settings,
        to_chat_metadata,
    };
    use crate::chats::message::ChatRole;

    #[test]
    fn note_and_scenario_survive_a_round_trip() {
        let chat = json!({
            "note_prompt": "Rain.", "note_interval": 2, "note_depth": 0, "note_position": 2,
            "note_role": 1, "scenario": "A ship."
        });
        let settings = settings(chat.as_object().unwrap());

        assert_eq!(settings["author_note"]["position"], "before");
        assert_eq!(json!(to_chat_metadata(&Value::Object(settings))), chat);
    }

    #[test]
    fn metadata_of_a_text_survives_a_round_trip() {
        let message = json!({
            "gen_started": "2024-01-01T00:00:00Z",
            "extra": {"model": "m", "reasoning": "Hm.", "made_up": {"deep": [1]}}
        });
        let kept = metadata(message.as_object().unwrap(), ChatRole::User);

        assert_eq!(kept["reasoning"], "Hm.");
        assert_eq!(json!(extra_of_message(&kept, ChatRole::User)), message);
    }

    #[test]
    fn a_narrator_is_kept_only_as_a_role() {
        let message = |kind: &str| json!({"extra": {"type": kind}});
        for (kind, kept) in [
            ("narrator", json!({})),
            ("comment", json!({"imported": message("comment")})),
        ] {
            let metadata = metadata(message(kind).as_object().unwrap(), ChatRole::System);

            assert_eq!(metadata, kept);
            assert_eq!(
                json!(extra_of_message(&metadata, ChatRole::System)),
                message(kind)
            );
        }
    }

    #[test]
    fn the_audience_of_a_whisper_is_a_mark_and_no_metadata() {
        let line = json!({"extra": {"audience": ["Ann", "Vera"], "model": "m"}});
        let line = line.as_object().unwrap();

        assert_eq!(audience(line).unwrap(), ["Ann", "Vera"]);
        assert_eq!(
            metadata(line, ChatRole::User),
            json!({"imported": {"extra": {"model": "m"}}})
        );
        let other = json!({"extra": {"audience": "all"}});
        let other = other.as_object().unwrap();
        assert_eq!(audience(other), None);
        assert_eq!(metadata(other, ChatRole::User), json!({"imported": other}));
    }

    /// A swipe may have the type of narrators in a message that is not a narrator's.
    #[test]
    fn only_the_line_of_a_system_message_is_a_narrators() {
        let kept = json!({"imported": {"extra": {"type": "narrator", "model": "m"}}});

        for role in [ChatRole::System, ChatRole::User, ChatRole::Assistant] {
            let line = extra_of_line(&kept, role);

            assert_eq!(is_narrator(&line), role == ChatRole::System, "{role:?}");
            assert_eq!(line["extra"]["model"], "m");
        }
    }

    #[test]
    fn oversized_or_nul_metadata_is_left_out() {
        for extra in [
            json!({"x": "y".repeat(5_000)}),
            json!({"x": "\0"}),
            json!("text"),
        ] {
            let message = json!({"extra": extra});
            assert_eq!(
                metadata(message.as_object().unwrap(), ChatRole::User),
                json!({})
            );
        }
    }
}
