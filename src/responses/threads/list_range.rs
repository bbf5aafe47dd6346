//! Reads pages of lists: at most `limit` rows after or before a cursor, by a column with unique
//! values.

use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, Order, QueryFilter, QueryOrder, QuerySelect,
    QueryTrait, Select, Value,
};

/// Selects a part of a list. The cursors are values of the column that orders it.
#[derive(Clone, Debug)]
pub struct ListRange<P> {
    /// The position before the first row, in the order of the list.
    pub after: Option<P>,
    /// The position after the last row, in the order of the list.
    pub before: Option<P>,
    /// Newest first.
    pub is_descending: bool,
    pub limit: usize,
}

/// A part of a list, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListSlice<M> {
    pub rows: Vec<M>,
    /// Whether more rows follow this part; for a part that ends before a cursor, whether more rows precede it.
    pub has_more: bool,
}

impl<P: Into<Value>> ListRange<P> {
    /// Returns the rows of `select` in this range; `column` has their positions.
    pub async fn load<E: EntityTrait>(
        self,
        db: &impl ConnectionTrait,
        select: Select<E>,
        column: E::Column,
    ) -> Result<ListSlice<E::Model>, DbErr> {
        let beyond = |position: P, is_less: bool| match is_less {
            true => column.lt(position),
            false => column.gt(position),
        };
        // The part before a cursor is read from the cursor back.
        let is_backward = self.before.is_some() && self.after.is_none();
        let order = match self.is_descending == is_backward {
            true => Order::Asc,
            false => Order::Desc,
        };
        let mut rows = select
            .apply_if(self.after, |query, position| {
                query.filter(beyond(position, self.is_descending))
            })
            .apply_if(self.before, |query, position| {
                query.filter(beyond(position, !self.is_descending))
            })
            .order_by(column, order)
            .limit(self.limit as u64 + 1)
            .all(db)
            .await?;
        let has_more = rows.len() > self.limit;
        rows.truncate(self.limit);
        if is_backward {
            rows.reverse();
        }
        Ok(ListSlice { rows, has_more })
    }
}
