//! Which keys stand where: all plain keys of all books are looked for at once, each text once.
//!
//! Each text is searched when it is needed and what was found is remembered by where it stood, so
//! that an entry may ask for its own depth and its own texts, and a pass that looks further back
//! reads only what is new. **Invariant:** the work is bounded: texts are cut off at a limit, and
//! when the steps of the [`Effort`] are used up nothing more is found.

use crate::lore::effort::Effort;
use crate::lore::effort::STEPS_OF_FOUND;
use crate::lore::pattern;
use crate::lore::pattern::Pattern;
use aho_corasick::AhoCorasick;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// The most text that plain keys are looked for in, in bytes.
const MAX_TEXT: usize = 1024 * 1024;
/// The most text that a pattern sees, in bytes.
const MAX_PATTERN_TEXT: usize = 32 * 1024;
/// What each message begins with in the text that a pattern sees, so that none runs into the next.
const MARK: char = '\u{1}';

/// A key, ready to be looked for.
#[derive(Clone)]
pub struct Key {
    /// As it was written, macros done.
    pub text: String,
    kind: KeyKind,
}

#[derive(Clone)]
enum KeyKind {
    Plain {
        word: usize,
        is_exact: bool,
        bounds: Bounds,
    },
    Pattern(Arc<Pattern>),
}

/// What has to stand around a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounds {
    /// Anything.
    None,
    /// No letter that would make it part of a longer word.
    Words,
    /// No ASCII letter, digit or underscore.
    Ascii,
}

/// Where a text comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// The so-manyeth message from the end.
    Message(usize),
    /// What every entry sees.
    Extra,
    /// What an entry sees if it says so: one bit.
    Text(u8),
    /// What other entries say.
    Recursion,
}

/// What an entry sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// How many messages.
    pub depth: usize,
    /// Which of the texts, a bit each.
    pub texts: u8,
    pub recursion: bool,
}

/// All keys of a scan, and what has been found of them.
pub struct Search {
    folded: Words,
    exact: Words,
    /// What has been searched, in order.
    seen: Vec<(Zone, String)>,
    n_bytes: usize,
    effort: Effort,
    joined: RefCell<HashMap<(View, usize), Rc<str>>>,
}

/// Plain keys of one kind, and where they were found.
#[derive(Default)]
struct Words {
    numbers: HashMap<String, usize>,
    words: Vec<String>,
    automaton: Option<AhoCorasick>,
    found: Vec<[Found; 3]>,
}

/// Where a key was found.
#[derive(Clone, Copy)]
struct Found {
    nearest_message: usize,
    extra: bool,
    texts: u8,
    recursion: bool,
}

impl Default for Found {
    fn default() -> Self {
        Self {
            nearest_message: usize::MAX,
            extra: false,
            texts: 0,
            recursion: false,
        }
    }
}

impl Found {
    fn note(&mut self, zone: Zone) {
        match zone {
            Zone::Message(n) => self.nearest_message = self.nearest_message.min(n),
            Zone::Extra => self.extra = true,
            Zone::Text(bit) => self.texts |= bit,
            Zone::Recursion => self.recursion = true,
        }
    }

    fn is_in(&self, view: View) -> bool {
        // Depth 0 sees no message, and nothing of what stands beside them either.
        self.nearest_message < view.depth
            || (view.depth > 0
                && (self.extra
                    || self.texts & view.texts != 0
                    || (view.recursion && self.recursion)))
    }
}

impl Search {
    /// A search that has not found anything yet.
    pub fn new() -> Self {
        Self {
            folded: Words::default(),
            exact: Words::default(),
            seen: Vec::new(),
            n_bytes: 0,
            effort: Effort::new(),
            joined: RefCell::default(),
        }
    }

    /// A key that is looked for as it stands. To be asked before anything is searched.
    pub fn plain(&mut self, text: &str, is_exact: bool, bounds: Bounds) -> Key {
        let (words, folded) = match is_exact {
            true => (&mut self.exact, text.to_owned()),
            false => (&mut self.folded, text.to_lowercase()),
        };
        // Several words are looked for as they stand where SillyTavern's rule is asked for.
        let bounds = match bounds {
            Bounds::Ascii if text.contains(char::is_whitespace) => Bounds::None,
            bounds => bounds,
        };
        let kind = KeyKind::Plain {
            word: words.number(folded),
            is_exact,
            bounds,
        };
        Key {
            text: text.to_owned(),
            kind,
        }
    }

    /// A key that is a pattern. `None`: it cannot be read.
    pub fn pattern(&self, text: &str, body: &str, flags: &str) -> Option<Key> {
        Some(Key {
            text: text.to_owned(),
            kind: KeyKind::Pattern(pattern::compile(body, flags)?),
        })
    }

    /// Looks for all plain keys in a text.
    pub fn read(&mut self, zone: Zone, text: &str) {
        let room = MAX_TEXT - self.n_bytes;
        let text = &text[..text.floor_char_boundary(room)];
        self.n_bytes += text.len();
        if !self.folded.words.is_empty() {
            self.folded.read(zone, &text.to_lowercase(), &self.effort);
        }
        self.exact.read(zone, text, &self.effort);
        self.seen.push((zone, text.to_owned()));
    }

    /// Is the key in what an entry sees? `Err`: it would have taken too long.
    pub fn finds(&self, key: &Key, view: View) -> Result<bool, pattern::Trouble> {
        match &key.kind {
            KeyKind::Plain {
                word,
                is_exact,
                bounds,
            } => {
                let words = if *is_exact { &self.exact } else { &self.folded };
                Ok(words.found[*word][*bounds as usize].is_in(view))
            }
            KeyKind::Pattern(pattern) => {
                let text = self.joined(view);
                if !self.effort.takes(pattern.steps(text.len())) || self.effort.is_late() {
                    return Err(pattern::Trouble::TooSlow);
                }
                let found = pattern.is_match(&text);
                if found.is_err() {
                    self.effort.takes(pattern::STEPS_OF_GIVEN_UP);
                }
                found
            }
        }
    }

    /// All that an entry sees, newest first, as one text.
    fn joined(&self, view: View) -> Rc<str> {
        let key = (view, self.seen.len());
        if let Some(joined) = self.joined.borrow().get(&key) {
            return joined.clone();
        }
        let sees = |zone: Zone| match zone {
            Zone::Message(n) => n < view.depth,
            _ if view.depth == 0 => false,
            Zone::Extra => true,
            Zone::Text(bit) => view.texts & bit != 0,
            Zone::Recursion => view.recursion,
        };
        let mut joined = String::new();
        for (_, text) in self.seen.iter().filter(|(zone, _)| sees(*zone)) {
            if !joined.is_empty() {
                joined.push('\n');
            }
            joined.push(MARK);
            joined.push_str(text);
            if joined.len() > MAX_PATTERN_TEXT {
                joined.truncate(joined.floor_char_boundary(MAX_PATTERN_TEXT));
                break;
            }
        }
        let joined: Rc<str> = joined.into();
        self.joined.borrow_mut().insert(key, joined.clone());
        joined
    }
}

impl Default for Search {
    fn default() -> Self {
        Self::new()
    }
}

impl Words {
    fn number(&mut self, word: String) -> usize {
        let Self {
            numbers,
            words,
            found,
            ..
        } = self;
        *numbers.entry(word).or_insert_with_key(|word| {
            words.push(word.clone());
            found.push([Found::default(); 3]);
            words.len() - 1
        })
    }

    fn read(&mut self, zone: Zone, text: &str, effort: &Effort) {
        if self.words.is_empty() || text.is_empty() {
            return;
        }
        if self.automaton.is_none() {
            // Words and their number are bounded where books are read; what is too large all the
            // same finds nothing.
            self.automaton = AhoCorasick::new(&self.words).ok();
        }
        let Some(automaton) = &self.automaton else {
            return;
        };
        for (n, found) in automaton.find_overlapping_iter(text).enumerate() {
            if !effort.takes(STEPS_OF_FOUND) || (n % 4096 == 4095 && effort.is_late()) {
                return;
            }
            let [plain, words, ascii] = &mut self.found[found.pattern().as_usize()];
            plain.note(zone);
            if is_word(text, found.start(), found.end()) {
                words.note(zone);
            }
            if is_ascii_word(text, found.start(), found.end()) {
                ascii.note(zone);
            }
        }
    }
}

/// Does the word begin and end where words do? Scripts that write without spaces have a border
/// at each of their signs.
fn is_word(text: &str, start: usize, end: usize) -> bool {
    let (found, before, after) = (&text[start..end], &text[..start], &text[end..]);
    let joined = |left: Option<char>, right: Option<char>| match (left, right) {
        (Some(left), Some(right)) => joins(left) && joins(right),
        _ => false,
    };
    !joined(before.chars().next_back(), found.chars().next())
        && !joined(found.chars().next_back(), after.chars().next())
}

/// Is it a sign that is part of a word together with its neighbor?
fn joins(sign: char) -> bool {
    use unicode_script::Script;
    use unicode_script::UnicodeScript;
    if sign == '_' || unicode_normalization::char::is_combining_mark(sign) {
        return true;
    }
    let is_alone = || {
        matches!(
            sign.script(),
            Script::Han
                | Script::Hiragana
                | Script::Thai
                | Script::Lao
                | Script::Khmer
                | Script::Myanmar
        )
    };
    sign.is_alphanumeric() && (sign.is_ascii() || !is_alone())
}

fn is_ascii_word(text: &str, start: usize, end: usize) -> bool {
    let is_part = |it: Option<&u8>| it.is_some_and(|it| it.is_ascii_alphanumeric() || *it == b'_');
    let bytes = text.as_bytes();
    !is_part(start.checked_sub(1).and_then(|at| bytes.get(at))) && !is_part(bytes.get(end))
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
