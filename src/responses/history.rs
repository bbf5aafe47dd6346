//! What a response goes on from: the chain of those before it, or its conversation.

use sea_orm::sea_query::Query;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbBackend, DbErr, EntityTrait, QueryFilter, QueryOrder,
    QuerySelect, Statement,
};
use serde_json::Value;

use crate::ids::UserId;
use crate::responses::error::ResponseEngineError;
use crate::responses::response::ResponseStatus;
use crate::responses::{api_conversation, api_conversation_item, item, response};

/// Input and output of a response and of all before it, oldest first. Deleted ones are still what
/// the others said it after.
const CHAIN_CTE: &str = "WITH RECURSIVE chain(id, previous, depth) AS ( \
    SELECT id, previous_response_id, 0 FROM responses WHERE id = # \
    UNION ALL SELECT r.id, r.previous_response_id, chain.depth + 1 \
    FROM responses r JOIN chain ON r.id = chain.previous) ";
const ITEMS: &str = "SELECT i.* FROM response_items i JOIN chain ON chain.id = i.response_id \
    ORDER BY chain.depth DESC, i.side, i.position";

/// How large they are together.
const SIZE: &str = "SELECT CAST(COALESCE(SUM(LENGTH(CAST(i.payload AS TEXT))), 0) AS BIGINT) AS n \
    FROM response_items i JOIN chain ON chain.id = i.response_id";
const SIZE_OF_CONVERSATION: &str = "SELECT \
    CAST(COALESCE(SUM(LENGTH(CAST(payload AS TEXT))), 0) AS BIGINT) AS n \
    FROM api_conversation_items WHERE api_conversation_id = #";

/// The most that one response may go on from, and the most that references may bring in.
const MAX_BYTES: i64 = 64 * 1024 * 1024;

/// Whether a new response of this user may go on from `previous`.
///
/// # Errors
/// It is not there to be seen, not over, or failed.
pub async fn check_previous(
    db: &impl ConnectionTrait,
    user: UserId,
    previous: &str,
) -> Result<(), ResponseEngineError> {
    let found = response::find_for_user(db, user, previous).await?;
    let found = found.ok_or_else(|| ResponseEngineError::PreviousNotFound(previous.to_owned()))?;
    match found.status {
        ResponseStatus::Queued | ResponseStatus::InProgress => {
            Err(ResponseEngineError::PreviousInProgress)
        }
        ResponseStatus::Failed => Err(ResponseEngineError::PreviousNotUsable),
        ResponseStatus::Completed | ResponseStatus::Incomplete | ResponseStatus::Cancelled => {
            Ok(())
        }
    }
}

/// How long a conversation is in which a new response of this user may go on.
///
/// # Errors
/// It is not there to be seen.
pub async fn conversation_position(
    db: &impl ConnectionTrait,
    user: UserId,
    id: &str,
) -> Result<i64, ResponseEngineError> {
    let found = api_conversation::find_for_user(db, user, id).await?;
    let found = found.ok_or(ResponseEngineError::ConversationNotFound)?;
    Ok(found.next_position)
}

/// The items before the new input.
///
/// # Errors
/// They are more than a turn may hold.
pub async fn list_items(
    db: &impl ConnectionTrait,
    previous: Option<&str>,
    conversation: Option<&str>,
) -> Result<Vec<Value>, ResponseEngineError> {
    match (previous, conversation) {
        (Some(id), _) => list_chain(db, id).await,
        (None, Some(id)) => {
            require_size_limit(db, SIZE_OF_CONVERSATION, id).await?;
            let items = api_conversation_item::list_all(db, id).await?;
            Ok(items.into_iter().map(|it| it.payload).collect())
        }
        (None, None) => Ok(Vec::new()),
    }
}

async fn list_chain(
    db: &impl ConnectionTrait,
    id: &str,
) -> Result<Vec<Value>, ResponseEngineError> {
    require_size_limit(db, &[CHAIN_CTE, SIZE].concat(), id).await?;
    let items = item::Entity::find()
        .from_raw_sql(statement_for(db, &[CHAIN_CTE, ITEMS].concat(), id))
        .all(db)
        .await?;
    Ok(items.into_iter().map(|it| it.payload).collect())
}

async fn require_size_limit(
    db: &impl ConnectionTrait,
    size: &str,
    id: &str,
) -> Result<(), ResponseEngineError> {
    let row = db.query_one_raw(statement_for(db, size, id)).await?;
    let n_bytes: i64 = row.map_or(Ok(0), |it| it.try_get("", "n"))?;
    match n_bytes <= MAX_BYTES {
        true => Ok(()),
        false => Err(ResponseEngineError::HistoryTooLarge(MAX_BYTES)),
    }
}

/// The statement with `id` in its one place.
fn statement_for(db: &impl ConnectionTrait, sql: &str, id: &str) -> Statement {
    let backend = db.get_database_backend();
    let placeholder = match backend {
        DbBackend::Postgres => "$1",
        _ => "?",
    };
    Statement::from_sql_and_values(backend, sql.replace('#', placeholder), [id.into()])
}

/// Puts in the place of each reference the item that it names.
///
/// # Errors
/// It names none that this user has; together they are more than a turn may hold.
pub async fn resolve_references(
    db: &impl ConnectionTrait,
    user: UserId,
    input: &mut [Value],
) -> Result<(), ResponseEngineError> {
    let mut left = MAX_BYTES;
    for (at, item) in input.iter_mut().enumerate() {
        if item["type"] != "item_reference" {
            continue;
        }
        let id = item["id"].as_str().unwrap_or_default();
        let found = find_stored_item(db, user, id).await?;
        let found =
            found.ok_or_else(|| ResponseEngineError::UnknownItem(format!("input[{at}].id")))?;
        left -= i64::try_from(found.to_string().len()).unwrap_or(i64::MAX);
        if left < 0 {
            return Err(ResponseEngineError::HistoryTooLarge(MAX_BYTES));
        }
        *item = found;
    }
    Ok(())
}

/// An item of a user, wherever it is stored.
async fn find_stored_item(
    db: &impl ConnectionTrait,
    user: UserId,
    id: &str,
) -> Result<Option<Value>, DbErr> {
    let own_ids = Query::select()
        .column(response::Column::Id)
        .from(response::Entity)
        .and_where(response::Column::UserId.eq(user))
        .and_where(response::Column::DeletedAt.is_null())
        .to_owned();
    let of_a_response = item::Entity::find()
        .filter(item::Column::ItemId.eq(id))
        .filter(item::Column::ResponseId.in_subquery(own_ids))
        .order_by_desc(item::Column::ResponseId)
        .limit(1)
        .one(db)
        .await?;
    if let Some(found) = of_a_response {
        return Ok(Some(found.payload));
    }
    let own = Query::select()
        .column(api_conversation::Column::Id)
        .from(api_conversation::Entity)
        .and_where(api_conversation::Column::UserId.eq(user))
        .and_where(api_conversation::Column::DeletedAt.is_null())
        .to_owned();
    let of_a_conversation = api_conversation_item::Entity::find()
        .filter(api_conversation_item::Column::ItemId.eq(id))
        .filter(api_conversation_item::Column::ApiConversationId.in_subquery(own))
        .limit(1)
        .one(db)
        .await?;
    Ok(of_a_conversation.map(|it| it.payload))
}
