//! Pages of a roster, ordered by position, then id. Reads only one page, even if many members left.

use sea_orm::sea_query::{ExprTrait, Order};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
};

use crate::ids::{MembershipId, SpaceId};
use crate::spaces::membership::{Column, Entity, Model};

/// A position in the order of a roster: position, then id.
pub type RosterPosition = (i64, MembershipId);

/// Selects a part of a roster.
#[derive(Clone, Copy, Debug)]
pub struct RosterRange {
    pub after: Option<RosterPosition>,
    pub before: Option<RosterPosition>,
    /// From the end, in descending order.
    pub is_descending: bool,
    pub limit: u64,
}

/// Returns the roster position of a membership in a space, removed or not.
pub async fn find_position(
    db: &impl ConnectionTrait,
    space: SpaceId,
    id: Option<MembershipId>,
) -> Result<Option<RosterPosition>, DbErr> {
    let Some(id) = id else {
        return Ok(None);
    };
    Entity::find_by_id(id)
        .select_only()
        .columns([Column::Position, Column::Id])
        .filter(Column::SpaceId.eq(space))
        .into_tuple()
        .one(db)
        .await
}

/// Loads a part of a roster, removed memberships included.
pub async fn load_page(
    db: &impl ConnectionTrait,
    space: SpaceId,
    part: RosterRange,
) -> Result<Vec<Model>, DbErr> {
    let mut query = Entity::find().filter(Column::SpaceId.eq(space));
    if let Some((position, id)) = part.after {
        let same = Column::Position.eq(position).and(Column::Id.gt(id));
        query = query.filter(Column::Position.gt(position).or(same));
    }
    if let Some((position, id)) = part.before {
        let same = Column::Position.eq(position).and(Column::Id.lt(id));
        query = query.filter(Column::Position.lt(position).or(same));
    }
    let order = match part.is_descending {
        true => Order::Desc,
        false => Order::Asc,
    };
    query
        .order_by(Column::Position, order.clone())
        .order_by(Column::Id, order)
        .limit(part.limit)
        .all(db)
        .await
}
