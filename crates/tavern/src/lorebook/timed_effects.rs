//! Records the timed effects of lorebook entries in a conversation (sticky, cooldown, permanent
//! match), and removes those that have ended.
//!
//! Time is the number of messages. **Invariant:** an effect ends when the timeline is no longer
//! than at its start, so that a regenerated or deleted message leaves no effect. A cooldown that
//! began because a sticky effect ended is exempt.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::lorebook::engine_lorebook::LorebookEntry;

/// The current effects by the key of their entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct TimedEffects {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sticky: BTreeMap<String, TimedEffect>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cooldown: BTreeMap<String, TimedEffect>,
    /// Entries with a decorator that makes the first match permanent.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub matched: BTreeMap<String, TimedEffect>,
}

/// An effect between two lengths of the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct TimedEffect {
    pub start: i64,
    pub end: i64,
    /// The hash of the entry at that time; an edit of the entry ends the effect.
    pub hash: u64,
    /// Whether it continues if the timeline does not grow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_protected: bool,
}

impl TimedEffects {
    /// Removes the effects that have ended at this length. `entry` finds an entry by key; if the
    /// entry's lorebook does not take part, it returns `None` and the effects continue.
    pub fn advance<'a>(
        &mut self,
        n_messages: i64,
        entry: impl Fn(&str) -> Option<&'a LorebookEntry>,
    ) {
        let mut cooldowns = Vec::new();
        self.sticky.retain(|key, effect| {
            if n_messages <= effect.start && !effect.is_protected {
                return false;
            }
            let Some(entry) = entry(key) else {
                return n_messages < effect.end;
            };
            if entry.sticky <= 0 || entry_hash(entry) != effect.hash {
                return false;
            }
            if n_messages < effect.end {
                return true;
            }
            if entry.cooldown > 0 {
                let rest = TimedEffect {
                    is_protected: true,
                    ..new_effect(entry, n_messages, entry.cooldown)
                };
                cooldowns.push((key.clone(), rest));
            }
            false
        });
        self.cooldown.extend(cooldowns);
        self.cooldown.retain(|key, effect| {
            if n_messages <= effect.start && !effect.is_protected {
                return false;
            }
            let is_known =
                entry(key).is_none_or(|it| it.cooldown > 0 && entry_hash(it) == effect.hash);
            is_known && n_messages < effect.end
        });
        self.matched.retain(|key, effect| {
            let is_known = entry(key).is_none_or(|it| entry_hash(it) == effect.hash);
            is_known && n_messages > effect.start
        });
    }

    /// Records that an entry was activated at this length.
    pub fn record_activation(&mut self, key: &str, entry: &LorebookEntry, n_messages: i64) {
        for (effects, n) in [
            (&mut self.sticky, entry.sticky),
            (&mut self.cooldown, entry.cooldown),
        ] {
            if n > 0 {
                let effect = effects.entry(key.to_owned());
                effect.or_insert_with(|| new_effect(entry, n_messages, n));
            }
        }
    }

    /// Records the first match of an entry whose decorator makes it permanent.
    pub fn record_match(&mut self, key: &str, entry: &LorebookEntry, n_messages: i64) {
        let effect = self.matched.entry(key.to_owned());
        effect.or_insert_with(|| new_effect(entry, n_messages, i64::MAX));
    }
}

impl TimedEffect {
    /// Creates an effect on an entry that began elsewhere.
    pub fn restored(entry: &LorebookEntry, (start, end): (i64, i64), is_protected: bool) -> Self {
        Self {
            start,
            end,
            hash: entry_hash(entry),
            is_protected,
        }
    }
}

fn new_effect(entry: &LorebookEntry, n_messages: i64, n: i64) -> TimedEffect {
    TimedEffect {
        start: n_messages,
        end: n_messages.saturating_add(n),
        hash: entry_hash(entry),
        is_protected: false,
    }
}

/// Returns a hash of what identifies an entry: its keys and content.
fn entry_hash(entry: &LorebookEntry) -> u64 {
    let texts = entry.keys.iter().chain([&entry.content]);
    texts.fold(0, |hash, text| {
        crate::lorebook::seeded_hash::mix_hash(hash, text)
    })
}
