//! Lists the presets in a user's library without their documents, from the table `presets`.

use base::clock::Timestamp;
use base::ids::{PresetId, UserId};
use sea_orm::entity::prelude::*;
use serde::Serialize;
use utoipa::ToSchema;

use crate::db::reading::page::{PageOf, PageQuery};
use crate::presets::preset::PresetStatus;

/// A preset in a list, without its document.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema, DeriveEntityModel)]
#[sea_orm(table_name = "presets")]
#[schema(as = PresetSign)]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: PresetId,
    pub name: String,
    pub owner_id: Option<UserId>,
    pub status: PresetStatus,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Returns a page of the presets in a user's library.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn list_for_owner(
    db: &impl ConnectionTrait,
    owner: UserId,
    page: PageQuery,
) -> Result<PageOf<Model>, DbErr> {
    let own = Entity::find()
        .filter(Column::OwnerId.eq(owner))
        .filter(Column::Status.eq(PresetStatus::Active));
    page.load(own, Column::Id, db).await
}
