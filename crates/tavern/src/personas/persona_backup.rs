//! Reads the untrusted bytes of SillyTavern's persona backup (`personas`, `persona_descriptions`,
//! `default_persona`) into names, titles and descriptions with their positions, and writes the same form.
//! The file names the picture of each persona, but does not contain it.

use base::display_name;
use serde_json::{Map, Value, json};

use crate::documents::{decoding, document, line_ends};
use crate::import_warning::ImportWarning;
use crate::lorebook_files::lenient_json;
use crate::personas::persona_placement;
use crate::personas::persona_placement::{MAX_DEPTH, PersonaPlacement, PersonaPosition};

/// The maximum size of a file, in bytes.
pub const MAX_FILE_BYTES: usize = 8 * 1024 * 1024;
/// The maximum number of personas that are read.
pub const MAX_PERSONAS: usize = 1_000;
/// The maximum length of a name and of a title, in characters; the same as elsewhere.
const MAX_NAME_CHARS: usize = 100;
/// The maximum length of a description, in bytes.
pub const MAX_DESCRIPTION_BYTES: usize = 16 * 1024;

/// A persona of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupPersona {
    pub name: String,
    /// For the list of personas; may be empty.
    pub title: String,
    pub description: String,
    pub placement: PersonaPlacement,
    pub is_default: bool,
}

/// The result of reading a backup.
#[derive(Debug, PartialEq)]
pub struct PersonaBackup {
    /// In the order of the file.
    pub personas: Vec<BackupPersona>,
    /// The file names of their pictures, in the same order.
    pub picture_names: Vec<String>,
    /// The number of personas that could not be read.
    pub n_skipped: usize,
    pub warnings: Vec<ImportWarning>,
}

/// Why a file is not accepted. The message is shown to the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PersonaBackupError(String);

impl PersonaBackupError {
    /// Creates an error with this reason.
    pub fn reason(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// Reads a backup.
///
/// # Errors
/// Returns the reason when the file is not a persona backup.
pub fn read(bytes: &[u8]) -> Result<PersonaBackup, PersonaBackupError> {
    if bytes.len() > MAX_FILE_BYTES {
        return reject("The file is larger than 8 MiB.");
    }
    let decoded = decoding::decode(bytes);
    // The parser refuses more than 128 levels.
    let Ok(Value::Object(mut file)) = serde_json::from_str(&decoded.text) else {
        return reject("The file is not a JSON object with at most 128 levels.");
    };
    // SillyTavern's `settings.json` contains the personas in `power_user`.
    if let Some(Value::Object(settings)) = file.shift_remove("power_user") {
        file = settings;
    }
    let Some(Value::Object(names)) = file.shift_remove("personas") else {
        let keys = document::describe_keys(&Value::Object(file));
        return reject(&format!(
            "The file has no `personas`. It must be a persona backup of SillyTavern. {keys}"
        ));
    };
    let no_descriptions = Map::new();
    let descriptions = file.get("persona_descriptions").and_then(Value::as_object);
    let descriptions = descriptions.unwrap_or(&no_descriptions);
    let default = file.get("default_persona").and_then(Value::as_str);
    let mut backup = PersonaBackup {
        personas: Vec::new(),
        picture_names: Vec::new(),
        n_skipped: names.len().saturating_sub(MAX_PERSONAS),
        warnings: Vec::from_iter(decoded.warning),
    };
    if backup.n_skipped > 0 {
        let sentence = format!("Only the first {MAX_PERSONAS} personas of the file were read.");
        let warning = ImportWarning::new("personas_cut", sentence);
        backup.warnings.push(warning.with("n", MAX_PERSONAS));
    }
    for (key, name) in names.iter().take(MAX_PERSONAS) {
        let is_default = default == Some(key.as_str());
        backup.add(key, name, descriptions.get(key), is_default);
    }
    Ok(backup)
}

impl PersonaBackup {
    fn add(&mut self, key: &str, name: &Value, description: Option<&Value>, is_default: bool) {
        let name = name.as_str().filter(|it| !it.contains('\0'));
        let Some(name) = name.and_then(|it| display_name::truncate(it, MAX_NAME_CHARS)) else {
            self.n_skipped += 1;
            let sentence = "A persona without a name was skipped.";
            return self.warn(ImportWarning::new("persona_without_name", sentence));
        };
        // Old files have the text itself instead of an object.
        let text = description.and_then(|it| it.as_str().or_else(|| it["description"].as_str()));
        let text = text.unwrap_or_default();
        let text = line_ends::normalize(text).replace('\0', "");
        if text.len() > MAX_DESCRIPTION_BYTES {
            self.n_skipped += 1;
            let sentence = format!("“{name}” was skipped: its description is longer than 16 KiB.");
            let warning = ImportWarning::new("persona_too_long", sentence);
            return self.warn(warning.with("name", name));
        }
        let lorebook = description.and_then(|it| it["lorebook"].as_str());
        if lorebook.is_some_and(|it| !it.is_empty()) {
            let sentence = format!("The lorebook of “{name}” is not linked.");
            let warning = ImportWarning::new("persona_lorebook", sentence);
            self.warn(warning.with("name", name.clone()));
        }
        let title = self.read_title(&name, description);
        let placement = self.read_placement(&name, description, !text.trim().is_empty());
        self.picture_names.push(key.to_owned());
        self.personas.push(BackupPersona {
            name,
            title,
            description: text,
            placement,
            is_default,
        });
    }

    fn read_title(&mut self, name: &str, description: Option<&Value>) -> String {
        let title = description.and_then(|it| it["title"].as_str());
        let title = title.unwrap_or_default();
        let read = display_name::truncate(title, MAX_NAME_CHARS).unwrap_or_default();
        // What is cut is more than white space.
        if display_name::truncate(title, usize::MAX).is_some_and(|it| it != read) {
            let sentence =
                format!("The title of “{name}” was shortened to {MAX_NAME_CHARS} characters.");
            let warning = ImportWarning::new("persona_title_cut", sentence);
            self.warn(warning.with("name", name).with("n", MAX_NAME_CHARS));
        }
        read
    }

    fn read_placement(
        &mut self,
        name: &str,
        description: Option<&Value>,
        has_text: bool,
    ) -> PersonaPlacement {
        let number = |key: &str| lenient_json::int(description.and_then(|it| it.get(key)));
        let usual = PersonaPlacement::default();
        let position = number("position").map(PersonaPosition::from_number);
        if position == Some(None) && has_text {
            let sentence = format!(
                "“{name}” is sent where the preset has the persona, not at the position in the file."
            );
            let warning = ImportWarning::new("persona_position", sentence);
            self.warn(warning.with("name", name));
        }
        let depth = number("depth").map(|it| it.clamp(0, MAX_DEPTH));
        let role = number("role").and_then(persona_placement::role_from_number);
        PersonaPlacement {
            position: position.flatten().unwrap_or(usual.position),
            depth: depth.unwrap_or(usual.depth),
            role: role.unwrap_or(usual.role),
        }
    }

    fn warn(&mut self, warning: ImportWarning) {
        self.warnings.push(warning);
    }
}

/// Returns a backup of these personas.
pub fn write(personas: &[BackupPersona]) -> Value {
    let keyed = || personas.iter().enumerate().map(|(at, it)| (key(at), it));
    let names: Map<String, Value> = keyed().map(|(key, it)| (key, json!(it.name))).collect();
    let description = |it: &BackupPersona| {
        let placement = it.placement;
        json!({
            "description": it.description, "position": placement.position.number(),
            "depth": placement.depth, "role": persona_placement::role_number(placement.role),
            "lorebook": "", "title": it.title,
        })
    };
    let descriptions: Map<String, Value> =
        keyed().map(|(key, it)| (key, description(it))).collect();
    let default = keyed().find(|(_, it)| it.is_default).map(|(key, _)| key);
    json!({
        "personas": names,
        "persona_descriptions": descriptions,
        "default_persona": default,
    })
}

/// Returns the name of the picture by which the file refers to a persona.
fn key(at: usize) -> String {
    format!("persona-{}.png", at + 1)
}

fn reject<T>(reason: &str) -> Result<T, PersonaBackupError> {
    Err(PersonaBackupError(reason.to_owned()))
}

#[cfg(test)]
mod tests {
    use base::prompt_role::PromptRole;
    use serde_json::{Value, json};

    use super::{BackupPersona, MAX_PERSONAS, PersonaBackup, read, write};
    use crate::personas::persona_placement::{PersonaPlacement, PersonaPosition};

    fn read_json(file: &Value) -> PersonaBackup {
        read(file.to_string().as_bytes()).expect("a backup")
    }

    fn persona(name: &str, description: &str, is_default: bool) -> BackupPersona {
        BackupPersona {
            name: name.to_owned(),
            title: String::new(),
            description: description.to_owned(),
            placement: PersonaPlacement::default(),
            is_default,
        }
    }

    #[test]
    fn names_descriptions_and_the_default_are_read() {
        let backup = read_json(&json!({
            "personas": {"a.png": "Ann", "b.png": " Bob\n Lee "},
            "persona_descriptions": {
                "a.png": {"description": "A sailor.\r\nTall.", "position": 0},
                "b.png": "Old form.",
            },
            "default_persona": "b.png",
        }));

        let expected = [
            persona("Ann", "A sailor.\nTall.", false),
            persona("Bob Lee", "Old form.", true),
        ];
        assert_eq!(backup.personas, expected);
        assert_eq!((backup.n_skipped, backup.warnings.len()), (0, 0));
    }

    fn at_depth(depth: i64, role: PromptRole) -> PersonaPlacement {
        PersonaPlacement {
            position: PersonaPosition::AtDepth,
            depth,
            role,
        }
    }

    #[test]
    fn titles_and_positions_are_read() {
        let backup = read_json(&json!({
            "personas": {"a": "Ann", "b": "Bob", "c": "Cid", "d": "Dan"},
            "persona_descriptions": {
                "a": {"description": "A.", "title": " Sea\nfarer ", "position": 4, "depth": 7, "role": 2},
                "b": {"description": "B.", "position": 9, "depth": -1, "role": 8},
                "c": {"description": "C.", "position": "3", "depth": 99_999, "role": 1},
                "d": {"description": "D.", "position": 1, "title": null},
            },
        }));

        let read: Vec<_> = backup.personas.iter().map(|it| it.placement).collect();
        let at = |position, depth, role| PersonaPlacement {
            position,
            depth,
            role,
        };
        let expected = [
            at_depth(7, PromptRole::Assistant),
            at(PersonaPosition::None, 0, PromptRole::System),
            at(PersonaPosition::NoteBottom, 10_000, PromptRole::User),
            at(PersonaPosition::InPrompt, 2, PromptRole::System),
        ];
        assert_eq!(read, expected);
        let titles: Vec<_> = backup.personas.iter().map(|it| &it.title).collect();
        assert_eq!(titles, ["Sea farer", "", "", ""]);
        assert!(backup.warnings.is_empty());
    }

    #[test]
    fn what_has_no_place_is_named_in_a_warning() {
        let backup = read_json(&json!({
            "personas": {"a": "Ann", "b": 7, "c": "\u{200b}", "d": "Dan"},
            "persona_descriptions": {
                "a": {"description": "Deep.", "position": 7, "lorebook": "Sea", "title": "T".repeat(101)},
                "d": {"description": "x".repeat(17 * 1024)},
            },
        }));

        let ann = BackupPersona {
            title: "T".repeat(100),
            ..persona("Ann", "Deep.", false)
        };
        assert_eq!(backup.personas, [ann]);
        assert_eq!(backup.n_skipped, 3);
        let codes: Vec<_> = backup.warnings.iter().map(|it| it.code.as_ref()).collect();
        let expected = [
            "persona_lorebook",
            "persona_title_cut",
            "persona_position",
            "persona_without_name",
            "persona_without_name",
            "persona_too_long",
        ];
        assert_eq!(codes, expected);
    }

    #[test]
    fn at_most_a_thousand_personas_are_read() {
        let names: serde_json::Map<String, Value> = (0..=MAX_PERSONAS)
            .map(|n| (format!("{n}.png"), json!(format!("P{n}"))))
            .collect();

        let backup = read_json(&json!({ "personas": names }));

        assert_eq!(backup.personas.len(), MAX_PERSONAS);
        assert_eq!(backup.n_skipped, 1);
    }

    #[test]
    fn any_other_file_is_refused() {
        for file in [
            "",
            "[]",
            "{}",
            r#"{"personas": []}"#,
            "not JSON",
            "\u{feff}{}",
        ] {
            assert!(read(file.as_bytes()).is_err(), "{file:?}");
        }
    }

    #[test]
    fn a_written_backup_is_read_again() {
        let ann = BackupPersona {
            title: "Seafarer".to_owned(),
            placement: at_depth(3, PromptRole::User),
            ..persona("Ann", "A sailor.", false)
        };
        let personas = [ann, persona("Bob", "", true)];

        assert_eq!(read_json(&write(&personas)).personas, personas);
    }
}
