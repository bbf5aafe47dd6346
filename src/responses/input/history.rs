//! Loads the history of a new response, from its previous responses or its API conversation, and
//! replaces item references in its input by the stored items.

use base::ids::UserId;
use responses_api::request::error::WrongReference;
use responses_api::request::items::item_view::{ItemContent, ItemView};
use responses_api::status::ResponseStatus;
use sea_orm::sea_query::Query;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbBackend, DbErr, EntityTrait, QueryFilter, QueryOrder,
    QuerySelect, Statement,
};
use serde_json::Value;

use crate::responses::error::ResponseEngineError;
use crate::responses::store::{api_conversation, api_conversation_item, item, response};

/// Input and output of a response and its predecessors, oldest first. Deleted responses are
/// included, because later ones depend on them.
const CHAIN_CTE: &str = "WITH RECURSIVE chain(id, previous, depth) AS ( \
    SELECT id, previous_response_id, 0 FROM responses WHERE id = # \
    UNION ALL SELECT r.id, r.previous_response_id, chain.depth + 1 \
    FROM responses r JOIN chain ON r.id = chain.previous) ";
const ITEMS: &str = "SELECT i.* FROM response_items i JOIN chain ON chain.id = i.response_id \
    ORDER BY chain.depth DESC, i.side, i.position";

/// The total size of the items.
const SIZE: &str = "SELECT CAST(COALESCE(SUM(LENGTH(CAST(i.payload AS TEXT))), 0) AS BIGINT) AS n \
    FROM response_items i JOIN chain ON chain.id = i.response_id";
const SIZE_OF_CONVERSATION: &str = "SELECT \
    CAST(COALESCE(SUM(LENGTH(CAST(payload AS TEXT))), 0) AS BIGINT) AS n \
    FROM api_conversation_items WHERE api_conversation_id = #";

/// The most bytes of history for one response, and of items that references resolve to.
const MAX_BYTES: i64 = 64 * 1024 * 1024;

/// Checks that a new response of this user may continue from `previous`.
///
/// # Errors
/// Returns `PreviousNotFound` when the user cannot see it, `PreviousInProgress` when it has not
/// ended, and `PreviousNotUsable` when it failed.
pub async fn check_previous(
    db: &impl ConnectionTrait,
    user: UserId,
    previous: &str,
) -> Result<(), ResponseEngineError> {
    let found = response::find_for_user(db, user, previous).await?;
    let found = found.ok_or_else(|| ResponseEngineError::PreviousNotFound(previous.to_owned()))?;
    match found.status {
        ResponseStatus::Queued | ResponseStatus::InProgress => {
            Err(ResponseEngineError::PreviousInProgress(found.id))
        }
        ResponseStatus::Failed => Err(ResponseEngineError::PreviousNotUsable(found.id)),
        ResponseStatus::Completed | ResponseStatus::Incomplete | ResponseStatus::Cancelled => {
            Ok(())
        }
    }
}

/// Returns the next position of a conversation of this user.
///
/// # Errors
/// Returns `ConversationNotFound` when the user cannot see it.
pub async fn conversation_position(
    db: &impl ConnectionTrait,
    user: UserId,
    id: &str,
) -> Result<i64, ResponseEngineError> {
    let found = api_conversation::find_for_user(db, user, id).await?;
    let found = found.ok_or_else(|| ResponseEngineError::ConversationNotFound(id.to_owned()))?;
    Ok(found.next_position)
}

/// Returns the items before the new input.
///
/// # Errors
/// Returns `HistoryTooLarge` when they exceed the size limit.
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

/// Checks the size of a history before it is loaded. `size` is a statement that returns the number of bytes
/// as `n`, with `#` for the id.
///
/// # Errors
/// Returns `HistoryTooLarge` when the size limit is exceeded.
pub async fn require_size_limit(
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

/// Returns the statement with `id` as its only parameter.
fn statement_for(db: &impl ConnectionTrait, sql: &str, id: &str) -> Statement {
    let backend = db.get_database_backend();
    let placeholder = match backend {
        DbBackend::Postgres => "$1",
        _ => "?",
    };
    Statement::from_sql_and_values(backend, sql.replace('#', placeholder), [id.into()])
}

/// Replaces each item reference by the stored item.
///
/// # Errors
/// Returns `UnknownItem` when the user has no such item, and `HistoryTooLarge` when the items
/// exceed the size limit.
pub async fn resolve_references(
    db: &impl ConnectionTrait,
    user: UserId,
    input: &mut [Value],
) -> Result<(), ResponseEngineError> {
    let mut left = MAX_BYTES;
    for (at, item) in input.iter_mut().enumerate() {
        let view = ItemView::of(item);
        if view.content != ItemContent::Reference {
            continue;
        }
        let found = find_stored_item(db, user, view.id).await?;
        let field = || WrongReference {
            param: format!("input[{at}].id"),
            value: view.id.to_owned(),
        };
        let found = found.ok_or_else(|| ResponseEngineError::UnknownItem(field()))?;
        left -= i64::try_from(found.to_string().len()).unwrap_or(i64::MAX);
        if left < 0 {
            return Err(ResponseEngineError::HistoryTooLarge(MAX_BYTES));
        }
        *item = found;
    }
    Ok(())
}

/// Finds an item of a user in responses, then in conversations.
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
