//! The transactions of an import: the first one hides a place, each batch writes into it, the last
//! one shows it.

use crate::characters::quota::QuotaError;
use crate::characters::quota::QuotaExceeded;
use crate::clock::Timestamp;
use crate::conversations::chat_authors::AuthorName;
use crate::conversations::chat_authors::AuthorTarget;
use crate::conversations::chat_line::ChatMessage;
use crate::conversations::conversation;
use crate::conversations::import_job;
use crate::conversations::message;
use crate::conversations::newest;
use crate::conversations::swipe;
use crate::conversations::timeline;
use crate::db::connect::Db;
use crate::ids::ConversationId;
use crate::ids::ImportId;
use crate::ids::MembershipId;
use crate::ids::MessageId;
use crate::ids::SpaceId;
use crate::ids::UserId;
use crate::spaces::membership;
use crate::spaces::roster;
use crate::spaces::space;
use crate::spaces::tenancy;
use sea_orm::ActiveModelTrait;
use sea_orm::ActiveValue::NotSet;
use sea_orm::ActiveValue::Set;
use sea_orm::ColumnTrait;
use sea_orm::ConnectionTrait;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::IntoActiveModel;
use sea_orm::QueryFilter;
use sea_orm::QuerySelect;
use sea_orm::sea_query::Expr;
use sea_orm::sea_query::ExprTrait;
use serde_json::Value;
use serde_json::json;
use std::collections::HashMap;

/// The number of the event that an imported conversation begins with.
pub const FIRST_REV: i64 = 1;

/// So many texts go into one statement: a database takes a limited number of values.
const MAX_ROWS: usize = 500;

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("One import at a time: wait for the other, or cancel it.")]
    Busy,
    #[error("It was canceled.")]
    Canceled,
    #[error("The space is gone.")]
    Gone,
    #[error("There is no message in this file that could be read.")]
    NotAChat,
    #[error("{0}")]
    NotASpace(String),
    #[error(transparent)]
    Full(#[from] QuotaExceeded),
    #[error("The file could not be read.")]
    Io(#[from] std::io::Error),
    #[error("The database could not take it.")]
    Db(#[from] DbErr),
}

impl From<QuotaError> for ImportError {
    fn from(error: QuotaError) -> Self {
        match error {
            QuotaError::Exceeded(full) => Self::Full(full),
            QuotaError::Db(error) => Self::Db(error),
        }
    }
}

/// Begins an import: a row that tells of it, and a hidden space.
pub async fn begin(
    db: &Db,
    user: UserId,
    kind: import_job::ImportKind,
    target: Option<SpaceId>,
    bytes_total: u64,
    now: Timestamp,
) -> Result<import_job::Model, ImportError> {
    db.write(move |tx| {
        Box::pin(async move {
            if import_job::runs_for(tx, user).await? {
                return Err(ImportError::Busy);
            }
            let hidden = tenancy::hidden(now).insert(tx).await?;
            let row = import_job::ActiveModel {
                id: NotSet,
                user_id: Set(user),
                kind: Set(kind),
                status: Set(import_job::ImportStatus::Running),
                hidden_space_id: Set(Some(hidden.id)),
                space_id: Set(target),
                conversation_id: Set(None),
                n_messages: Set(0),
                bytes_read: Set(0),
                bytes_total: Set(i64::try_from(bytes_total).unwrap_or(i64::MAX)),
                report: Set(json!({})),
                heartbeat_at: Set(now),
                created_at: Set(now),
                finished_at: Set(None),
            };
            Ok(row.insert(tx).await?)
        })
    })
    .await
}

/// Begins a conversation in the hidden space.
pub async fn begin_conversation(
    db: &Db,
    row: conversation::Model,
) -> Result<ConversationId, ImportError> {
    let mut row = row.into_active_model();
    row.id = NotSet;
    let made = db
        .write(move |tx| {
            Box::pin(async move {
                conversation::Entity::insert(row)
                    .exec_with_returning(tx)
                    .await
            })
        })
        .await?;
    Ok::<_, DbErr>(made.id).map_err(ImportError::from)
}

/// Where a batch is written.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub import: ImportId,
    pub hidden: SpaceId,
    pub conversation: ConversationId,
    /// The number of the first message of the batch.
    pub first_seq: i64,
    pub bytes_read: u64,
    pub now: Timestamp,
}

/// A message of a batch, whole but for its number.
#[derive(Clone, Debug)]
pub struct Entry {
    pub author: AuthorTarget,
    pub created_at: Timestamp,
    pub message: ChatMessage,
}

/// Writes a batch; answers the seats that were made.
pub async fn write(
    db: &Db,
    place: Place,
    entries: Vec<Entry>,
) -> Result<HashMap<AuthorName, MembershipId>, ImportError> {
    db.write(move |tx| {
        Box::pin(async move {
            let n_messages = place.first_seq - 1 + i64::try_from(entries.len()).unwrap_or(0);
            let bytes_read = i64::try_from(place.bytes_read).unwrap_or(i64::MAX);
            let beat = import_job::beat(tx, place.import, bytes_read, n_messages, place.now);
            if !beat.await? {
                return Err(ImportError::Canceled);
            }
            let seats = make_seats(tx, place, &entries).await?;
            let lines = lines(place, entries, &seats);
            insert(tx, place.conversation, place.first_seq - 1, lines).await?;
            Ok(seats)
        })
    })
    .await
}

/// Makes a seat for everybody who has none. They are empty ones: nobody speaks from them.
async fn make_seats(
    tx: &impl ConnectionTrait,
    place: Place,
    entries: &[Entry],
) -> Result<HashMap<AuthorName, MembershipId>, DbErr> {
    let mut seats = HashMap::new();
    for entry in entries {
        if let AuthorTarget::New(name) = &entry.author
            && !seats.contains_key(name)
        {
            let position = i64::try_from(seats.len()).unwrap_or(0);
            let row = roster::left(
                place.hidden,
                name.kind(),
                name.name.clone(),
                position,
                place.now,
            );
            seats.insert(name.clone(), row.insert(tx).await?.id);
        }
    }
    Ok(seats)
}

/// A message as a row with its number, and all its texts where there are several.
#[derive(Debug)]
pub struct Line {
    pub message: message::Model,
    pub texts: Vec<swipe::Text>,
}

/// The rows of a batch.
fn lines(
    place: Place,
    entries: Vec<Entry>,
    seats: &HashMap<AuthorName, MembershipId>,
) -> Vec<Line> {
    let numbered = (place.first_seq..).zip(entries);
    let line = |(seq, entry): (i64, Entry)| {
        let author = match &entry.author {
            AuthorTarget::Existing(seat) => *seat,
            AuthorTarget::New(name) => seats[name],
        };
        let mut texts = entry.message.texts;
        let active = entry.message.active;
        let mut message = timeline::blank(
            place.conversation,
            author,
            entry.message.role,
            String::new(),
            entry.created_at,
        );
        message.seq = seq;
        message.rev = FIRST_REV;
        message.visibility = entry.message.visibility;
        let shown = texts[active].clone();
        shown.show_on(&mut message, i64::try_from(active).unwrap_or(0));
        if texts.len() == 1 {
            texts.clear();
        }
        Line { message, texts }
    };
    numbered.map(line).collect()
}

/// Inserts messages with their texts behind the message with the number `after`.
pub async fn insert(
    tx: &impl ConnectionTrait,
    conversation: ConversationId,
    after: i64,
    lines: Vec<Line>,
) -> Result<(), DbErr> {
    if lines.is_empty() {
        return Ok(());
    }
    let mut rows = Vec::new();
    let mut texts_of = Vec::new();
    let mut n_bytes = 0;
    for line in lines {
        n_bytes += line.message.content.len();
        n_bytes += line.texts.iter().map(|it| it.content.len()).sum::<usize>();
        if !line.texts.is_empty() {
            texts_of.push((line.message.seq, line.texts));
        }
        let mut row = line.message.into_active_model();
        row.id = NotSet;
        rows.push(row);
    }
    message::Entity::insert_many(rows)
        .exec_without_returning(tx)
        .await?;
    let n_bytes = i64::try_from(n_bytes).unwrap_or(i64::MAX);
    conversation::add_text_bytes(tx, conversation, n_bytes).await?;
    let ids = ids_after(tx, conversation, after).await?;
    let texts = texts_of
        .into_iter()
        .flat_map(|(seq, texts)| swipe::rows(ids[&seq], 0, texts));
    insert_texts(tx, texts.collect()).await
}

async fn insert_texts(
    tx: &impl ConnectionTrait,
    mut texts: Vec<swipe::ActiveModel>,
) -> Result<(), DbErr> {
    while !texts.is_empty() {
        let rest = texts.split_off(MAX_ROWS.min(texts.len()));
        swipe::Entity::insert_many(texts)
            .exec_without_returning(tx)
            .await?;
        texts = rest;
    }
    Ok(())
}

async fn ids_after(
    tx: &impl ConnectionTrait,
    conversation: ConversationId,
    after: i64,
) -> Result<HashMap<i64, MessageId>, DbErr> {
    let ids: Vec<(i64, MessageId)> = message::Entity::find()
        .select_only()
        .column(message::Column::Seq)
        .column(message::Column::Id)
        .filter(message::Column::ConversationId.eq(conversation))
        .filter(message::Column::Seq.gt(after))
        .into_tuple()
        .all(tx)
        .await?;
    Ok(ids.into_iter().collect())
}

/// What the last transaction of a chat's import writes.
#[derive(Debug)]
pub struct Finished {
    pub import: import_job::Model,
    pub target: SpaceId,
    pub conversation: ConversationId,
    pub last_seq: i64,
    pub bytes_read: u64,
    pub title: String,
    pub settings: Value,
    pub report: Value,
    pub now: Timestamp,
}

/// Shows the conversation, and with it the seats that were made for it.
pub async fn finish(db: &Db, it: Finished) -> Result<conversation::Model, ImportError> {
    db.write(move |tx| {
        Box::pin(async move {
            let id = it.import.id;
            let bytes_read = i64::try_from(it.bytes_read).unwrap_or(i64::MAX);
            if !import_job::beat(tx, id, bytes_read, it.last_seq, it.now).await? {
                return Err(ImportError::Canceled);
            }
            let space = tenancy::locked(tx, it.target).await?;
            let is_open =
                |it: &space::Model| it.status == space::SpaceStatus::Active && !it.is_hidden;
            let space = space.filter(is_open).ok_or(ImportError::Gone)?;
            let hidden = it.import.hidden_space_id.ok_or(ImportError::Canceled)?;
            move_seats(tx, hidden, space.id).await?;
            let row = conversation::ActiveModel {
                id: Set(it.conversation),
                space_id: Set(space.id),
                title: Set(it.title),
                settings: Set(it.settings),
                last_seq: Set(it.last_seq),
                ..Default::default()
            };
            row.update(tx).await?;
            newest::store(tx, it.conversation).await?;
            let row = conversation::Entity::find_by_id(it.conversation);
            let row = row.one(tx).await?.ok_or(ImportError::Gone)?;
            let mut import = it.import.into_active_model();
            import.status = Set(import_job::ImportStatus::Succeeded);
            import.hidden_space_id = Set(None);
            import.conversation_id = Set(Some(row.id));
            import.report = Set(it.report);
            import.finished_at = Set(Some(it.now));
            import.update(tx).await?;
            space::Entity::delete_by_id(hidden).exec(tx).await?;
            Ok(row)
        })
    })
    .await
}

/// Behind everybody who is there.
async fn move_seats(tx: &impl ConnectionTrait, from: SpaceId, to: SpaceId) -> Result<(), DbErr> {
    use membership::Column;
    let next = membership::next_position(tx, to).await?;
    membership::Entity::update_many()
        .col_expr(Column::SpaceId, Expr::value(to))
        .col_expr(Column::Position, Expr::col(Column::Position).add(next))
        .filter(Column::SpaceId.eq(from))
        .exec(tx)
        .await
        .map(|_| ())
}
