//! Table `space_variables`: the macro variables that all conversations of a space share. Each
//! variable has its own row, so that runs which end at the same time do not overwrite each other's
//! variables.

use base::ids::SpaceId;
use sea_orm::Set;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::OnConflict;
use tavern::macros::variables::{VariableChangeMap, VariableMap};

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "space_variables")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub space_id: SpaceId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub name: String,
    pub value: String,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Returns all variables of a space.
pub async fn load_for_space(
    db: &impl ConnectionTrait,
    space: SpaceId,
) -> Result<VariableMap, DbErr> {
    let all = Entity::find().filter(Column::SpaceId.eq(space));
    let all = all.all(db).await?.into_iter();
    Ok(all.map(|it| (it.name, it.value)).collect())
}

/// Sets and deletes variables of a space.
pub async fn apply(
    tx: &impl ConnectionTrait,
    space: SpaceId,
    changes: &VariableChangeMap,
) -> Result<(), DbErr> {
    let deleted: Vec<&str> = changes
        .iter()
        .filter(|(_, value)| value.is_none())
        .map(|(name, _)| name.as_str())
        .collect();
    if !deleted.is_empty() {
        Entity::delete_many()
            .filter(Column::SpaceId.eq(space))
            .filter(Column::Name.is_in(deleted))
            .exec(tx)
            .await?;
    }
    let values = changes.iter();
    let values = values.filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
    set(tx, space, values.collect()).await
}

/// Sets variables of a space.
pub async fn set(
    tx: &impl ConnectionTrait,
    space: SpaceId,
    values: VariableMap,
) -> Result<(), DbErr> {
    if values.is_empty() {
        return Ok(());
    }
    let rows = values.into_iter().map(|(name, value)| ActiveModel {
        space_id: Set(space),
        name: Set(name),
        value: Set(value),
    });
    let known = OnConflict::columns([Column::SpaceId, Column::Name])
        .update_column(Column::Value)
        .to_owned();
    Entity::insert_many(rows)
        .on_conflict(known)
        .exec_without_returning(tx)
        .await?;
    Ok(())
}
