//! Which entries of the books enter the prompt of one turn, as a pure function.
//!
//! The books are gone through in passes: each wakes entries, of which groups, dice and the budget
//! leave some; what these say may wake others in the next pass.

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
use crate::lorebook::{compiled_entry, inclusion_groups, probability};

/// The most passes in which entries may wake each other, whatever the settings say.
const MAX_STEPS: usize = 10;
/// The furthest that anything looks back, in messages.
const MAX_DEPTH: usize = 1_000;

/// Finds out which entries enter.
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
    /// How many messages are looked at by entries that do not say it.
    depth: usize,
    /// How many have been read.
    n_read: usize,
    /// The level for which entries may wait by now.
    level: u32,
    activated: Vec<(usize, ActivatedEntry)>,
    n_tokens: i64,
    n_tokens_by_lorebook: HashMap<&'a str, i64>,
    is_full: bool,
    warnings: Vec<ImportWarning>,
}

impl<'s, 'a> ScanState<'s, 'a> {
    fn new(scan: &'s ScanRequest<'a>) -> Self {
        let (mut search, mut warnings) = (KeySearch::new(), Vec::new());
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

    /// Reads all that is looked at in the first pass.
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

    /// The levels of recursion that entries wait for.
    fn recursion_levels(&self) -> VecDeque<u32> {
        let levels = self.entries.iter().map(|it| it.entry.recursion_level);
        let mut levels: Vec<u32> = levels.filter(|it| *it > 0).collect();
        levels.sort_unstable();
        levels.dedup();
        levels.into()
    }

    /// Whether the books are gone through once more, and why.
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
        // Who wants a number of entries wants it whatever it takes.
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

    /// Looks one message further back, if there is one.
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

    /// Goes through the books once. Answers which have entered, as places in `fired`.
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
                // What was found out by looking further is worth more than what stopped early.
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

    /// Throws the dice, and lets in what there is room for, the most important first.
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
            || probability::roll(self.scan.seed, &entry.key) * 100.0 < probability
    }

    /// Lets an entry in, if there is room.
    fn activate_entry(
        &mut self,
        index: usize,
        because: ActivationReason,
    ) -> Result<(), SkipReason> {
        let entry = &self.entries[index];
        let text = (self.scan.expand)(entry.content).trim().to_owned();
        let tokens = (self.scan.count_tokens)(&text);
        if !entry.entry.ignore_budget {
            // Full to the last token is too full, as SillyTavern has it.
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
            if let SkipReason::TooSlow(key) = &because {
                self.warnings.push(it.warning(KeyProblem::TooSlow, key));
            }
            let entry = it.entry_ref();
            not_fired.push(SkippedEntry {
                entry,
                reason: because,
            });
        }
        // What came first is the stronger, and the end of a prompt weighs most.
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
