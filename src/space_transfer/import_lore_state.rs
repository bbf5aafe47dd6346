//! Replaces the keys of lorebook entries in the lore state (timed effects) of imported
//! conversations by the new ones.

use std::collections::HashMap;

use base::ids::CharacterId;
use sea_orm::{ConnectionTrait, DbErr};
use serde_json::{Map, Value};

use crate::prompt::prompt_state;
use crate::space_transfer::import_data::{FileHead, IdMap};

/// The key of an entry consists of the key of its lorebook, a dot, and its own key.
const CARD_PREFIX: &str = "card:";

/// The new keys of entries.
#[derive(Debug, Default)]
pub struct EntryKeys {
    /// Of lorebooks in the library, as `book.entry`.
    pub by_old_key: HashMap<String, String>,
}

impl EntryKeys {
    fn new_key(&self, key: &str, character_ids: &HashMap<i64, CharacterId>) -> Option<String> {
        let Some(embedded) = key.strip_prefix(CARD_PREFIX) else {
            return self.by_old_key.get(key).cloned();
        };
        let (card, entry) = embedded.split_once('.')?;
        let card = character_ids.get(&card.parse().ok()?)?;
        Some(format!("{CARD_PREFIX}{card}.{entry}"))
    }
}

/// Renames the entries in the lore state of every conversation. Entries that were not imported are
/// removed.
///
/// # Errors
/// Returns `DbErr` when the database fails.
pub async fn remap(
    tx: &impl ConnectionTrait,
    head: &FileHead,
    ids: &IdMap,
    keys: &EntryKeys,
    character_ids: &HashMap<i64, CharacterId>,
) -> Result<(), DbErr> {
    for it in &head.conversations {
        let Some(lore) = it.variables.get("lore").and_then(Value::as_object) else {
            continue;
        };
        let mut variables = it.variables.clone();
        variables["lore"] = Value::Object(remapped(lore, keys, character_ids));
        let conversation = ids.conversations[&it.key];
        prompt_state::set_variables(tx, conversation, variables).await?;
    }
    Ok(())
}

fn remapped(
    lore: &Map<String, Value>,
    keys: &EntryKeys,
    character_ids: &HashMap<i64, CharacterId>,
) -> Map<String, Value> {
    let kinds = lore.iter().map(|(kind, effects)| {
        let effects = effects.as_object().into_iter().flatten();
        let effects =
            effects.filter_map(|(key, it)| Some((keys.new_key(key, character_ids)?, it.clone())));
        (kind.clone(), Value::Object(effects.collect()))
    });
    kinds.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use base::ids::CharacterId;
    use serde_json::json;

    use super::{EntryKeys, remapped};

    #[test]
    fn only_imported_entries_are_kept_under_their_new_keys() {
        let keys = EntryKeys {
            by_old_key: HashMap::from([("7.70".to_owned(), "1.10".to_owned())]),
        };
        let cards = HashMap::from([(5, CharacterId(50))]);
        let lore = json!({"sticky": {"7.70": 1, "7.71": 2, "card:5.3": 3, "card:6.3": 4}, "x": 5});

        let renamed = remapped(lore.as_object().unwrap(), &keys, &cards);

        assert_eq!(
            json!(renamed),
            json!({"sticky": {"1.10": 1, "card:50.3": 3}, "x": {}})
        );
    }
}
