//! Computes how many bytes a user stores (cards with avatars and assets, personas with their pictures,
//! and the text of the user's spaces) and checks them against the storage quota.

use base::ids::UserId;
use sea_orm::sea_query::{Condition, Expr};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbBackend, DbErr, EntityTrait, QueryFilter, QuerySelect,
    QueryTrait, Statement,
};

use crate::characters::{asset, character, character_asset};

/// A user and their limit in bytes; 0 means no limit.
#[derive(Clone, Copy, Debug)]
pub struct StorageQuota {
    pub owner: UserId,
    pub limit: u64,
}

/// The quota is exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "The storage quota of {} MiB is used up. It counts the owner's cards with their pictures \
     and assets, the pictures in their messages, and the text of their spaces. Delete what is not needed.",
    limit / (1024 * 1024)
)]
pub struct QuotaExceeded {
    /// The limit in bytes.
    pub limit: u64,
}

/// Why the quota check failed.
#[derive(Debug, thiserror::Error)]
pub enum QuotaError {
    #[error(transparent)]
    Exceeded(#[from] QuotaExceeded),
    #[error(transparent)]
    Db(#[from] DbErr),
}

/// Checks that `additional_bytes` fit into the quota. To be reliable, the caller must lock the
/// owner's row.
///
/// # Errors
/// Returns `Exceeded` when they do not fit, and `Db` when the database fails.
pub async fn require_quota(
    db: &impl ConnectionTrait,
    quota: StorageQuota,
    additional_bytes: u64,
) -> Result<(), QuotaError> {
    let limit = quota.limit;
    if limit == 0 {
        return Ok(());
    }
    let taken = used_bytes(db, quota.owner).await?;
    match taken.saturating_add(additional_bytes) <= limit {
        true => Ok(()),
        false => Err(QuotaExceeded { limit }.into()),
    }
}

/// Returns the bytes that a user stores. An asset shared by several of their cards or messages counts once; its
/// size is computed without loading it.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn used_bytes(db: &impl ConnectionTrait, owner: UserId) -> Result<u64, DbErr> {
    // `octet_length` would make PostgreSQL decompress each document.
    let size = match db.get_database_backend() {
        DbBackend::Postgres => "coalesce(sum(pg_column_size(card)), 0)",
        _ => "coalesce(sum(octet_length(card)), 0)",
    };
    let own = || character::Entity::find().filter(character::Column::OwnerId.eq(owner));
    let cards = own().select_only().expr(Expr::cust(size));
    let cards: Option<i64> = cards.into_tuple().one(db).await?;
    let ids = own().select_only().column(character::Column::Id);
    let attached = character_asset::Entity::find()
        .select_only()
        .column(character_asset::Column::AssetId)
        .filter(character_asset::Column::CharacterId.in_subquery(ids.into_query()));
    let shown = own()
        .select_only()
        .column(character::Column::AvatarId)
        .filter(character::Column::AvatarId.is_not_null());
    let personas = format!("(SELECT id FROM personas WHERE user_id = {owner})");
    let of_personas_and_messages = Expr::cust(format!(
        "assets.id IN (SELECT small_id FROM persona_pictures WHERE persona_id IN {personas} \
            UNION ALL SELECT large_id FROM persona_pictures WHERE persona_id IN {personas} \
            UNION ALL SELECT asset_id FROM attachments WHERE owner_id = {owner} \
            UNION ALL SELECT thumbnail_asset_id FROM attachments WHERE owner_id = {owner})"
    ));
    let theirs = Condition::any()
        .add(of_personas_and_messages)
        .add(asset::Column::Id.in_subquery(attached.into_query()))
        .add(asset::Column::Id.in_subquery(shown.into_query()));
    let assets: Option<i64> = asset::Entity::find()
        .select_only()
        .expr(Expr::cust("coalesce(sum(octet_length(bytes)), 0)"))
        .filter(theirs)
        .into_tuple()
        .one(db)
        .await?;
    let all = cards.unwrap_or(0) + assets.unwrap_or(0) + text_bytes(db, owner).await?;
    Ok(u64::try_from(all).unwrap_or(0))
}

/// Returns the bytes of text in a user's spaces, in running imports into them, and in their personas.
async fn text_bytes(db: &impl ConnectionTrait, owner: UserId) -> Result<i64, DbErr> {
    let sql = "SELECT CAST(COALESCE((SELECT SUM(c.text_bytes) FROM conversations c \
            WHERE c.space_id IN (SELECT id FROM spaces WHERE owner_id = $1)), 0) \
        + COALESCE((SELECT SUM(i.bytes_total) FROM imports i WHERE i.status = 'running' \
            AND i.space_id IN (SELECT id FROM spaces WHERE owner_id = $1)), 0) \
        + COALESCE((SELECT SUM(octet_length(p.description)) FROM personas p \
            WHERE p.user_id = $1), 0) \
        AS bigint) AS n_bytes";
    let question = Statement::from_sql_and_values(db.get_database_backend(), sql, [owner.0.into()]);
    match db.query_one_raw(question).await? {
        Some(row) => row.try_get("", "n_bytes"),
        None => Ok(0),
    }
}
