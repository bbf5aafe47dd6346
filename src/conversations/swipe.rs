//! Table `message_swipes`: the alternative texts of each message that has more than one.
//!
//! A message that never had an alternative has no row here; its only text is its content.
//! **Invariant:** the row at a message's `active_swipe` has the same text as the message.
//! **Invariant:** positions are consecutive from 0, and a run wrote at most one text of a message.

use std::collections::HashMap;

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, MessageId, RunId, SwipeId};
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{JoinType, QueryOrder, QuerySelect};

use crate::conversations::message;
use crate::db::reading::page::{PageKeys, PageQuery};
use crate::db::reading::row_slices;

/// Metadata key of a greeting that was added with a character. It describes the message, not one
/// text.
pub const GREETING_KEY: &str = "greeting";

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "message_swipes")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: SwipeId,
    pub message_id: MessageId,
    pub position: i64,
    pub content: String,
    pub conversation_run_id: Option<RunId>,
    /// Metadata of this text only: `truncated`, `finish_reason`, `stopped`.
    #[sea_orm(column_type = "JsonBinary")]
    pub metadata: Json,
    /// 0: not counted.
    pub token_count: i64,
    pub edited_at: Option<Timestamp>,
    /// The membership that edited it last.
    pub edited_by: Option<MembershipId>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(
        belongs_to = "crate::conversations::message::Entity",
        from = "Column::MessageId",
        to = "crate::conversations::message::Column::Id"
    )]
    Message,
}

impl ActiveModelBehavior for ActiveModel {}

/// Returns the number of texts of each of these messages; messages with a single text are missing.
pub async fn count_by_message(
    db: &impl ConnectionTrait,
    messages: &[MessageId],
) -> Result<HashMap<MessageId, i64>, DbErr> {
    let rows: Vec<(MessageId, i64)> = Entity::find()
        .filter(Column::MessageId.is_in(messages.iter().copied()))
        .select_only()
        .column(Column::MessageId)
        .column_as(Column::Id.count(), "count")
        .group_by(Column::MessageId)
        .into_tuple()
        .all(db)
        .await?;
    Ok(rows.into_iter().collect())
}

/// Returns the stored size of all swipes of each of these messages in bytes, by `seq`; messages
/// with a single text are missing.
///
/// # Errors
/// Returns the database error if the query fails.
pub async fn bytes_by_seq(
    db: &impl ConnectionTrait,
    conversation: ConversationId,
    seqs: &[i64],
) -> Result<HashMap<i64, i64>, DbErr> {
    let total = row_slices::stored_bytes((Entity, Column::Content)).sum();
    let rows: Vec<(i64, i64)> = Entity::find()
        .join(JoinType::InnerJoin, Relation::Message.def())
        .filter(message::Column::ConversationId.eq(conversation))
        .filter(message::Column::Seq.is_in(seqs.iter().copied()))
        .select_only()
        .column(message::Column::Seq)
        .column_as(total.cast_as("bigint"), "bytes")
        .group_by(message::Column::Seq)
        .into_tuple()
        .all(db)
        .await?;
    Ok(rows.into_iter().collect())
}

/// Returns the positions of a page of the swipes of a message, the nearest to the cursor first.
pub async fn load_keys(
    db: &impl ConnectionTrait,
    message: MessageId,
    page: PageQuery,
) -> Result<PageKeys<i64>, DbErr> {
    let of_message = Entity::find().filter(Column::MessageId.eq(message));
    let key = (Column::Position, row_slices::stored_bytes(Column::Content));
    page.load_keys(of_message, key, page.is_backwards(), db)
        .await
}

/// Returns the swipes of a message at these positions, ascending or, if `is_backwards`, descending.
pub async fn list_at(
    db: &impl ConnectionTrait,
    message: MessageId,
    positions: impl IntoIterator<Item = i64>,
    is_backwards: bool,
) -> Result<Vec<Model>, DbErr> {
    let swipes = Entity::find()
        .filter(Column::MessageId.eq(message))
        .filter(Column::Position.is_in(positions));
    let swipes = match is_backwards {
        true => swipes.order_by_desc(Column::Position),
        false => swipes.order_by_asc(Column::Position),
    };
    swipes.all(db).await
}

/// Returns the text at a position if the message has several.
pub async fn find_at(
    db: &impl ConnectionTrait,
    message: MessageId,
    position: i64,
) -> Result<Option<Model>, DbErr> {
    Entity::find()
        .filter(Column::MessageId.eq(message))
        .filter(Column::Position.eq(position))
        .one(db)
        .await
}

/// Copies a user's edit of the shown text to the active swipe, if the message has several texts.
pub async fn update_active(
    tx: &impl ConnectionTrait,
    message: &message::Model,
) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::Content, Expr::value(&message.content))
        .col_expr(Column::TokenCount, Expr::value(message.token_count))
        .col_expr(Column::EditedAt, Expr::value(message.edited_at))
        .col_expr(Column::EditedBy, Expr::value(message.edited_by))
        .col_expr(
            Column::Metadata,
            Expr::value(SwipeText::from_message(message).metadata),
        )
        .filter(Column::MessageId.eq(message.id))
        .filter(Column::Position.eq(message.active_swipe))
        .exec(tx)
        .await
        .map(|_| ())
}

/// A text that is not stored yet.
#[derive(Clone, Debug)]
pub struct SwipeText {
    pub content: String,
    pub token_count: i64,
    /// The run that wrote it.
    pub run: Option<RunId>,
    pub metadata: Json,
    pub edited_at: Option<Timestamp>,
    /// The membership that edited it last.
    pub edited_by: Option<MembershipId>,
}

impl SwipeText {
    /// Creates a text written by a run or provided by a character card.
    pub fn new(content: String, token_count: i64) -> Self {
        Self {
            content,
            token_count,
            run: None,
            metadata: serde_json::json!({}),
            edited_at: None,
            edited_by: None,
        }
    }

    /// Returns the text that a message shows.
    pub fn from_message(message: &message::Model) -> Self {
        let mut metadata = message.metadata.clone();
        if let Some(all) = metadata.as_object_mut() {
            all.remove(GREETING_KEY);
        }
        Self {
            content: message.content.clone(),
            token_count: message.token_count,
            run: message.conversation_run_id,
            metadata,
            edited_at: message.edited_at,
            edited_by: message.edited_by,
        }
    }

    /// Makes this the text that `message` shows, at this position among its swipes. Properties of
    /// the message itself stay: its author, its first run, and whether it is a greeting.
    pub fn select_on(self, message: &mut message::Model, position: i64) {
        let greeting = message.metadata.get(GREETING_KEY).cloned();
        message.content = self.content;
        message.token_count = self.token_count;
        message.edited_at = self.edited_at;
        message.edited_by = self.edited_by;
        message.metadata = self.metadata;
        message.active_swipe = position;
        if let (Some(greeting), Some(all)) = (greeting, message.metadata.as_object_mut()) {
            all.insert(GREETING_KEY.to_owned(), greeting);
        }
    }
}

impl From<Model> for SwipeText {
    fn from(row: Model) -> Self {
        Self {
            content: row.content,
            token_count: row.token_count,
            run: row.conversation_run_id,
            metadata: row.metadata,
            edited_at: row.edited_at,
            edited_by: row.edited_by,
        }
    }
}

/// Stores swipes of a message, starting at position `first`; returns their number.
pub async fn append_all(
    tx: &impl ConnectionTrait,
    message: MessageId,
    first: i64,
    texts: Vec<SwipeText>,
) -> Result<i64, DbErr> {
    if texts.is_empty() {
        return Ok(0);
    }
    let rows: Vec<ActiveModel> = to_rows(message, first, texts).collect();
    let n_swipes = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    Entity::insert_many(rows).exec_without_returning(tx).await?;
    Ok(n_swipes)
}

/// Converts texts of a message to rows, starting at position `first`.
pub fn to_rows(
    message: MessageId,
    first: i64,
    texts: Vec<SwipeText>,
) -> impl Iterator<Item = ActiveModel> {
    let rows = (first..).zip(texts);
    rows.map(move |(position, text)| ActiveModel {
        id: NotSet,
        message_id: Set(message),
        position: Set(position),
        content: Set(text.content),
        conversation_run_id: Set(text.run),
        metadata: Set(text.metadata),
        token_count: Set(text.token_count),
        edited_at: Set(text.edited_at),
        edited_by: Set(text.edited_by),
    })
}
