//! What a conversation remembers of its lore: who stays, who rests, who has had its day.
//!
//! Time is the number of messages. **Invariant:** what a message caused is forgotten once the
//! timeline is no longer than it was then, so that a message that is written anew or taken back
//! does not leave its lore behind. Rest that began because a stay was over is kept all the same.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::lore::engine_lorebook::LorebookEntry;

/// The effects under way, by the key of their entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct TimedEffects {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sticky: BTreeMap<String, TimedEffect>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cooldown: BTreeMap<String, TimedEffect>,
    /// Entries that keep what came of their first match.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub matched: BTreeMap<String, TimedEffect>,
}

/// From one length of the timeline to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct TimedEffect {
    pub start: i64,
    pub end: i64,
    /// Of the entry as it was then: one that was written anew begins anew.
    pub hash: u64,
    /// Holds even if the timeline does not grow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_protected: bool,
}

impl TimedEffects {
    /// Lets end what is over at this length of the timeline. `entry` finds the entry of a key; one
    /// of a book that does not take part in this turn is not found, and its effects run on.
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

    /// Notes that an entry entered at this length of the timeline.
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

    /// Notes that an entry which remembers it has been woken.
    pub fn record_match(&mut self, key: &str, entry: &LorebookEntry, n_messages: i64) {
        let effect = self.matched.entry(key.to_owned());
        effect.or_insert_with(|| new_effect(entry, n_messages, i64::MAX));
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

/// What makes an entry the same one: its keys and what it says.
fn entry_hash(entry: &LorebookEntry) -> u64 {
    let texts = entry.keys.iter().chain([&entry.content]);
    texts.fold(0, |hash, text| {
        crate::lore::probability::mix_hash(hash, text)
    })
}
