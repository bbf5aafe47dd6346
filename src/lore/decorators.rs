//! The lines `@@name value` at the head of an entry's content, as cards of V3 have them.
//!
//! A line `@@@name value` counts only if the one above it is not known here; of two lines of one
//! name the first counts; a line that is not known is left out and does nothing.

use crate::llm::request::PromptRole;
use crate::lore::book::Place;

/// What the decorators of an entry say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decorators {
    pub activate: bool,
    pub dont_activate: bool,
    pub keep_activate_after_match: bool,
    pub dont_activate_after_match: bool,
    /// So many replies there have to be.
    pub activate_only_after: Option<i64>,
    /// Only when the number of replies divides by this.
    pub activate_only_every: Option<i64>,
    /// One of these has to be there too.
    pub additional_keys: Vec<String>,
    /// None of these may be there.
    pub exclude_keys: Vec<String>,
    /// Not all of these may be there.
    pub exclude_keys_all: Vec<String>,
    pub scan_depth: Option<usize>,
    pub whole_words: Option<bool>,
    pub depth: Option<usize>,
    /// So many messages after the first one.
    pub reverse_depth: Option<usize>,
    pub role: Option<PromptRole>,
    pub position: Option<Place>,
    pub probability: Option<f64>,
    pub priority: Option<i64>,
    /// First to go when not all fits.
    pub ignore_on_max_context: bool,
    /// Is not woken by the words of other entries.
    pub unrecursive: bool,
    /// Its words wake no others.
    pub no_recursive_search: bool,
}

/// What the decorators say, and the text below them.
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
            is_settled = seen.contains(&name) || decorators.take(name, value.trim());
            if is_settled {
                seen.push(name);
            }
        }
        rest = below;
    }
    (decorators, rest.trim_start_matches(['\r', '\n']))
}

impl Decorators {
    /// Whether this one is known, and can be read.
    fn take(&mut self, name: &str, value: &str) -> bool {
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
            "additional_keys" => return list(&mut self.additional_keys, value),
            "exclude_keys" => return list(&mut self.exclude_keys, value),
            "exclude_keys_all" => return list(&mut self.exclude_keys_all, value),
            "activate_only_after" => return number(&mut self.activate_only_after, value),
            "activate_only_every" => {
                let is_read = number(&mut self.activate_only_every, value);
                self.activate_only_every = self.activate_only_every.filter(|it| *it > 0);
                return is_read;
            }
            "scan_depth" => return number(&mut self.scan_depth, value),
            "depth" => return number(&mut self.depth, value),
            "reverse_depth" => return number(&mut self.reverse_depth, value),
            "probability" => return number(&mut self.probability, value),
            "priority" => return number(&mut self.priority, value),
            "role" => return known(&mut self.role, role(value)),
            "position" => return known(&mut self.position, position(value)),
            _ => return false,
        }
        true
    }
}

fn known<T>(place: &mut Option<T>, read: Option<T>) -> bool {
    *place = read;
    place.is_some()
}

fn number<T: std::str::FromStr>(place: &mut Option<T>, value: &str) -> bool {
    known(place, value.parse().ok())
}

fn list(place: &mut Vec<String>, value: &str) -> bool {
    let items = value.split(',').map(|it| it.trim().to_owned());
    *place = items.filter(|it| !it.is_empty()).collect();
    !place.is_empty()
}

fn role(word: &str) -> Option<PromptRole> {
    match word {
        "system" => Some(PromptRole::System),
        "user" => Some(PromptRole::User),
        "assistant" => Some(PromptRole::Assistant),
        _ => None,
    }
}

fn position(word: &str) -> Option<Place> {
    match word {
        "before_desc" => Some(Place::BeforeCharacter),
        "after_desc" => Some(Place::AfterCharacter),
        "personality" => Some(Place::Personality),
        "scenario" => Some(Place::Scenario),
        _ => None,
    }
}

#[cfg(test)]
#[path = "decorators_tests.rs"]
mod tests;
