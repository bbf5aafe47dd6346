//! Whether one entry is awake, and why; the checks in their order.

use crate::lore::book::Logic;
use crate::lore::outcome::Because;
use crate::lore::outcome::WhyNot;
use crate::lore::prepared::Prepared;
use crate::lore::scan::Scan;
use crate::lore::search::Key;
use crate::lore::search::Search;
use crate::lore::search::View;
use crate::lore::timed::Timed;

/// What one pass goes by.
pub struct Judge<'t, 'a> {
    pub scan: &'t Scan<'a>,
    pub search: &'t Search,
    pub timed: &'t Timed,
    /// How many messages are looked at by entries that do not say it.
    pub depth: usize,
    /// May entries wake each other in this pass?
    pub is_recursion: bool,
    /// Up to which level entries that wait for recursion may wake.
    pub level: u32,
}

impl Judge<'_, '_> {
    /// Is the entry awake?
    pub fn judge(&self, it: &Prepared) -> Result<Because, WhyNot> {
        let entry = it.entry;
        if !entry.enabled {
            return Err(WhyNot::Disabled);
        }
        if !self.is_for_speaker(it) {
            return Err(WhyNot::CharacterFilter);
        }
        let kind = self.scan.kind.word();
        if !entry.triggers.is_empty() && !entry.triggers.iter().any(|it| it == kind) {
            return Err(WhyNot::Trigger);
        }
        if self.scan.n_messages < entry.delay {
            return Err(WhyNot::Delay(entry.delay));
        }
        let is_sticky = self.is_sticky(it);
        if !is_sticky {
            if self.timed.cooldown.contains_key(&it.key) {
                return Err(WhyNot::Cooldown);
            }
            if entry.recursion_level > 0
                && (!self.is_recursion || entry.recursion_level > self.level)
            {
                return Err(WhyNot::WaitsForRecursion);
            }
            if self.is_recursion && !it.is_woken_by_others() {
                return Err(WhyNot::NoKey);
            }
        }
        self.judge_decorators(it).unwrap_or_else(|| {
            if entry.constant && !entry.use_regex {
                return Ok(Because::Constant);
            }
            if is_sticky {
                return Ok(Because::Sticky);
            }
            match &it.bad_key {
                Some(key) => Err(WhyNot::BadPattern(key.clone())),
                None => self.judge_keys(it, self.view(it)),
            }
        })
    }

    /// What the decorators say; nothing if they leave it to the keys.
    fn judge_decorators(&self, it: &Prepared) -> Option<Result<Because, WhyNot>> {
        let decorators = &it.decorators;
        let n_replies = self.scan.n_replies;
        let is_early = decorators
            .activate_only_after
            .is_some_and(|n| n_replies < n);
        let is_between = decorators
            .activate_only_every
            .is_some_and(|n| n_replies % n != 0);
        if is_early || is_between {
            return Some(Err(WhyNot::Replies));
        }
        if self.timed.matched.contains_key(&it.key) {
            if decorators.dont_activate_after_match {
                return Some(Err(WhyNot::DoneAfterMatch));
            }
            if decorators.keep_activate_after_match {
                return Some(Ok(Because::Kept));
            }
        }
        if decorators.activate {
            return Some(Ok(Because::Decorator));
        }
        decorators.dont_activate.then_some(Err(WhyNot::Decorator))
    }

    fn judge_keys(&self, it: &Prepared, view: View) -> Result<Because, WhyNot> {
        if it.keys.is_empty() {
            return Err(WhyNot::NoKeys);
        }
        let Some(found) = self.first(&it.keys, view)? else {
            return Err(WhyNot::NoKey);
        };
        if let Some(excluded) = self.first(&it.exclude_keys, view)? {
            return Err(WhyNot::Excluded(excluded.text.clone()));
        }
        let all = &it.exclude_keys_all;
        if !all.is_empty() && self.n_found(all, view)? == all.len() {
            return Err(WhyNot::Excluded(all[0].text.clone()));
        }
        let additional = &it.additional_keys;
        if !additional.is_empty() && self.first(additional, view)?.is_none() {
            return Err(WhyNot::Secondary);
        }
        if !self.secondary_fit(it, view)? {
            return Err(WhyNot::Secondary);
        }
        Ok(Because::Key(found.text.clone()))
    }

    fn secondary_fit(&self, it: &Prepared, view: View) -> Result<bool, WhyNot> {
        let keys = &it.secondary_keys;
        if !it.entry.selective || keys.is_empty() {
            return Ok(true);
        }
        let n = self.n_found(keys, view)?;
        Ok(match it.entry.logic {
            Logic::AndAny => n > 0,
            Logic::NotAll => n < keys.len(),
            Logic::NotAny => n == 0,
            Logic::AndAll => n == keys.len(),
        })
    }

    fn first<'k>(&self, keys: &'k [Key], view: View) -> Result<Option<&'k Key>, WhyNot> {
        for key in keys {
            if self.finds(key, view)? {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    /// How many of these are found.
    pub fn n_found(&self, keys: &[Key], view: View) -> Result<usize, WhyNot> {
        keys.iter()
            .try_fold(0, |n, key| Ok(n + usize::from(self.finds(key, view)?)))
    }

    fn finds(&self, key: &Key, view: View) -> Result<bool, WhyNot> {
        let found = self.search.finds(key, view);
        found.map_err(|_| WhyNot::TooSlow(key.text.chars().take(80).collect()))
    }

    /// How many keys of an entry are found, as far as they count where entries compete.
    pub fn score(&self, it: &Prepared) -> usize {
        let view = self.view(it);
        let n_keys = self.n_found(&it.keys, view).unwrap_or(0);
        let n_secondary = self.n_found(&it.secondary_keys, view).unwrap_or(0);
        match it.entry.logic {
            _ if n_keys == 0 => 0,
            Logic::AndAny => n_keys + n_secondary,
            Logic::AndAll if n_secondary == it.secondary_keys.len() => n_keys + n_secondary,
            _ => n_keys,
        }
    }

    /// Has it entered a few messages ago, to stay?
    pub fn is_sticky(&self, it: &Prepared) -> bool {
        self.timed.sticky.contains_key(&it.key)
    }

    fn is_for_speaker(&self, it: &Prepared) -> bool {
        let Some(filter) = &it.entry.filter else {
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

    fn view(&self, it: &Prepared) -> View {
        let sees_others = it.recurses(&self.scan.settings) || it.entry.recursion_level > 0;
        it.view(self.depth, self.is_recursion && sees_others)
    }
}
