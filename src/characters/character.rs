//! Table `characters`: cards, each the whole document it came as.

use crate::characters::card;
use crate::characters::card::Card;
use crate::characters::card::CardError;
use crate::clock::Timestamp;
use crate::db::connect::Db;
use crate::db::words::words;
use crate::ids::AssetId;
use crate::ids::CharacterId;
use crate::ids::UserId;
use sea_orm::ActiveValue::NotSet;
use sea_orm::ActiveValue::Set;
use sea_orm::ActiveValue::Unchanged;
use sea_orm::QuerySelect;
use sea_orm::entity::prelude::*;
use serde::Serialize;
use std::collections::HashMap;
use utoipa::ToSchema;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "characters")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: CharacterId,
    pub owner_id: Option<UserId>,
    pub name: String,
    /// The V2 or V3 document, unknown fields kept.
    #[sea_orm(column_type = "JsonBinary")]
    pub card: Json,
    pub spec_version: String,
    pub avatar_id: Option<AssetId>,
    pub content_hash: String,
    /// What the card says of it, 0.0 to 1.0: kept beside the card, as whoever chooses a speaker
    /// needs it of everybody.
    pub talkativeness: Option<f64>,
    pub status: Status,
    pub created_at: Timestamp,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

words! {
    /// A deleted card stays for the seats that still speak with it.
    #[schema(as = CharacterStatus)]
    Status { Active, Deleted }
}

/// A card and what is in it, as the API shows it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Character)]
pub struct View {
    pub id: CharacterId,
    pub name: String,
    pub owner_id: Option<UserId>,
    pub spec_version: String,
    #[schema(value_type = Object)]
    pub card: Json,
    pub avatar_url: Option<String>,
    /// How many first messages it can choose from.
    pub greetings: usize,
    /// How many entries its own lorebook has.
    pub lore_entries: usize,
    pub created_at: Timestamp,
}

impl Model {
    /// The card in order.
    ///
    /// # Errors
    /// When what is stored is no card; nothing of that kind is ever stored.
    pub fn card(&self) -> Result<Card, CardError> {
        Card::from_document(self.card.clone())
    }

    /// What people may read of this character.
    pub fn view(&self) -> View {
        let card = self.card().ok();
        let greetings = card.as_ref().map_or(0, |it| {
            let first = usize::from(!it.first_mes().trim().is_empty());
            first + it.alternate_greetings().len() + it.group_only_greetings().len()
        });
        View {
            id: self.id,
            name: self.name.clone(),
            owner_id: self.owner_id,
            spec_version: self.spec_version.clone(),
            card: self.card.clone(),
            // Pictures come with the import of PNG cards.
            avatar_url: None,
            greetings,
            lore_entries: card.map_or(0, |it| it.lore_entries()),
            created_at: self.created_at,
        }
    }
}

/// Makes a character out of a card.
pub async fn create(db: &Db, owner: UserId, card: Card, now: Timestamp) -> Result<Model, DbErr> {
    let row = ActiveModel {
        id: NotSet,
        owner_id: Set(Some(owner)),
        avatar_id: Set(None),
        status: Set(Status::Active),
        created_at: Set(now),
        ..columns_of(card)
    };
    db.write(move |tx| Box::pin(async move { row.insert(tx).await }))
        .await
}

/// Gives a character another card.
pub async fn replace_card(db: &Db, id: CharacterId, card: Card) -> Result<Model, DbErr> {
    let row = ActiveModel {
        id: Unchanged(id),
        ..columns_of(card)
    };
    db.write(move |tx| Box::pin(async move { row.update(tx).await }))
        .await
}

fn columns_of(card: Card) -> ActiveModel {
    ActiveModel {
        name: Set(card.name().to_owned()),
        spec_version: Set(card.spec_version().chars().take(16).collect()),
        content_hash: Set(card::content_hash(&card.document)),
        talkativeness: Set(card.talkativeness()),
        card: Set(card.document),
        ..Default::default()
    }
}

/// Takes a character off its owner's shelf; seats that speak with it go on.
pub async fn delete(db: &Db, id: CharacterId) -> Result<(), DbErr> {
    let row = ActiveModel {
        id: Unchanged(id),
        status: Set(Status::Deleted),
        ..Default::default()
    };
    db.write(move |tx| Box::pin(async move { row.update(tx).await.map(|_| ()) }))
        .await
}

/// How readily these characters join in; who is missing in the answer has a card that does not say.
pub async fn talkativeness_of(
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

/// The characters on a user's shelf.
pub fn of_owner(owner: UserId) -> Select<Entity> {
    Entity::find()
        .filter(Column::OwnerId.eq(owner))
        .filter(Column::Status.eq(Status::Active))
}

/// A character that has not been deleted.
pub async fn active(db: &impl ConnectionTrait, id: CharacterId) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id(id)
        .filter(Column::Status.eq(Status::Active))
        .one(db)
        .await
}
