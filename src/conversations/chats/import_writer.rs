//! Database transactions of a chat import: insert its row and a hidden space, and write batches of
//! messages to that space; `import_finish` has the last one. Imports of spaces use the first one and
//! the inserts of messages.

use std::collections::HashMap;

use base::clock::Timestamp;
use base::ids::{ConversationId, ImportId, MembershipId, MessageId, SpaceId, UserId};
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel,
    QueryFilter, QuerySelect,
};
use serde_json::json;
use tavern::chats::message::{ChatMessage, ChatRole, ChatText};

use crate::characters::quota::{QuotaError, QuotaExceeded};
use crate::conversations::audience::message_audience::Audience;
use crate::conversations::chats::chat_authors::{AuthorName, AuthorTarget, Listeners};
use crate::conversations::chats::import_job;
use crate::conversations::message::{MessageRole, Visibility};
use crate::conversations::{conversation, message, swipe, text_quota, timeline};
use crate::db::connect::Db;
use crate::spaces::{lifecycle, roster_changes};

/// The `rev` of an imported conversation.
pub const FIRST_REV: i64 = 1;

/// Maximum number of rows in one statement; databases limit the number of bound values.
const MAX_ROWS: usize = 500;

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ChatImportError {
    #[error("Another import is running. Wait until it ends, or cancel it.")]
    AlreadyRunning,
    #[error("The import was canceled.")]
    Canceled,
    #[error("The space does not exist.")]
    SpaceNotFound,
    #[error("The file contains no readable message.")]
    NotAChat,
    #[error("{0}")]
    NotASpace(String),
    #[error(transparent)]
    QuotaExceeded(#[from] QuotaExceeded),
    #[error("The file could not be read.")]
    Io(#[from] std::io::Error),
    #[error("The import failed because of a database error.")]
    Db(#[from] DbErr),
}

impl From<QuotaError> for ChatImportError {
    fn from(error: QuotaError) -> Self {
        match error {
            QuotaError::Exceeded(full) => Self::QuotaExceeded(full),
            QuotaError::Db(error) => Self::Db(error),
        }
    }
}

/// Starts an import: inserts its row and a hidden space.
pub async fn start(
    db: &Db,
    user: UserId,
    kind: import_job::ImportKind,
    target: Option<SpaceId>,
    bytes_total: u64,
    now: Timestamp,
) -> Result<import_job::Model, ChatImportError> {
    let backend = db.backend();
    db.write(move |tx| {
        Box::pin(async move {
            if import_job::has_running(tx, user).await? {
                return Err(ChatImportError::AlreadyRunning);
            }
            let hidden = lifecycle::create_hidden(now).insert(tx).await?;
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
            let row = row.insert(tx).await?;
            import_job::heartbeat(tx, &[row.id], now, backend).await?;
            Ok(row)
        })
    })
    .await
}

/// Creates a conversation in the hidden space.
pub async fn insert_conversation(
    db: &Db,
    row: conversation::Model,
) -> Result<ConversationId, ChatImportError> {
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
    Ok::<_, DbErr>(made.id).map_err(ChatImportError::from)
}

/// Where a batch is written.
#[derive(Clone, Copy, Debug)]
pub struct ImportTarget {
    pub import: ImportId,
    pub hidden_space: SpaceId,
    pub conversation: ConversationId,
    /// The `seq` of the first message of the batch.
    pub first_seq: i64,
    /// The number of messages in earlier conversations of the file.
    pub n_before: i64,
    pub bytes_read: u64,
    pub now: Timestamp,
}

/// A message of a batch, complete except for its `seq`.
#[derive(Clone, Debug)]
pub struct ImportedMessage {
    pub author: AuthorTarget,
    /// The name of the persona under which it was posted.
    pub persona: Option<String>,
    pub created_at: Timestamp,
    /// Who sees it besides its author; `None`: everyone.
    pub listeners: Option<Listeners>,
    pub message: ChatMessage,
}

/// Writes a batch. Returns the memberships that were created.
pub async fn write_batch(
    db: &Db,
    target: ImportTarget,
    messages: Vec<ImportedMessage>,
) -> Result<HashMap<AuthorName, MembershipId>, ChatImportError> {
    db.write(move |tx| {
        Box::pin(async move {
            let n_messages = i64::try_from(messages.len()).unwrap_or(0);
            let n_messages = target.n_before + target.first_seq - 1 + n_messages;
            let bytes_read = i64::try_from(target.bytes_read).unwrap_or(i64::MAX);
            if !import_job::save_progress(tx, target.import, bytes_read, n_messages).await? {
                return Err(ChatImportError::Canceled);
            }
            let memberships = insert_memberships(tx, target, &messages).await?;
            let rows = to_rows(target, messages, &memberships);
            insert_messages(tx, target.conversation, target.first_seq - 1, rows).await?;
            Ok(memberships)
        })
    })
    .await
}

/// Creates a membership for each new author, with status removed: it never speaks.
async fn insert_memberships(
    tx: &impl ConnectionTrait,
    target: ImportTarget,
    messages: &[ImportedMessage],
) -> Result<HashMap<AuthorName, MembershipId>, DbErr> {
    let mut memberships = HashMap::new();
    for entry in messages {
        if let AuthorTarget::New(name) = &entry.author
            && !memberships.contains_key(name)
        {
            let position = i64::try_from(memberships.len()).unwrap_or(0);
            let row = roster_changes::removed_member(
                target.hidden_space,
                name.kind(),
                name.name.clone(),
                position,
                target.now,
            );
            memberships.insert(name.clone(), row.insert(tx).await?.id);
        }
    }
    Ok(memberships)
}

/// A message as a row with its `seq`, and all its texts if there are several.
#[derive(Debug)]
pub struct MessageRow {
    pub message: message::Model,
    pub texts: Vec<swipe::SwipeText>,
}

/// Returns the rows of a batch.
fn to_rows(
    target: ImportTarget,
    messages: Vec<ImportedMessage>,
    memberships: &HashMap<AuthorName, MembershipId>,
) -> Vec<MessageRow> {
    let numbered = (target.first_seq..).zip(messages);
    let line = |(seq, entry): (i64, ImportedMessage)| {
        let author = match &entry.author {
            AuthorTarget::Existing(membership) => *membership,
            AuthorTarget::New(name) => memberships[name],
        };
        let texts = entry.message.texts.into_iter().map(to_swipe_text);
        let mut texts: Vec<swipe::SwipeText> = texts.collect();
        let active = entry.message.active;
        let mut message = timeline::new_model(
            target.conversation,
            author,
            match entry.message.role {
                ChatRole::User => MessageRole::User,
                ChatRole::Assistant => MessageRole::Assistant,
                ChatRole::System => MessageRole::System,
            },
            String::new(),
            entry.created_at,
        );
        message.seq = seq;
        message.persona_name = entry.persona;
        message.rev = FIRST_REV;
        message.visibility = match entry.message.is_excluded {
            true => Visibility::Excluded,
            false => Visibility::Normal,
        };
        message.is_ooc = entry.message.is_ooc;
        if let Some(it) = entry.listeners {
            message.is_for_people = !it.has_character && message.role == MessageRole::User;
            message.audience = Audience::new(it.members.into_iter().chain([author]));
        }
        let shown = texts[active].clone();
        shown.select_on(&mut message, i64::try_from(active).unwrap_or(0));
        if texts.len() == 1 {
            texts.clear();
        }
        MessageRow { message, texts }
    };
    numbered.map(line).collect()
}

fn to_swipe_text(text: ChatText) -> swipe::SwipeText {
    swipe::SwipeText {
        metadata: text.metadata,
        ..swipe::SwipeText::new(text.content, text.token_count)
    }
}

/// Inserts messages with their swipes after the message with the `seq` `after`.
pub async fn insert_messages(
    tx: &impl ConnectionTrait,
    conversation: ConversationId,
    after: i64,
    lines: Vec<MessageRow>,
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
    text_quota::add_text_bytes(tx, conversation, n_bytes).await?;
    let ids = ids_after(tx, conversation, after).await?;
    let texts = texts_of
        .into_iter()
        .flat_map(|(seq, texts)| swipe::to_rows(ids[&seq], 0, texts));
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
