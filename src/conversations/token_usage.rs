//! The tokens that spaces have used. Each conversation counts those of its runs in its own row, so
//! that the ends of runs in several conversations do not wait for each other; the space counts the
//! tokens that belong to no conversation.

use std::collections::{HashMap, HashSet};

use base::ids::{ConversationId, SpaceId};
use sea_orm::sea_query::{Expr, ExprTrait, Query, SimpleExpr};
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QuerySelect};

use crate::conversations::conversation::{Column, Entity};
use crate::db::id_list::padded;
use crate::spaces::space;

/// Adds tokens to a conversation outside of a step, or to its space if the conversation was deleted.
pub async fn add_tokens(
    tx: &impl ConnectionTrait,
    space: SpaceId,
    conversation: ConversationId,
    tokens: i64,
) -> Result<(), DbErr> {
    if tokens == 0 {
        return Ok(());
    }
    // Added in SQL, because a step may commit at the same time.
    let used = Expr::col(Column::TokensUsed).add(tokens);
    let updated = Entity::update_many()
        .col_expr(Column::TokensUsed, used)
        .filter(Column::Id.eq(conversation))
        .exec(tx)
        .await?;
    match updated.rows_affected {
        0 => space::add_unattributed_tokens(tx, space, tokens).await,
        _ => Ok(()),
    }
}

/// Returns the tokens that each of these spaces has used; a space that was deleted is missing.
pub async fn list_for_spaces(
    db: &impl ConnectionTrait,
    spaces: impl IntoIterator<Item = SpaceId>,
) -> Result<HashMap<SpaceId, i64>, DbErr> {
    let spaces = padded(spaces);
    if spaces.is_empty() {
        return Ok(HashMap::new());
    }
    let of_space = (space::Entity, space::Column::Id);
    let sum = Query::select()
        .expr(Expr::col((Entity, Column::TokensUsed)).sum())
        .from(Entity)
        .and_where(Expr::col((Entity, Column::SpaceId)).equals(of_space))
        .to_owned();
    let sum = SimpleExpr::SubQuery(None, Box::new(sum.into()));
    let total = Expr::col((space::Entity, space::Column::UnattributedTokens)).add(sum.if_null(0));
    // One statement, because a deletion moves tokens from a conversation to its space. PostgreSQL
    // sums 64-bit integers as a decimal number.
    let totals = space::Entity::find()
        .select_only()
        .column(space::Column::Id)
        .expr(total.cast_as("bigint"))
        .filter(space::Column::Id.is_in(spaces));
    let totals: Vec<(SpaceId, i64)> = totals.into_tuple().all(db).await?;
    Ok(totals.into_iter().collect())
}

/// Returns the tokens that a space has used; 0 if it was deleted.
pub async fn find_for_space(db: &impl ConnectionTrait, space: SpaceId) -> Result<i64, DbErr> {
    let used = list_for_spaces(db, [space]).await?;
    Ok(used.get(&space).copied().unwrap_or_default())
}

/// Returns which of these spaces have used up their `token_limit`. `uncounted_tokens` are those of a
/// run that has not ended. Spaces without a limit need no query.
pub async fn list_spaces_at_limit(
    db: &impl ConnectionTrait,
    spaces: impl IntoIterator<Item = &space::Model>,
    uncounted_tokens: i64,
) -> Result<HashSet<SpaceId>, DbErr> {
    let limited = spaces.into_iter().filter(|it| it.token_limit > 0);
    let limits: HashMap<SpaceId, i64> = limited.map(|it| (it.id, it.token_limit)).collect();
    let mut used = list_for_spaces(db, limits.keys().copied()).await?;
    used.retain(|space, used| used.saturating_add(uncounted_tokens) >= limits[space]);
    Ok(used.into_keys().collect())
}

/// As [`list_spaces_at_limit`], for one space.
pub async fn has_reached_limit(
    db: &impl ConnectionTrait,
    space: &space::Model,
    uncounted_tokens: i64,
) -> Result<bool, DbErr> {
    let at_limit = list_spaces_at_limit(db, [space], uncounted_tokens).await?;
    Ok(!at_limit.is_empty())
}

/// As [`has_reached_limit`], for a space that is not loaded; `None` if it was deleted.
pub async fn find_has_reached_limit(
    db: &impl ConnectionTrait,
    space: SpaceId,
    uncounted_tokens: i64,
) -> Result<Option<bool>, DbErr> {
    match space::Entity::find_by_id(space).one(db).await? {
        Some(space) => has_reached_limit(db, &space, uncounted_tokens)
            .await
            .map(Some),
        None => Ok(None),
    }
}
