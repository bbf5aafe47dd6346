//! Runs the passes of one lorebook scan: decides which entries are activated for one prompt within
//! the token budget, and returns their texts and positions, and why the others are skipped. No I/O.
//!
//! A scan has passes. Each pass finds entries whose keys match; inclusion groups, probability and
//! the budget exclude some of them. The text of the activated entries may match keys of other
//! entries in the next pass.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};

use crate::import_warning::ImportWarning;
use crate::lorebook::activation::ActivationCheck;
use crate::lorebook::compiled_entry::{CompiledEntry, KeyProblem};
use crate::lorebook::inclusion_groups::{GroupCandidate, GroupRules};
use crate::lorebook::key_search::{KeySearch, ScanZone};
use crate::lorebook::scan_pass::{EntryState, PassKind};
use crate::lorebook::scan_request::ScanRequest;
use crate::lorebook::scan_result::{
    ActivatedEntry, ActivationReason, ScanResult, SkipReason, SkippedEntry,
};
use crate::lorebook::timed_effects::TimedEffects;
use crate::lorebook::{compiled_entry, inclusion_groups, seeded_hash};

/// The maximum number of passes in which entries may activate each other, for any settings.
const MAX_STEPS: usize = 10;
/// The maximum scan depth, in messages.
const MAX_DEPTH: usize = 1_000;

/// Returns which entries are activated, and why the others are not.
pub fn activate(scan: &ScanRequest) -> ScanResult {
    let mut state = ScanState::new(scan);
    state.run_passes();
    state.into_result()
}

struct ScanState<'s, 'a> {
    scan: &'s ScanRequest<'a>,
    /// By precedence.
    entries: Vec<CompiledEntry<'a>>,
    states: Vec<EntryState>,
    search: KeySearch,
    timed_effects: TimedEffects,
    /// The scan depth of entries that state none, in messages.
    depth: usize,
    /// The number of messages that were searched.
    n_read: usize,
    /// The level of recursion that has been reached; entries may be delayed until a level.
    level: u32,
    activated: Vec<(usize, ActivatedEntry)>,
    n_tokens: i64,
    n_tokens_by_lorebook: HashMap<&'a str, i64>,
    is_full: bool,
    warnings: Vec<ImportWarning>,
}

impl<'s, 'a> ScanState<'s, 'a> {
    fn new(scan: &'s ScanRequest<'a>) -> Self {
        let (mut search, mut warnings) = (KeySearch::new(scan.lorebooks.len()), Vec::new());
        let entries = compiled_entry::compile_all(scan, &mut search, &mut warnings);
        let mut timed = scan.timed_effects.clone();
        let by_key: HashMap<&str, _> = entries
            .iter()
            .map(|it| (it.key.as_str(), it.entry))
            .collect();
        timed.advance(scan.n_messages, |key| by_key.get(key).copied());
        let mut turn = Self {
            scan,
            states: vec![EntryState::Inactive(SkipReason::Disabled); entries.len()],
            entries,
            search,
            timed_effects: timed,
            depth: scan.settings.scan_depth.min(MAX_DEPTH),
            n_read: 0,
            level: 0,
            activated: Vec::new(),
            n_tokens: 0,
            n_tokens_by_lorebook: HashMap::new(),
            is_full: false,
            warnings,
        };
        turn.read_texts();
        turn
    }

    /// Searches all texts of the first pass.
    fn read_texts(&mut self) {
        let own = self.entries.iter();
        let deepest = own.map(|it| it.scope(self.depth, false).depth).max();
        self.read_messages(deepest.unwrap_or(0));
        for text in self.scan.extra_texts {
            self.search.scan_text(ScanZone::Extra, text.trim());
        }
        let texts = &self.scan.texts;
        let texts = [
            texts.persona,
            texts.description,
            texts.personality,
            texts.depth_prompt,
            texts.scenario,
            texts.creator_notes,
        ];
        let views = self.entries.iter().map(|it| it.scope(0, false).texts);
        let needed = views.fold(0, |all, it| all | it);
        for (n, text) in texts.iter().enumerate() {
            if needed & (1 << n) != 0 {
                self.search.scan_text(ScanZone::Text(1 << n), text.trim());
            }
        }
    }

    fn read_messages(&mut self, depth: usize) {
        let depth = depth.min(MAX_DEPTH).min(self.scan.messages.len());
        for (n, message) in self
            .scan
            .messages
            .iter()
            .enumerate()
            .take(depth)
            .skip(self.n_read)
        {
            let text = message.text.trim();
            match self.scan.settings.include_names {
                true => {
                    let text = format!("{}: {text}", message.name);
                    self.search.scan_text(ScanZone::Message(n), &text);
                }
                false => self.search.scan_text(ScanZone::Message(n), text),
            }
        }
        self.n_read = self.n_read.max(depth);
    }

    fn run_passes(&mut self) {
        let mut levels = self.recursion_levels();
        self.level = levels.pop_front().unwrap_or(0);
        let mut pass = PassKind::First;
        let mut n_steps = 1;
        loop {
            let new = self.run_pass(pass);
            let Some(next) = self.next_pass(&new, n_steps, &mut levels) else {
                return;
            };
            pass = next;
            n_steps += usize::from(pass == PassKind::Recursion);
            for n in new {
                let (index, fired) = &self.activated[n];
                if self.entries[*index].can_trigger_others() {
                    let text = fired.text.clone();
                    self.search.scan_text(ScanZone::Recursion, &text);
                }
            }
        }
    }

    /// Returns the levels of recursion until which entries are delayed, in ascending order.
    fn recursion_levels(&self) -> VecDeque<u32> {
        let levels = self.entries.iter().map(|it| it.entry.recursion_level);
        let mut levels: Vec<u32> = levels.filter(|it| *it > 0).collect();
        levels.sort_unstable();
        levels.dedup();
        levels.into()
    }

    /// Returns the kind of the next pass, or `None` if the scan ends.
    fn next_pass(
        &mut self,
        new: &[usize],
        n_steps: usize,
        levels: &mut VecDeque<u32>,
    ) -> Option<PassKind> {
        if self.is_full {
            return None;
        }
        let settings = &self.scan.settings;
        // A minimum number of activations takes precedence over the limit of steps.
        let limit = match (settings.max_steps, settings.min_activations) {
            (0, _) | (_, 1..) => MAX_STEPS,
            (n, 0) => n.min(MAX_STEPS),
        };
        let wakes = |n: &usize| {
            let entry = &self.entries[self.activated[*n].0];
            entry.can_trigger_others() && entry.is_recursive(settings)
        };
        if n_steps < limit && new.iter().any(wakes) {
            return Some(PassKind::Recursion);
        }
        if self.activated.len() < settings.min_activations && self.increase_depth() {
            return Some(PassKind::Wider);
        }
        if n_steps < MAX_STEPS
            && let Some(level) = levels.pop_front()
        {
            self.level = level;
            return Some(PassKind::Recursion);
        }
        None
    }

    /// Increases the scan depth by one message. Returns whether there was a further message.
    fn increase_depth(&mut self) -> bool {
        let furthest = match self.scan.settings.min_activations_depth {
            0 => MAX_DEPTH,
            n => n.min(MAX_DEPTH),
        };
        if self.depth >= furthest.min(self.scan.messages.len()) {
            return false;
        }
        self.depth += 1;
        self.read_messages(self.depth);
        true
    }

    /// Checks all inactive entries once. Returns the new entries, as indexes into `activated`.
    fn run_pass(&mut self, pass: PassKind) -> Vec<usize> {
        let judge = ActivationCheck {
            scan: self.scan,
            search: &self.search,
            timed_effects: &self.timed_effects,
            depth: self.depth,
            is_recursion: pass == PassKind::Recursion,
            level: self.level,
        };
        let mut active = Vec::new();
        for (index, state) in self.states.iter_mut().enumerate() {
            let EntryState::Inactive(present) = state else {
                continue;
            };
            match judge.check(&self.entries[index]) {
                Ok(because) => active.push((index, because)),
                // The reason of the latest check is kept: it explains more than an early one.
                Err(why) if why.check_rank() >= present.check_rank() => {
                    *state = EntryState::Inactive(why)
                }
                Err(_) => {}
            }
        }
        let candidates = active.iter().map(|(index, _)| GroupCandidate {
            index: *index,
            entry: self.entries[*index].entry,
            is_sticky: judge.is_sticky(&self.entries[*index]),
        });
        let settled = self
            .activated
            .iter()
            .flat_map(|(n, _)| &self.entries[*n].entry.groups);
        let rules = GroupRules {
            decided: &settled.map(String::as_str).collect(),
            score: &|index| judge.score(&self.entries[index]),
            scoring: self.scan.settings.group_scoring,
            seed: self.scan.seed,
        };
        let excluded = inclusion_groups::excluded_entries(&candidates.collect::<Vec<_>>(), &rules);
        for (index, group) in excluded {
            self.states[index] = EntryState::Inactive(SkipReason::Group(group));
            active.retain(|(it, _)| *it != index);
        }
        self.activate_all(active)
    }

    /// Activates the entries that pass their probability and fit into the budget, by priority.
    /// Returns the new entries, as indexes into `activated`.
    fn activate_all(&mut self, mut active: Vec<(usize, ActivationReason)>) -> Vec<usize> {
        let is_sticky = |it: &CompiledEntry| self.timed_effects.sticky.contains_key(&it.key);
        active.sort_by_key(|(index, _)| {
            let entry = &self.entries[*index];
            (!is_sticky(entry), Reverse(entry.priority()))
        });
        let first = self.activated.len();
        for (index, because) in active {
            let why = match self.passes_probability(index) {
                false => Err(SkipReason::Probability(self.entries[index].probability())),
                true => self.activate_entry(index, because),
            };
            self.states[index] = match why {
                Ok(()) => EntryState::Active,
                Err(why) => EntryState::Excluded(why),
            };
        }
        (first..self.activated.len()).collect()
    }

    fn passes_probability(&self, index: usize) -> bool {
        let entry = &self.entries[index];
        let probability = entry.probability();
        probability >= 100.0
            || self.timed_effects.sticky.contains_key(&entry.key)
            || seeded_hash::roll(self.scan.seed, &entry.key) * 100.0 < probability
    }

    /// Activates an entry if it fits into the budget.
    fn activate_entry(
        &mut self,
        index: usize,
        because: ActivationReason,
    ) -> Result<(), SkipReason> {
        let entry = &self.entries[index];
        let text = (self.scan.expand)(entry.content).trim().to_owned();
        let tokens = (self.scan.count_tokens)(&text);
        if !entry.entry.ignore_budget {
            // An entry that reaches the budget exactly does not fit, as in SillyTavern.
            if self.is_full || self.n_tokens.saturating_add(tokens) >= self.scan.settings.budget {
                self.is_full = true;
                return Err(SkipReason::Budget);
            }
            let of_book = self
                .n_tokens_by_lorebook
                .entry(&entry.lorebook.key)
                .or_default();
            if of_book.saturating_add(tokens) > entry.lorebook.token_budget.unwrap_or(i64::MAX) {
                return Err(SkipReason::LorebookBudget);
            }
            *of_book = of_book.saturating_add(tokens);
        }
        self.n_tokens = self.n_tokens.saturating_add(tokens);
        let fired = ActivatedEntry {
            entry: entry.entry_ref(),
            reason: because,
            is_constant: entry.entry.is_constant(),
            text,
            tokens,
            order: entry.entry.order,
            priority: entry.priority(),
            position: entry.position(self.scan.n_messages),
        };
        self.activated.push((index, fired));
        Ok(())
    }

    fn into_result(mut self) -> ScanResult {
        for (index, _) in &self.activated {
            let it = &self.entries[*index];
            self.timed_effects
                .record_activation(&it.key, it.entry, self.scan.n_messages);
            if it.is_timed() {
                self.timed_effects
                    .record_match(&it.key, it.entry, self.scan.n_messages);
            }
        }
        let mut not_fired = Vec::new();
        for (it, state) in self.entries.iter().zip(self.states) {
            let (EntryState::Inactive(because) | EntryState::Excluded(because)) = state else {
                continue;
            };
            if let SkipReason::TooSlow { key, limit } = &because {
                let problem = KeyProblem::TooSlow(*limit);
                self.warnings.push(it.warning(problem, key));
            }
            let entry = it.entry_ref();
            not_fired.push(SkippedEntry {
                entry,
                reason: because,
            });
        }
        // Among equal orders, the entry that was activated first is inserted last, because the end
        // of a prompt has the most influence.
        self.activated.reverse();
        self.activated.sort_by_key(|(_, it)| it.order);
        let is_dropped = |it: &&SkippedEntry| {
            matches!(it.reason, SkipReason::Budget | SkipReason::LorebookBudget)
        };
        let dropped = not_fired.iter().filter(is_dropped);
        ScanResult {
            activated: self.activated.into_iter().map(|(_, it)| it).collect(),
            dropped: dropped.map(|it| it.entry.clone()).collect(),
            skipped: not_fired,
            warnings: self.warnings,
            timed_effects: self.timed_effects,
        }
    }
}

#[cfg(test)]
#[path = "engine_fixture.rs"]
mod engine_fixture;

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "engine_external_tests.rs"]
mod external_tests;

#[cfg(test)]
#[path = "engine_pattern_tests.rs"]
mod pattern_tests;

#[cfg(test)]
#[path = "engine_pass_tests.rs"]
mod pass_tests;

#[cfg(test)]
#[path = "engine_timed_tests.rs"]
mod timed_tests;

#[cfg(test)]
#[path = "engine_property_tests.rs"]
mod property_tests;
