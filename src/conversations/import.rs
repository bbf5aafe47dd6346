//! Bringing in a chat of another frontend: read line by line, written batch by batch, seen only
//! when it is whole.

use crate::accounts::names;
use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::conversations::chat_authors::AuthorMap;
use crate::conversations::chat_authors::AuthorName;
use crate::conversations::chat_authors::AuthorTarget;
use crate::conversations::chat_batches;
use crate::conversations::chat_batches::BatchEvent;
use crate::conversations::chat_batches::LineReport;
use crate::conversations::chat_batches::MessageBatch;
use crate::conversations::chat_line::ChatHeader;
use crate::conversations::chat_line::ChatMessage;
use crate::conversations::conversation;
use crate::conversations::import_job;
use crate::conversations::import_rows;
use crate::conversations::import_rows::Entry;
use crate::conversations::import_rows::Finished;
use crate::conversations::import_rows::ImportError;
use crate::conversations::import_rows::Place;
use crate::db::connect::Db;
use crate::ids::ConversationId;
use crate::ids::SpaceId;
use crate::llm::tokens;
use crate::shutdown::Shutdown;
use serde_json::Value;
use serde_json::json;
use std::fs::File;
use std::io::BufReader;
use tokio::sync::mpsc;

/// The reader waits when so many batches are not written yet.
const WAITING_BATCHES: usize = 2;

/// What an import works with.
#[derive(Clone)]
pub struct Tools {
    pub db: Db,
    pub clock: Clock,
    pub shutdown: Shutdown,
}

/// A chat that is to be brought in.
#[derive(Debug)]
pub struct Chat {
    pub job: import_job::Model,
    pub target: SpaceId,
    pub title: Option<String>,
    pub authors: AuthorMap,
}

/// Brings a chat in, and tells in its row how that ended.
///
/// # Errors
/// When nothing was brought in; nothing of it is left then.
pub async fn bring_in(
    tools: &Tools,
    chat: Chat,
    file: File,
) -> Result<conversation::Model, ImportError> {
    let id = chat.job.id;
    let result = Importer::begin(tools, chat).await;
    let result = match result {
        Ok(importer) => importer.read(file).await,
        Err(error) => Err(error),
    };
    if let Err(error) = &result {
        give_up(tools, id, error).await;
    }
    result
}

/// Ends an import that failed.
pub async fn give_up(tools: &Tools, id: crate::ids::ImportId, error: &ImportError) {
    let code = match error {
        // Whoever canceled it has ended it.
        ImportError::Canceled => "canceled",
        ImportError::Busy => "import_running",
        ImportError::Gone => "not_found",
        ImportError::NotAChat => "not_a_chat",
        ImportError::NotASpace(_) => "not_a_space",
        ImportError::Full(_) => "storage_full",
        ImportError::Io(_) | ImportError::Db(_) => {
            tracing::error!(%error, import.id = %id, "an import failed: {error:?}");
            "internal"
        }
    };
    let status = match error {
        ImportError::Canceled => import_job::ImportStatus::Canceled,
        _ => import_job::ImportStatus::Failed,
    };
    let report = import_job::trouble(code, &error.to_string());
    let now = tools.clock.now();
    if let Err(error) = import_job::give_up(&tools.db, id, status, report, now).await {
        // The next start sweeps it away.
        tracing::error!(%error, import.id = %id, "an import could not be ended");
    }
}

struct Importer<'a> {
    tools: &'a Tools,
    chat: Chat,
    hidden: SpaceId,
    conversation: ConversationId,
    header: ChatHeader,
    next_seq: i64,
    bytes_read: u64,
    /// When the message before was sent: where one does not say, it was then.
    latest: Timestamp,
}

impl<'a> Importer<'a> {
    async fn begin(tools: &'a Tools, chat: Chat) -> Result<Self, ImportError> {
        let hidden = chat.job.hidden_space_id.ok_or(ImportError::Canceled)?;
        let now = tools.clock.now();
        let row = blank(hidden, now);
        let conversation = import_rows::begin_conversation(&tools.db, row).await?;
        Ok(Self {
            tools,
            chat,
            hidden,
            conversation,
            header: ChatHeader::default(),
            next_seq: 1,
            bytes_read: 0,
            latest: now,
        })
    }

    async fn read(mut self, file: File) -> Result<conversation::Model, ImportError> {
        let (send, mut steps) = mpsc::channel(WAITING_BATCHES);
        // Parsing and counting are CPU work. It ends by itself when nobody takes what it reads.
        let reading = self.tools.shutdown.main().spawn_blocking(move || {
            let file = BufReader::with_capacity(64 * 1024, file);
            chat_batches::read(file, &tokens::count, &mut |step| {
                send.blocking_send(step).is_ok()
            })
        });
        while let Some(step) = steps.recv().await {
            if self.tools.shutdown.draining.is_cancelled() {
                return Err(ImportError::Canceled);
            }
            match step {
                BatchEvent::Header(header) => {
                    self.latest = header.created_at.unwrap_or(self.latest);
                    self.header = header;
                }
                BatchEvent::Batch(batch) => self.write(batch).await?,
            }
        }
        let report = reading
            .await
            .map_err(|_| std::io::Error::other("the reader ended"))??;
        match self.next_seq {
            1 => Err(ImportError::NotAChat),
            _ => self.finish(report).await,
        }
    }

    async fn write(&mut self, batch: MessageBatch) -> Result<(), ImportError> {
        self.bytes_read = batch.bytes_read;
        let place = Place {
            import: self.chat.job.id,
            hidden: self.hidden,
            conversation: self.conversation,
            first_seq: self.next_seq,
            bytes_read: batch.bytes_read,
            now: self.tools.clock.now(),
        };
        let entries: Vec<Entry> = batch
            .messages
            .into_iter()
            .map(|it| self.entry(it))
            .collect();
        self.next_seq += i64::try_from(entries.len()).unwrap_or(0);
        let seats = import_rows::write(&self.tools.db, place, entries).await?;
        self.tools.db.merge_segments().await;
        for (name, seat) in seats {
            self.chat.authors.set_membership(&name, seat);
        }
        Ok(())
    }

    fn entry(&mut self, message: ChatMessage) -> Entry {
        let is_user = message.is_user;
        let said = match is_user {
            true => self.header.user_name.as_deref().unwrap_or("User"),
            false => self.header.character_name.as_deref().unwrap_or("Character"),
        };
        let name = message.name.clone().unwrap_or_else(|| said.to_owned());
        let author: AuthorTarget = self.chat.authors.resolve(AuthorName { name, is_user });
        self.latest = message.sent_at.unwrap_or(self.latest);
        Entry {
            author,
            created_at: self.latest,
            message,
        }
    }

    async fn finish(self, report: LineReport) -> Result<conversation::Model, ImportError> {
        let named = [self.chat.title, self.header.character_name];
        let title = named
            .into_iter()
            .flatten()
            .find_map(|it| names::truncate_to_display_name(&it, 200));
        let finished = Finished {
            target: self.chat.target,
            conversation: self.conversation,
            last_seq: self.next_seq - 1,
            bytes_read: self.bytes_read,
            title: title.unwrap_or_default(),
            settings: Value::Object(self.header.settings),
            report: json!({ "report": report }),
            now: self.tools.clock.now(),
            import: self.chat.job,
        };
        import_rows::finish(&self.tools.db, finished).await
    }
}

/// A conversation as it is before anything is in it.
pub fn blank(space: SpaceId, now: Timestamp) -> conversation::Model {
    conversation::Model {
        id: ConversationId(0), // given by the database
        space_id: space,
        kind: conversation::ConversationKind::Root,
        title: String::new(),
        parent_conversation_id: None,
        forked_from_message_id: None,
        rev: import_rows::FIRST_REV,
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
    }
}
