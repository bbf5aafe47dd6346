//! Imports a chat file of another frontend: reads it, writes it in batches, and makes it visible when
//! it is complete. Each chat of the file becomes a conversation. If the import fails, everything
//! written is deleted.

use base::clock::Timestamp;
use base::display_name;
use base::ids::{ConversationId, SpaceId};
use llm::tokens;
use serde_json::json;
use tavern::chats::batches::{BatchEvent, MessageBatch};
use tavern::chats::chat_file::ChatFile;
use tavern::chats::line_report::LineReport;
use tavern::chats::message::{ChatHeader, ChatMessage};
use tokio::sync::mpsc;

use crate::conversations::chats::chat_authors::{AuthorMap, AuthorName, AuthorTarget};
use crate::conversations::chats::chat_lore::StoreChatLore;
use crate::conversations::chats::import_finish::{ChatImportResult, WrittenChat};
use crate::conversations::chats::import_leases::ImportServices;
use crate::conversations::chats::import_writer::{ChatImportError, ImportTarget, ImportedMessage};
use crate::conversations::chats::{import_finish, import_job, import_writer};
use crate::conversations::conversation;

/// The reader waits while this many batches are not yet written.
const MAX_QUEUED_BATCHES: usize = 2;

/// A chat to be imported.
#[derive(Debug)]
pub struct ChatImport {
    pub job: import_job::Model,
    pub target: SpaceId,
    pub title: Option<String>,
    pub authors: AuthorMap,
    pub store_lore: StoreChatLore,
}

/// Imports a chat file and records the outcome in its row.
///
/// # Errors
/// Returns why nothing was imported; everything already written is deleted then.
pub async fn run(
    services: &ImportServices,
    chat: ChatImport,
    file: ChatFile,
) -> Result<Vec<conversation::Model>, ChatImportError> {
    let id = chat.job.id;
    let result = ChatImporter::start(services, chat).await;
    let result = match result {
        Ok(importer) => importer.read_file(file).await,
        Err(error) => Err(error),
    };
    if let Err(error) = &result {
        abort(services, id, error).await;
    }
    result
}

/// Marks an import as failed and deletes what it wrote.
pub async fn abort(services: &ImportServices, id: base::ids::ImportId, error: &ChatImportError) {
    let code = match error {
        // The request that canceled it has already ended it.
        ChatImportError::Canceled => "canceled",
        ChatImportError::AlreadyRunning => "import_running",
        ChatImportError::SpaceNotFound => "not_found",
        ChatImportError::NotAChat => "not_a_chat",
        ChatImportError::NotASpace(_) => "not_a_space",
        ChatImportError::QuotaExceeded(_) => "storage_full",
        ChatImportError::Io(_) | ChatImportError::Db(_) => {
            tracing::error!(%error, import.id = %id, "import failed: {error:?}");
            "internal"
        }
    };
    let status = match error {
        ChatImportError::Canceled => import_job::ImportStatus::Canceled,
        _ => import_job::ImportStatus::Failed,
    };
    let report = import_job::error_report(code, &error.to_string());
    let now = services.clock.now();
    if let Err(error) = import_job::abort(&services.db, id, status, report, now).await {
        // The recovery deletes it.
        tracing::error!(%error, import.id = %id, "failed to record the end of an import");
    }
}

struct ChatImporter<'a> {
    services: &'a ImportServices,
    chat: ChatImport,
    hidden_space: SpaceId,
    conversation: ConversationId,
    header: ChatHeader,
    next_seq: i64,
    /// The earlier chats of the file.
    written: Vec<WrittenChat>,
    n_before: i64,
    bytes_read: u64,
    /// The timestamp of the previous message, used for messages without one.
    last_sent_at: Timestamp,
}

impl<'a> ChatImporter<'a> {
    async fn start(
        services: &'a ImportServices,
        chat: ChatImport,
    ) -> Result<Self, ChatImportError> {
        let hidden_space = chat.job.hidden_space_id.ok_or(ChatImportError::Canceled)?;
        let now = services.clock.now();
        let row = new_conversation(hidden_space, now);
        let conversation = import_writer::insert_conversation(&services.db, row).await?;
        Ok(Self {
            services,
            chat,
            hidden_space,
            conversation,
            header: ChatHeader::default(),
            next_seq: 1,
            written: Vec::new(),
            n_before: 0,
            bytes_read: 0,
            last_sent_at: now,
        })
    }

    async fn read_file(
        mut self,
        file: ChatFile,
    ) -> Result<Vec<conversation::Model>, ChatImportError> {
        let (send, mut steps) = mpsc::channel(MAX_QUEUED_BATCHES);
        // Parsing and counting are CPU-bound. The task ends when the receiver is dropped.
        let reading = self.services.shutdown.main().spawn_blocking(move || {
            file.read(&tokens::count, &mut |step| send.blocking_send(step).is_ok())
        });
        while let Some(step) = steps.recv().await {
            if self.services.is_canceled(self.chat.job.id) {
                return Err(ChatImportError::Canceled);
            }
            match step {
                BatchEvent::Header(header) => {
                    self.last_sent_at = header.created_at.unwrap_or(self.last_sent_at);
                    self.header = *header;
                }
                BatchEvent::Batch(batch) => self.write_batch(batch).await?,
                BatchEvent::NextChat => self.begin_next_chat().await?,
            }
        }
        let report = reading
            .await
            .map_err(|_| std::io::Error::other("the reader task failed"))??;
        self.complete_chat();
        match self.written.is_empty() {
            true => Err(ChatImportError::NotAChat),
            false => self.finish(report).await,
        }
    }

    async fn begin_next_chat(&mut self) -> Result<(), ChatImportError> {
        self.complete_chat();
        let now = self.services.clock.now();
        let row = new_conversation(self.hidden_space, now);
        self.conversation = import_writer::insert_conversation(&self.services.db, row).await?;
        self.next_seq = 1;
        self.last_sent_at = now;
        Ok(())
    }

    /// Adds the current chat to those that are written, unless it has no messages.
    fn complete_chat(&mut self) {
        let last_seq = self.next_seq - 1;
        if last_seq == 0 {
            return;
        }
        let header = std::mem::take(&mut self.header);
        self.n_before += last_seq;
        self.written.push(WrittenChat {
            conversation: self.conversation,
            last_seq,
            title: String::new(),
            header,
        });
    }

    async fn write_batch(&mut self, batch: MessageBatch) -> Result<(), ChatImportError> {
        self.bytes_read = batch.bytes_read;
        let target = ImportTarget {
            import: self.chat.job.id,
            hidden_space: self.hidden_space,
            conversation: self.conversation,
            first_seq: self.next_seq,
            n_before: self.n_before,
            bytes_read: batch.bytes_read,
            now: self.services.clock.now(),
        };
        let messages: Vec<ImportedMessage> = batch
            .messages
            .into_iter()
            .map(|it| self.convert_message(it))
            .collect();
        self.next_seq += i64::try_from(messages.len()).unwrap_or(0);
        let memberships = import_writer::write_batch(&self.services.db, target, messages).await?;
        self.services.db.merge_segments().await;
        for (name, membership) in memberships {
            self.chat.authors.set_membership(&name, membership);
        }
        Ok(())
    }

    fn convert_message(&mut self, message: ChatMessage) -> ImportedMessage {
        let is_named = message.name.is_some();
        let name = AuthorName::of_message(&message, &self.header);
        let author: AuthorTarget = self.chat.authors.resolve(name.clone());
        let persona = self.chat.authors.persona_name(&name, &author);
        self.last_sent_at = message.sent_at.unwrap_or(self.last_sent_at);
        let audience = message.audience.as_ref();
        ImportedMessage {
            listeners: audience.map(|it| self.chat.authors.listeners(it)),
            author,
            persona: persona.filter(|_| is_named),
            created_at: self.last_sent_at,
            message,
        }
    }

    async fn finish(
        mut self,
        report: LineReport,
    ) -> Result<Vec<conversation::Model>, ChatImportError> {
        let is_one_of_many = self.written.len() > 1;
        for (number, chat) in (1..).zip(&mut self.written) {
            let number = is_one_of_many.then_some(number);
            chat.title = title_of_chat(&chat.header, self.chat.title.as_deref(), number);
        }
        let result = ChatImportResult {
            target: self.chat.target,
            chats: self.written,
            bytes_read: self.bytes_read,
            report,
            store_lore: self.chat.store_lore,
            now: self.services.clock.now(),
            import: self.chat.job,
        };
        import_finish::finish(&self.services.db, result).await
    }
}

/// Returns the title of an imported conversation: that of the chat, else that of the file with the number
/// of the chat if there are several, else the name of its character.
pub fn title_of_chat(
    header: &ChatHeader,
    file_title: Option<&str>,
    number: Option<usize>,
) -> String {
    let file_title = file_title.map(|title| match number {
        Some(number) => format!("{title} {number}"),
        None => title.to_owned(),
    });
    let named = [&header.title, &file_title, &header.character_name];
    let mut named = named.into_iter().flatten();
    let title = named.find_map(|it| display_name::truncate(it, 200));
    title.unwrap_or_default()
}

/// Returns the row of an empty conversation.
pub fn new_conversation(space: SpaceId, now: Timestamp) -> conversation::Model {
    conversation::Model {
        id: ConversationId(0), // assigned by the database
        space_id: space,
        kind: conversation::ConversationKind::Root,
        title: String::new(),
        parent_conversation_id: None,
        forked_from_message_id: None,
        rev: import_writer::FIRST_REV,
        last_seq: 0,
        last_speaker_membership_id: None,
        last_assistant_seq: None,
        last_user_seq: None,
        needs_step: false,
        last_run_seq: 0,
        auto_mode_turns: 0,
        settings: json!({}),
        variables: json!({}),
        created_at: now,
        archived_at: None,
        is_hidden: false,
        text_bytes: 0,
        tokens_used: 0,
        unlearned_from_seq: None,
        prompt_starts: serde_json::json!([]),
        summary_from_seq: 1,
        summary_goal_seq: 0,
    }
}
