//! Stores the memories of a file, one batch of lines after the other.
//!
//! **Invariant:** an invalid line, or one that the importer may not store, does not affect the other lines.

use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;

use base::clock::{Clock, Timestamp};
use base::ids::{SpaceId, UserId};
use base::shutdown::Shutdown;
use recall::memory_line::ExportedMemory;
use sea_orm::DbErr;
use tokio::sync::mpsc;

use crate::db::connect::Db;
use crate::memories::error::MemoryError;
use crate::memories::memory::{MemoryKind, MemoryOrigin, Model};
use crate::memories::memory_settings::MAX_MEMORIES;
use crate::memories::memory_store;
use crate::memories::memory_store::{NewMemory, PreparedMemory, StoredMemories};
use crate::memories::transfer::import_report::{LineOutcome, MemoryImportReport};
use crate::memories::transfer::line_reader;
use crate::memories::transfer::line_reader::NumberedLine;
use crate::memories::transfer::named_members::{NamedMembers, OwnerError};

/// The importance of a memory whose line states none.
const DEFAULT_IMPORTANCE: f64 = 0.5;
/// How many batches may wait to be stored; when the channel is full, the reader waits.
const MAX_BUFFERED_BATCHES: usize = 2;

/// Stores memories in a space.
pub struct MemoryImporter {
    db: Db,
    space: SpaceId,
    names: Arc<NamedMembers>,
    created_by: UserId,
    n_lines: u64,
    report: MemoryImportReport,
}

/// A memory that can be stored, and its line.
#[derive(Clone)]
struct PreparedLine {
    number: u64,
    memory: PreparedMemory,
    is_unlinked: bool,
}

impl MemoryImporter {
    /// Creates an importer on behalf of a user.
    pub fn new(db: Db, space: SpaceId, names: NamedMembers, created_by: UserId) -> Self {
        Self {
            db,
            space,
            names: Arc::new(names),
            created_by,
            n_lines: 0,
            report: MemoryImportReport::default(),
        }
    }

    /// Returns the report of the lines so far.
    pub fn into_report(self) -> MemoryImportReport {
        self.report
    }

    /// Stores the memories of a batch that do not exist yet, in one transaction.
    ///
    /// # Errors
    /// Returns the database's error, or `TaskEnded`; then nothing of the batch was stored.
    pub async fn write_batch(
        &mut self,
        lines: Vec<NumberedLine>,
        now: Timestamp,
    ) -> Result<(), MemoryError> {
        let n_allowed = (MAX_MEMORIES - self.n_lines).min(lines.len() as u64);
        self.n_lines += n_allowed;
        let (names, by) = (Arc::clone(&self.names), self.created_by);
        // Embedding a batch is CPU work, which must not block streams.
        let work = move || {
            let prepared = (1..)
                .zip(lines)
                .map(|(n, line): (u64, _)| match n > n_allowed {
                    true => Err((line.number, LineOutcome::TooMany)),
                    false => prepare(line, &names, by, now),
                });
            prepared.collect::<Vec<_>>()
        };
        let prepared = tokio::task::spawn_blocking(work).await?;
        let memories = prepared.iter().flatten().map(|it| it.memory.clone());
        let mut stored = self.store(memories.collect(), now).await?;
        for line in prepared {
            match line {
                Err((number, outcome)) => self.report.record(number, outcome),
                Ok(it) => self.report.record(it.number, outcome_of(&it, &mut stored)),
            }
        }
        Ok(())
    }

    async fn store(
        &self,
        memories: Vec<PreparedMemory>,
        now: Timestamp,
    ) -> Result<Vec<Model>, DbErr> {
        if memories.is_empty() {
            return Ok(Vec::new());
        }
        let space = self.space;
        let stored = self.db.write(move |tx| {
            Box::pin(async move { memory_store::insert(tx, space, memories, now).await })
        });
        let stored: Result<StoredMemories, DbErr> = stored.await;
        // Lines of a file have no sources, so they change no memory that exists.
        Ok(stored?.new)
    }
}

/// Removes the row of this memory from the stored ones; a memory without a row existed before.
fn outcome_of(line: &PreparedLine, stored: &mut Vec<Model>) -> LineOutcome {
    let (hash, owner) = line.memory.key();
    let is_row = |it: &Model| it.content_hash == hash && it.space_membership_id == owner;
    let Some(at) = stored.iter().position(is_row) else {
        return LineOutcome::Duplicate;
    };
    stored.swap_remove(at);
    match line.is_unlinked {
        true => LineOutcome::Unlinked,
        false => LineOutcome::Imported,
    }
}

/// Resolves the names of a line, and computes its embedding. Returns the number of a line that is not
/// imported, and the reason.
fn prepare(
    line: NumberedLine,
    names: &NamedMembers,
    created_by: UserId,
    now: Timestamp,
) -> Result<PreparedLine, (u64, LineOutcome)> {
    let number = line.number;
    let skipped = |outcome| (number, outcome);
    let memory: ExportedMemory<MemoryKind> = line
        .memory
        .map_err(|it| skipped(LineOutcome::Invalid(it)))?;
    let owner = memory.owner.as_deref().map(|it| names.owner(it));
    let owner = owner.transpose().map_err(|error| match error {
        OwnerError::Unknown => skipped(LineOutcome::UnknownOwner),
        OwnerError::AnotherPerson => skipped(LineOutcome::OtherOwner),
    })?;
    let about = memory.about.as_deref().and_then(|it| names.find(it));
    let is_unlinked = memory.about.is_some() && about.is_none();
    let new = NewMemory {
        owner,
        about,
        source: None,
        kind: memory.kind.unwrap_or(MemoryKind::Snippet),
        origin: MemoryOrigin::Imported,
        content: memory.content,
        importance: memory.importance.unwrap_or(DEFAULT_IMPORTANCE),
        is_pinned: memory.pinned.unwrap_or(false),
        created_by: Some(created_by),
    };
    // Prompts contain the age of a memory.
    let created_at = memory.created_at.map(|it| it.clamp(Timestamp(0), now));
    Ok(PreparedLine {
        number,
        memory: PreparedMemory::new(new).with_created_at(created_at),
        is_unlinked,
    })
}

/// Imports a whole file. What was stored before an error is kept.
///
/// # Errors
/// Returns the database's error, `Io` if the file cannot be read, or `TaskEnded`.
pub async fn import_file(
    mut importer: MemoryImporter,
    file: File,
    clock: &Clock,
    shutdown: &Shutdown,
) -> Result<MemoryImportReport, MemoryError> {
    let (send, mut batches) = mpsc::channel(MAX_BUFFERED_BATCHES);
    // Ends when the receiver is dropped.
    let reading = shutdown.main().spawn_blocking(move || {
        line_reader::read(BufReader::new(file), &mut |batch| {
            send.blocking_send(batch).is_ok()
        })
    });
    while let Some(batch) = batches.recv().await {
        importer.write_batch(batch, clock.now()).await?;
    }
    reading.await??;
    Ok(importer.into_report())
}
