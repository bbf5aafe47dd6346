//! Exports a space: writes its documents, messages, run history, memories, summaries and assets into a zip on
//! disk, one page at a time.
//!
//! **Invariant:** memory holds only one card, a page of messages or a piece of an asset.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Seek, Write};

use base::clock::Timestamp;
use base::ids::{AssetId, CharacterId, MembershipId, SpaceId};
use base::shutdown::Shutdown;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use tavern::cards::avatar_image::AVATAR_PATH;
use tavern::macros::variables::VariableMap;
use tokio::sync::mpsc;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::characters::asset;
use crate::conversations::audience::viewer::Viewer;
use crate::conversations::conversation;
use crate::db::connect::Db;
use crate::memories::transfer::{memory_export, summary_export};
use crate::prompt::record::hidden_cards::HiddenCards;
use crate::prompt::space_variable;
use crate::space_transfer::export::export_events::{ExportError, ExportEvent, ExportWriter};
use crate::space_transfer::export::export_run_history::{HistoryCursor, WrittenTexts};
use crate::space_transfer::export::{export_documents, export_messages, export_run_history};
use crate::space_transfer::limits::TransferLimits;
use crate::space_transfer::lorebook_transfer::VisibleLorebooks;
use crate::space_transfer::pictures::picture_transfer;
use crate::space_transfer::{asset_transfer, document, limits, lorebook_transfer};
use crate::spaces::{card_rights, membership, space};

/// Events that may wait for the writer; when it is full, the reader waits.
const MAX_BUFFERED_EVENTS: usize = 4;

/// An exported file, positioned at its beginning.
#[derive(Debug)]
pub struct ExportedFile {
    pub file: File,
    pub n_bytes: u64,
}

/// Exports what a caller with this membership may see of a space into an anonymous temporary file.
///
/// # Errors
/// Returns `TooLarge` if an import would refuse the file; another variant if the database or the
/// disk fails.
pub async fn export_space(
    db: &Db,
    shutdown: &Shutdown,
    space: &space::Model,
    (visible, viewer): (VisibleLorebooks, Option<MembershipId>),
    limits: TransferLimits,
    now: Timestamp,
) -> Result<ExportedFile, ExportError> {
    let (send, events) = mpsc::channel(MAX_BUFFERED_EVENTS);
    // Compression is CPU work; it ends when all senders are dropped.
    let writing = shutdown
        .main()
        .spawn_blocking(move || write_file(events, limits));
    let writer = ExportWriter { send };
    let reader = (visible, Viewer::from(viewer));
    let mut sent = write_contents(db.reader(), &writer, space, reader, now).await;
    if sent.is_ok() {
        sent = write_memories(db, &writer, space.id, viewer).await;
    }
    drop(writer);
    let written = writing
        .await
        .map_err(|_| std::io::Error::other("the writer ended"))?;
    // The writer's error comes first: it causes the errors of the senders.
    let written = written?;
    sent.map(|()| written)
}

fn write_file(
    mut events: mpsc::Receiver<ExportEvent>,
    limits: TransferLimits,
) -> Result<ExportedFile, ExportError> {
    let mut zip = ZipWriter::new(tempfile::tempfile()?);
    let (mut n_entries, mut n_unpacked) = (0, 0);
    while let Some(event) = events.blocking_recv() {
        match event {
            ExportEvent::Entry(name) => {
                n_entries += 1;
                zip.start_file(name, SimpleFileOptions::default().large_file(true))?;
            }
            ExportEvent::Bytes(bytes) => {
                n_unpacked += bytes.len() as u64;
                zip.write_all(&bytes)?;
            }
        }
        // Checked for each piece, so that a file that is too large does not fill the disk first.
        if n_entries > limits::MAX_ENTRIES || n_unpacked > limits.max_unpacked_bytes {
            return Err(ExportError::TooLarge);
        }
    }
    let mut file = zip.finish()?;
    let n_bytes = file.metadata()?.len();
    if n_bytes > limits.max_file_bytes || n_unpacked > limits.unpacked_limit(n_bytes) {
        return Err(ExportError::TooLarge);
    }
    file.rewind()?;
    Ok(ExportedFile { file, n_bytes })
}

async fn write_contents(
    db: &impl ConnectionTrait,
    writer: &ExportWriter,
    space: &space::Model,
    (visible, viewer): (VisibleLorebooks, Viewer),
    now: Timestamp,
) -> Result<(), ExportError> {
    let manifest = document::Manifest {
        format: document::FORMAT.to_owned(),
        version: document::VERSION,
        exported_at: now,
    };
    writer.write_document(document::MANIFEST, &manifest).await?;
    writer
        .write_document(document::SPACE, &export_documents::space_document(space))
        .await?;
    let memberships = membership::list_for_space(db, space.id).await?;
    let hidden = match visible {
        VisibleLorebooks::Admin => HiddenCards::default(),
        VisibleLorebooks::User(id) => {
            let ids = memberships.iter().filter_map(|it| it.character_id);
            HiddenCards::new(card_rights::list_hidden_cards(db, id, ids).await?)
        }
    };
    // Macros of a hidden card may have stored its text in variables.
    let variables = match hidden.is_empty() {
        true => space_variable::load_for_space(db, space.id).await?,
        false => VariableMap::default(),
    };
    writer
        .write_document(document::VARIABLES, &variables)
        .await?;
    let documents = export_documents::membership_documents(db, &memberships).await?;
    writer
        .write_list(document::MEMBERSHIPS, &documents, limits::MAX_MEMBERSHIPS)
        .await?;
    write_characters(db, writer, &memberships, &hidden).await?;
    let documents = export_documents::preset_documents(db, space, &memberships).await?;
    writer
        .write_list(document::PRESETS, &documents, limits::MAX_CARDS)
        .await?;
    let conversations = conversation::Entity::find()
        .filter(conversation::Column::SpaceId.eq(space.id))
        .filter(conversation::Column::IsHidden.eq(false))
        .order_by_asc(conversation::Column::Id)
        .all(db)
        .await?;
    let (books, links) =
        lorebook_transfer::export(db, visible, space.id, &memberships, &conversations).await?;
    writer
        .write_list(document::LOREBOOKS, &books, limits::MAX_CARDS)
        .await?;
    writer
        .write_document(document::LOREBOOK_LINKS, &links)
        .await?;
    let documents = export_documents::conversation_documents(db, &conversations, &hidden).await?;
    let max_conversations = limits::MAX_CONVERSATIONS;
    writer
        .write_list(document::CONVERSATIONS, &documents, max_conversations)
        .await?;
    let mut written = WrittenTexts::default();
    for conversation in &conversations {
        export_messages::write(db, writer, (conversation, viewer), &mut written).await?;
    }
    for conversation in &conversations {
        let leaving = HistoryCursor::new((conversation.id, viewer), now, &hidden);
        write_history(db, writer, leaving, &mut written).await?;
    }
    let mut listed = asset_transfer::export(db, &memberships).await?;
    // Only the avatar of a hidden card is public.
    listed.retain(|it| it.path == AVATAR_PATH || !hidden.contains(CharacterId(it.character)));
    writer
        .write_list(document::ASSETS, &listed, limits::MAX_ASSETS)
        .await?;
    let pictures = picture_transfer::export(db, (space.id, viewer)).await?;
    writer
        .write_list(document::PICTURES, &pictures, limits::MAX_PICTURES)
        .await?;
    let listed = listed.iter().map(|it| it.sha256.as_str());
    let pictures = pictures.iter().map(|it| it.sha256.as_str());
    write_assets(db, writer, listed.chain(pictures).collect()).await
}

/// Writes the memories that a member may see, and the summaries, each in one consistent read.
async fn write_memories(
    db: &Db,
    writer: &ExportWriter,
    space: SpaceId,
    viewer: Option<MembershipId>,
) -> Result<(), ExportError> {
    let (entry, send) = (ExportEvent::Entry, || writer.send.clone());
    let (memories, summaries) = (document::MEMORIES, document::SUMMARIES);
    writer.send_event(entry(memories.to_owned())).await?;
    memory_export::send_lines(db, space, viewer, send(), ExportEvent::Bytes).await?;
    writer.send_event(entry(summaries.to_owned())).await?;
    Ok(summary_export::send_lines(db, space, send(), ExportEvent::Bytes).await?)
}

/// Writes the cards one at a time, because each may be large.
async fn write_characters(
    db: &impl ConnectionTrait,
    writer: &ExportWriter,
    memberships: &[membership::Model],
    hidden: &HiddenCards,
) -> Result<(), ExportError> {
    let ids = export_documents::character_ids(db, memberships).await?;
    if ids.len() > limits::MAX_CARDS {
        return Err(ExportError::TooLarge);
    }
    writer
        .send_event(ExportEvent::Entry(document::CHARACTERS.to_owned()))
        .await?;
    let mut n_bytes = 0;
    let mut opening = b'[';
    for id in ids {
        if let Some(character) = export_documents::character_document(db, id, hidden).await? {
            let mut bytes = vec![opening];
            serde_json::to_writer(&mut bytes, &character)?;
            n_bytes += bytes.len() as u64;
            if n_bytes > limits::MAX_DOCUMENT_BYTES {
                return Err(ExportError::TooLarge);
            }
            writer.send_event(ExportEvent::Bytes(bytes)).await?;
            opening = b',';
        }
    }
    let end: &[u8] = if opening == b'[' { b"[]" } else { b"]" };
    writer.send_event(ExportEvent::Bytes(end.to_vec())).await
}

/// Writes the history of a conversation.
async fn write_history(
    db: &impl ConnectionTrait,
    writer: &ExportWriter,
    mut history: HistoryCursor<'_>,
    written: &mut WrittenTexts,
) -> Result<(), ExportError> {
    let name = document::history_entry(history.conversation_id().0);
    writer.send_event(ExportEvent::Entry(name)).await?;
    while let Some(page) = history.next_page(db, written).await? {
        let mut lines = Vec::new();
        for past in page {
            lines.extend(export_run_history::encode_line(past)?);
        }
        writer.send_event(ExportEvent::Bytes(lines)).await?;
    }
    Ok(())
}

/// Writes the bytes of each asset once, one after the other, because they are large.
async fn write_assets(
    db: &impl ConnectionTrait,
    writer: &ExportWriter,
    hashes: BTreeSet<&str>,
) -> Result<(), ExportError> {
    for sha256 in hashes {
        let found: Option<AssetId> = asset::Entity::find()
            .filter(asset::Column::Sha256.eq(sha256))
            .select_only()
            .column(asset::Column::Id)
            .into_tuple()
            .one(db)
            .await?;
        let Some(id) = found else { continue };
        writer
            .send_event(ExportEvent::Entry(document::asset_entry(sha256)))
            .await?;
        let mut from = 0;
        loop {
            let piece = asset::load_chunk(db, id, from).await?;
            let length = i32::try_from(piece.len()).unwrap_or(i32::MAX);
            writer.send_event(ExportEvent::Bytes(piece)).await?;
            if length < asset::CHUNK_BYTES {
                break;
            }
            from += length;
        }
    }
    Ok(())
}
