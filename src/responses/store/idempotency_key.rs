//! Table `idempotency_keys`: the object that a request with an `Idempotency-Key` created. The row is
//! inserted in the transaction that creates the object, so neither exists without the other.

use base::clock::Timestamp;
use base::ids::UserId;
use sea_orm::ActiveValue::Set;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{ExprTrait, OnConflict};
use sha2::{Digest, Sha256};

use crate::db::connect::Db;
use crate::responses::error::ResponseEngineError;

/// How long a key is valid, in milliseconds: a day, as in other APIs with such keys.
const LIFETIME_MS: i64 = 24 * 60 * 60 * 1_000;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "idempotency_keys")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub user_id: UserId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub key_hash: String,
    pub request_hash: String,
    pub object_id: String,
    pub created_at: Timestamp,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// A key of a user with the request that it belongs to, both as SHA-256.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyClaim {
    user: UserId,
    key_hash: String,
    request_hash: String,
}

/// The state of a key for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyState {
    Unused,
    /// The same request has created the object with this id.
    Created(String),
    /// Another request has used the key.
    UsedByOtherRequest,
}

impl IdempotencyClaim {
    /// Returns the claim of a request with this key. `endpoint` is its method and path.
    pub fn new(user: UserId, key: &str, endpoint: &str, body: &[u8]) -> Self {
        let request = Sha256::new()
            .chain_update(endpoint)
            .chain_update([0])
            .chain_update(body);
        Self {
            user,
            key_hash: hex::encode(Sha256::digest(key)),
            request_hash: hex::encode(request.finalize()),
        }
    }
}

/// Returns the state of a key for this request.
pub async fn find(
    db: &impl ConnectionTrait,
    claim: &IdempotencyClaim,
    now: Timestamp,
) -> Result<KeyState, DbErr> {
    let key = (claim.user, claim.key_hash.clone());
    let found = Entity::find_by_id(key).one(db).await?;
    let found = found.filter(|it| it.created_at > oldest_valid(now));
    Ok(match found {
        None => KeyState::Unused,
        Some(row) if row.request_hash == claim.request_hash => KeyState::Created(row.object_id),
        Some(_) => KeyState::UsedByOtherRequest,
    })
}

/// Stores which object a request creates, and replaces an expired key. Returns `false` if the key is in
/// use: then the caller must create nothing.
pub async fn insert(
    tx: &impl ConnectionTrait,
    claim: &IdempotencyClaim,
    object: &str,
    now: Timestamp,
) -> Result<bool, DbErr> {
    let row = ActiveModel {
        user_id: Set(claim.user),
        key_hash: Set(claim.key_hash.clone()),
        request_hash: Set(claim.request_hash.clone()),
        object_id: Set(object.to_owned()),
        created_at: Set(now),
    };
    let mut on_conflict = OnConflict::columns([Column::UserId, Column::KeyHash]);
    on_conflict.update_columns([Column::RequestHash, Column::ObjectId, Column::CreatedAt]);
    let created_at = Expr::col((Entity, Column::CreatedAt));
    on_conflict.action_and_where(created_at.lte(oldest_valid(now)));
    let inserted = Entity::insert(row).on_conflict(on_conflict);
    let n_rows = inserted.exec_without_returning(tx).await?;
    Ok(n_rows > 0)
}

/// Stores which object a request creates, if the request has a key.
///
/// # Errors
/// Returns `IdempotencyKeyInUse`, or the error of the database.
pub async fn claim(
    tx: &impl ConnectionTrait,
    claim: Option<&IdempotencyClaim>,
    object: &str,
    now: Timestamp,
) -> Result<(), ResponseEngineError> {
    match claim {
        Some(claim) if !insert(tx, claim, object, now).await? => {
            Err(ResponseEngineError::IdempotencyKeyInUse)
        }
        _ => Ok(()),
    }
}

/// Deletes expired keys.
///
/// # Errors
/// Returns the error of the database.
pub async fn purge_expired(db: &Db, now: Timestamp) -> Result<(), DbErr> {
    let expired = Entity::delete_many().filter(Column::CreatedAt.lte(oldest_valid(now)));
    db.write(move |tx| Box::pin(async move { expired.exec(tx).await }))
        .await
        .map(drop)
}

fn oldest_valid(now: Timestamp) -> Timestamp {
    now.plus_ms(-LIFETIME_MS)
}
