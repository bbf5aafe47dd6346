//! Writes the messages of a conversation into a space file, one page at a time.

use sea_orm::ConnectionTrait;

use crate::conversations::annotations::message_annotations::MessageAnnotations;
use crate::conversations::audience::viewer::Viewer;
use crate::conversations::chats::chat_export::load_swipes;
use crate::conversations::conversation;
use crate::space_transfer::document;
use crate::space_transfer::export::export_documents;
use crate::space_transfer::export::export_events::{ExportError, ExportEvent, ExportWriter};
use crate::space_transfer::export::export_run_history::WrittenTexts;

/// Writes the messages of a conversation that the viewer sees.
///
/// # Errors
/// Returns an error if the database fails or the writer ended.
pub(super) async fn write(
    db: &impl ConnectionTrait,
    writer: &ExportWriter,
    (conversation, viewer): (&conversation::Model, Viewer),
    written: &mut WrittenTexts,
) -> Result<(), ExportError> {
    let entry = document::messages_entry(conversation.id.0);
    writer.send_event(ExportEvent::Entry(entry)).await?;
    let mut at = 0;
    loop {
        let page = export_documents::load_messages_after(db, conversation, viewer, at).await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        at = last.seq;
        let mut texts = load_swipes(db, &page).await?;
        let annotations = MessageAnnotations::load(db, &page).await?;
        let mut lines = Vec::new();
        for row in &page {
            let texts = texts.remove(&row.id).unwrap_or_default();
            written.record_text(row, &texts);
            let document = export_documents::message_document(row, texts, &annotations, viewer);
            serde_json::to_writer(&mut lines, &document)?;
            lines.push(b'\n');
        }
        writer.send_event(ExportEvent::Bytes(lines)).await?;
    }
}
