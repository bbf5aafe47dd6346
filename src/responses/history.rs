//! What a response goes on from: the chain of those before it, or its conversation.

use crate::ids::UserId;
use crate::responses::conversation;
use crate::responses::conversation_item;
use crate::responses::item;
use crate::responses::refusal::Refusal;
use crate::responses::response;
use crate::responses::response::Status;
use sea_orm::ColumnTrait;
use sea_orm::ConnectionTrait;
use sea_orm::DbBackend;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::QueryFilter;
use sea_orm::QueryOrder;
use sea_orm::QuerySelect;
use sea_orm::Statement;
use sea_orm::sea_query::Query;
use serde_json::Value;

/// Input and output of a response and of all before it, oldest first. Deleted ones are still what
/// the others said it after.
const CHAIN: &str = "WITH RECURSIVE chain(id, previous, depth) AS ( \
    SELECT id, previous_response_id, 0 FROM responses WHERE id = # \
    UNION ALL SELECT r.id, r.previous_response_id, chain.depth + 1 \
    FROM responses r JOIN chain ON r.id = chain.previous) \
    SELECT i.* FROM response_items i JOIN chain ON chain.id = i.response_id \
    ORDER BY chain.depth DESC, i.side, i.position";

/// Whether a new response of this user may go on from `previous`.
///
/// # Errors
/// It is not there to be seen, not over, or failed.
pub async fn check_previous(
    db: &impl ConnectionTrait,
    user: UserId,
    previous: &str,
) -> Result<(), Refusal> {
    let found = response::of_user(db, user, previous).await?;
    let found = found.ok_or_else(|| Refusal::PreviousNotFound(previous.to_owned()))?;
    match found.status {
        Status::Queued | Status::InProgress => Err(Refusal::PreviousInProgress),
        Status::Failed => Err(Refusal::PreviousNotUsable),
        Status::Completed | Status::Incomplete | Status::Cancelled => Ok(()),
    }
}

/// How long a conversation is in which a new response of this user may go on.
///
/// # Errors
/// It is not there to be seen.
pub async fn length(db: &impl ConnectionTrait, user: UserId, id: &str) -> Result<i64, Refusal> {
    let found = conversation::of_user(db, user, id).await?;
    let found = found.ok_or(Refusal::ConversationNotFound)?;
    Ok(found.next_position)
}

/// The items before the new input.
pub async fn items(
    db: &impl ConnectionTrait,
    previous: Option<&str>,
    conversation: Option<&str>,
) -> Result<Vec<Value>, DbErr> {
    match (previous, conversation) {
        (Some(id), _) => chain(db, id).await,
        (None, Some(id)) => {
            let items = conversation_item::all(db, id).await?;
            Ok(items.into_iter().map(|it| it.payload).collect())
        }
        (None, None) => Ok(Vec::new()),
    }
}

async fn chain(db: &impl ConnectionTrait, id: &str) -> Result<Vec<Value>, DbErr> {
    let backend = db.get_database_backend();
    let place = match backend {
        DbBackend::Postgres => "$1",
        _ => "?",
    };
    let sql = CHAIN.replace('#', place);
    let statement = Statement::from_sql_and_values(backend, sql, [id.into()]);
    let items = item::Entity::find().from_raw_sql(statement).all(db).await?;
    Ok(items.into_iter().map(|it| it.payload).collect())
}

/// Puts in the place of each reference the item that it names.
///
/// # Errors
/// It names none that this user has.
pub async fn resolve(
    db: &impl ConnectionTrait,
    user: UserId,
    input: &mut [Value],
) -> Result<(), Refusal> {
    for (at, item) in input.iter_mut().enumerate() {
        if item["type"] != "item_reference" {
            continue;
        }
        let id = item["id"].as_str().unwrap_or_default();
        let found = stored(db, user, id).await?;
        *item = found.ok_or_else(|| Refusal::UnknownItem(format!("input[{at}].id")))?;
    }
    Ok(())
}

/// An item of a user, wherever it is stored.
async fn stored(db: &impl ConnectionTrait, user: UserId, id: &str) -> Result<Option<Value>, DbErr> {
    let own = Query::select()
        .column(response::Column::Id)
        .from(response::Entity)
        .and_where(response::Column::UserId.eq(user))
        .and_where(response::Column::DeletedAt.is_null())
        .to_owned();
    let of_a_response = item::Entity::find()
        .filter(item::Column::ItemId.eq(id))
        .filter(item::Column::ResponseId.in_subquery(own))
        .order_by_desc(item::Column::ResponseId)
        .limit(1)
        .one(db)
        .await?;
    if let Some(found) = of_a_response {
        return Ok(Some(found.payload));
    }
    let own = Query::select()
        .column(conversation::Column::Id)
        .from(conversation::Entity)
        .and_where(conversation::Column::UserId.eq(user))
        .and_where(conversation::Column::DeletedAt.is_null())
        .to_owned();
    let of_a_conversation = conversation_item::Entity::find()
        .filter(conversation_item::Column::ItemId.eq(id))
        .filter(conversation_item::Column::ApiConversationId.in_subquery(own))
        .limit(1)
        .one(db)
        .await?;
    Ok(of_a_conversation.map(|it| it.payload))
}
