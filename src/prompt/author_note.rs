//! Resolves the author's note of a prompt from the settings of the conversation, the speaker and
//! the space: a text that is inserted near the end, every few user messages.
//!
//! The conversation's note replaces the speaker's, which replaces the space's. The speaker's note
//! may also be placed before or after the text of the space's note.

use base::prompt_role::PromptRole;
use serde::Deserialize;
use serde_json::Value;

/// The insertion depth of a note without one, in messages.
const DEFAULT_DEPTH: usize = 4;

/// The author's note of one prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorNote {
    /// The text with its macros. May be blank: lore around the note is inserted anyway.
    pub text: String,
    pub position: NotePosition,
    /// The number of messages after it.
    pub depth: usize,
    pub role: PromptRole,
    /// Insertion frequency, in user messages; 0: never.
    pub interval: i64,
    /// The texts of the speaker's note and of the space's note, whether or not they are inserted.
    pub speaker_text: String,
    pub space_text: String,
}

impl Default for AuthorNote {
    fn default() -> Self {
        Self {
            text: String::new(),
            position: NotePosition::InChat,
            depth: DEFAULT_DEPTH,
            role: PromptRole::System,
            interval: 1,
            speaker_text: String::new(),
            space_text: String::new(),
        }
    }
}

/// Where a note is inserted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotePosition {
    #[default]
    InChat,
    /// Before all other blocks.
    Before,
    /// After the cards, before the messages.
    After,
}

/// How a speaker's note is combined with the space's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum NoteCombination {
    #[default]
    Replace,
    Before,
    After,
}

/// A note as it is stored in settings.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct NoteSettings {
    text: Option<String>,
    position: Option<NotePosition>,
    depth: Option<usize>,
    role: Option<PromptRole>,
    interval: Option<i64>,
    combine: Option<NoteCombination>,
}

impl AuthorNote {
    /// Returns whether it is inserted when the conversation has `n_user_turns` user messages.
    pub fn is_due(&self, n_user_turns: i64) -> bool {
        self.interval > 0 && n_user_turns % self.interval == 0
    }
}

/// Returns the note from the `settings` of the conversation, the speaker and the space.
pub fn resolve(conversation: &Value, speaker: &Value, space: &Value) -> AuthorNote {
    let (conversation, speaker, space) = (
        parse_settings(conversation),
        parse_settings(speaker),
        parse_settings(space),
    );
    let (speaker_text, space_text) = (non_blank_text(&speaker), non_blank_text(&space));
    let note = match (
        non_blank_text(&conversation),
        speaker_text.clone(),
        space_text.clone(),
    ) {
        (Some(text), _, _) => to_note(&conversation, text),
        (None, Some(own), Some(rooms)) => match speaker.combine.unwrap_or_default() {
            NoteCombination::Replace => to_note(&speaker, own),
            NoteCombination::Before => to_note(&space, format!("{own}\n{rooms}")),
            NoteCombination::After => to_note(&space, format!("{rooms}\n{own}")),
        },
        (None, Some(text), None) => to_note(&speaker, text),
        (None, None, Some(text)) => to_note(&space, text),
        (None, None, None) => to_note(&space, String::new()),
    };
    AuthorNote {
        speaker_text: speaker_text.unwrap_or_default(),
        space_text: space_text.unwrap_or_default(),
        ..note
    }
}

/// Settings were validated when they were stored; an invalid note counts as not set.
fn parse_settings(settings: &Value) -> NoteSettings {
    NoteSettings::deserialize(&settings["author_note"]).unwrap_or_default()
}

fn non_blank_text(settings: &NoteSettings) -> Option<String> {
    let text = settings.text.as_deref().map(str::trim);
    text.filter(|it| !it.is_empty()).map(str::to_owned)
}

fn to_note(settings: &NoteSettings, text: String) -> AuthorNote {
    let usual = AuthorNote::default();
    AuthorNote {
        text,
        position: settings.position.unwrap_or(usual.position),
        depth: settings.depth.unwrap_or(usual.depth),
        role: settings.role.unwrap_or(usual.role),
        interval: settings.interval.unwrap_or(usual.interval),
        ..usual
    }
}

#[cfg(test)]
mod tests {
    use base::prompt_role::PromptRole;
    use serde_json::{Value, json};

    use super::{AuthorNote, NotePosition, resolve};

    fn settings(text: &str) -> Value {
        json!({"author_note": {"text": text}})
    }

    #[test]
    fn the_conversations_note_overrides_the_speakers_which_overrides_the_spaces() {
        let (none, of) = (json!({}), settings);
        let text = |a: &Value, b: &Value, c: &Value| resolve(a, b, c).text;

        assert_eq!(text(&of("a"), &of("b"), &of("c")), "a");
        assert_eq!(text(&of("  "), &of("b"), &of("c")), "b");
        assert_eq!(text(&none, &none, &of("c")), "c");
        assert_eq!(text(&none, &json!({"author_note": 5}), &none), "");
    }

    #[test]
    fn a_speakers_note_may_precede_or_follow_the_spaces_note_at_its_position() {
        let space = json!({"author_note": {"text": "room", "depth": 2, "role": "user"}});
        let combined = |how| {
            let own = json!({"author_note": {"text": "own", "depth": 9, "combine": how}});
            resolve(&json!({}), &own, &space)
        };

        assert_eq!(combined("before").text, "own\nroom");
        assert_eq!(combined("after").text, "room\nown");
        assert_eq!(
            (combined("after").depth, combined("after").role),
            (2, PromptRole::User)
        );
        assert_eq!(
            (combined("replace").depth, combined("replace").text.as_str()),
            (9, "own")
        );
    }

    #[test]
    fn missing_fields_of_a_note_have_defaults() {
        let note = resolve(
            &json!({"author_note": {"text": "x", "position": "before", "interval": 3}}),
            &json!({}),
            &json!({}),
        );

        let usual = AuthorNote::default();
        assert_eq!((note.depth, note.role), (usual.depth, usual.role));
        assert_eq!((note.position, note.interval), (NotePosition::Before, 3));
    }

    #[test]
    fn a_note_is_due_at_its_interval() {
        let due = |interval, turn| {
            let note = AuthorNote {
                interval,
                ..AuthorNote::default()
            };
            note.is_due(turn)
        };

        assert!(due(1, 1) && due(1, 7) && due(3, 3) && due(3, 6));
        assert!(!due(0, 1) && !due(3, 1) && !due(3, 4));
    }
}
