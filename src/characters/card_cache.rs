//! Keeps parsed cards in memory, so that a prompt does not read and parse the documents of all
//! members each time.
//!
//! **Invariant:** a card is found by the hash of its document. The hash is read from the database
//! each time, so a changed card is never used in its old state.

use std::collections::HashMap;
use std::sync::Arc;

use base::ids::{CharacterId, UserId};
use moka::sync::Cache;
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QuerySelect};
use serde_json::Value;
use tavern::cards::card::Card;

use crate::characters::character::{Column, Entity};
use crate::memory_limited_cache::memory_limited_cache;

/// The approximate memory of all cards.
const MAX_BYTES: u64 = 32 * 1024 * 1024;
/// How much more memory a parsed document needs than its text.
const PARSED_FACTOR: usize = 3;

/// The cache. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct CardCache {
    cards: Cache<String, Arc<CachedCard>>,
}

struct CachedCard {
    n_bytes: usize,
    /// `None` if the document is invalid, which is checked before it is stored.
    card: Option<Arc<Card>>,
}

/// What a prompt needs of a character.
#[derive(Clone, Debug, Default)]
pub struct CharacterCard {
    pub owner: Option<UserId>,
    /// `None` if the stored document is invalid.
    pub card: Option<Arc<Card>>,
}

impl Default for CardCache {
    /// Creates an empty cache.
    fn default() -> Self {
        let n_bytes = |hash: &String, entry: &Arc<CachedCard>| hash.len() + entry.n_bytes;
        Self {
            cards: memory_limited_cache(MAX_BYTES, n_bytes),
        }
    }
}

impl CardCache {
    /// Returns these characters, deleted ones included. Reads the documents that are not known.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn load(
        &self,
        db: &impl ConnectionTrait,
        ids: impl IntoIterator<Item = CharacterId>,
    ) -> Result<HashMap<CharacterId, CharacterCard>, DbErr> {
        let rows: Vec<(CharacterId, Option<UserId>, String)> = Entity::find()
            .select_only()
            .columns([Column::Id, Column::OwnerId, Column::ContentHash])
            .filter(Column::Id.is_in(ids))
            .into_tuple()
            .all(db)
            .await?;
        let mut found = HashMap::with_capacity(rows.len());
        let mut unknown = Vec::new();
        for (id, owner, hash) in rows {
            let cached = self.cards.get(&hash);
            if cached.is_none() {
                unknown.push(id);
            }
            let card = cached.and_then(|it| it.card.clone());
            found.insert(id, CharacterCard { owner, card });
        }
        for (id, hash, document) in read_documents(db, unknown).await? {
            let card = self.parse(hash, document);
            found.entry(id).and_modify(|it| it.card = card);
        }
        Ok(found)
    }

    fn parse(&self, hash: String, document: Value) -> Option<Arc<Card>> {
        let n_bytes = PARSED_FACTOR * document.to_string().len();
        let card = Card::from_document(document).ok().map(Arc::new);
        let entry = CachedCard {
            n_bytes,
            card: card.clone(),
        };
        self.cards.insert(hash, Arc::new(entry));
        card
    }
}

/// Returns hash and document of these characters. Runs no query for none.
async fn read_documents(
    db: &impl ConnectionTrait,
    ids: Vec<CharacterId>,
) -> Result<Vec<(CharacterId, String, Value)>, DbErr> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    Entity::find()
        .select_only()
        .columns([Column::Id, Column::ContentHash, Column::Card])
        .filter(Column::Id.is_in(ids))
        .into_tuple()
        .all(db)
        .await
}
