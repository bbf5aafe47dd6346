//! Which entries of the books enter the prompt of one turn, as a pure function.
//!
//! The books are gone through in passes: each wakes entries, of which groups, dice and the budget
//! leave some; what these say may wake others in the next pass.

use crate::import_warning::ImportWarning;
use crate::lore::dice;
use crate::lore::groups;
use crate::lore::groups::Candidate;
use crate::lore::groups::Rules;
use crate::lore::judge::Judge;
use crate::lore::outcome::Because;
use crate::lore::outcome::Fired;
use crate::lore::outcome::NotFired;
use crate::lore::outcome::Outcome;
use crate::lore::outcome::WhyNot;
use crate::lore::prepared;
use crate::lore::prepared::Prepared;
use crate::lore::prepared::Sleep;
use crate::lore::scan::Scan;
use crate::lore::search::Search;
use crate::lore::search::Zone;
use crate::lore::timed::Timed;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::VecDeque;

/// The most passes in which entries may wake each other, whatever the settings say.
const MAX_STEPS: usize = 10;
/// The furthest that anything looks back, in messages.
const MAX_DEPTH: usize = 1_000;

/// Finds out which entries enter.
pub fn run(scan: &Scan) -> Outcome {
    let mut turn = Turn::new(scan);
    turn.go_through();
    turn.outcome()
}

/// Why the books are gone through once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    First,
    /// Entries that entered may wake others.
    Recursion,
    /// Not enough are awake: look further back.
    Wider,
}

/// What is known of an entry.
#[derive(Clone, Debug)]
enum State {
    /// It may still be woken; why it has not been.
    Asleep(WhyNot),
    /// It does not enter any more.
    Out(WhyNot),
    In,
}

struct Turn<'s, 'a> {
    scan: &'s Scan<'a>,
    /// By precedence.
    entries: Vec<Prepared<'a>>,
    states: Vec<State>,
    search: Search,
    timed: Timed,
    /// How many messages are looked at by entries that do not say it.
    depth: usize,
    /// How many have been read.
    n_read: usize,
    /// The level for which entries may wait by now.
    level: u32,
    fired: Vec<(usize, Fired)>,
    n_tokens: i64,
    n_tokens_of_book: HashMap<&'a str, i64>,
    is_full: bool,
    warnings: Vec<ImportWarning>,
}

impl<'s, 'a> Turn<'s, 'a> {
    fn new(scan: &'s Scan<'a>) -> Self {
        let (mut search, mut warnings) = (Search::new(), Vec::new());
        let entries = prepared::all(scan, &mut search, &mut warnings);
        let mut timed = scan.timed.clone();
        let by_key: HashMap<&str, _> = entries
            .iter()
            .map(|it| (it.key.as_str(), it.entry))
            .collect();
        timed.advance(scan.n_messages, |key| by_key.get(key).copied());
        let mut turn = Self {
            scan,
            states: vec![State::Asleep(WhyNot::Disabled); entries.len()],
            entries,
            search,
            timed,
            depth: scan.settings.scan_depth.min(MAX_DEPTH),
            n_read: 0,
            level: 0,
            fired: Vec::new(),
            n_tokens: 0,
            n_tokens_of_book: HashMap::new(),
            is_full: false,
            warnings,
        };
        turn.read_texts();
        turn
    }

    /// Reads all that is looked at in the first pass.
    fn read_texts(&mut self) {
        let own = self.entries.iter();
        let deepest = own.map(|it| it.view(self.depth, false).depth).max();
        self.read_messages(deepest.unwrap_or(0));
        for text in self.scan.extras {
            self.search.read(Zone::Extra, text.trim());
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
        let views = self.entries.iter().map(|it| it.view(0, false).texts);
        let wanted = views.fold(0, |all, it| all | it);
        for (n, text) in texts.iter().enumerate() {
            if wanted & (1 << n) != 0 {
                self.search.read(Zone::Text(1 << n), text.trim());
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
                    self.search.read(Zone::Message(n), &text);
                }
                false => self.search.read(Zone::Message(n), text),
            }
        }
        self.n_read = self.n_read.max(depth);
    }

    fn go_through(&mut self) {
        let mut levels = self.levels();
        self.level = levels.pop_front().unwrap_or(0);
        let mut pass = Pass::First;
        let mut n_steps = 1;
        loop {
            let new = self.pass(pass);
            let Some(next) = self.next(&new, n_steps, &mut levels) else {
                return;
            };
            pass = next;
            n_steps += usize::from(pass == Pass::Recursion);
            for n in new {
                let (index, fired) = &self.fired[n];
                if self.entries[*index].wakes_others() {
                    let text = fired.text.clone();
                    self.search.read(Zone::Recursion, &text);
                }
            }
        }
    }

    /// The levels of recursion that entries wait for.
    fn levels(&self) -> VecDeque<u32> {
        let levels = self.entries.iter().map(|it| it.entry.recursion_level);
        let mut levels: Vec<u32> = levels.filter(|it| *it > 0).collect();
        levels.sort_unstable();
        levels.dedup();
        levels.into()
    }

    /// Whether the books are gone through once more, and why.
    fn next(&mut self, new: &[usize], n_steps: usize, levels: &mut VecDeque<u32>) -> Option<Pass> {
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
            let entry = &self.entries[self.fired[*n].0];
            entry.wakes_others() && entry.recurses(settings)
        };
        if n_steps < limit && new.iter().any(wakes) {
            return Some(Pass::Recursion);
        }
        if self.fired.len() < settings.min_activations && self.widen() {
            return Some(Pass::Wider);
        }
        if n_steps < MAX_STEPS
            && let Some(level) = levels.pop_front()
        {
            self.level = level;
            return Some(Pass::Recursion);
        }
        None
    }

    /// Looks one message further back, if there is one.
    fn widen(&mut self) -> bool {
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
    fn pass(&mut self, pass: Pass) -> Vec<usize> {
        let judge = Judge {
            scan: self.scan,
            search: &self.search,
            timed: &self.timed,
            depth: self.depth,
            is_recursion: pass == Pass::Recursion,
            level: self.level,
        };
        let mut awake = Vec::new();
        for (index, state) in self.states.iter_mut().enumerate() {
            let State::Asleep(present) = state else {
                continue;
            };
            match judge.judge(&self.entries[index]) {
                Ok(because) => awake.push((index, because)),
                // What was found out by looking further is worth more than what stopped early.
                Err(why) if why.step() >= present.step() => *state = State::Asleep(why),
                Err(_) => {}
            }
        }
        let candidates = awake.iter().map(|(index, _)| Candidate {
            index: *index,
            entry: self.entries[*index].entry,
            is_sticky: judge.is_sticky(&self.entries[*index]),
        });
        let settled = self
            .fired
            .iter()
            .flat_map(|(n, _)| &self.entries[*n].entry.groups);
        let rules = Rules {
            settled: &settled.map(String::as_str).collect(),
            score: &|index| judge.score(&self.entries[index]),
            scoring: self.scan.settings.group_scoring,
            seed: self.scan.seed,
        };
        let lost = groups::losers(&candidates.collect::<Vec<_>>(), &rules);
        for (index, group) in lost {
            self.states[index] = State::Asleep(WhyNot::Group(group));
            awake.retain(|(it, _)| *it != index);
        }
        self.enter_all(awake)
    }

    /// Throws the dice, and lets in what there is room for, the most important first.
    fn enter_all(&mut self, mut awake: Vec<(usize, Because)>) -> Vec<usize> {
        let is_sticky = |it: &Prepared| self.timed.sticky.contains_key(&it.key);
        awake.sort_by_key(|(index, _)| {
            let entry = &self.entries[*index];
            (!is_sticky(entry), Reverse(entry.priority()))
        });
        let first = self.fired.len();
        for (index, because) in awake {
            let why = match self.is_lucky(index) {
                false => Err(WhyNot::Dice(self.entries[index].probability())),
                true => self.enter(index, because),
            };
            self.states[index] = match why {
                Ok(()) => State::In,
                Err(why) => State::Out(why),
            };
        }
        (first..self.fired.len()).collect()
    }

    fn is_lucky(&self, index: usize) -> bool {
        let it = &self.entries[index];
        let probability = it.probability();
        probability >= 100.0
            || self.timed.sticky.contains_key(&it.key)
            || dice::throw(self.scan.seed, &it.key) * 100.0 < probability
    }

    /// Lets an entry in, if there is room.
    fn enter(&mut self, index: usize, because: Because) -> Result<(), WhyNot> {
        let it = &self.entries[index];
        let text = (self.scan.expand)(it.content).trim().to_owned();
        let tokens = (self.scan.count)(&text);
        if !it.entry.ignore_budget {
            // Full to the last token is too full, as SillyTavern has it.
            if self.is_full || self.n_tokens.saturating_add(tokens) >= self.scan.settings.budget {
                self.is_full = true;
                return Err(WhyNot::Budget);
            }
            let of_book = self.n_tokens_of_book.entry(&it.book.key).or_default();
            if of_book.saturating_add(tokens) > it.book.token_budget.unwrap_or(i64::MAX) {
                return Err(WhyNot::BookBudget);
            }
            *of_book = of_book.saturating_add(tokens);
        }
        self.n_tokens = self.n_tokens.saturating_add(tokens);
        let fired = Fired {
            entry: it.named(),
            because,
            text,
            tokens,
            order: it.entry.order,
            priority: it.priority(),
            place: it.place(self.scan.n_messages),
        };
        self.fired.push((index, fired));
        Ok(())
    }

    fn outcome(mut self) -> Outcome {
        for (index, _) in &self.fired {
            let it = &self.entries[*index];
            self.timed.entered(&it.key, it.entry, self.scan.n_messages);
            if it.remembers() {
                self.timed.woken(&it.key, it.entry, self.scan.n_messages);
            }
        }
        let mut not_fired = Vec::new();
        for (it, state) in self.entries.iter().zip(self.states) {
            let (State::Asleep(because) | State::Out(because)) = state else {
                continue;
            };
            if let WhyNot::TooSlow(key) = &because {
                self.warnings.push(it.warning(Sleep::TooSlow, key));
            }
            let entry = it.named();
            not_fired.push(NotFired { entry, because });
        }
        // What came first is the stronger, and the end of a prompt weighs most.
        self.fired.reverse();
        self.fired.sort_by_key(|(_, it)| it.order);
        let is_dropped = |it: &&NotFired| matches!(it.because, WhyNot::Budget | WhyNot::BookBudget);
        let dropped = not_fired.iter().filter(is_dropped);
        Outcome {
            fired: self.fired.into_iter().map(|(_, it)| it).collect(),
            dropped: dropped.map(|it| it.entry.clone()).collect(),
            not_fired,
            warnings: self.warnings,
            timed: self.timed,
        }
    }
}

#[cfg(test)]
#[path = "engine_stage.rs"]
mod stage;

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
