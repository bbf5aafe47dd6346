//! Table `assets`: bytes by their SHA-256, with a media type that was sniffed, not believed.

use image::ImageFormat;
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::QuerySelect;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, Func, SimpleExpr};
use sha2::{Digest, Sha256};

use crate::clock::Timestamp;
use crate::ids::AssetId;

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

/// How long bytes that nobody shows are kept: whoever brings them has so long to say whose they are.
pub const UNREFERENCED_GRACE_MS: i64 = 60 * 60 * 1000;

/// Keeps these bytes; what is there already is not written again, and is as young as if it were:
/// it is spared for [`SPARED_MS`], or half of that where it was asked for shortly before.
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
    // Somebody else may be faster.
    Entity::insert(row)
        .on_conflict_do_nothing_on([Column::Sha256])
        .exec_without_returning(tx)
        .await?;
    let kept = touch_by_hash(tx, &sha256, now).await?;
    kept.ok_or_else(|| DbErr::RecordNotFound("an asset that was just kept".into()))
}

/// An asset that is there and stays for now: a sweep that is about to take it looks at its age once
/// more when it has waited for this row.
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

/// The bytes of an asset.
pub async fn load_bytes(db: &impl ConnectionTrait, id: AssetId) -> Result<Option<Vec<u8>>, DbErr> {
    let found = Entity::find_by_id(id).select_only().column(Column::Bytes);
    found.into_tuple().one(db).await
}

/// How much of an asset is read at once, in bytes.
pub const CHUNK_BYTES: i32 = 2 * 1024 * 1024;

/// The bytes of an asset from a place on, at most [`PIECE_BYTES`] of them; none behind its end, or
/// where there is no asset.
///
/// # Errors
/// When the database fails.
pub async fn load_chunk(
    db: &impl ConnectionTrait,
    id: AssetId,
    from: i32,
) -> Result<Vec<u8>, DbErr> {
    let bytes = Expr::col((Entity, Column::Bytes));
    // Both databases count from 1.
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

/// The SHA-256 of bytes, in hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// What bytes are by what they begin with.
fn sniff_media_type(bytes: &[u8]) -> &'static str {
    match image::guess_format(bytes) {
        Ok(ImageFormat::Png) => "image/png",
        Ok(ImageFormat::Jpeg) => "image/jpeg",
        Ok(ImageFormat::WebP) => "image/webp",
        Ok(ImageFormat::Gif) => "image/gif",
        _ => "application/octet-stream",
    }
}
