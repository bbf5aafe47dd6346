//! Parses decorators: the lines `@@name value` at the start of an entry's content (V3 cards).
//!
//! A line `@@@name value` is a fallback: it counts only if the line above it is unknown. If a name
//! occurs twice, the first counts. Unknown decorators are removed and have no effect.

use base::prompt_role::PromptRole;

use crate::lorebook::engine_lorebook::InsertionPosition;

/// The decorators of an entry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decorators {
    pub activate: bool,
    pub dont_activate: bool,
    pub keep_activate_after_match: bool,
    pub dont_activate_after_match: bool,
    /// The minimum number of replies.
    pub activate_only_after: Option<i64>,
    /// The number of replies must be a multiple of this.
    pub activate_only_every: Option<i64>,
    /// One of these keys must be found too.
    pub additional_keys: Vec<String>,
    /// None of these keys may be found.
    pub exclude_keys: Vec<String>,
    /// At least one of these keys must be missing.
    pub exclude_keys_all: Vec<String>,
    pub scan_depth: Option<usize>,
    pub whole_words: Option<bool>,
    pub depth: Option<usize>,
    /// Inserts the text this many messages after the first one.
    pub reverse_depth: Option<usize>,
    pub role: Option<PromptRole>,
    pub position: Option<InsertionPosition>,
    pub probability: Option<f64>,
    pub priority: Option<i64>,
    /// Dropped first when the budget is exceeded.
    pub ignore_on_max_context: bool,
    /// Not activated by the content of other entries.
    pub unrecursive: bool,
    /// Its content does not activate other entries.
    pub no_recursive_search: bool,
}

/// Returns the decorators and the remaining content.
pub fn split(content: &str) -> (Decorators, &str) {
    let mut decorators = Decorators::default();
    if !content.trim_start().starts_with("@@") {
        return (decorators, content);
    }
    let mut seen: Vec<&str> = Vec::new();
    let mut is_settled = false;
    let mut rest = content.trim_start();
    while let Some(after) = rest.strip_prefix("@@") {
        let (line, below) = after.split_once('\n').unwrap_or((after, ""));
        let (is_fallback, line) = match line.strip_prefix('@') {
            Some(line) => (true, line),
            None => (false, line),
        };
        let line = line.trim();
        let (name, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        if !(is_fallback && is_settled) {
            is_settled = seen.contains(&name) || decorators.apply(name, value.trim());
            if is_settled {
                seen.push(name);
            }
        }
        rest = below;
    }
    (decorators, rest.trim_start_matches(['\r', '\n']))
}

impl Decorators {
    /// Stores a decorator; returns whether its name is known and its value is valid.
    fn apply(&mut self, name: &str, value: &str) -> bool {
        match name {
            "activate" => self.activate = true,
            "dont_activate" => self.dont_activate = true,
            "keep_activate_after_match" => self.keep_activate_after_match = true,
            "dont_activate_after_match" => self.dont_activate_after_match = true,
            "ignore_on_max_context" => self.ignore_on_max_context = true,
            "unrecursive" => self.unrecursive = true,
            "no_recursive_search" => self.no_recursive_search = true,
            "match_full_word" => self.whole_words = Some(true),
            "match_partial_word" => self.whole_words = Some(false),
            "end" => self.depth = Some(0),
            "additional_keys" => return parse_list(&mut self.additional_keys, value),
            "exclude_keys" => return parse_list(&mut self.exclude_keys, value),
            "exclude_keys_all" => return parse_list(&mut self.exclude_keys_all, value),
            "activate_only_after" => return parse_number(&mut self.activate_only_after, value),
            "activate_only_every" => {
                let is_read = parse_number(&mut self.activate_only_every, value);
                self.activate_only_every = self.activate_only_every.filter(|it| *it > 0);
                return is_read;
            }
            "scan_depth" => return parse_number(&mut self.scan_depth, value),
            "depth" => return parse_number(&mut self.depth, value),
            "reverse_depth" => return parse_number(&mut self.reverse_depth, value),
            "probability" => return parse_number(&mut self.probability, value),
            "priority" => return parse_number(&mut self.priority, value),
            "role" => return store_parsed(&mut self.role, parse_role(value)),
            "position" => return store_parsed(&mut self.position, parse_position(value)),
            _ => return false,
        }
        true
    }
}

fn store_parsed<T>(target: &mut Option<T>, read: Option<T>) -> bool {
    *target = read;
    target.is_some()
}

fn parse_number<T: std::str::FromStr>(target: &mut Option<T>, value: &str) -> bool {
    store_parsed(target, value.parse().ok())
}

fn parse_list(target: &mut Vec<String>, value: &str) -> bool {
    let items = value.split(',').map(|it| it.trim().to_owned());
    *target = items.filter(|it| !it.is_empty()).collect();
    !target.is_empty()
}

fn parse_role(word: &str) -> Option<PromptRole> {
    match word {
        "system" => Some(PromptRole::System),
        "user" => Some(PromptRole::User),
        "assistant" => Some(PromptRole::Assistant),
        _ => None,
    }
}

fn parse_position(word: &str) -> Option<InsertionPosition> {
    match word {
        "before_desc" => Some(InsertionPosition::BeforeCharacter),
        "after_desc" => Some(InsertionPosition::AfterCharacter),
        "personality" => Some(InsertionPosition::Personality),
        "scenario" => Some(InsertionPosition::Scenario),
        _ => None,
    }
}

#[cfg(test)]
#[path = "decorators_tests.rs"]
mod tests;
