//! Writes the memories that a member may see as JSON Lines.
//!
//! **Invariant:** names and memories are read from one snapshot of the database, and only one chunk of them
//! is in main memory. A memory that only some members may know is in no file.

use std::collections::HashMap;
use std::fs::File;
use std::io::Seek;

use base::ids::{MembershipId, MemoryId, SpaceId};
use recall::memory_line;
use recall::memory_line::ExportedMemory;
use sea_orm::{ConnectionTrait, DbErr};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;

use crate::db::connect::Db;
use crate::memories::error::MemoryError;
use crate::memories::memory;
use crate::memories::memory::{MemoryFilter, MemoryKind, Model};
use crate::spaces::membership;

/// The number of memories in a chunk; a content has at most 8 KB.
const CHUNK: usize = 200;

/// An export in progress.
struct MemoryExporter {
    space: SpaceId,
    filter: MemoryFilter,
    names: HashMap<MembershipId, String>,
    ids: Vec<MemoryId>,
    n_written: usize,
}

impl MemoryExporter {
    /// Starts to export what this member may see. Call it and [`MemoryExporter::next_chunk`] in one
    /// transaction.
    async fn start(
        tx: &impl ConnectionTrait,
        space: SpaceId,
        viewer: Option<MembershipId>,
    ) -> Result<Self, DbErr> {
        let filter = MemoryFilter {
            viewer,
            ..MemoryFilter::default()
        };
        let members = membership::list_for_space(tx, space).await?;
        let members = members.into_iter();
        Ok(Self {
            space,
            names: members.map(|it| (it.id, it.cached_display_name)).collect(),
            ids: memory::list_ids(tx, space, &filter).await?,
            filter,
            n_written: 0,
        })
    }

    /// Returns the next lines; `None` at the end.
    async fn next_chunk(
        &mut self,
        tx: &impl ConnectionTrait,
    ) -> Result<Option<Vec<u8>>, MemoryError> {
        let rest = &self.ids[self.n_written..];
        if rest.is_empty() {
            return Ok(None);
        }
        let ids = &rest[..CHUNK.min(rest.len())];
        self.n_written += ids.len();
        let found = memory::list_matching(tx, self.space, &self.filter, ids.iter().copied());
        let mut rows = found.await?;
        rows.sort_by_key(|it| it.id);
        let mut lines = Vec::new();
        let known_to_all = rows.into_iter().filter(|it| it.audience_hash.is_empty());
        for line in known_to_all.filter_map(|it| self.line(it)) {
            memory_line::write(&mut lines, &line).map_err(std::io::Error::from)?;
        }
        Ok(Some(lines))
    }

    /// Returns `None` if the owner has no name: without it, an import would show the memory to everyone.
    fn line(&self, row: Model) -> Option<ExportedMemory<MemoryKind>> {
        let name = |id: MembershipId| self.names.get(&id).cloned();
        Some(ExportedMemory {
            owner: match row.space_membership_id {
                Some(id) => Some(name(id)?),
                None => None,
            },
            about: row.about_membership_id.and_then(name),
            content: row.content,
            kind: Some(row.kind),
            importance: Some(row.importance),
            created_at: Some(row.created_at),
            pinned: Some(row.is_pinned),
        })
    }
}

/// Sends what this member may see to a channel, as events with lines; `None` sees the memories of
/// everyone and of characters.
///
/// # Errors
/// Returns the database's error, or `Io` if the receiver is gone.
pub async fn send_lines<T: Send + 'static>(
    db: &Db,
    space: SpaceId,
    viewer: Option<MembershipId>,
    send: mpsc::Sender<T>,
    event: fn(Vec<u8>) -> T,
) -> Result<(), MemoryError> {
    db.read(move |tx| {
        Box::pin(async move {
            let mut exporter = MemoryExporter::start(tx, space, viewer).await?;
            while let Some(lines) = exporter.next_chunk(tx).await? {
                let gone = |_| std::io::Error::other("the receiver was dropped");
                send.send(event(lines)).await.map_err(gone)?;
            }
            Ok(())
        })
    })
    .await
}

/// Exports what this member may see into an anonymous temporary file, positioned at its beginning.
///
/// # Errors
/// Returns an error when the database or the disk fails.
pub async fn export_file(
    db: &Db,
    space: SpaceId,
    viewer: Option<MembershipId>,
) -> Result<File, MemoryError> {
    let file = tempfile::tempfile()?;
    db.read(move |tx| {
        Box::pin(async move {
            let mut file = tokio::fs::File::from_std(file);
            let mut exporter = MemoryExporter::start(tx, space, viewer).await?;
            while let Some(lines) = exporter.next_chunk(tx).await? {
                file.write_all(&lines).await?;
            }
            file.flush().await?;
            let mut file = file.into_std().await;
            file.rewind()?;
            Ok(file)
        })
    })
    .await
}
