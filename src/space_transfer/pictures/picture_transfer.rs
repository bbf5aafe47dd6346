//! Lists the pictures of a space's messages for an export, and imports them: keeps them on disk until
//! they are stored with their messages.
//!
//! **Invariant:** imported pictures are re-encoded, like all other pictures from outside.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Cursor;

use base::clock::Timestamp;
use base::ids::{AssetId, AttachmentId, ConversationId, MessageId, SpaceId, UserId};
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, FromQueryResult, QueryFilter, QuerySelect,
    Statement,
};
use tavern::pictures::message_picture;

use crate::attachments::attachment;
use crate::characters::asset;
use crate::conversations::audience::viewer::Viewer;
use crate::conversations::chats::import_writer::ChatImportError;
use crate::conversations::message;
use crate::space_transfer::asset_transfer::{SpooledAssets, is_hash};
use crate::space_transfer::document::ExportedPicture;
use crate::space_transfer::limits;
use crate::space_transfer::pictures::spooled_pictures::DrawnPicture;

/// Messages in one statement.
const MAX_MESSAGES: usize = 500;
/// The maximum length of a file name, in characters.
const MAX_NAME_CHARS: usize = 255;

/// A row of the export.
#[derive(Debug, FromQueryResult)]
struct PictureRow {
    conversation: i64,
    seq: i64,
    position: i64,
    file_name: Option<String>,
    alt: String,
    sha256: String,
    created_at: Timestamp,
}

/// Returns the pictures of all messages of a space that the viewer sees; one more than the limit of a
/// file if there are more.
///
/// # Errors
/// Returns the database error if the query fails.
pub async fn export(
    db: &impl ConnectionTrait,
    (space, viewer): (SpaceId, Viewer),
) -> Result<Vec<ExportedPicture>, DbErr> {
    let sql = "SELECT m.conversation_id AS conversation, m.seq, a.position, a.file_name, a.alt, \
            s.sha256, a.created_at \
        FROM conversations c JOIN messages m ON m.conversation_id = c.id AND m.has_attachments \
        JOIN attachments a ON a.message_id = m.id JOIN assets s ON s.id = a.asset_id \
        WHERE c.space_id = $1 AND NOT c.is_hidden AND m.visibility <> 'hidden' \
            AND (m.audience IS NULL OR m.audience LIKE $3) \
        ORDER BY m.conversation_id, m.seq, a.position LIMIT $2";
    let most = i64::try_from(limits::MAX_PICTURES + 1).unwrap_or(i64::MAX);
    let values = [space.0.into(), most.into(), viewer.pattern().into()];
    let statement = Statement::from_sql_and_values(db.get_database_backend(), sql, values);
    let rows = PictureRow::find_by_statement(statement).all(db).await?;
    let pictures = rows.into_iter().map(|it| ExportedPicture {
        conversation: it.conversation,
        seq: it.seq,
        position: it.position,
        file_name: it.file_name,
        alt: it.alt,
        sha256: it.sha256,
        created_at: it.created_at,
    });
    Ok(pictures.collect())
}

/// Returns whether no message has too many pictures, or two at one position, or one that is not described
/// by valid values.
pub fn are_valid(pictures: &[ExportedPicture]) -> bool {
    let mut seen = HashSet::new();
    let places = 0..i64::try_from(attachment::MAX_PER_MESSAGE).unwrap_or(i64::MAX);
    pictures.iter().all(|it| {
        is_hash(&it.sha256)
            && places.contains(&it.position)
            && it.alt.chars().count() <= attachment::MAX_ALT_CHARS
            && it
                .file_name
                .as_ref()
                .is_none_or(|it| it.chars().count() <= MAX_NAME_CHARS)
            && seen.insert((it.conversation, it.seq, it.position))
    })
}

fn full_name(sha256: &str) -> String {
    format!("{sha256}.picture")
}

fn thumbnail_name(sha256: &str) -> String {
    format!("{sha256}.thumbnail")
}

/// Redraws a picture and stores it. Returns `false` if it is none, or the limit is reached.
pub fn spool(spool: &mut SpooledAssets, sha256: &str, bytes: Vec<u8>) -> bool {
    let Ok(drawn) = message_picture::redraw(Cursor::new(bytes)) else {
        return false;
    };
    let picture = DrawnPicture {
        width: drawn.width,
        height: drawn.height,
        media_type: drawn.media_type,
        n_bytes: drawn.full.len(),
    };
    spool.pictures.drawn.insert(sha256.to_owned(), picture);
    spool.store_parts(vec![
        (full_name(sha256), drawn.full),
        (thumbnail_name(sha256), drawn.thumbnail),
    ])
}

/// Stores the pictures with their messages. They belong to the new owner of the space. A picture of a
/// message that does not exist is left out.
///
/// # Errors
/// Returns an error if the disk or the database fails.
pub async fn attach(
    tx: &impl ConnectionTrait,
    spool: &SpooledAssets,
    conversations: &HashMap<i64, ConversationId>,
    (owner, now): (UserId, Timestamp),
) -> Result<(), ChatImportError> {
    let pictures = &spool.pictures;
    // A fixed order, so that concurrent imports with the same pictures lock them in the same order.
    let hashes: BTreeMap<&String, &DrawnPicture> = pictures.drawn.iter().collect();
    let mut stored: HashMap<&str, (AssetId, AssetId)> = HashMap::new();
    for sha256 in hashes.keys() {
        let full = asset::store(tx, spool.read_bytes(&full_name(sha256))?, now).await?;
        let small = asset::store(tx, spool.read_bytes(&thumbnail_name(sha256))?, now).await?;
        stored.insert(sha256, (full, small));
    }
    let messages = find_messages(tx, &pictures.listed, conversations).await?;
    let rows = pictures.listed.iter().filter_map(|it| {
        let drawn = hashes.get(&it.sha256)?;
        let (asset_id, thumbnail_asset_id) = stored.get(it.sha256.as_str()).copied()?;
        Some(attachment::Model {
            id: AttachmentId(0), // assigned by the database
            owner_id: owner,
            message_id: Some(*messages.get(&(it.conversation, it.seq))?),
            position: it.position,
            asset_id,
            thumbnail_asset_id,
            file_name: it.file_name.clone(),
            alt: it.alt.clone(),
            width: drawn.width.into(),
            height: drawn.height.into(),
            media_type: drawn.media_type.to_owned(),
            bytes: i64::try_from(drawn.n_bytes).unwrap_or(i64::MAX),
            created_at: it.created_at,
            hidden_at: None,
        })
    });
    attachment::insert_all(tx, rows.collect()).await?;
    let messages: Vec<MessageId> = messages.into_values().collect();
    for part in messages.chunks(MAX_MESSAGES) {
        message::Entity::update_many()
            .col_expr(message::Column::HasAttachments, Expr::value(true))
            .filter(message::Column::Id.is_in(part.iter().copied()))
            .exec(tx)
            .await?;
    }
    Ok(())
}

/// Returns the messages of these pictures that exist and are not hidden, by their conversation in the
/// file and their `seq`.
async fn find_messages(
    tx: &impl ConnectionTrait,
    pictures: &[ExportedPicture],
    conversations: &HashMap<i64, ConversationId>,
) -> Result<HashMap<(i64, i64), MessageId>, DbErr> {
    let mut seqs: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for it in pictures {
        seqs.entry(it.conversation).or_default().push(it.seq);
    }
    let mut messages = HashMap::new();
    for (key, seqs) in seqs {
        let Some(id) = conversations.get(&key) else {
            continue;
        };
        for part in seqs.chunks(MAX_MESSAGES) {
            let found: Vec<(i64, MessageId)> = message::Entity::find()
                .select_only()
                .column(message::Column::Seq)
                .column(message::Column::Id)
                .filter(message::Column::ConversationId.eq(*id))
                .filter(message::Column::Seq.is_in(part.iter().copied()))
                .filter(message::Column::Visibility.ne(message::Visibility::Hidden))
                .into_tuple()
                .all(tx)
                .await?;
            messages.extend(found.into_iter().map(|(seq, it)| ((key, seq), it)));
        }
    }
    Ok(messages)
}
