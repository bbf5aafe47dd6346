//! An entry made ready for one scan: its decorators read, its keys known to the search.

use crate::import_warning::ImportWarning;
use crate::lore::book::Book;
use crate::lore::book::Entry;
use crate::lore::book::Place;
use crate::lore::book::Source;
use crate::lore::decorators;
use crate::lore::decorators::Decorators;
use crate::lore::outcome::Named;
use crate::lore::pattern;
use crate::lore::scan::Scan;
use crate::lore::scan::Settings;
use crate::lore::scan::Strategy;
use crate::lore::search::Bounds;
use crate::lore::search::Key;
use crate::lore::search::Search;
use crate::lore::search::View;
use std::cmp::Reverse;
use std::collections::HashSet;

/// The most patterns that the keys of one book may be.
pub const MAX_PATTERNS: usize = 200;
/// What an entry is kept by that says nothing: what tools write where nobody chose.
const USUAL_PRIORITY: i64 = 10;

/// An entry in one scan.
pub struct Prepared<'a> {
    pub book: &'a Book,
    pub entry: &'a Entry,
    /// Tells it from all others; effects are kept under it.
    pub key: String,
    pub decorators: Decorators,
    /// What it says, without decorators, macros not done.
    pub content: &'a str,
    pub keys: Vec<Key>,
    pub secondary_keys: Vec<Key>,
    pub additional_keys: Vec<Key>,
    pub exclude_keys: Vec<Key>,
    pub exclude_keys_all: Vec<Key>,
    /// A key that cannot be read as a pattern.
    pub bad_key: Option<String>,
}

/// What about a key lets its entry sleep.
#[derive(Clone, Copy)]
pub enum Sleep {
    /// It is not a pattern, or too large a one.
    NoPattern,
    /// It is one pattern more than a book may have.
    TooManyPatterns,
    /// It was looked for until there was no time left.
    TooSlow,
}

/// All entries of a scan by precedence. What is wrong with them is put into `warnings`.
pub fn all<'a>(
    scan: &Scan<'a>,
    search: &mut Search,
    warnings: &mut Vec<ImportWarning>,
) -> Vec<Prepared<'a>> {
    let mut seen = HashSet::new();
    let books = scan.books.iter().filter(|it| seen.insert(&it.key));
    let mut all = Vec::new();
    for book in books {
        let mut n_patterns = 0;
        for entry in &book.entries {
            let prepared = Prepared::new(scan, search, book, entry, &mut n_patterns);
            if let Some(key) = &prepared.bad_key {
                let why = match n_patterns > MAX_PATTERNS {
                    true => Sleep::TooManyPatterns,
                    false => Sleep::NoPattern,
                };
                warnings.push(prepared.warning(why, key));
            }
            all.push(prepared);
        }
    }
    let strategy = scan.settings.insertion_strategy;
    all.sort_by_key(|it| (rank(it.book.source, strategy), Reverse(it.entry.order)));
    all
}

/// Whose entries come first.
fn rank(source: Source, strategy: Strategy) -> u8 {
    match (source, strategy) {
        (Source::Conversation, _) => 0,
        (Source::Persona, _) => 1,
        (Source::Character, Strategy::GlobalLoreFirst) => 3,
        (Source::Space, Strategy::CharacterLoreFirst) => 3,
        _ => 2,
    }
}

impl<'a> Prepared<'a> {
    fn new(
        scan: &Scan<'a>,
        search: &mut Search,
        book: &'a Book,
        entry: &'a Entry,
        n_patterns: &mut usize,
    ) -> Self {
        let (decorators, content) = decorators::split(&entry.content);
        let mut reader = Reader {
            scan,
            search,
            entry,
            whole_words: decorators.whole_words.or(entry.whole_words),
            n_patterns,
            bad_key: None,
        };
        Self {
            keys: reader.keys(&entry.keys),
            secondary_keys: reader.keys(&entry.secondary_keys),
            additional_keys: reader.keys(&decorators.additional_keys),
            exclude_keys: reader.keys(&decorators.exclude_keys),
            exclude_keys_all: reader.keys(&decorators.exclude_keys_all),
            bad_key: reader.bad_key,
            key: format!("{}.{}", book.key, entry.key),
            book,
            entry,
            decorators,
            content,
        }
    }

    /// What it sees while the settings look back `depth` messages.
    pub fn view(&self, depth: usize, recursion: bool) -> View {
        let own = self.decorators.scan_depth.or(self.entry.scan_depth);
        let looks = self.entry.looks_at;
        let texts = [
            looks.persona,
            looks.description,
            looks.personality,
            looks.depth_prompt,
            looks.scenario,
            looks.creator_notes,
        ];
        let bits = texts.iter().enumerate();
        View {
            depth: own.or(self.book.scan_depth).unwrap_or(depth),
            texts: bits.fold(0, |bits, (n, looks)| bits | (u8::from(*looks) << n)),
            recursion,
        }
    }

    /// Who stays when not all fits: higher is kept longer.
    pub fn priority(&self) -> i64 {
        if self.decorators.ignore_on_max_context {
            return i64::MIN;
        }
        let stated = self.decorators.priority.or(self.entry.priority);
        stated.unwrap_or(USUAL_PRIORITY)
    }

    /// May other entries wake it, if they may at all?
    pub fn is_woken_by_others(&self) -> bool {
        !self.entry.exclude_recursion && !self.decorators.unrecursive
    }

    /// May it wake others, if entries may at all?
    pub fn wakes_others(&self) -> bool {
        !self.entry.prevent_recursion
            && !self.decorators.no_recursive_search
            && self.book.recursive != Some(false)
    }

    /// May entries of its book wake each other?
    pub fn recurses(&self, settings: &Settings) -> bool {
        self.book.recursive.unwrap_or(settings.recursive)
    }

    /// How likely it is to enter, in percent.
    pub fn probability(&self) -> f64 {
        self.decorators
            .probability
            .unwrap_or(self.entry.probability)
    }

    /// Does it remember that it has been woken?
    pub fn remembers(&self) -> bool {
        self.decorators.keep_activate_after_match || self.decorators.dont_activate_after_match
    }

    /// Where it enters.
    pub fn place(&self, n_messages: i64) -> Place {
        use crate::llm::request::PromptRole;
        let decorators = &self.decorators;
        let from_above = |n: usize| {
            let all = usize::try_from(n_messages).unwrap_or(0);
            all.saturating_sub(n)
        };
        let depth = decorators
            .depth
            .or_else(|| decorators.reverse_depth.map(from_above));
        if let Some(depth) = depth {
            let role = decorators.role.unwrap_or(PromptRole::System);
            return Place::AtDepth { depth, role };
        }
        if let Some(place) = &decorators.position {
            return place.clone();
        }
        match (self.entry.place.clone(), decorators.role) {
            (Place::AtDepth { depth, .. }, Some(role)) => Place::AtDepth { depth, role },
            (place, _) => place,
        }
    }

    /// How an outcome names it.
    pub fn named(&self) -> Named {
        Named {
            book: self.book.name.clone(),
            book_id: self.book.id,
            key: self.entry.key.clone(),
            entry_id: self.entry.id,
            name: self.entry.name.clone(),
        }
    }

    /// Tells whoever wrote it what about a key lets it sleep.
    pub fn warning(&self, why: Sleep, key: &str) -> ImportWarning {
        let (name, book) = (&self.entry.name, &self.book.name);
        let says = |reason: &str| {
            format!("\"{name}\" of \"{book}\" sleeps because of its key {key}: {reason}.")
        };
        let warning = match why {
            Sleep::NoPattern => ImportWarning::new(
                "lore_key_no_pattern",
                says("it is not a pattern, or too large a one"),
            ),
            Sleep::TooManyPatterns => ImportWarning::new(
                "lore_key_too_many",
                says(&format!(
                    "more than {MAX_PATTERNS} keys of the book are patterns"
                )),
            )
            .with("n", MAX_PATTERNS),
            Sleep::TooSlow => {
                ImportWarning::new("lore_key_too_slow", says("looking for it took too long"))
            }
        };
        let named = warning.with("entry", name.as_str());
        named.with("book", book.as_str()).with("key", key)
    }
}

/// Makes keys of texts.
struct Reader<'r, 's, 'a> {
    scan: &'r Scan<'a>,
    search: &'s mut Search,
    entry: &'a Entry,
    whole_words: Option<bool>,
    n_patterns: &'r mut usize,
    bad_key: Option<String>,
}

impl Reader<'_, '_, '_> {
    fn keys(&mut self, texts: &[String]) -> Vec<Key> {
        texts.iter().filter_map(|it| self.key(it)).collect()
    }

    fn key(&mut self, text: &str) -> Option<Key> {
        let expanded = match text.contains("{{") || text.contains('<') {
            true => (self.scan.expand)(text),
            false => text.to_owned(),
        };
        let text = expanded.trim();
        if text.is_empty() {
            return None;
        }
        let settings = &self.scan.settings;
        let is_exact = self.entry.case_sensitive.unwrap_or(settings.case_sensitive);
        let literal = pattern::literal(text);
        if literal.is_none() && !self.entry.use_regex {
            let bounds = match self.whole_words.unwrap_or(settings.whole_words) {
                false => Bounds::None,
                true if settings.ascii_words => Bounds::Ascii,
                true => Bounds::Words,
            };
            return Some(self.search.plain(text, is_exact, bounds));
        }
        *self.n_patterns += 1;
        let (body, flags) = literal.unwrap_or((text, if is_exact { "" } else { "i" }));
        let key = match *self.n_patterns > MAX_PATTERNS {
            true => None,
            false => self.search.pattern(text, body, flags),
        };
        if key.is_none() {
            let short: String = text.chars().take(80).collect();
            self.bad_key.get_or_insert(short);
        }
        key
    }
}
