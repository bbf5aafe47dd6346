//! A space goes out: its documents and its messages into a zip on the disk, a slice at a time.
//!
//! **Invariant:** what is held is one card, a slice of messages or a piece of an asset.

use crate::characters::asset;
use crate::characters::character_asset::AVATAR_PATH;
use crate::clock::Timestamp;
use crate::conversations::chat_export;
use crate::conversations::chat_export::load_swipes;
use crate::conversations::conversation;
use crate::conversations::message;
use crate::conversations::pages;
use crate::conversations::pages::Stub;
use crate::ids::AssetId;
use crate::ids::CharacterId;
use crate::prompt::card_use::HiddenCards;
use crate::prompt::macros::variables::VariableMap;
use crate::prompt::space_variable;
use crate::shutdown::Shutdown;
use crate::spaces::card_rights;
use crate::spaces::membership;
use crate::spaces::space;
use crate::transfers::assets;
use crate::transfers::books;
use crate::transfers::books::Reader;
use crate::transfers::document;
use crate::transfers::documents;
use crate::transfers::limits;
use crate::transfers::limits::Limits;
use crate::transfers::past;
use crate::transfers::past::Leaving;
use crate::transfers::past::Written;
use sea_orm::ColumnTrait;
use sea_orm::ConnectionTrait;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::QueryFilter;
use sea_orm::QueryOrder;
use sea_orm::QuerySelect;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Seek;
use std::io::Write;
use tokio::sync::mpsc;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// What is held at once.
const PAGE: u64 = 100;

/// The writer is behind by so many pieces at most.
const WAITING_PIECES: usize = 4;

/// Why a space did not go out.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    #[error(transparent)]
    Db(#[from] DbErr),
    #[error("the file could not be written")]
    Io(#[from] std::io::Error),
    #[error("the file could not be written")]
    Zip(#[from] zip::result::ZipError),
    #[error("a document could not be written")]
    Json(#[from] serde_json::Error),
    #[error("the space makes a larger file than may be")]
    TooLarge,
}

/// What the writer is told.
enum Piece {
    Entry(String),
    Bytes(Vec<u8>),
}

/// A packed space. It stands at its beginning.
#[derive(Debug)]
pub struct Packed {
    pub file: File,
    pub n_bytes: u64,
}

/// Packs what a reader may see of a space into a file without a name.
///
/// # Errors
/// When the file would be past the limits of one that comes in; when the database or the disk fails.
pub async fn pack(
    db: &impl ConnectionTrait,
    shutdown: &Shutdown,
    space: &space::Model,
    reader: Reader,
    limits: Limits,
    now: Timestamp,
) -> Result<Packed, PackError> {
    let (send, pieces) = mpsc::channel(WAITING_PIECES);
    // Packing is CPU work; it ends when nobody sends any more.
    let writing = shutdown
        .main()
        .spawn_blocking(move || write(pieces, limits));
    let out = Out { send };
    let packed = all(db, &out, space, reader, now).await;
    drop(out);
    let written = writing
        .await
        .map_err(|_| std::io::Error::other("the writer ended"))?;
    // The writer's trouble comes first: without it there is nobody to send to.
    let written = written?;
    packed.map(|()| written)
}

fn write(mut pieces: mpsc::Receiver<Piece>, limits: Limits) -> Result<Packed, PackError> {
    let mut zip = ZipWriter::new(tempfile::tempfile()?);
    let (mut n_entries, mut n_unpacked) = (0, 0);
    while let Some(piece) = pieces.blocking_recv() {
        match piece {
            Piece::Entry(name) => {
                n_entries += 1;
                zip.start_file(name, SimpleFileOptions::default().large_file(true))?;
            }
            Piece::Bytes(bytes) => {
                n_unpacked += bytes.len() as u64;
                zip.write_all(&bytes)?;
            }
        }
        // Not at the end only: what would be refused then need not fill the disk before.
        if n_entries > limits::MAX_ENTRIES || n_unpacked > limits.unpacked {
            return Err(PackError::TooLarge);
        }
    }
    let mut file = zip.finish()?;
    let n_bytes = file.metadata()?.len();
    if n_bytes > limits.file || n_unpacked > limits.out_of(n_bytes) {
        return Err(PackError::TooLarge);
    }
    file.rewind()?;
    Ok(Packed { file, n_bytes })
}

struct Out {
    send: mpsc::Sender<Piece>,
}

impl Out {
    async fn put(&self, piece: Piece) -> Result<(), PackError> {
        let gone = |_| std::io::Error::other("the writer ended");
        Ok(self.send.send(piece).await.map_err(gone)?)
    }

    async fn document(&self, name: &str, value: &impl Serialize) -> Result<(), PackError> {
        let bytes = serde_json::to_vec(value)?;
        if bytes.len() as u64 > limits::MAX_DOCUMENT {
            return Err(PackError::TooLarge);
        }
        self.put(Piece::Entry(name.to_owned())).await?;
        self.put(Piece::Bytes(bytes)).await
    }

    /// A document with a list, which may have so many items.
    async fn list<T: Serialize>(
        &self,
        name: &str,
        all: &[T],
        most: usize,
    ) -> Result<(), PackError> {
        match all.len() > most {
            true => Err(PackError::TooLarge),
            false => self.document(name, &all).await,
        }
    }
}

async fn all(
    db: &impl ConnectionTrait,
    out: &Out,
    space: &space::Model,
    reader: Reader,
    now: Timestamp,
) -> Result<(), PackError> {
    let manifest = document::Manifest {
        format: document::FORMAT.to_owned(),
        version: document::VERSION,
        exported_at: now,
    };
    out.document(document::MANIFEST, &manifest).await?;
    out.document(document::SPACE, &documents::space_document(space))
        .await?;
    let seats = membership::list_for_space(db, space.id).await?;
    let hidden = match reader {
        Reader::Admin => HiddenCards::default(),
        Reader::User(id) => {
            let ids = seats.iter().filter_map(|it| it.character_id);
            HiddenCards::new(card_rights::list_hidden_cards(db, id, ids).await?)
        }
    };
    // A hidden card may have written its text into variables.
    let variables = match hidden.is_empty() {
        true => space_variable::load_for_space(db, space.id).await?,
        false => VariableMap::default(),
    };
    out.document(document::VARIABLES, &variables).await?;
    let documents = documents::seat_documents(db, &seats).await?;
    out.list(document::SEATS, &documents, limits::MAX_SEATS)
        .await?;
    characters(db, out, &seats, &hidden).await?;
    let documents = documents::presets(db, space, &seats).await?;
    out.list(document::PRESETS, &documents, limits::MAX_CARDS)
        .await?;
    let conversations = conversation::Entity::find()
        .filter(conversation::Column::SpaceId.eq(space.id))
        .filter(conversation::Column::IsHidden.eq(false))
        .order_by_asc(conversation::Column::Id)
        .all(db)
        .await?;
    let (books, links) = books::leaving(db, reader, space.id, &seats, &conversations).await?;
    out.list(document::LOREBOOKS, &books, limits::MAX_CARDS)
        .await?;
    out.document(document::LOREBOOK_LINKS, &links).await?;
    let documents = documents::conversation_documents(db, &conversations, &hidden).await?;
    let most = limits::MAX_CONVERSATIONS;
    out.list(document::CONVERSATIONS, &documents, most).await?;
    let mut written = Written::default();
    for conversation in &conversations {
        messages(db, out, conversation, &mut written).await?;
    }
    for conversation in &conversations {
        let leaving = Leaving::begin(conversation.id, now, &hidden);
        past_of(db, out, leaving, &mut written).await?;
    }
    let mut listed = assets::leaving(db, &seats).await?;
    // Of a hidden card only the picture is public.
    listed.retain(|it| it.path == AVATAR_PATH || !hidden.contains(CharacterId(it.character)));
    out.list(document::ASSETS, &listed, limits::MAX_ASSETS)
        .await?;
    bytes(db, out, &listed).await
}

/// The cards, one at a time: each may be large.
async fn characters(
    db: &impl ConnectionTrait,
    out: &Out,
    seats: &[membership::Model],
    hidden: &HiddenCards,
) -> Result<(), PackError> {
    let ids = documents::character_ids(db, seats).await?;
    if ids.len() > limits::MAX_CARDS {
        return Err(PackError::TooLarge);
    }
    out.put(Piece::Entry(document::CHARACTERS.to_owned()))
        .await?;
    let mut n_bytes = 0;
    let mut opening = b'[';
    for id in ids {
        if let Some(character) = documents::character(db, id, hidden).await? {
            let mut bytes = vec![opening];
            serde_json::to_writer(&mut bytes, &character)?;
            n_bytes += bytes.len() as u64;
            if n_bytes > limits::MAX_DOCUMENT {
                return Err(PackError::TooLarge);
            }
            out.put(Piece::Bytes(bytes)).await?;
            opening = b',';
        }
    }
    let end: &[u8] = if opening == b'[' { b"[]" } else { b"]" };
    out.put(Piece::Bytes(end.to_vec())).await
}

/// What has happened in a conversation.
async fn past_of(
    db: &impl ConnectionTrait,
    out: &Out,
    mut leaving: Leaving<'_>,
    written: &mut Written,
) -> Result<(), PackError> {
    let name = document::past_of(leaving.conversation().0);
    out.put(Piece::Entry(name)).await?;
    while let Some(page) = leaving.next(db, written).await? {
        let mut lines = Vec::new();
        for past in page {
            lines.extend(past::line(past)?);
        }
        out.put(Piece::Bytes(lines)).await?;
    }
    Ok(())
}

/// The bytes of assets, each once and one after the other: they are large.
async fn bytes(
    db: &impl ConnectionTrait,
    out: &Out,
    listed: &[document::Asset],
) -> Result<(), PackError> {
    let hashes: BTreeSet<&str> = listed.iter().map(|it| it.sha256.as_str()).collect();
    for sha256 in hashes {
        let found: Option<AssetId> = asset::Entity::find()
            .filter(asset::Column::Sha256.eq(sha256))
            .select_only()
            .column(asset::Column::Id)
            .into_tuple()
            .one(db)
            .await?;
        let Some(id) = found else { continue };
        out.put(Piece::Entry(document::bytes_of(sha256))).await?;
        let mut from = 0;
        loop {
            let piece = asset::load_chunk(db, id, from).await?;
            let length = i32::try_from(piece.len()).unwrap_or(i32::MAX);
            out.put(Piece::Bytes(piece)).await?;
            if length < asset::CHUNK_BYTES {
                break;
            }
            from += length;
        }
    }
    Ok(())
}

async fn messages(
    db: &impl ConnectionTrait,
    out: &Out,
    conversation: &conversation::Model,
    written: &mut Written,
) -> Result<(), PackError> {
    use message::Column;
    out.put(Piece::Entry(document::messages_of(conversation.id.0)))
        .await?;
    let mut at = 0;
    loop {
        // What comes after was not there when this began.
        let stubs: Vec<Stub> = message::Entity::find()
            .filter(Column::ConversationId.eq(conversation.id))
            .filter(Column::Seq.gt(at))
            .filter(Column::Seq.lte(conversation.last_seq))
            .order_by_asc(Column::Seq)
            .limit(PAGE)
            .select_only()
            .column(Column::Seq)
            .column_as(pages::stored_bytes(), "bytes")
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
        let mut lines = Vec::new();
        for row in &page {
            let texts = texts.remove(&row.id).unwrap_or_default();
            written.note(row, &texts);
            serde_json::to_writer(&mut lines, &documents::message(row, texts))?;
            lines.push(b'\n');
        }
        out.put(Piece::Bytes(lines)).await?;
    }
}
