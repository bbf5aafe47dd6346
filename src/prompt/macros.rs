//! `{{char}}`, `{{user}}` and their like in cards, personas and presets.
//!
//! Names are found whatever their case; what is not known stays as it is written. A macro may stand
//! for text with macros in it (`{{description}}`), so depth, number and output are bounded.
//! **Invariant:** nothing here is ever applied to chat text; history goes out as it was written.

use chrono::DateTime;
use chrono::Utc;

use crate::clock::Timestamp;

/// How deep macros may stand inside what macros stand for.
const MAX_DEPTH: usize = 16;
/// How many macros one text may run.
const MAX_STEPS: usize = 20_000;
/// How long a text may become, in bytes. What is longer is cut.
const MAX_OUTPUT: usize = 256 * 1024;
/// How far the end of a macro is looked for, in bytes: a card full of beginnings must not cost a
/// walk to its end for each.
const MAX_NAME: usize = 64;
const MAX_COMMENT: usize = 8 * 1024;

/// What the macros stand for.
#[derive(Clone, Debug, Default)]
pub struct Meanings {
    /// Who speaks, or whose card this is.
    pub character: String,
    /// Who is spoken to.
    pub user: String,
    /// Who the user plays.
    pub persona: String,
    pub description: String,
    pub personality: String,
    pub scenario: String,
    pub example_messages: String,
    /// All characters, or the only one.
    pub group: String,
    /// All characters that are not muted.
    pub group_not_muted: String,
    /// Everybody but the speaker.
    pub not_character: String,
    /// The text that the present one replaces, if it replaces any.
    pub original: Option<String>,
    /// The moment told by the clock macros.
    pub now: Option<Timestamp>,
}

/// `text` with its macros expanded.
pub fn expand(text: &str, meanings: &Meanings) -> String {
    let mut expansion = Expansion {
        meanings,
        original: meanings.original.as_deref(),
        out: String::with_capacity(text.len()),
        swallows_newlines: false,
        is_full: false,
        steps_left: MAX_STEPS,
    };
    expansion.run(text, 0);
    expansion.out
}

struct Expansion<'a> {
    meanings: &'a Meanings,
    /// Used up by the first `{{original}}`.
    original: Option<&'a str>,
    out: String,
    /// A `{{trim}}` was the last thing written.
    swallows_newlines: bool,
    /// Something was cut; nothing is written any more.
    is_full: bool,
    steps_left: usize,
}

/// What a macro does.
enum Effect<'a> {
    /// Stands for a name or a number: nothing in it is run.
    Plain(String),
    /// Stands for text that may have macros in it.
    Text(&'a str),
    /// Takes away the line breaks around it.
    Trim,
}

impl<'a> Expansion<'a> {
    fn run(&mut self, text: &str, depth: usize) {
        let mut rest = text;
        while let Some(at) = rest.find(['{', '<']).filter(|_| !self.is_full) {
            self.write(&rest[..at]);
            rest = &rest[at..];
            rest = match self.step(rest, depth) {
                Some(n_bytes) => &rest[n_bytes..],
                None => {
                    self.write(&rest[..1]);
                    &rest[1..]
                }
            };
        }
        self.write(rest);
    }

    /// Runs the macro at the beginning of `rest` and says how long it is; nothing if there is none.
    fn step(&mut self, rest: &str, depth: usize) -> Option<usize> {
        if self.steps_left == 0 || depth >= MAX_DEPTH {
            return None;
        }
        let (name, n_bytes) = in_braces(rest).or_else(|| in_angles(rest))?;
        let effect = self.effect(name)?;
        self.steps_left -= 1;
        match effect {
            Effect::Plain(text) => self.write(&text),
            Effect::Text(text) => self.run(text, depth + 1),
            Effect::Trim => {
                self.out
                    .truncate(self.out.trim_end_matches(['\n', '\r']).len());
                self.swallows_newlines = true;
            }
        }
        Some(n_bytes)
    }

    fn effect(&mut self, name: &str) -> Option<Effect<'a>> {
        let meanings = self.meanings;
        if name.starts_with("//") {
            return Some(Effect::Plain(String::new()));
        }
        let name = name.trim().to_lowercase();
        let effect = match name.as_str() {
            "char" | "bot" => Effect::Plain(meanings.character.clone()),
            "user" => Effect::Plain(meanings.user.clone()),
            "group" | "charifnotgroup" => Effect::Plain(meanings.group.clone()),
            "groupnotmuted" => Effect::Plain(meanings.group_not_muted.clone()),
            "notchar" => Effect::Plain(meanings.not_character.clone()),
            "persona" => Effect::Text(&meanings.persona),
            "description" => Effect::Text(&meanings.description),
            "personality" => Effect::Text(&meanings.personality),
            "scenario" => Effect::Text(&meanings.scenario),
            "mesexamples" => Effect::Text(&meanings.example_messages),
            "original" if meanings.original.is_some() => {
                Effect::Text(self.original.take().unwrap_or_default())
            }
            "newline" => Effect::Plain("\n".into()),
            "noop" => Effect::Plain(String::new()),
            "trim" => Effect::Trim,
            _ => Effect::Plain(told_by_clock(&name, meanings.now?.utc())?),
        };
        Some(effect)
    }

    fn write(&mut self, text: &str) {
        let text = match self.swallows_newlines {
            true => text.trim_start_matches(['\n', '\r']),
            false => text,
        };
        if text.is_empty() || self.is_full {
            return;
        }
        self.swallows_newlines = false;
        let room = text.floor_char_boundary(MAX_OUTPUT.saturating_sub(self.out.len()));
        self.is_full = room < text.len();
        self.out.push_str(&text[..room]);
    }
}

/// What the clock macros tell, in UTC: the only time that everybody in a room shares.
fn told_by_clock(name: &str, now: DateTime<Utc>) -> Option<String> {
    let format = match name {
        "time" => "%-I:%M %p",
        "date" => "%B %-d, %Y",
        "weekday" => "%A",
        "isotime" => "%H:%M",
        "isodate" => "%Y-%m-%d",
        _ => return None,
    };
    Some(now.format(format).to_string())
}

/// The name in `{{name}}` and the length of it all. A comment may hold braces, a name may not.
fn in_braces(rest: &str) -> Option<(&str, usize)> {
    let inside = rest.strip_prefix("{{")?;
    let is_comment = inside.starts_with("//");
    let reach = if is_comment { MAX_COMMENT } else { MAX_NAME };
    let name = &inside[..inside[..inside.floor_char_boundary(reach)].find("}}")?];
    let is_name = is_comment || !name.contains(['{', '}']);
    is_name.then_some((name, name.len() + 4))
}

/// The older form of the same: `<USER>`, `<BOT>`, `<CHAR>`, `<GROUP>`, `<CHARIFNOTGROUP>`.
fn in_angles(rest: &str) -> Option<(&str, usize)> {
    const NAMES: [&str; 5] = ["user", "bot", "char", "group", "charifnotgroup"];
    let inside = rest.strip_prefix('<')?;
    let name = &inside[..inside[..inside.floor_char_boundary(MAX_NAME)].find('>')?];
    let is_known = NAMES.iter().any(|it| it.eq_ignore_ascii_case(name));
    is_known.then_some((name, name.len() + 2))
}

#[cfg(test)]
#[path = "macros_tests.rs"]
mod tests;
