//! Table `persona_pictures`: each picture of a persona in two sizes. A replaced picture is kept as long
//! as a message shows it.

use base::ids::{AssetId, PersonaId};
use sea_orm::ActiveValue::Set;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, OnConflict};

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "persona_pictures")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub persona_id: PersonaId,
    /// The SHA-256 of the small size.
    #[sea_orm(primary_key, auto_increment = false)]
    pub hash: String,
    pub small_id: AssetId,
    pub large_id: AssetId,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Selects pictures that neither their persona nor a message shows.
const UNUSED: &str = "NOT EXISTS (SELECT 1 FROM messages m \
    WHERE m.persona_id = persona_pictures.persona_id AND m.persona_avatar = persona_pictures.hash) \
    AND NOT EXISTS (SELECT 1 FROM personas p WHERE p.id = persona_pictures.persona_id \
    AND p.avatar_hash = persona_pictures.hash)";

/// Adds a picture; the same picture may be added again.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn add(tx: &impl ConnectionTrait, picture: Model) -> Result<(), DbErr> {
    let row = ActiveModel {
        persona_id: Set(picture.persona_id),
        hash: Set(picture.hash),
        small_id: Set(picture.small_id),
        large_id: Set(picture.large_id),
    };
    let again = OnConflict::columns([Column::PersonaId, Column::Hash])
        .update_columns([Column::SmallId, Column::LargeId])
        .to_owned();
    Entity::insert(row)
        .on_conflict(again)
        .exec_without_returning(tx)
        .await?;
    Ok(())
}

/// Returns the picture of a persona whose hash begins with `short_hash`.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn find(
    db: &impl ConnectionTrait,
    persona: PersonaId,
    short_hash: &str,
) -> Result<Option<Model>, DbErr> {
    // Compared here, because a LIKE pattern would have to be escaped. A persona has few pictures.
    let all = Entity::find().filter(Column::PersonaId.eq(persona));
    let mut all = all.all(db).await?.into_iter();
    Ok(all.find(|it| !short_hash.is_empty() && it.hash.starts_with(short_hash)))
}

/// Deletes all pictures that neither their persona nor a message shows.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn delete_all_unused(tx: &impl ConnectionTrait) -> Result<(), DbErr> {
    let unused = Entity::delete_many().filter(Expr::cust(UNUSED));
    unused.exec(tx).await.map(drop)
}

/// Deletes the pictures of a persona that neither the persona nor a message shows.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn delete_unused(tx: &impl ConnectionTrait, persona: PersonaId) -> Result<(), DbErr> {
    Entity::delete_many()
        .filter(Column::PersonaId.eq(persona))
        .filter(Expr::cust(UNUSED))
        .exec(tx)
        .await
        .map(drop)
}
