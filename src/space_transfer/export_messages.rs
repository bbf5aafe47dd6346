//! Writes the messages of a conversation into a space file, one page at a time.

use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use crate::conversations::annotations::message_annotations::MessageAnnotations;
use crate::conversations::chats::chat_export;
use crate::conversations::chats::chat_export::load_swipes;
use crate::conversations::timeline_page::Stub;
use crate::conversations::{conversation, message, timeline_page};
use crate::space_transfer::export_run_history::WrittenTexts;
use crate::space_transfer::export_writer::{ExportError, ExportEvent, ExportWriter};
use crate::space_transfer::{document, export_documents};

/// Rows held in memory.
const PAGE_SIZE: u64 = 100;

/// Writes all messages of a conversation.
///
/// # Errors
/// Returns an error if the database fails or the writer ended.
pub(super) async fn write(
    db: &impl ConnectionTrait,
    writer: &ExportWriter,
    conversation: &conversation::Model,
    written: &mut WrittenTexts,
) -> Result<(), ExportError> {
    use message::Column;
    writer
        .send_event(ExportEvent::Entry(document::messages_entry(
            conversation.id.0,
        )))
        .await?;
    let mut at = 0;
    loop {
        // Later messages did not exist when the export began.
        let stubs: Vec<Stub> = message::Entity::find()
            .filter(Column::ConversationId.eq(conversation.id))
            .filter(Column::Seq.gt(at))
            .filter(Column::Seq.lte(conversation.last_seq))
            .order_by_asc(Column::Seq)
            .limit(PAGE_SIZE)
            .select_only()
            .column(Column::Seq)
            .column_as(timeline_page::stored_bytes(), "bytes")
            .into_tuple()
            .all(db)
            .await?;
        let stubs = chat_export::take_fitting(db, conversation.id, stubs).await?;
        let Some((last, _)) = stubs.last() else {
            return Ok(());
        };
        at = *last;
        let page = message::Entity::find()
            .filter(Column::ConversationId.eq(conversation.id))
            .filter(Column::Seq.is_in(stubs.iter().map(|(seq, _)| *seq)))
            .order_by_asc(Column::Seq)
            .all(db)
            .await?;
        let mut texts = load_swipes(db, &page).await?;
        let annotations = MessageAnnotations::load(db, &page).await?;
        let mut lines = Vec::new();
        for row in &page {
            let texts = texts.remove(&row.id).unwrap_or_default();
            written.record_text(row, &texts);
            let document = export_documents::message_document(row, texts, &annotations);
            serde_json::to_writer(&mut lines, &document)?;
            lines.push(b'\n');
        }
        writer.send_event(ExportEvent::Bytes(lines)).await?;
    }
}
