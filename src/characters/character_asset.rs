//! Table `character_assets`: the assets of each character, by the paths that its card uses. The
//! avatar has the empty path.

use base::ids::{AssetId, CharacterId};
use sea_orm::ActiveValue::Set;
use sea_orm::QueryOrder;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::OnConflict;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "character_assets")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub character_id: CharacterId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub name: String,
    pub asset_id: AssetId,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Attaches an asset to a character; an asset under the same path is replaced.
pub async fn attach(
    tx: &impl ConnectionTrait,
    character: CharacterId,
    name: &str,
    asset: AssetId,
) -> Result<(), DbErr> {
    let row = ActiveModel {
        character_id: Set(character),
        name: Set(name.to_owned()),
        asset_id: Set(asset),
    };
    let again = OnConflict::columns([Column::CharacterId, Column::Name])
        .update_column(Column::AssetId)
        .to_owned();
    Entity::insert(row)
        .on_conflict(again)
        .exec_without_returning(tx)
        .await?;
    Ok(())
}

/// Detaches an asset from a character.
pub async fn detach(
    tx: &impl ConnectionTrait,
    character: CharacterId,
    name: &str,
) -> Result<(), DbErr> {
    Entity::delete_by_id((character, name.to_owned()))
        .exec(tx)
        .await?;
    Ok(())
}

/// Returns whether a character has an asset with this path.
pub async fn exists(
    db: &impl ConnectionTrait,
    character: CharacterId,
    name: &str,
) -> Result<bool, DbErr> {
    let found = Entity::find_by_id((character, name.to_owned()));
    Ok(found.one(db).await?.is_some())
}

/// Returns all assets of a character, the avatar first.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn list_for_character(
    db: &impl ConnectionTrait,
    character: CharacterId,
) -> Result<Vec<Model>, DbErr> {
    Entity::find()
        .filter(Column::CharacterId.eq(character))
        .order_by_asc(Column::Name)
        .all(db)
        .await
}
