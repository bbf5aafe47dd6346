//! Defines `ChatExporter`, which returns a conversation as the text of a file, chunk by chunk:
//! JSONL for SillyTavern, or plain text.
//!
//! **Invariant:** a file is created in chunks, and only one slice of messages is held in memory,
//! regardless of the length of the conversation and the number of swipes. Messages posted after the
//! start are not included.

use std::collections::HashMap;

use base::ids::{ConversationId, MembershipId, MessageId};
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder};
use serde::Deserialize;
use tavern::chats::export;
use tavern::chats::export::{ExportedChatMessage, ExportedHeader, ExportedText};
use tavern::chats::message::ChatRole;
use tavern::chats::timed_world_info::NamedTimedEffect;
use tavern::macros::variables::VariableMap;

use crate::attachments::{attachment, picture_text};
use crate::conversations::audience::message_audience::Audience;
use crate::conversations::audience::viewer::Viewer;
use crate::conversations::message::{MessageRole, Visibility};
use crate::conversations::{conversation, message, swipe, timeline, timeline_page};
use crate::db::reading::row_slices;
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
    viewer: Viewer,
    names: HashMap<MembershipId, String>,
    memberships: Vec<membership::Model>,
    timed_effects: Vec<NamedTimedEffect>,
    /// The `seq` of the last exported message; `None` before the header.
    last_seq: Option<i64>,
}

impl<C: ConnectionTrait> ChatExporter<C> {
    /// Starts an export of what the viewer sees.
    ///
    /// # Errors
    /// Returns the database error if a query fails.
    pub async fn start(
        db: C,
        conversation: conversation::Model,
        viewer: Viewer,
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
            viewer,
            names,
            memberships,
            timed_effects: Vec::new(),
            last_seq: None,
        })
    }

    /// Adds the timed effects of lorebook entries that the file names. An import numbers the messages of the
    /// file, so the effects count these. An effect that began with a message that the viewer does not see is
    /// left out.
    ///
    /// # Errors
    /// Returns the database error if a query fails.
    pub async fn with_timed_effects(
        mut self,
        effects: Vec<NamedTimedEffect>,
    ) -> Result<Self, DbErr> {
        if effects.is_empty() {
            return Ok(self);
        }
        let scope = (self.conversation.id, self.viewer);
        let seqs = timeline_page::load_seqs(&self.db, scope).await?;
        let last = self.conversation.last_seq;
        let count = |seq: i64| {
            let n_contained = seqs.partition_point(|it| *it <= seq.min(last));
            i64::try_from(n_contained).unwrap_or(i64::MAX) + (seq - last).max(0)
        };
        let contained = effects
            .into_iter()
            .filter(|it| it.start == 0 || seqs.binary_search(&it.start).is_ok());
        let counted = contained.map(|it| NamedTimedEffect {
            start: count(it.start),
            end: count(it.end),
            ..it
        });
        self.timed_effects = counted.collect();
        Ok(self)
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
        let mut swipes = load_swipes(&self.db, &messages).await?;
        let with_pictures = messages.iter().filter(|it| it.has_attachments);
        let pictures = attachment::load(&self.db, with_pictures.map(|it| it.id)).await?;
        let mut chunk = String::new();
        for message in &messages {
            let name = self.names.get(&message.space_membership_id);
            // Both formats have one name for each message: that of the persona, if there is one.
            let name = message.persona_name.as_ref().or(name);
            let name = name.map_or("", String::as_str);
            // Neither format can contain the bytes of a picture.
            let pictures = pictures.get(&message.id).map_or(&[][..], Vec::as_slice);
            let pictures: Vec<String> = pictures.iter().map(picture_text::of).collect();
            let pictures = pictures.iter().map(String::as_str);
            let content = picture_text::after(message.content.clone(), pictures);
            let audience = message.audience.as_ref().map(|it| self.names_of(it));
            let exported = ExportedChatMessage {
                audience: audience.as_deref(),
                ..to_exported(name, message, &content)
            };
            match self.format {
                ChatExportFormat::Txt => export::write_plain_text(&mut chunk, &exported),
                ChatExportFormat::Jsonl => {
                    let swipes = swipes.remove(&message.id).unwrap_or_default();
                    let swipes = to_exported_texts(&swipes);
                    let line = export::message_line(&exported, &swipes);
                    chunk.push_str(&line.to_string());
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
            let scope = (self.conversation.id, self.viewer);
            let rows = timeline_page::load_messages(&self.db, scope, &stubs).await?;
            // All of these were hidden after their ids were read; continue after them.
            if !rows.is_empty() {
                return Ok(Some((at, rows)));
            }
        }
    }

    async fn next_stubs(&self, at: i64) -> Result<Vec<timeline_page::Stub>, DbErr> {
        let id = self.conversation.id;
        // Exclude messages that were posted after the start.
        let page = timeline::TimelinePage::Between(at, self.conversation.last_seq + 1);
        let mut stubs =
            timeline_page::load_stubs(&self.db, (id, self.viewer), page, PAGE_SIZE).await?;
        if self.format == ChatExportFormat::Jsonl {
            return take_fitting(&self.db, id, stubs).await;
        }
        stubs.truncate(row_slices::n_fitting(&stubs, row_slices::SLICE_BYTES));
        Ok(stubs)
    }

    fn names_of(&self, audience: &Audience) -> Vec<&str> {
        let names = audience.members().iter();
        let names = names.filter_map(|it| self.names.get(it));
        names.map(String::as_str).collect()
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
                    let active = of_kind
                        .clone()
                        .find(|it| it.status == MembershipStatus::Active);
                    let membership = active.or_else(|| of_kind.next());
                    membership.map(|it| it.cached_display_name.as_str())
                };
                let variables = &self.conversation.variables["macros"];
                let variables = VariableMap::deserialize(variables).unwrap_or_default();
                let header = export::header_line(&ExportedHeader {
                    user_name: named(MembershipKind::Human),
                    character_name: named(MembershipKind::Character),
                    created_at: self.conversation.created_at,
                    settings: &self.conversation.settings,
                    variables: &variables,
                    timed_effects: &self.timed_effects,
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
    mut stubs: Vec<timeline_page::Stub>,
) -> Result<Vec<timeline_page::Stub>, DbErr> {
    let seqs: Vec<i64> = stubs.iter().map(|(seq, _)| *seq).collect();
    let of_swipes = swipe::bytes_by_seq(db, id, &seqs).await?;
    for (seq, bytes) in &mut stubs {
        *bytes += of_swipes.get(seq).copied().unwrap_or_default();
    }
    stubs.truncate(row_slices::n_fitting(&stubs, row_slices::SLICE_BYTES));
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

/// Returns the message as the file format names it.
fn to_exported<'a>(
    author: &'a str,
    message: &'a message::Model,
    content: &'a str,
) -> ExportedChatMessage<'a> {
    ExportedChatMessage {
        author,
        role: match message.role {
            MessageRole::User => ChatRole::User,
            MessageRole::Assistant => ChatRole::Assistant,
            MessageRole::System => ChatRole::System,
        },
        is_excluded: message.visibility == Visibility::Excluded,
        is_ooc: message.is_ooc,
        audience: None,
        sent_at: message.created_at,
        text: ExportedText {
            content,
            metadata: &message.metadata,
        },
        active: message.active_swipe,
    }
}

fn to_exported_texts(swipes: &[swipe::Model]) -> Vec<ExportedText<'_>> {
    let texts = swipes.iter().map(|it| ExportedText {
        content: &it.content,
        metadata: &it.metadata,
    });
    texts.collect()
}
