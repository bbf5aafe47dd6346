//! Prepares all entries for one scan: parses their decorators, registers their keys with the
//! search, and sorts them by precedence. Also returns properties that decorators can override, such
//! as the position.

use std::cmp::Reverse;
use std::collections::HashSet;

use crate::import_warning::ImportWarning;
use crate::lorebook::decorators::Decorators;
use crate::lorebook::engine_lorebook::{
    InsertionPosition, Lorebook, LorebookEntry, LorebookSource,
};
use crate::lorebook::key_search::{EntryScope, KeySearch, SearchKey, WordBoundary};
use crate::lorebook::scan_budget::{MAX_MATCHES, MAX_PATTERN_STEPS, SearchLimit};
use crate::lorebook::scan_request::{LoreInsertionStrategy, ScanRequest, ScanSettings};
use crate::lorebook::scan_result::EntryRef;
use crate::lorebook::{decorators, pattern_key};
use crate::pattern::syntax::syntax_error::PatternSyntaxError;

/// The priority of an entry without one; other tools write the same default.
const DEFAULT_PRIORITY: i64 = 10;

/// An entry in one scan.
pub struct CompiledEntry<'a> {
    pub lorebook: &'a Lorebook,
    pub entry: &'a LorebookEntry,
    /// Unique among all entries of the scan; timed effects are stored under it.
    pub key: String,
    pub decorators: Decorators,
    /// The content without decorators, macros not yet expanded.
    pub content: &'a str,
    pub keys: Vec<SearchKey>,
    pub secondary_keys: Vec<SearchKey>,
    pub additional_keys: Vec<SearchKey>,
    pub exclude_keys: Vec<SearchKey>,
    pub exclude_keys_all: Vec<SearchKey>,
    /// A key that is not a valid pattern, and why.
    pub invalid_key: Option<(String, PatternSyntaxError)>,
}

/// Why a key disables its entry.
#[derive(Clone, Copy)]
pub enum KeyProblem<'p> {
    /// It is not a valid pattern.
    InvalidPattern(&'p PatternSyntaxError),
    /// The search for it was aborted.
    TooSlow(SearchLimit),
}

/// Returns a key that is unique among all entries of a scan, from the key of a lorebook and the key of an entry
/// in it.
pub fn entry_key(lorebook: &str, entry: &str) -> String {
    format!("{lorebook}.{entry}")
}

/// Compiles all entries of a scan, by precedence. Adds problems to `warnings`.
pub fn compile_all<'a>(
    scan: &ScanRequest<'a>,
    search: &mut KeySearch,
    warnings: &mut Vec<ImportWarning>,
) -> Vec<CompiledEntry<'a>> {
    let mut seen = HashSet::new();
    let books = scan.lorebooks.iter().filter(|it| seen.insert(&it.key));
    let mut all = Vec::new();
    for (number, book) in books.enumerate() {
        for entry in &book.entries {
            let prepared = CompiledEntry::new(scan, search, (number, book), entry);
            if let Some((key, error)) = &prepared.invalid_key {
                warnings.push(prepared.warning(KeyProblem::InvalidPattern(error), key));
            }
            all.push(prepared);
        }
    }
    let strategy = scan.settings.insertion_strategy;
    all.sort_by_key(|it| {
        (
            source_rank(it.lorebook.source, strategy),
            Reverse(it.entry.order),
        )
    });
    all
}

/// Returns the sort rank of a source under an insertion strategy; lower comes first.
fn source_rank(source: LorebookSource, strategy: LoreInsertionStrategy) -> u8 {
    match (source, strategy) {
        (LorebookSource::Conversation, _) => 0,
        (LorebookSource::Persona, _) => 1,
        (LorebookSource::Character, LoreInsertionStrategy::GlobalLoreFirst) => 3,
        (LorebookSource::Space, LoreInsertionStrategy::CharacterLoreFirst) => 3,
        _ => 2,
    }
}

impl<'a> CompiledEntry<'a> {
    fn new(
        scan: &ScanRequest<'a>,
        search: &mut KeySearch,
        (number, lorebook): (usize, &'a Lorebook),
        entry: &'a LorebookEntry,
    ) -> Self {
        let (decorators, content) = decorators::split(&entry.content);
        let mut reader = KeyCompiler {
            scan,
            search,
            entry,
            whole_words: decorators.whole_words.or(entry.whole_words),
            lorebook: number,
            invalid_key: None,
        };
        Self {
            keys: reader.compile_all(&entry.keys),
            secondary_keys: reader.compile_all(&entry.secondary_keys),
            additional_keys: reader.compile_all(&decorators.additional_keys),
            exclude_keys: reader.compile_all(&decorators.exclude_keys),
            exclude_keys_all: reader.compile_all(&decorators.exclude_keys_all),
            invalid_key: reader.invalid_key,
            key: entry_key(&lorebook.key, &entry.key),
            lorebook,
            entry,
            decorators,
            content,
        }
    }

    /// Returns the texts that the entry searches when the settings scan `depth` messages.
    pub fn scope(&self, depth: usize, recursion: bool) -> EntryScope {
        let own = self.decorators.scan_depth.or(self.entry.scan_depth);
        let looks = self.entry.match_sources;
        let texts = [
            looks.persona,
            looks.description,
            looks.personality,
            looks.depth_prompt,
            looks.scenario,
            looks.creator_notes,
        ];
        let bits = texts.iter().enumerate();
        EntryScope {
            depth: own.or(self.lorebook.scan_depth).unwrap_or(depth),
            texts: bits.fold(0, |bits, (n, looks)| bits | (u8::from(*looks) << n)),
            recursion,
        }
    }

    /// Returns the priority under the token budget: higher is kept longer.
    pub fn priority(&self) -> i64 {
        if self.decorators.ignore_on_max_context {
            return i64::MIN;
        }
        let stated = self.decorators.priority.or(self.entry.priority);
        stated.unwrap_or(DEFAULT_PRIORITY)
    }

    /// Returns whether other entries may activate it, if recursion is allowed.
    pub fn is_recursable(&self) -> bool {
        !self.entry.exclude_recursion && !self.decorators.unrecursive
    }

    /// Returns whether it may activate others, if recursion is allowed.
    pub fn can_trigger_others(&self) -> bool {
        !self.entry.prevent_recursion
            && !self.decorators.no_recursive_search
            && self.lorebook.recursive != Some(false)
    }

    /// Returns whether recursion is allowed for its lorebook.
    pub fn is_recursive(&self, settings: &ScanSettings) -> bool {
        self.lorebook.recursive.unwrap_or(settings.recursive)
    }

    /// Returns the activation probability in percent.
    pub fn probability(&self) -> f64 {
        self.decorators
            .probability
            .unwrap_or(self.entry.probability)
    }

    /// Returns whether a decorator makes its first match permanent, so that it must be stored.
    pub fn is_timed(&self) -> bool {
        self.decorators.keep_activate_after_match || self.decorators.dont_activate_after_match
    }

    /// Returns where its text is inserted.
    pub fn position(&self, n_messages: i64) -> InsertionPosition {
        use base::prompt_role::PromptRole;
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
            return InsertionPosition::AtDepth { depth, role };
        }
        if let Some(place) = &decorators.position {
            return place.clone();
        }
        match (self.entry.position.clone(), decorators.role) {
            (InsertionPosition::AtDepth { depth, .. }, Some(role)) => {
                InsertionPosition::AtDepth { depth, role }
            }
            (place, _) => place,
        }
    }

    /// Returns its reference in a scan result.
    pub fn entry_ref(&self) -> EntryRef {
        EntryRef {
            lorebook: self.lorebook.name.clone(),
            lorebook_id: self.lorebook.id,
            key: self.entry.key.clone(),
            entry_id: self.entry.id,
            name: self.entry.name.clone(),
        }
    }

    /// Builds the warning for the lorebook's author about a key that disables the entry.
    pub fn warning(&self, problem: KeyProblem, key: &str) -> ImportWarning {
        let (name, book) = (&self.entry.name, &self.lorebook.name);
        let sentence = |reason: &str| {
            format!("\"{name}\" of \"{book}\" is inactive because of its key {key}: {reason}.")
        };
        let warning = match problem {
            KeyProblem::InvalidPattern(error) => ImportWarning::new(
                "lore_key_no_pattern",
                sentence(&format!("it is not a valid regular expression: {error}")),
            )
            .with("reason", error.to_string()),
            KeyProblem::TooSlow(SearchLimit::Pattern) => ImportWarning::new(
                "lore_key_too_slow",
                sentence(&format!("it needs more than {MAX_PATTERN_STEPS} steps")),
            )
            .with("n", MAX_PATTERN_STEPS),
            KeyProblem::TooSlow(SearchLimit::Lorebook) => ImportWarning::new(
                "lore_book_too_slow",
                sentence("the regular expressions of the lorebook need more steps than it may use"),
            ),
            KeyProblem::TooSlow(SearchLimit::Matches) => ImportWarning::new(
                "lore_keys_too_frequent",
                sentence(&format!(
                    "keys occur more than {MAX_MATCHES} times in the texts"
                )),
            )
            .with("n", MAX_MATCHES),
        };
        let named = warning.with("entry", name.as_str());
        named.with("book", book.as_str()).with("key", key)
    }
}

/// Compiles key texts into search keys.
struct KeyCompiler<'s, 'a> {
    scan: &'s ScanRequest<'a>,
    search: &'s mut KeySearch,
    entry: &'a LorebookEntry,
    whole_words: Option<bool>,
    /// The number of the lorebook in the scan.
    lorebook: usize,
    invalid_key: Option<(String, PatternSyntaxError)>,
}

impl KeyCompiler<'_, '_> {
    fn compile_all(&mut self, texts: &[String]) -> Vec<SearchKey> {
        texts.iter().filter_map(|it| self.compile(it)).collect()
    }

    fn compile(&mut self, text: &str) -> Option<SearchKey> {
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
        let literal = pattern_key::parse_literal(text);
        if literal.is_none() && !self.entry.use_regex {
            let bounds = match self.whole_words.unwrap_or(settings.whole_words) {
                false => WordBoundary::None,
                true if settings.ascii_words => WordBoundary::Ascii,
                true => WordBoundary::Word,
            };
            return Some(self.search.add_plain_key(text, is_exact, bounds));
        }
        let (body, flags) = literal.unwrap_or((text, if is_exact { "" } else { "i" }));
        match pattern_key::compile(body, flags) {
            Ok(pattern) => Some(self.search.add_pattern_key(text, pattern, self.lorebook)),
            Err(error) => {
                let short = text.chars().take(80).collect();
                self.invalid_key.get_or_insert((short, error));
                None
            }
        }
    }
}
