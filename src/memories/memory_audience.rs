//! Table `memory_audience`: the only members who may know a memory. A memory without rows is known to
//! everyone in the space.

use std::collections::HashMap;

use base::ids::{MembershipId, MemoryId, SpaceId};
use sea_orm::entity::prelude::*;
use sea_orm::{QuerySelect, QueryTrait};

use crate::memories::memory;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "memory_audience")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub memory_id: MemoryId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub space_membership_id: MembershipId,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Returns the audience of each memory of a space that has one.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn load_for_space(
    db: &impl ConnectionTrait,
    space: SpaceId,
) -> Result<HashMap<MemoryId, Vec<MembershipId>>, DbErr> {
    let of_space = memory::select_for_space(space)
        .select_only()
        .column(memory::Column::Id)
        .into_query();
    let rows = Entity::find()
        .filter(Column::MemoryId.in_subquery(of_space))
        .all(db)
        .await?;
    let mut audiences: HashMap<MemoryId, Vec<MembershipId>> = HashMap::new();
    for row in rows {
        audiences
            .entry(row.memory_id)
            .or_default()
            .push(row.space_membership_id);
    }
    Ok(audiences)
}
