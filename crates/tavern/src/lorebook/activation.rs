//! Decides whether an entry is activated in one pass of a scan, with the reason, and computes its
//! score in inclusion groups. The order of the checks is significant.

use crate::lorebook::compiled_entry::CompiledEntry;
use crate::lorebook::engine_lorebook::SelectiveLogic;
use crate::lorebook::key_search::{EntryScope, KeySearch, SearchKey};
use crate::lorebook::scan_request::ScanRequest;
use crate::lorebook::scan_result::{ActivationReason, SkipReason};
use crate::lorebook::timed_effects::TimedEffects;

/// The inputs of the checks in one pass.
pub struct ActivationCheck<'t, 'a> {
    pub scan: &'t ScanRequest<'a>,
    pub search: &'t KeySearch,
    pub timed_effects: &'t TimedEffects,
    /// The scan depth, in messages, for entries and lorebooks without one of their own.
    pub depth: usize,
    /// Whether entries may activate each other in this pass.
    pub is_recursion: bool,
    /// The highest recursion level that may activate in this pass.
    pub level: u32,
}

impl ActivationCheck<'_, '_> {
    /// Returns why the entry is activated, or why it is skipped.
    pub fn check(&self, prepared: &CompiledEntry) -> Result<ActivationReason, SkipReason> {
        let entry = prepared.entry;
        if !entry.enabled {
            return Err(SkipReason::Disabled);
        }
        if !self.is_for_speaker(prepared) {
            return Err(SkipReason::CharacterFilter);
        }
        let kind = self.scan.trigger.code();
        if !entry.triggers.is_empty() && !entry.triggers.iter().any(|it| it == kind) {
            return Err(SkipReason::Trigger);
        }
        if self.scan.n_messages < entry.delay {
            return Err(SkipReason::Delay(entry.delay));
        }
        let is_sticky = self.is_sticky(prepared);
        if !is_sticky {
            if self.timed_effects.cooldown.contains_key(&prepared.key) {
                return Err(SkipReason::Cooldown);
            }
            if entry.recursion_level > 0
                && (!self.is_recursion || entry.recursion_level > self.level)
            {
                return Err(SkipReason::WaitsForRecursion);
            }
            if self.is_recursion && !prepared.is_recursable() {
                return Err(SkipReason::NoKey);
            }
        }
        self.check_decorators(prepared).unwrap_or_else(|| {
            if entry.is_constant() {
                return Ok(ActivationReason::Constant);
            }
            if self.scan.external_activations.contains(&prepared.key) {
                return Ok(ActivationReason::External);
            }
            if is_sticky {
                return Ok(ActivationReason::Sticky);
            }
            match &prepared.invalid_key {
                Some((key, _)) => Err(SkipReason::InvalidPattern(key.clone())),
                None => self.check_keys(prepared, self.scope(prepared)),
            }
        })
    }

    /// Returns the result that the decorators force, or `None` if the keys decide.
    fn check_decorators(
        &self,
        prepared: &CompiledEntry,
    ) -> Option<Result<ActivationReason, SkipReason>> {
        let decorators = &prepared.decorators;
        let n_replies = self.scan.n_replies;
        let is_early = decorators
            .activate_only_after
            .is_some_and(|n| n_replies < n);
        let is_between = decorators
            .activate_only_every
            .is_some_and(|n| n_replies % n != 0);
        if is_early || is_between {
            return Some(Err(SkipReason::Replies));
        }
        if self.timed_effects.matched.contains_key(&prepared.key) {
            if decorators.dont_activate_after_match {
                return Some(Err(SkipReason::DisabledAfterMatch));
            }
            if decorators.keep_activate_after_match {
                return Some(Ok(ActivationReason::KeptAfterMatch));
            }
        }
        if decorators.activate {
            return Some(Ok(ActivationReason::Decorator));
        }
        decorators
            .dont_activate
            .then_some(Err(SkipReason::Decorator))
    }

    fn check_keys(
        &self,
        prepared: &CompiledEntry,
        view: EntryScope,
    ) -> Result<ActivationReason, SkipReason> {
        if prepared.keys.is_empty() {
            return Err(SkipReason::NoKeys);
        }
        let Some(found) = self.first_match(&prepared.keys, view)? else {
            return Err(SkipReason::NoKey);
        };
        if let Some(excluded) = self.first_match(&prepared.exclude_keys, view)? {
            return Err(SkipReason::Excluded(excluded.text.clone()));
        }
        let all = &prepared.exclude_keys_all;
        if !all.is_empty() && self.count_found(all, view)? == all.len() {
            return Err(SkipReason::Excluded(all[0].text.clone()));
        }
        let additional = &prepared.additional_keys;
        if !additional.is_empty() && self.first_match(additional, view)?.is_none() {
            return Err(SkipReason::Secondary);
        }
        if !self.has_secondary_match(prepared, view)? {
            return Err(SkipReason::Secondary);
        }
        Ok(ActivationReason::Key(found.text.clone()))
    }

    fn has_secondary_match(
        &self,
        prepared: &CompiledEntry,
        view: EntryScope,
    ) -> Result<bool, SkipReason> {
        let keys = &prepared.secondary_keys;
        if !prepared.entry.selective || keys.is_empty() {
            return Ok(true);
        }
        let n = self.count_found(keys, view)?;
        Ok(match prepared.entry.logic {
            SelectiveLogic::AndAny => n > 0,
            SelectiveLogic::NotAll => n < keys.len(),
            SelectiveLogic::NotAny => n == 0,
            SelectiveLogic::AndAll => n == keys.len(),
        })
    }

    fn first_match<'k>(
        &self,
        keys: &'k [SearchKey],
        view: EntryScope,
    ) -> Result<Option<&'k SearchKey>, SkipReason> {
        for key in keys {
            if self.is_found(key, view)? {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    /// Returns how many of `keys` are found.
    pub fn count_found(&self, keys: &[SearchKey], view: EntryScope) -> Result<usize, SkipReason> {
        keys.iter()
            .try_fold(0, |n, key| Ok(n + usize::from(self.is_found(key, view)?)))
    }

    fn is_found(&self, key: &SearchKey, view: EntryScope) -> Result<bool, SkipReason> {
        let found = self.search.is_found(key, view);
        found.map_err(|limit| SkipReason::TooSlow {
            key: key.text.chars().take(80).collect(),
            limit,
        })
    }

    /// Returns the score for group scoring: the matched keys that count under the entry's logic.
    pub fn score(&self, prepared: &CompiledEntry) -> usize {
        let view = self.scope(prepared);
        let n_keys = self.count_found(&prepared.keys, view).unwrap_or(0);
        let n_secondary = self
            .count_found(&prepared.secondary_keys, view)
            .unwrap_or(0);
        match prepared.entry.logic {
            _ if n_keys == 0 => 0,
            SelectiveLogic::AndAny => n_keys + n_secondary,
            SelectiveLogic::AndAll if n_secondary == prepared.secondary_keys.len() => {
                n_keys + n_secondary
            }
            _ => n_keys,
        }
    }

    /// Returns whether the entry is still active because of an earlier activation.
    pub fn is_sticky(&self, it: &CompiledEntry) -> bool {
        self.timed_effects.sticky.contains_key(&it.key)
    }

    fn is_for_speaker(&self, prepared: &CompiledEntry) -> bool {
        let Some(filter) = &prepared.entry.filter else {
            return true;
        };
        let speaker = &self.scan.speaker;
        let has = |list: &[String], mine: &[&str]| {
            let mut all = list
                .iter()
                .flat_map(|one| mine.iter().map(move |it| (one, *it)));
            all.any(|(one, it)| one.to_lowercase() == it.to_lowercase())
        };
        let fits = |list: &[String], mine| list.is_empty() || has(list, mine) != filter.is_exclude;
        fits(&filter.names, speaker.names) && fits(&filter.tags, speaker.tags)
    }

    fn scope(&self, it: &CompiledEntry) -> EntryScope {
        let sees_others = it.is_recursive(&self.scan.settings) || it.entry.recursion_level > 0;
        it.scope(self.depth, self.is_recursion && sees_others)
    }
}
