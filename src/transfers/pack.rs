//! A space goes out: its documents and its messages into a zip on the disk, a page at a time.

use crate::accounts::user;
use crate::characters::asset;
use crate::characters::character;
use crate::clock::Timestamp;
use crate::conversations::conversation;
use crate::conversations::export::texts_of;
use crate::conversations::message;
use crate::conversations::message::Visibility;
use crate::conversations::swipe;
use crate::presets::preset;
use crate::shutdown::Shutdown;
use crate::spaces::membership;
use crate::spaces::space;
use crate::transfers::assets;
use crate::transfers::books;
use crate::transfers::books::Reader;
use crate::transfers::document;
use sea_orm::ColumnTrait;
use sea_orm::ConnectionTrait;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::QueryFilter;
use sea_orm::QueryOrder;
use sea_orm::QuerySelect;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::collections::HashMap;
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
}

/// What the writer is told.
enum Piece {
    Entry(String),
    Bytes(Vec<u8>),
}

/// Packs what a reader may see of a space into a file without a name. It stands at its beginning.
///
/// # Errors
/// When the database or the disk fails.
pub async fn pack(
    db: &impl ConnectionTrait,
    shutdown: &Shutdown,
    space: &space::Model,
    reader: Reader,
    now: Timestamp,
) -> Result<File, PackError> {
    let (send, pieces) = mpsc::channel(WAITING_PIECES);
    // Packing is CPU work; it ends when nobody sends any more.
    let writing = shutdown.main().spawn_blocking(move || write(pieces));
    let out = Out { send };
    let packed = all(db, &out, space, reader, now).await;
    drop(out);
    let file = writing
        .await
        .map_err(|_| std::io::Error::other("the writer ended"))?;
    // The writer's trouble comes first: without it there is nobody to send to.
    let file = file?;
    packed.map(|()| file)
}

fn write(mut pieces: mpsc::Receiver<Piece>) -> Result<File, PackError> {
    let mut zip = ZipWriter::new(tempfile::tempfile()?);
    while let Some(piece) = pieces.blocking_recv() {
        match piece {
            Piece::Entry(name) => {
                zip.start_file(name, SimpleFileOptions::default().large_file(true))?;
            }
            Piece::Bytes(bytes) => zip.write_all(&bytes)?,
        }
    }
    let mut file = zip.finish()?;
    file.rewind()?;
    Ok(file)
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
        self.put(Piece::Entry(name.to_owned())).await?;
        self.put(Piece::Bytes(serde_json::to_vec(value)?)).await
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
    out.document(document::SPACE, &space_document(space))
        .await?;
    let seats = membership::in_space(db, space.id).await?;
    out.document(document::SEATS, &seat_documents(db, &seats).await?)
        .await?;
    out.document(document::CHARACTERS, &characters(db, &seats).await?)
        .await?;
    out.document(document::PRESETS, &presets(db, space, &seats).await?)
        .await?;
    let conversations = conversation::Entity::find()
        .filter(conversation::Column::SpaceId.eq(space.id))
        .order_by_asc(conversation::Column::Id)
        .all(db)
        .await?;
    let (books, links) = books::leaving(db, reader, space.id, &seats, &conversations).await?;
    out.document(document::LOREBOOKS, &books).await?;
    out.document(document::LOREBOOK_LINKS, &links).await?;
    let documents = conversation_documents(db, &conversations).await?;
    out.document(document::CONVERSATIONS, &documents).await?;
    for conversation in &conversations {
        messages(db, out, conversation).await?;
    }
    let listed = assets::leaving(db, &seats).await?;
    out.document(document::ASSETS, &listed).await?;
    bytes(db, out, &listed).await
}

/// The bytes of assets, each once and one after the other: they are large.
async fn bytes(
    db: &impl ConnectionTrait,
    out: &Out,
    listed: &[document::Asset],
) -> Result<(), PackError> {
    let hashes: BTreeSet<&str> = listed.iter().map(|it| it.sha256.as_str()).collect();
    for sha256 in hashes {
        let found = asset::Entity::find()
            .filter(asset::Column::Sha256.eq(sha256))
            .one(db)
            .await?;
        if let Some(found) = found {
            out.put(Piece::Entry(document::bytes_of(sha256))).await?;
            out.put(Piece::Bytes(found.bytes)).await?;
        }
    }
    Ok(())
}

fn space_document(it: &space::Model) -> document::Space {
    document::Space {
        name: it.name.clone(),
        description: it.description.clone(),
        reply_order: it.reply_order,
        replies_per_turn: it.replies_per_turn,
        card_handling_mode: it.card_handling_mode,
        allow_self_responses: it.allow_self_responses,
        auto_mode_enabled: it.auto_mode_enabled,
        auto_mode_delay_ms: it.auto_mode_delay_ms,
        auto_mode_max_turns: it.auto_mode_max_turns,
        during_generation_user_input_policy: it.during_generation_user_input_policy,
        user_turn_debounce_ms: it.user_turn_debounce_ms,
        group_regenerate_mode: it.group_regenerate_mode,
        settings: it.settings.clone(),
        token_limit: it.token_limit,
        created_at: it.created_at,
    }
}

async fn seat_documents(
    db: &impl ConnectionTrait,
    seats: &[membership::Model],
) -> Result<Vec<document::Seat>, DbErr> {
    let people = user::Entity::find()
        .filter(user::Column::Id.is_in(seats.iter().filter_map(|it| it.user_id)))
        .all(db)
        .await?;
    let usernames: HashMap<_, _> = people.into_iter().map(|it| (it.id, it.username)).collect();
    let seats = seats.iter().map(|it| document::Seat {
        key: it.id.0,
        kind: it.kind,
        username: it.user_id.and_then(|id| usernames.get(&id).cloned()),
        character: it.character_id.map(|id| id.0),
        role: it.role,
        position: it.position,
        status: it.status,
        participation: it.participation,
        name: it.cached_display_name.clone(),
        aliases: it.alias_list(),
        persona: it.persona.clone(),
        talkativeness: it.talkativeness,
        preset: it.preset_id.map(|id| id.0),
        settings: it.settings.clone(),
        created_at: it.created_at,
    });
    Ok(seats.collect())
}

async fn characters(
    db: &impl ConnectionTrait,
    seats: &[membership::Model],
) -> Result<Vec<document::Character>, DbErr> {
    let cards = character::Entity::find()
        .filter(character::Column::Id.is_in(seats.iter().filter_map(|it| it.character_id)))
        .order_by_asc(character::Column::Id)
        .all(db)
        .await?;
    let cards = cards.into_iter().map(|it| document::Character {
        key: it.id.0,
        status: it.status,
        card: it.card,
        created_at: it.created_at,
    });
    Ok(cards.collect())
}

/// Those that the space and its seats go by.
async fn presets(
    db: &impl ConnectionTrait,
    space: &space::Model,
    seats: &[membership::Model],
) -> Result<Vec<document::Preset>, DbErr> {
    let named = |settings: &Value| settings["preset"]["preset_id"].as_i64();
    let of_seats = seats
        .iter()
        .flat_map(|it| [it.preset_id.map(|id| id.0), named(&it.settings)]);
    let ids = of_seats.chain([named(&space.settings)]).flatten();
    let rows = preset::Entity::find()
        .filter(preset::Column::Id.is_in(ids))
        .order_by_asc(preset::Column::Id)
        .all(db)
        .await?;
    let rows = rows.into_iter().map(|it| document::Preset {
        key: it.id.0,
        name: it.name,
        document: it.document,
    });
    Ok(rows.collect())
}

async fn conversation_documents(
    db: &impl ConnectionTrait,
    all: &[conversation::Model],
) -> Result<Vec<document::Conversation>, DbErr> {
    let forks: Vec<(i64, i64)> = message::Entity::find()
        .select_only()
        .column(message::Column::Id)
        .column(message::Column::Seq)
        .filter(message::Column::Id.is_in(all.iter().filter_map(|it| it.forked_from_message_id)))
        .into_tuple()
        .all(db)
        .await?;
    let seqs: HashMap<i64, i64> = forks.into_iter().collect();
    let documents = all.iter().map(|it| document::Conversation {
        key: it.id.0,
        kind: it.kind,
        title: it.title.clone(),
        parent: it.parent_conversation_id.map(|id| id.0),
        fork_seq: it
            .forked_from_message_id
            .and_then(|id| seqs.get(&id.0).copied()),
        last_seq: it.last_seq,
        auto_mode_turns: it.auto_mode_turns,
        settings: it.settings.clone(),
        variables: it.variables.clone(),
        created_at: it.created_at,
        archived_at: it.archived_at,
    });
    Ok(documents.collect())
}

async fn messages(
    db: &impl ConnectionTrait,
    out: &Out,
    conversation: &conversation::Model,
) -> Result<(), PackError> {
    use message::Column;
    out.put(Piece::Entry(document::messages_of(conversation.id.0)))
        .await?;
    let mut at = 0;
    loop {
        // What comes after was not there when this began.
        let page = message::Entity::find()
            .filter(Column::ConversationId.eq(conversation.id))
            .filter(Column::Seq.gt(at))
            .filter(Column::Seq.lte(conversation.last_seq))
            .order_by_asc(Column::Seq)
            .limit(PAGE)
            .all(db)
            .await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        at = last.seq;
        let mut texts = texts_of(db, &page).await?;
        let mut lines = Vec::new();
        for row in &page {
            let texts = texts.remove(&row.id).unwrap_or_default();
            serde_json::to_writer(&mut lines, &line(row, texts))?;
            lines.push(b'\n');
        }
        out.put(Piece::Bytes(lines)).await?;
    }
}

fn line(row: &message::Model, texts: Vec<swipe::Model>) -> document::Message {
    let is_gone = row.visibility == Visibility::Hidden;
    let mut line = document::Message {
        seq: row.seq,
        seat: row.space_membership_id.0,
        role: row.role,
        content: row.content.clone(),
        visibility: row.visibility,
        active_swipe: row.active_swipe,
        is_clone: row.origin_message_id.is_some(),
        created_at: row.created_at,
        edited_at: row.edited_at,
        token_count: row.token_count,
        metadata: row.metadata.clone(),
        texts: texts
            .into_iter()
            .map(|it| document::Text {
                content: it.content,
                metadata: it.metadata,
                token_count: it.token_count,
                edited_at: it.edited_at,
            })
            .collect(),
    };
    if is_gone {
        // Deleted for everybody: its number stays, what it said does not leave the house.
        line.content.clear();
        line.metadata = serde_json::json!({});
        line.active_swipe = 0;
        line.token_count = 0;
        line.texts.clear();
    }
    line
}
