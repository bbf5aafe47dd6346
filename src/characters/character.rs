//! Table `characters`: the characters in users' libraries, each with its whole card document.

use std::collections::HashMap;

use base::clock::Timestamp;
use base::ids::{AssetId, CharacterId, UserId};
use sea_orm::ActiveValue::{NotSet, Set, Unchanged};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::LockType;
use sea_orm::{FromQueryResult, QueryOrder, QuerySelect};
use serde::Serialize;
use tavern::cards::card;
use tavern::cards::card::Card;
use tavern::cards::card_error::CardError;
use tavern::regex_scripts::script_view::RegexScriptView;
use tavern::regex_scripts::{script_list, script_view};
use utoipa::ToSchema;

use crate::characters::public_card::PublicCard;
use crate::db::connect::Db;
use crate::db::reading::page::{PageOf, PageQuery};
use crate::db::reading::row_slices;
use crate::db::string_enum::string_enum;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "characters")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: CharacterId,
    pub owner_id: Option<UserId>,
    pub name: String,
    /// The V2 or V3 document with its unknown fields.
    #[sea_orm(column_type = "JsonBinary")]
    pub card: Json,
    pub spec_version: String,
    /// The avatar for display.
    pub avatar_id: Option<AssetId>,
    /// The SHA-256 of the avatar; duplicated here because many responses contain the avatar's URL.
    pub avatar_hash: Option<String>,
    pub content_hash: String,
    /// The card's talkativeness, 0.0 to 1.0. Duplicated here because speaker selection reads it for
    /// every character.
    pub talkativeness: Option<f64>,
    /// Whether everyone who shares a space with it may read the whole card.
    pub share_whole_card: bool,
    /// Whether its owner allows the regex scripts of the card.
    pub regex_allowed: bool,
    pub status: CharacterStatus,
    pub created_at: Timestamp,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

string_enum! {
    /// A deleted card is kept for the memberships that still use it.
    #[schema(as = CharacterStatus)]
    CharacterStatus { Active, Deleted }
}

/// A character with its card.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Character)]
pub struct CharacterView {
    pub id: CharacterId,
    pub name: String,
    pub owner_id: Option<UserId>,
    pub spec_version: String,
    /// The whole card; null for users who may not read it.
    #[schema(value_type = Option<Object>)]
    pub card: Option<Json>,
    pub public_card: PublicCard,
    /// Whether everyone who shares a space with the character may read the whole card.
    pub share_whole_card: bool,
    /// Whether its owner allows the regex scripts of the card.
    pub regex_allowed: bool,
    /// The regex scripts of the card; none for users who may not read it.
    pub regex_scripts: Vec<RegexScriptView>,
    pub avatar_url: Option<String>,
    /// The number of greetings.
    pub greetings: usize,
    /// The number of entries in the embedded lorebook.
    pub lore_entries: usize,
    pub created_at: Timestamp,
}

impl Model {
    /// Parses the stored card.
    ///
    /// # Errors
    /// Returns an error when the stored document is invalid, which is checked before it is stored.
    pub fn card(&self) -> Result<Card, CardError> {
        Card::from_document(self.card.clone())
    }

    /// Returns the character without its card, for users who may not read that.
    pub fn public_view(&self) -> CharacterView {
        CharacterView {
            card: None,
            regex_scripts: Vec::new(),
            ..self.view()
        }
    }

    /// Returns the character with its whole card.
    pub fn view(&self) -> CharacterView {
        let card = self.card().ok();
        let greetings = card.as_ref().map_or(0, count_greetings);
        CharacterView {
            id: self.id,
            name: self.name.clone(),
            owner_id: self.owner_id,
            spec_version: self.spec_version.clone(),
            card: Some(self.card.clone()),
            public_card: card.as_ref().map(PublicCard::from_card).unwrap_or_default(),
            share_whole_card: self.share_whole_card,
            regex_allowed: self.regex_allowed,
            regex_scripts: script_view::views(script_list::of_card(&self.card)),
            avatar_url: avatar_url(self.id, self.avatar_hash.as_deref()),
            greetings,
            lore_entries: card.map_or(0, |it| it.n_lore_entries()),
            created_at: self.created_at,
        }
    }
}

/// Returns the URL of an avatar. It contains the hash, so that responses can be cached
/// indefinitely.
pub fn avatar_url(id: CharacterId, hash: Option<&str>) -> Option<String> {
    hash.map(|it| format!("/api/characters/{id}/avatar?v={}", short_hash(it)))
}

/// Returns the start of a hash, long enough to distinguish avatars.
pub fn short_hash(hash: &str) -> &str {
    hash.get(..16).unwrap_or(hash)
}

/// Returns the number of greetings of a card.
pub fn count_greetings(card: &Card) -> usize {
    let first = usize::from(!card.first_mes().trim().is_empty());
    first + card.alternate_greetings().len() + card.group_only_greetings().len()
}

/// Creates a character from a card.
pub async fn create(db: &Db, owner: UserId, card: Card, now: Timestamp) -> Result<Model, DbErr> {
    let row = new_row(owner, card, now);
    db.write(move |tx| Box::pin(async move { row.insert(tx).await }))
        .await
}

/// Builds a character in its owner's library; it is not stored yet.
pub fn new_row(owner: UserId, card: Card, now: Timestamp) -> ActiveModel {
    ActiveModel {
        id: NotSet,
        owner_id: Set(Some(owner)),
        status: Set(CharacterStatus::Active),
        created_at: Set(now),
        ..card_columns(card)
    }
}

/// Replaces the card of a character.
pub async fn replace_card(db: &Db, id: CharacterId, card: Card) -> Result<Model, DbErr> {
    db.write(move |tx| Box::pin(async move { update_document(tx, id, card).await }))
        .await
}

/// Replaces the card of a character within a transaction.
pub async fn update_document(
    tx: &impl ConnectionTrait,
    id: CharacterId,
    card: Card,
) -> Result<Model, DbErr> {
    let row = ActiveModel {
        id: Unchanged(id),
        ..card_columns(card)
    };
    row.update(tx).await
}

/// Sets whether everyone who shares a space with the character may read the whole card.
///
/// # Errors
/// Returns an error when the character does not exist, or the database fails.
pub async fn set_share_whole_card(
    db: &Db,
    id: CharacterId,
    share_whole_card: bool,
) -> Result<Model, DbErr> {
    let row = ActiveModel {
        id: Unchanged(id),
        share_whole_card: Set(share_whole_card),
        ..Default::default()
    };
    db.write(move |tx| Box::pin(async move { row.update(tx).await }))
        .await
}

/// Sets whether the regex scripts of the card may run.
///
/// # Errors
/// Returns an error when the character does not exist, or the database fails.
pub async fn set_regex_allowed(
    db: &Db,
    id: CharacterId,
    regex_allowed: bool,
) -> Result<Model, DbErr> {
    let row = ActiveModel {
        id: Unchanged(id),
        regex_allowed: Set(regex_allowed),
        ..Default::default()
    };
    db.write(move |tx| Box::pin(async move { row.update(tx).await }))
        .await
}

/// Loads a character and locks its row until the transaction ends.
///
/// # Errors
/// Returns an error when the character does not exist, or the database fails.
pub async fn lock(tx: &impl ConnectionTrait, id: CharacterId) -> Result<Model, DbErr> {
    let found = Entity::find_by_id(id).lock(LockType::NoKeyUpdate).one(tx);
    let gone = || DbErr::RecordNotFound("the character to be locked".into());
    found.await?.ok_or_else(gone)
}

fn card_columns(card: Card) -> ActiveModel {
    ActiveModel {
        name: Set(card.name().to_owned()),
        spec_version: Set(card.spec_version().chars().take(16).collect()),
        content_hash: Set(card::content_hash(&card.document)),
        talkativeness: Set(card.talkativeness()),
        card: Set(card.document),
        ..Default::default()
    }
}

/// Marks a character as deleted; memberships that use it continue to work.
pub async fn delete(db: &Db, id: CharacterId) -> Result<(), DbErr> {
    let row = ActiveModel {
        id: Unchanged(id),
        status: Set(CharacterStatus::Deleted),
        ..Default::default()
    };
    db.write(move |tx| Box::pin(async move { row.update(tx).await.map(|_| ()) }))
        .await
}

/// Returns the talkativeness by character; characters whose cards do not state one are omitted.
pub async fn load_talkativeness(
    db: &impl ConnectionTrait,
    ids: impl IntoIterator<Item = CharacterId>,
) -> Result<HashMap<CharacterId, f64>, DbErr> {
    let stated: Vec<(CharacterId, f64)> = Entity::find()
        .select_only()
        .columns([Column::Id, Column::Talkativeness])
        .filter(Column::Id.is_in(ids))
        .filter(Column::Talkativeness.is_not_null())
        .into_tuple()
        .all(db)
        .await?;
    Ok(stated.into_iter().collect())
}

/// Returns a page of the characters in a user's library, limited by the bytes of their cards.
pub async fn list_for_owner(
    db: &impl ConnectionTrait,
    owner: UserId,
    page: PageQuery,
) -> Result<PageOf<Model>, DbErr> {
    let bytes = row_slices::json_bytes(Column::Card);
    page.load_large(select_for_owner(owner), Column::Id, bytes, db)
        .await
}

/// Selects the characters in a user's library.
fn select_for_owner(owner: UserId) -> Select<Entity> {
    Entity::find()
        .filter(Column::OwnerId.eq(owner))
        .filter(Column::Status.eq(CharacterStatus::Active))
}

/// Returns the oldest character in a user's library with exactly this card.
pub async fn find_by_hash(
    db: &impl ConnectionTrait,
    owner: UserId,
    content_hash: &str,
) -> Result<Option<Model>, DbErr> {
    select_for_owner(owner)
        .filter(Column::ContentHash.eq(content_hash))
        .order_by_asc(Column::Id)
        .one(db)
        .await
}

/// The avatar columns of a character, without the card, which may be large.
#[derive(Clone, Debug, PartialEq, Eq, FromQueryResult)]
pub struct AvatarRef {
    pub id: CharacterId,
    pub owner_id: Option<UserId>,
    pub avatar_id: Option<AssetId>,
    pub avatar_hash: Option<String>,
}

/// Returns the avatar of a character, deleted or not.
pub async fn avatar_ref(
    db: &impl ConnectionTrait,
    id: CharacterId,
) -> Result<Option<AvatarRef>, DbErr> {
    Entity::find_by_id(id)
        .select_only()
        .columns([
            Column::Id,
            Column::OwnerId,
            Column::AvatarId,
            Column::AvatarHash,
        ])
        .into_model()
        .one(db)
        .await
}

/// Returns a character that is not deleted.
pub async fn find_active(
    db: &impl ConnectionTrait,
    id: CharacterId,
) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id(id)
        .filter(Column::Status.eq(CharacterStatus::Active))
        .one(db)
        .await
}
