//! Loads one page of a space's members, removed ones included, ordered by position, then id,
//! without reading the other members.

use base::ids::{MembershipId, SpaceId};
use sea_orm::sea_query::{ExprTrait, Order};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
};

use crate::db::reading::page::{PageOf, PageQuery};
use crate::spaces::membership::{Column, Entity, Model};

/// A position in the order of a roster: position, then id.
type RosterPosition = (i64, MembershipId);

/// Returns the roster position of a membership in a space, removed or not.
async fn find_position(
    db: &impl ConnectionTrait,
    space: SpaceId,
    id: Option<i64>,
) -> Result<Option<RosterPosition>, DbErr> {
    let Some(id) = id else {
        return Ok(None);
    };
    Entity::find_by_id(MembershipId(id))
        .select_only()
        .columns([Column::Position, Column::Id])
        .filter(Column::SpaceId.eq(space))
        .into_tuple()
        .one(db)
        .await
}

/// Returns a page of a roster, removed memberships included. A cursor is the id of a membership; an
/// unknown one counts as none.
pub async fn list_for_space(
    db: &impl ConnectionTrait,
    space: SpaceId,
    page: PageQuery,
) -> Result<PageOf<Model>, DbErr> {
    let after = find_position(db, space, page.after).await?;
    let before = find_position(db, space, page.before).await?;
    let is_backwards = page.is_backwards();
    let mut query = Entity::find().filter(Column::SpaceId.eq(space));
    if let Some((position, id)) = after {
        let same = Column::Position.eq(position).and(Column::Id.gt(id));
        query = query.filter(Column::Position.gt(position).or(same));
    }
    if let Some((position, id)) = before {
        let same = Column::Position.eq(position).and(Column::Id.lt(id));
        query = query.filter(Column::Position.lt(position).or(same));
    }
    let order = match is_backwards {
        true => Order::Desc,
        false => Order::Asc,
    };
    let rows = query
        .order_by(Column::Position, order.clone())
        .order_by(Column::Id, order)
        .limit(page.limit + 1)
        .all(db)
        .await?;
    let mut found = page.page_of(rows, |it| it.id.0.into());
    if is_backwards {
        found.data.reverse();
    }
    Ok(found)
}
