//! Searches the texts of a scan for the keys of all lorebooks: for all plain keys at once (one
//! automaton for each case rule), and for each pattern separately. A pattern is executed only if the
//! literals that it requires are found, which are searched like plain keys.
//!
//! Texts are searched when they are needed, and matches are stored with their position. So each
//! entry can have its own depth and texts, and a pass with a greater depth reads only new messages.
//!
//! **Invariant:** the work is limited: texts are truncated, and nothing more is found once the
//! [`ScanBudget`] is spent.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use aho_corasick::AhoCorasick;

use crate::lorebook::pattern_key::PatternKey;
use crate::lorebook::scan_budget::{ScanBudget, SearchLimit};
use crate::pattern::js_pattern::JsPattern;
use crate::pattern::matcher::Matcher;
use crate::pattern::pattern_text::PatternText;

/// The maximum total text in which plain keys are searched, in bytes.
const MAX_TEXT: usize = 1024 * 1024;
/// The maximum text that a pattern searches, in bytes.
const MAX_PATTERN_TEXT: usize = 64 * 1024;
/// Starts each message in the text for patterns, so that no match spans two messages by accident.
const TEXT_SEPARATOR: char = '\u{1}';

/// A key that is ready to be searched.
#[derive(Clone)]
pub struct SearchKey {
    /// The text of the key with macros expanded.
    pub text: String,
    kind: KeyKind,
}

#[derive(Clone)]
enum KeyKind {
    Plain {
        word: usize,
        is_exact: bool,
        bounds: WordBoundary,
    },
    Pattern {
        pattern: Rc<PatternKey>,
        /// The words of which at least one in each list is in every text with a match.
        required: Vec<Vec<usize>>,
    },
}

/// The word boundary that a key requires on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordBoundary {
    /// No boundary.
    None,
    /// A Unicode word boundary.
    Word,
    /// No ASCII letter, digit or underscore.
    Ascii,
}

/// Where a text comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanZone {
    /// The message at this index from the end; 0 is the newest.
    Message(usize),
    /// A text that every entry searches.
    Extra,
    /// A text that an entry searches if it requests it: one bit.
    Text(u8),
    /// The content of other entries.
    Recursion,
}

/// The texts that an entry searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EntryScope {
    /// The number of messages.
    pub depth: usize,
    /// A bit for each requested text.
    pub texts: u8,
    pub recursion: bool,
}

/// All keys of a scan and their matches.
pub struct KeySearch {
    folded: KeyGroup,
    exact: KeyGroup,
    /// The searched texts, in order.
    scanned_texts: Vec<(ScanZone, String)>,
    n_bytes: usize,
    budget: ScanBudget,
    visible_text: RefCell<HashMap<(EntryScope, usize), Rc<PatternText>>>,
    matcher: RefCell<Matcher>,
}

/// Plain keys with the same case rule, and their matches.
#[derive(Default)]
struct KeyGroup {
    numbers: HashMap<String, usize>,
    words: Vec<String>,
    automaton: Option<AhoCorasick>,
    /// For each word and word boundary, if a key requires it.
    found: Vec<[Option<KeyMatch>; 3]>,
}

/// Where a key was found.
#[derive(Clone, Copy)]
struct KeyMatch {
    nearest_message: usize,
    extra: bool,
    texts: u8,
    recursion: bool,
}

impl Default for KeyMatch {
    fn default() -> Self {
        Self {
            nearest_message: usize::MAX,
            extra: false,
            texts: 0,
            recursion: false,
        }
    }
}

impl KeyMatch {
    fn record(&mut self, zone: ScanZone) {
        match zone {
            ScanZone::Message(n) => self.nearest_message = self.nearest_message.min(n),
            ScanZone::Extra => self.extra = true,
            ScanZone::Text(bit) => self.texts |= bit,
            ScanZone::Recursion => self.recursion = true,
        }
    }

    fn is_visible_in(&self, view: EntryScope) -> bool {
        // Depth 0 hides the messages and all other texts too.
        self.nearest_message < view.depth
            || (view.depth > 0
                && (self.extra
                    || self.texts & view.texts != 0
                    || (view.recursion && self.recursion)))
    }
}

impl KeySearch {
    /// Creates an empty search for the keys of this number of lorebooks.
    pub fn new(n_lorebooks: usize) -> Self {
        Self {
            folded: KeyGroup::default(),
            exact: KeyGroup::default(),
            scanned_texts: Vec::new(),
            n_bytes: 0,
            budget: ScanBudget::new(n_lorebooks),
            visible_text: RefCell::default(),
            matcher: RefCell::default(),
        }
    }

    /// Adds a plain key. Must be called before the first text is searched.
    pub fn add_plain_key(&mut self, text: &str, is_exact: bool, bounds: WordBoundary) -> SearchKey {
        let (words, folded) = match is_exact {
            true => (&mut self.exact, text.to_owned()),
            false => (&mut self.folded, text.to_lowercase()),
        };
        // SillyTavern does not check word boundaries of keys with several words.
        let bounds = match bounds {
            WordBoundary::Ascii if text.contains(char::is_whitespace) => WordBoundary::None,
            bounds => bounds,
        };
        let kind = KeyKind::Plain {
            word: words.index_of(folded, bounds),
            is_exact,
            bounds,
        };
        SearchKey {
            text: text.to_owned(),
            kind,
        }
    }

    /// Adds a pattern key of the lorebook with this number. Must be called before the first text is
    /// searched.
    pub fn add_pattern_key(
        &mut self,
        text: &str,
        pattern: Arc<JsPattern>,
        lorebook: usize,
    ) -> SearchKey {
        let mut add = |literals: &Vec<String>| {
            let words = literals.iter().cloned();
            let add = |word| self.folded.index_of(word, WordBoundary::None);
            words.map(add).collect()
        };
        let required = pattern.required_literals.iter().map(&mut add).collect();
        let pattern = Rc::new(PatternKey::new(pattern, lorebook));
        SearchKey {
            text: text.to_owned(),
            kind: KeyKind::Pattern { pattern, required },
        }
    }

    /// Searches all plain keys in a text.
    pub fn scan_text(&mut self, zone: ScanZone, text: &str) {
        let room = MAX_TEXT - self.n_bytes;
        let text = &text[..text.floor_char_boundary(room)];
        self.n_bytes += text.len();
        if !self.folded.words.is_empty() {
            self.folded
                .scan_text(zone, &text.to_lowercase(), &self.budget);
        }
        self.exact.scan_text(zone, text, &self.budget);
        self.scanned_texts.push((zone, text.to_owned()));
    }

    /// Returns whether the key is in the texts of a scope.
    ///
    /// # Errors
    /// Returns the limit that the search has reached before it found the key.
    pub fn is_found(&self, key: &SearchKey, view: EntryScope) -> Result<bool, SearchLimit> {
        match &key.kind {
            KeyKind::Plain {
                word,
                is_exact,
                bounds,
            } => {
                let words = if *is_exact { &self.exact } else { &self.folded };
                match words.is_found(*word, *bounds, view) {
                    false if !self.budget.has_matches_left() => Err(SearchLimit::Matches),
                    is_found => Ok(is_found),
                }
            }
            KeyKind::Pattern { pattern, required } => {
                if !self.has_required_words(required, view) {
                    return Ok(false);
                }
                pattern.is_match(&self.visible_text(view), &self.matcher, &self.budget)
            }
        }
    }

    fn has_required_words(&self, required: &[Vec<usize>], view: EntryScope) -> bool {
        let is_found = |word: &usize| self.folded.is_found(*word, WordBoundary::None, view);
        // When the search for words was aborted, a missing word proves nothing.
        !self.budget.has_matches_left() || required.iter().all(|any| any.iter().any(is_found))
    }

    /// Returns all texts of a scope as one, newest first.
    fn visible_text(&self, view: EntryScope) -> Rc<PatternText> {
        let key = (view, self.scanned_texts.len());
        if let Some(joined) = self.visible_text.borrow().get(&key) {
            return joined.clone();
        }
        let sees = |zone: ScanZone| match zone {
            ScanZone::Message(n) => n < view.depth,
            _ if view.depth == 0 => false,
            ScanZone::Extra => true,
            ScanZone::Text(bit) => view.texts & bit != 0,
            ScanZone::Recursion => view.recursion,
        };
        let mut joined = String::new();
        for (_, text) in self.scanned_texts.iter().filter(|(zone, _)| sees(*zone)) {
            if !joined.is_empty() {
                joined.push('\n');
            }
            joined.push(TEXT_SEPARATOR);
            joined.push_str(text);
            if joined.len() > MAX_PATTERN_TEXT {
                joined.truncate(joined.floor_char_boundary(MAX_PATTERN_TEXT));
                break;
            }
        }
        let joined = Rc::new(PatternText::new(&joined));
        self.visible_text.borrow_mut().insert(key, joined.clone());
        joined
    }
}

impl KeyGroup {
    fn index_of(&mut self, word: String, bounds: WordBoundary) -> usize {
        let Self {
            numbers,
            words,
            found,
            ..
        } = self;
        let index = *numbers.entry(word).or_insert_with_key(|word| {
            words.push(word.clone());
            found.push([None; 3]);
            words.len() - 1
        });
        found[index][bounds as usize].get_or_insert_default();
        index
    }

    fn is_found(&self, word: usize, bounds: WordBoundary, view: EntryScope) -> bool {
        self.found[word][bounds as usize].is_some_and(|it| it.is_visible_in(view))
    }

    fn scan_text(&mut self, zone: ScanZone, text: &str, budget: &ScanBudget) {
        if self.words.is_empty() || text.is_empty() {
            return;
        }
        if self.automaton.is_none() {
            self.automaton = AhoCorasick::new(&self.words).ok();
        }
        let Some(automaton) = &self.automaton else {
            // The import limits key sizes and counts; if the automaton is still too large, no key
            // can be found.
            budget.matches_left.set(0);
            return;
        };
        for found in automaton.find_overlapping_iter(text) {
            if !budget.spend_match() {
                return;
            }
            let [plain, words, ascii] = &mut self.found[found.pattern().as_usize()];
            let (start, end) = (found.start(), found.end());
            if let Some(plain) = plain {
                plain.record(zone);
            }
            if let Some(words) = words
                && is_word(text, start, end)
            {
                words.record(zone);
            }
            if let Some(ascii) = ascii
                && is_ascii_word(text, start, end)
            {
                ascii.record(zone);
            }
        }
    }
}

/// Returns whether the match has word boundaries on both sides. In scripts without spaces every
/// character is a boundary.
fn is_word(text: &str, start: usize, end: usize) -> bool {
    let (found, before, after) = (&text[start..end], &text[..start], &text[end..]);
    let joined = |left: Option<char>, right: Option<char>| match (left, right) {
        (Some(left), Some(right)) => continues_word(left) && continues_word(right),
        _ => false,
    };
    !joined(before.chars().next_back(), found.chars().next())
        && !joined(found.chars().next_back(), after.chars().next())
}

/// Returns whether a character forms a word with its neighbors.
fn continues_word(sign: char) -> bool {
    use unicode_script::{Script, UnicodeScript};
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
#[path = "key_search_tests.rs"]
mod tests;
