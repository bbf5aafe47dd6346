//! Exports a conversation as a file: JSONL for SillyTavern, or plain text.
//!
//! **Invariant:** a file is created in chunks, and only one slice of messages is held in memory,
//! regardless of the length of the conversation and the number of swipes. Messages posted after the
//! start are not included.

use std::collections::HashMap;
use std::fmt::Write as _;

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, MessageId};
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder};
use serde_json::{Map, Value, json};

use crate::conversations::chats::chat_metadata;
use crate::conversations::message::{MessageRole, Visibility};
use crate::conversations::{conversation, message, pages, swipe, timeline};
use crate::db::reading::slices;
use crate::spaces::membership;
use crate::spaces::membership::{MembershipKind, MembershipStatus};

/// Maximum number of messages held at a time.
const PAGE_SIZE: u64 = 100;

/// The format of an exported file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatExportFormat {
    Jsonl,
    Txt,
}

/// An export in progress.
pub struct ChatExporter<C> {
    db: C,
    format: ChatExportFormat,
    conversation: conversation::Model,
    names: HashMap<MembershipId, String>,
    memberships: Vec<membership::Model>,
    /// The `seq` of the last exported message; `None` before the header.
    last_seq: Option<i64>,
}

impl<C: ConnectionTrait> ChatExporter<C> {
    /// Starts an export.
    ///
    /// # Errors
    /// Returns the database error if a query fails.
    pub async fn start(
        db: C,
        conversation: conversation::Model,
        format: ChatExportFormat,
    ) -> Result<Self, DbErr> {
        let memberships = membership::list_for_space(&db, conversation.space_id).await?;
        let names = memberships
            .iter()
            .map(|it| (it.id, it.cached_display_name.clone()))
            .collect();
        Ok(Self {
            db,
            format,
            conversation,
            names,
            memberships,
            last_seq: None,
        })
    }

    /// Returns the next chunk; `None` at the end.
    ///
    /// # Errors
    /// Returns the database error if a query fails.
    pub async fn next_chunk(&mut self) -> Result<Option<String>, DbErr> {
        let Some(at) = self.last_seq else {
            self.last_seq = Some(0);
            return Ok(Some(self.header()));
        };
        let Some((last, messages)) = self.next_messages(at).await? else {
            return Ok(None);
        };
        self.last_seq = Some(last);
        let mut texts = load_swipes(&self.db, &messages).await?;
        let mut chunk = String::new();
        for message in &messages {
            let name = self.names.get(&message.space_membership_id);
            let name = name.map_or("", String::as_str);
            match self.format {
                ChatExportFormat::Txt => write_plain_text(&mut chunk, name, message),
                ChatExportFormat::Jsonl => {
                    let texts = texts.remove(&message.id).unwrap_or_default();
                    chunk.push_str(&message_line(name, message, &texts).to_string());
                    chunk.push('\n');
                }
            }
        }
        Ok(Some(chunk))
    }

    /// Returns the messages after `at` that fit into memory with all their swipes, and the `seq` of
    /// the last one.
    async fn next_messages(
        &self,
        mut at: i64,
    ) -> Result<Option<(i64, Vec<message::Model>)>, DbErr> {
        loop {
            let stubs = self.next_stubs(at).await?;
            let Some((last, _)) = stubs.last() else {
                return Ok(None);
            };
            at = *last;
            let rows = pages::load_messages(&self.db, self.conversation.id, &stubs).await?;
            // All of these were hidden after their ids were read; continue after them.
            if !rows.is_empty() {
                return Ok(Some((at, rows)));
            }
        }
    }

    async fn next_stubs(&self, at: i64) -> Result<Vec<pages::Stub>, DbErr> {
        let id = self.conversation.id;
        // Exclude messages that were posted after the start.
        let page = timeline::TimelinePage::Between(at, self.conversation.last_seq + 1);
        let mut stubs = pages::load_stubs(&self.db, id, page, PAGE_SIZE).await?;
        if self.format == ChatExportFormat::Jsonl {
            return take_fitting(&self.db, id, stubs).await;
        }
        stubs.truncate(slices::n_fitting(&stubs, slices::SLICE_BYTES));
        Ok(stubs)
    }

    fn header(&self) -> String {
        match self.format {
            ChatExportFormat::Txt => match self.conversation.title.as_str() {
                "" => String::new(),
                title => format!("# {title}\n\n"),
            },
            ChatExportFormat::Jsonl => {
                let named = |kind| {
                    let mut of_kind = self.memberships.iter().filter(|it| it.kind == kind);
                    let here = of_kind
                        .clone()
                        .find(|it| it.status == MembershipStatus::Active);
                    let seat = here.or_else(|| of_kind.next());
                    seat.map_or("unused", |it| it.cached_display_name.as_str())
                };
                let header = json!({
                    "user_name": named(MembershipKind::Human),
                    "character_name": named(MembershipKind::Character),
                    "create_date": self.conversation.created_at,
                    "chat_metadata": chat_metadata::to_chat_metadata(&self.conversation.settings),
                });
                format!("{header}\n")
            }
        }
    }
}

/// Returns as many of the first of these messages as fit into memory with all their swipes.
///
/// # Errors
/// Returns the database error if a query fails.
pub async fn take_fitting(
    db: &impl ConnectionTrait,
    id: ConversationId,
    mut stubs: Vec<pages::Stub>,
) -> Result<Vec<pages::Stub>, DbErr> {
    let seqs: Vec<i64> = stubs.iter().map(|(seq, _)| *seq).collect();
    let of_swipes = swipe::bytes_by_seq(db, id, &seqs).await?;
    for (seq, bytes) in &mut stubs {
        *bytes += of_swipes.get(seq).copied().unwrap_or_default();
    }
    stubs.truncate(slices::n_fitting(&stubs, slices::SLICE_BYTES));
    Ok(stubs)
}

/// Returns all swipes of these messages; messages with a single text have none.
pub async fn load_swipes(
    db: &impl ConnectionTrait,
    messages: &[message::Model],
) -> Result<HashMap<MessageId, Vec<swipe::Model>>, DbErr> {
    let rows = swipe::Entity::find()
        .filter(swipe::Column::MessageId.is_in(messages.iter().map(|it| it.id)))
        .order_by_asc(swipe::Column::MessageId)
        .order_by_asc(swipe::Column::Position)
        .all(db)
        .await?;
    let mut texts: HashMap<MessageId, Vec<swipe::Model>> = HashMap::new();
    for row in rows {
        texts.entry(row.message_id).or_default().push(row);
    }
    Ok(texts)
}

/// Returns a message as SillyTavern stores it.
pub fn message_line(name: &str, message: &message::Model, texts: &[swipe::Model]) -> Value {
    let mut line = Map::new();
    let mut insert_field = |key: &str, value: Value| line.insert(key.to_owned(), value);
    insert_field("name", json!(name));
    insert_field("is_user", json!(message.role == MessageRole::User));
    insert_field(
        "is_system",
        json!(message.visibility == Visibility::Excluded),
    );
    insert_field("send_date", json!(message.created_at));
    insert_field("mes", json!(message.content));
    for (key, value) in chat_metadata::extra_of_line(&message.metadata, message.role) {
        insert_field(&key, value);
    }
    if texts.len() > 1 {
        let contents: Vec<&str> = texts.iter().map(|it| it.content.as_str()).collect();
        let infos = texts
            .iter()
            .map(|it| swipe_info(it, message.role, message.created_at));
        insert_field("swipe_id", json!(message.active_swipe));
        insert_field("swipes", json!(contents));
        insert_field("swipe_info", Value::Array(infos.collect()));
    }
    Value::Object(line)
}

fn swipe_info(text: &swipe::Model, role: MessageRole, sent_at: Timestamp) -> Value {
    let mut info = chat_metadata::extra_of_message(&text.metadata, role);
    info.insert("send_date".to_owned(), json!(sent_at));
    Value::Object(info)
}

/// Writes a message as plain text.
fn write_plain_text(out: &mut String, name: &str, message: &message::Model) {
    let sent_at = message.created_at.to_utc().format("%Y-%m-%d %H:%M");
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "{name} ({sent_at} UTC):\n{}\n\n",
        message.content.trim()
    );
}
