//! Table `assets`: stores each file once, by its SHA-256, with the media type detected from its
//! bytes, and reads files whole or in chunks.

use base::clock::Timestamp;
use base::ids::AssetId;
use image::ImageFormat;
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::QuerySelect;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, Func, SimpleExpr};
use sha2::{Digest, Sha256};

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "assets")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: AssetId,
    pub sha256: String,
    pub media_type: String,
    #[sea_orm(column_type = "Blob")]
    pub bytes: Vec<u8>,
    pub created_at: Timestamp,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// How long an unreferenced asset is kept, in ms: an upload must be attached within this time.
pub const UNREFERENCED_GRACE_MS: i64 = 60 * 60 * 1000;

/// Stores bytes once. If they already exist, their age is reset when it exceeds half of
/// [`UNREFERENCED_GRACE_MS`], so that garbage collection spares them for at least that half.
pub async fn store(
    tx: &impl ConnectionTrait,
    bytes: Vec<u8>,
    now: Timestamp,
) -> Result<AssetId, DbErr> {
    let sha256 = sha256_hex(&bytes);
    if let Some(id) = touch_by_hash(tx, &sha256, now).await? {
        return Ok(id);
    }
    let row = ActiveModel {
        id: NotSet,
        sha256: Set(sha256.clone()),
        media_type: Set(sniff_media_type(&bytes).to_owned()),
        bytes: Set(bytes),
        created_at: Set(now),
    };
    // A concurrent upload may insert the same bytes first.
    Entity::insert(row)
        .on_conflict_do_nothing_on([Column::Sha256])
        .exec_without_returning(tx)
        .await?;
    let kept = touch_by_hash(tx, &sha256, now).await?;
    kept.ok_or_else(|| DbErr::RecordNotFound("the asset that was just inserted".into()))
}

/// Finds an asset and refreshes its age. Garbage collection that waits for this row checks the age
/// again before it deletes.
async fn touch_by_hash(
    tx: &impl ConnectionTrait,
    sha256: &str,
    now: Timestamp,
) -> Result<Option<AssetId>, DbErr> {
    Entity::update_many()
        .col_expr(Column::CreatedAt, Expr::value(now))
        .filter(Column::Sha256.eq(sha256))
        .filter(Column::CreatedAt.lt(now.plus_ms(-UNREFERENCED_GRACE_MS / 2)))
        .exec(tx)
        .await?;
    let found = Entity::find().select_only().column(Column::Id);
    let found = found.filter(Column::Sha256.eq(sha256));
    found.into_tuple().one(tx).await
}

/// Returns the bytes of an asset.
pub async fn load_bytes(db: &impl ConnectionTrait, id: AssetId) -> Result<Option<Vec<u8>>, DbErr> {
    let found = Entity::find_by_id(id).select_only().column(Column::Bytes);
    found.into_tuple().one(db).await
}

/// The maximum number of bytes read at once.
pub const CHUNK_BYTES: i32 = 2 * 1024 * 1024;

/// Returns at most [`CHUNK_BYTES`] bytes of an asset, starting at `from`. Empty after the end or if
/// the asset does not exist.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn load_chunk(
    db: &impl ConnectionTrait,
    id: AssetId,
    from: i32,
) -> Result<Vec<u8>, DbErr> {
    let bytes = Expr::col((Entity, Column::Bytes));
    // SQLite and PostgreSQL count from 1.
    let piece = [
        bytes,
        Expr::value(from.saturating_add(1)),
        Expr::value(CHUNK_BYTES),
    ];
    let piece = Func::cust("substr").args(piece);
    let found: Option<Option<Vec<u8>>> = Entity::find_by_id(id)
        .select_only()
        .column_as(SimpleExpr::from(piece), "piece")
        .into_tuple()
        .one(db)
        .await?;
    Ok(found.flatten().unwrap_or_default())
}

/// Returns the SHA-256 of bytes, in hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Returns the media type by the first bytes.
fn sniff_media_type(bytes: &[u8]) -> &'static str {
    match image::guess_format(bytes) {
        Ok(ImageFormat::Png) => "image/png",
        Ok(ImageFormat::Jpeg) => "image/jpeg",
        Ok(ImageFormat::WebP) => "image/webp",
        Ok(ImageFormat::Gif) => "image/gif",
        _ => "application/octet-stream",
    }
}
