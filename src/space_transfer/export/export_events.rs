//! The events with which an export passes entries and their bytes to the task that writes the file.

use sea_orm::DbErr;
use serde::Serialize;
use tokio::sync::mpsc;

use crate::memories::error::MemoryError;
use crate::space_transfer::limits;

/// Why an export failed.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Db(#[from] DbErr),
    #[error("the file could not be written")]
    Io(#[from] std::io::Error),
    #[error("the file could not be written")]
    Zip(#[from] zip::result::ZipError),
    #[error("a document could not be written")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Memories(#[from] MemoryError),
    #[error("the space is too large for an export file")]
    TooLarge,
}

/// An event for the writer.
pub(super) enum ExportEvent {
    Entry(String),
    Bytes(Vec<u8>),
}

/// Sends the events.
pub(super) struct ExportWriter {
    pub send: mpsc::Sender<ExportEvent>,
}

impl ExportWriter {
    pub(super) async fn send_event(&self, event: ExportEvent) -> Result<(), ExportError> {
        let gone = |_| std::io::Error::other("the writer ended");
        Ok(self.send.send(event).await.map_err(gone)?)
    }

    pub(super) async fn write_document(
        &self,
        name: &str,
        value: &impl Serialize,
    ) -> Result<(), ExportError> {
        let bytes = serde_json::to_vec(value)?;
        if bytes.len() as u64 > limits::MAX_DOCUMENT_BYTES {
            return Err(ExportError::TooLarge);
        }
        self.send_event(ExportEvent::Entry(name.to_owned())).await?;
        self.send_event(ExportEvent::Bytes(bytes)).await
    }

    /// Writes a document with a list of at most `max_items` items.
    pub(super) async fn write_list<T: Serialize>(
        &self,
        name: &str,
        all: &[T],
        max_items: usize,
    ) -> Result<(), ExportError> {
        match all.len() > max_items {
            true => Err(ExportError::TooLarge),
            false => self.write_document(name, &all).await,
        }
    }
}
