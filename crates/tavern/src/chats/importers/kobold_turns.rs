//! Splits the story of a KoboldAI save into turns: at the instruct tags of the save, else at lines
//! that begin with the name of a speaker, else at the pieces in which the story grew.

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;

use crate::chats::message::ChatRole;

/// The separator between the names of characters.
const NAME_SEPARATOR: &str = "||$||";
/// The name of the user if the save states none.
const USUAL_USER: &str = "You";
/// The maximum length of a name at the start of a line, in characters.
const MAX_NAME_CHARS: usize = 40;
/// What begins a user's turn in an adventure.
const ADVENTURE_MARK: char = '>';

/// What the settings of a save say about its turns.
#[derive(Debug, Default)]
pub struct StorySettings {
    pub user: Option<String>,
    pub characters: Vec<String>,
    tags: Vec<(String, Tag)>,
}

/// What a tag in the text means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    Begins(ChatRole),
    Ends,
}

/// A turn of the story.
#[derive(Debug, PartialEq)]
pub struct Turn {
    pub name: Option<String>,
    pub role: ChatRole,
    pub text: String,
}

impl StorySettings {
    /// Reads `savedsettings`; missing settings have the defaults of the program.
    pub fn read(saved: &Value) -> Self {
        let text = |field: &str| saved.get(field).and_then(Value::as_str);
        let begins = [
            ("{{[INPUT]}}", "instruct_starttag", ChatRole::User),
            ("{{[OUTPUT]}}", "instruct_endtag", ChatRole::Assistant),
            ("{{[SYSTEM]}}", "instruct_systag", ChatRole::System),
        ];
        let ends = [
            ("{{[INPUT_END]}}", "instruct_starttag_end"),
            ("{{[OUTPUT_END]}}", "instruct_endtag_end"),
            ("{{[SYSTEM_END]}}", "instruct_systag_end"),
        ];
        let mut tags: Vec<(String, Tag)> = Vec::new();
        let begins = begins.map(|(usual, field, role)| (usual, field, Tag::Begins(role)));
        let ends = ends.map(|(usual, field)| (usual, field, Tag::Ends));
        for (usual, field, tag) in begins.into_iter().chain(ends) {
            tags.push((usual.to_owned(), tag));
            // Line breaks are written as `\n` in two characters.
            let own = text(field).unwrap_or_default().replace("\\n", "\n");
            if !own.trim().is_empty() {
                tags.push((own.trim().to_owned(), tag));
            }
        }
        let name = |it: &str| {
            let it = it.trim();
            (!it.is_empty()).then(|| it.to_owned())
        };
        let characters = text("chatopponent").unwrap_or_default();
        Self {
            user: text("chatname").and_then(name),
            characters: characters.split(NAME_SEPARATOR).filter_map(name).collect(),
            tags,
        }
    }
}

/// Splits a story, given in the pieces in which it grew. Turns without a visible text are left out.
pub fn split(pieces: &[&str], settings: &StorySettings) -> Vec<Turn> {
    let story = pieces.concat();
    let turns = at_tags(&story, settings)
        .or_else(|| at_names(&story, settings))
        .unwrap_or_else(|| at_pieces(pieces));
    let trimmed = turns.into_iter().map(|it| Turn {
        text: it.text.trim().to_owned(),
        ..it
    });
    trimmed.filter(|it| !it.text.is_empty()).collect()
}

/// Returns the turns between tags; `None` if no turn begins with one.
fn at_tags(story: &str, settings: &StorySettings) -> Option<Vec<Turn>> {
    let patterns = settings.tags.iter().map(|it| &it.0);
    let search = AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .build(patterns)
        .ok()?;
    let mut turns = vec![Turn {
        name: None,
        role: ChatRole::Assistant,
        text: String::new(),
    }];
    let mut from = 0;
    for found in search.find_iter(story) {
        push_text(&mut turns, &story[from..found.start()]);
        from = found.end();
        if let Tag::Begins(role) = settings.tags[found.pattern().as_usize()].1 {
            turns.push(Turn {
                name: None,
                role,
                text: String::new(),
            });
        }
    }
    push_text(&mut turns, &story[from..]);
    (turns.len() > 1).then_some(turns)
}

fn push_text(turns: &mut [Turn], text: &str) {
    if let Some(last) = turns.last_mut() {
        last.text.push_str(text);
    }
}

/// Returns the turns that begin with `Name:` lines; `None` if there is no such line of the user.
fn at_names(story: &str, settings: &StorySettings) -> Option<Vec<Turn>> {
    let user = settings.user.as_deref().unwrap_or(USUAL_USER);
    let is_speaker = |name: &str| {
        let known = &settings.characters;
        // Without the names of characters, each short text before a colon is a name.
        name == user || known.is_empty() || known.iter().any(|it| it == name)
    };
    let mut turns: Vec<Turn> = Vec::new();
    for line in story.split('\n') {
        let named = name_of(line).filter(|(name, _)| is_speaker(name));
        match (named, turns.last_mut()) {
            (Some((name, text)), _) => turns.push(Turn {
                name: Some(name.to_owned()),
                role: if name == user {
                    ChatRole::User
                } else {
                    ChatRole::Assistant
                },
                text: text.to_owned(),
            }),
            (None, Some(last)) => {
                last.text.push('\n');
                last.text.push_str(line);
            }
            (None, None) => turns.push(Turn {
                name: None,
                role: ChatRole::Assistant,
                text: line.to_owned(),
            }),
        }
    }
    turns
        .iter()
        .any(|it| it.role == ChatRole::User)
        .then_some(turns)
}

/// Returns the name at the start of a line and the text after it.
fn name_of(line: &str) -> Option<(&str, &str)> {
    let (name, text) = line.split_once(':')?;
    let name = name.trim();
    let is_name = !name.is_empty() && name.chars().count() <= MAX_NAME_CHARS;
    let is_spoken = text.is_empty() || text.starts_with(char::is_whitespace);
    (is_name && is_spoken).then_some((name, text))
}

fn at_pieces(pieces: &[&str]) -> Vec<Turn> {
    let turn = |piece: &&str| {
        let text = piece.trim();
        let command = text.strip_prefix(ADVENTURE_MARK);
        Turn {
            name: None,
            role: match command {
                Some(_) => ChatRole::User,
                None => ChatRole::Assistant,
            },
            text: command.unwrap_or(text).to_owned(),
        }
    };
    pieces.iter().map(turn).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{StorySettings, split};
    use crate::chats::message::ChatRole;

    fn turns(pieces: &[&str], saved: &Value) -> Vec<(Option<String>, char, String)> {
        let turns = split(pieces, &StorySettings::read(saved)).into_iter();
        let read = turns.map(|it| {
            let role = match it.role {
                ChatRole::User => 'u',
                ChatRole::Assistant => 'a',
                ChatRole::System => 's',
            };
            (it.name, role, it.text)
        });
        read.collect()
    }

    fn unnamed(role: char, text: &str) -> (Option<String>, char, String) {
        (None, role, text.to_owned())
    }

    fn named(name: &str, role: char, text: &str) -> (Option<String>, char, String) {
        (Some(name.to_owned()), role, text.to_owned())
    }

    #[test]
    fn instruct_tags_of_the_save_and_their_placeholders_begin_turns() {
        let saved = json!({"instruct_starttag": "\\n### Instruction:\\n",
            "instruct_endtag": "\\n### Response:\\n"});

        assert_eq!(
            turns(
                &[
                    "An opening.\n### Instruction:\nHello.",
                    "\n### Response:\nHi.\nYou: no"
                ],
                &saved
            ),
            [
                unnamed('a', "An opening."),
                unnamed('u', "Hello."),
                unnamed('a', "Hi.\nYou: no")
            ]
        );
        assert_eq!(
            turns(
                &[
                    "{{[SYSTEM]}}Rules.{{[SYSTEM_END]}}{{[INPUT]}}Hello.{{[OUTPUT]}}",
                    "Hi."
                ],
                &json!({})
            ),
            [
                unnamed('s', "Rules."),
                unnamed('u', "Hello."),
                unnamed('a', "Hi.")
            ]
        );
    }

    #[test]
    fn names_at_the_start_of_lines_begin_turns() {
        let saved = json!({"chatname": "Ben", "chatopponent": "Ada||$||Charles"});

        assert_eq!(
            turns(
                &[
                    "The mill.\nBen: Hello.\nA note: here.",
                    "\nAda: Hi.",
                    "\nCharles: Hm.\n"
                ],
                &saved
            ),
            [
                unnamed('a', "The mill."),
                named("Ben", 'u', "Hello.\nA note: here."),
                named("Ada", 'a', "Hi."),
                named("Charles", 'a', "Hm."),
            ]
        );
        assert_eq!(
            turns(&["You: Hello.\nAda: Hi."], &json!({})),
            [named("You", 'u', "Hello."), named("Ada", 'a', "Hi.")]
        );
    }

    #[test]
    fn a_story_is_split_where_it_grew() {
        assert_eq!(
            turns(
                &["Once: upon a time.", "", " It rained.", "\n> go home\n"],
                &json!({})
            ),
            [
                unnamed('a', "Once: upon a time."),
                unnamed('a', "It rained."),
                unnamed('u', "go home"),
            ]
        );
    }
}
