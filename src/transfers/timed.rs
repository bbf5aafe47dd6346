//! What conversations remember of their lore, under the keys that its entries have in this house.

use crate::conversations::conversation;
use crate::ids::CharacterId;
use crate::transfers::rows::Known;
use crate::transfers::unpack::Head;
use sea_orm::ConnectionTrait;
use sea_orm::DbErr;
use serde_json::Map;
use serde_json::Value;
use std::collections::HashMap;

/// The key of an entry is that of its book, a dot, and its own.
const CARD: &str = "card:";

/// The new keys of entries.
#[derive(Debug, Default)]
pub struct Keys {
    /// Of books on the shelf, as `book.entry`.
    pub shelved: HashMap<String, String>,
}

impl Keys {
    fn of(&self, key: &str, cards: &HashMap<i64, CharacterId>) -> Option<String> {
        let Some(embedded) = key.strip_prefix(CARD) else {
            return self.shelved.get(key).cloned();
        };
        let (card, entry) = embedded.split_once('.')?;
        let card = cards.get(&card.parse().ok()?)?;
        Some(format!("{CARD}{card}.{entry}"))
    }
}

/// Renames the entries in what every conversation remembers. One that did not come along is
/// forgotten.
///
/// # Errors
/// When the database fails.
pub async fn rename(
    tx: &impl ConnectionTrait,
    head: &Head,
    known: &Known,
    keys: &Keys,
    cards: &HashMap<i64, CharacterId>,
) -> Result<(), DbErr> {
    for it in &head.conversations {
        let Some(lore) = it.variables.get("lore").and_then(Value::as_object) else {
            continue;
        };
        let mut variables = it.variables.clone();
        variables["lore"] = Value::Object(renamed(lore, keys, cards));
        let conversation = known.conversations[&it.key];
        conversation::set_variables(tx, conversation, variables).await?;
    }
    Ok(())
}

fn renamed(
    lore: &Map<String, Value>,
    keys: &Keys,
    cards: &HashMap<i64, CharacterId>,
) -> Map<String, Value> {
    let kinds = lore.iter().map(|(kind, effects)| {
        let effects = effects.as_object().into_iter().flatten();
        let effects = effects.filter_map(|(key, it)| Some((keys.of(key, cards)?, it.clone())));
        (kind.clone(), Value::Object(effects.collect()))
    });
    kinds.collect()
}

#[cfg(test)]
mod tests {
    use super::Keys;
    use super::renamed;
    use crate::ids::CharacterId;
    use serde_json::json;
    use std::collections::HashMap;

    #[test]
    fn what_came_along_is_remembered_under_its_new_key_and_nothing_else() {
        let keys = Keys {
            shelved: HashMap::from([("7.70".to_owned(), "1.10".to_owned())]),
        };
        let cards = HashMap::from([(5, CharacterId(50))]);
        let lore = json!({"sticky": {"7.70": 1, "7.71": 2, "card:5.3": 3, "card:6.3": 4}, "x": 5});

        let renamed = renamed(lore.as_object().unwrap(), &keys, &cards);

        assert_eq!(
            json!(renamed),
            json!({"sticky": {"1.10": 1, "card:50.3": 3}, "x": {}})
        );
    }
}
