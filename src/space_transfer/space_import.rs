//! Runs the import of a space: a thread reads the file, its content is written in batches into a
//! hidden space, and the space becomes visible when it is complete.

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

use base::ids::{ImportId, SpaceId};
use tavern::chats::line_report::LineReport;
use tavern::import_warning::ImportWarning;
use tokio::sync::mpsc;

use crate::accounts::user;
use crate::conversations::chats::import_leases::ImportServices;
use crate::conversations::chats::import_writer::ChatImportError;
use crate::conversations::chats::{chat_import, import_job};
use crate::memories::error::MemoryError;
use crate::memories::transfer::memory_import::MemoryImporter;
use crate::memories::transfer::named_members::NamedMembers;
use crate::memories::transfer::summary_import::{ImportingPerson, SummaryImporter, SummaryRange};
use crate::space_transfer::import_data::{FileHead, IdMap};
use crate::space_transfer::import_finalize::SpaceImportResult;
use crate::space_transfer::import_reader::ImportEvent;
use crate::space_transfer::import_rows::SpaceTarget;
use crate::space_transfer::import_run_history::RoundIds;
use crate::space_transfer::limits::TransferLimits;
use crate::space_transfer::{
    asset_transfer, document, import_finalize, import_reader, import_rows, import_run_history,
};
use crate::spaces::membership;

/// Batches that may wait to be written; when it is full, the reader waits.
const MAX_BUFFERED_BATCHES: usize = 2;

/// The import of a space, and its future owner.
#[derive(Debug)]
pub struct SpaceImport {
    pub job: import_job::Model,
    pub owner: user::Model,
    /// The owner's storage quota in bytes; 0 means no limit.
    pub quota_bytes: u64,
    pub file: File,
    pub n_bytes: u64,
    pub limits: TransferLimits,
}

/// Imports a space, and records the result in the import's row.
///
/// # Errors
/// Returns an error if nothing was imported; everything already written is removed.
pub async fn run(tools: &ImportServices, import: SpaceImport) -> Result<SpaceId, ChatImportError> {
    let id = import.job.id;
    let result = import_file(tools, import).await;
    if let Err(error) = &result {
        chat_import::abort(tools, id, error).await;
    }
    result
}

/// The part of the space created so far.
struct CreatedSpace {
    head: Arc<FileHead>,
    ids: Arc<IdMap>,
    /// The `seq` of the last message of each conversation, by its key.
    last_seqs: HashMap<i64, i64>,
    n_messages: i64,
    /// For the conversation with this key, whose history is being imported.
    round_ids: (i64, RoundIds),
    memories: MemoryImporter,
    summaries: SummaryImporter,
    assets: Option<asset_transfer::SpooledAssets>,
    /// The whispers to memberships that are not in the file.
    audiences: LineReport,
}

async fn import_file(
    tools: &ImportServices,
    import: SpaceImport,
) -> Result<SpaceId, ChatImportError> {
    let hidden = import
        .job
        .hidden_space_id
        .ok_or(ChatImportError::Canceled)?;
    let (send, mut events) = mpsc::channel(MAX_BUFFERED_BATCHES);
    let (file, n_bytes, limits) = (import.file, import.n_bytes, import.limits);
    // Ends when the receiver of its events is dropped.
    let reading = tools.shutdown.main().spawn_blocking(move || {
        import_reader::read(file, n_bytes, limits, &mut |event| {
            send.blocking_send(event).is_ok()
        })
    });
    let mut created = None;
    while let Some(step) = events.recv().await {
        if tools.is_canceled(import.job.id) {
            return Err(ChatImportError::Canceled);
        }
        match (step, &mut created) {
            (ImportEvent::Head(head), _) => {
                let head = Arc::from(head);
                let now = tools.clock.now();
                let ids =
                    import_rows::create_contents(&tools.db, hidden, Arc::clone(&head), now).await?;
                let names = member_names(tools, hidden, &import.owner, (&head, &ids)).await?;
                let owner = import.owner.id;
                created = Some(CreatedSpace {
                    memories: MemoryImporter::new(tools.db.clone(), hidden, names, owner),
                    summaries: summary_importer(tools, &import.owner, (&head, &ids)),
                    head,
                    ids: Arc::new(ids),
                    last_seqs: HashMap::new(),
                    n_messages: 0,
                    round_ids: (0, RoundIds::default()),
                    assets: None,
                    audiences: LineReport::default(),
                });
            }
            (ImportEvent::Messages(key, batch), Some(created_space)) => {
                write_messages(tools, import.job.id, created_space, key, batch).await?;
            }
            (ImportEvent::History(key, batch), Some(there)) => {
                write_history(tools, import.job.id, hidden, there, key, batch).await?;
            }
            (ImportEvent::Memories(lines), Some(there)) => {
                save_progress(tools, import.job.id, there.n_messages).await?;
                let written = there.memories.write_batch(lines, tools.clock.now());
                written.await.map_err(memory_error)?;
            }
            (ImportEvent::Summaries(lines), Some(there)) => {
                save_progress(tools, import.job.id, there.n_messages).await?;
                let (last_seqs, now) = (&there.last_seqs, tools.clock.now());
                let written = there.summaries.write_batch(lines, last_seqs, now);
                written.await.map_err(memory_error)?;
            }
            (ImportEvent::AssetChecked, Some(there)) => {
                save_progress(tools, import.job.id, there.n_messages).await?
            }
            (ImportEvent::Assets(all), Some(there)) => there.assets = Some(all),
            (_, None) => {}
        }
    }
    let ended = reading.await;
    let ended = ended.map_err(|_| std::io::Error::other("the reader ended"))?;
    ended.map_err(|error| ChatImportError::NotASpace(error.to_string()))?;
    let there = created.ok_or(ChatImportError::Canceled)?;
    let result = SpaceImportResult {
        import: import.job,
        space_id: hidden,
        owner: import.owner,
        quota_bytes: import.quota_bytes,
        head: there.head,
        ids: there.ids,
        assets: Arc::new(there.assets.ok_or(ChatImportError::Canceled)?),
        n_messages: there.n_messages,
        report: join_reports([
            there.audiences,
            there.memories.into_report().into_line_report(),
            there.summaries.into_report(),
        ]),
        now: tools.clock.now(),
    };
    import_finalize::finish(&tools.db, result).await
}

/// Returns an importer of the summaries of the imported conversations.
fn summary_importer(
    tools: &ImportServices,
    owner: &user::Model,
    (head, ids): (&FileHead, &IdMap),
) -> SummaryImporter {
    let ranges = head.conversations.iter().filter_map(|it| {
        let id = ids.conversations.get(&it.key)?;
        let range = (import_rows::first_summarized(it), it.last_seq);
        Some((it.key, SummaryRange::new(*id, range)))
    });
    let person = ImportingPerson {
        id: owner.id,
        username_key: owner.username_key.clone(),
    };
    SummaryImporter::new(tools.db.clone(), ranges.collect(), person)
}

fn join_reports(all: impl IntoIterator<Item = LineReport>) -> LineReport {
    let mut joined = LineReport::default();
    for it in all {
        joined.n_skipped += it.n_skipped;
        joined.n_repaired += it.n_repaired;
        joined.lines.extend(it.lines);
    }
    joined
}

/// Records the messages of a batch whose audience names memberships that are not in the file; a line is the
/// number of a message.
fn record_unknown_audiences(there: &mut CreatedSpace, batch: &[document::ExportedMessage]) {
    let ids = &there.ids;
    for it in batch
        .iter()
        .filter(|it| ids.has_unknown(it.audience.as_deref()))
    {
        let sentence = "It is a whisper to a member who is not in the file.";
        let warning = ImportWarning::new("audience_unknown", sentence);
        let line = u64::try_from(it.seq).unwrap_or_default();
        there.audiences.record(line, &warning, false);
    }
}

/// Returns the imported members by their names. Memories of people who are not in the new space are not
/// imported.
async fn member_names(
    tools: &ImportServices,
    hidden: SpaceId,
    owner: &user::Model,
    (head, ids): (&FileHead, &IdMap),
) -> Result<NamedMembers, ChatImportError> {
    let members = membership::list_for_space(tools.db.reader(), hidden).await?;
    let own = import_finalize::find_membership_of(owner, head);
    let own = own.and_then(|key| ids.memberships.get(&key).copied());
    Ok(NamedMembers::new(&members, own))
}

fn memory_error(error: MemoryError) -> ChatImportError {
    match error {
        MemoryError::Database(error) => ChatImportError::Db(error),
        MemoryError::Io(error) => ChatImportError::Io(error),
        // Only tasks that embed texts run during an import, and no model.
        other => ChatImportError::Io(std::io::Error::other(other)),
    }
}

/// Saves the progress, and checks whether the import was canceled.
async fn save_progress(
    tools: &ImportServices,
    import: ImportId,
    n_messages: i64,
) -> Result<(), ChatImportError> {
    let is_running = tools
        .db
        .write(move |tx| Box::pin(import_job::save_progress(tx, import, 0, n_messages)))
        .await?;
    is_running.then_some(()).ok_or(ChatImportError::Canceled)
}

async fn write_messages(
    tools: &ImportServices,
    import: ImportId,
    created: &mut CreatedSpace,
    key: i64,
    batch: Vec<document::ExportedMessage>,
) -> Result<(), ChatImportError> {
    let parent = created.head.conversations.iter().find(|it| it.key == key);
    let parent = parent.and_then(|it| it.parent);
    record_unknown_audiences(created, &batch);
    created.n_messages += i64::try_from(batch.len()).unwrap_or(0);
    let conversations = &created.ids.conversations;
    let target = SpaceTarget {
        conversation: conversations[&key],
        parent: parent.and_then(|key| conversations.get(&key).copied()),
        last_seq: created.last_seqs.get(&key).copied().unwrap_or(0),
        n_messages: created.n_messages,
        now: tools.clock.now(),
    };
    let known = Arc::clone(&created.ids);
    let last = import_rows::write_messages(&tools.db, import, target, known, batch).await?;
    tools.db.merge_segments().await;
    created.last_seqs.insert(key, last);
    Ok(())
}

async fn write_history(
    tools: &ImportServices,
    import: ImportId,
    hidden: SpaceId,
    created: &mut CreatedSpace,
    key: i64,
    batch: Vec<document::ExportedHistory>,
) -> Result<(), ChatImportError> {
    if created.round_ids.0 != key {
        created.round_ids = (key, RoundIds::default());
    }
    let target = import_run_history::HistoryTarget {
        space: hidden,
        conversation: key,
        n_messages: created.n_messages,
        now: tools.clock.now(),
    };
    let ids = Arc::clone(&created.ids);
    let rounds = &mut created.round_ids.1;
    import_run_history::write_batch(&tools.db, import, target, ids, rounds, batch).await
}
