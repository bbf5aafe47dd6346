//! Table `message_translations`: the translation of one version of a message into one language.
//!
//! **Invariant:** a row without a text is a translation that one node is making, under a lease that it
//! renews. A row whose lease is stale may be claimed again; only the newest lease writes the text.
//!
//! **Invariant:** there are only translations of the shown version of a visible message: a claim locks
//! the message against changes, and a change deletes them.

use std::collections::HashMap;

use base::clock::Timestamp;
use base::ids::{MessageId, ProviderId};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, ExprTrait, LockType, OnConflict, Query};
use sea_orm::{JoinType, QuerySelect};

use crate::conversations::message;
use crate::db::backend;
use crate::db::backend::StaleAfter;
use base::language_tag::LanguageTag;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "message_translations")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub message_id: MessageId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub version: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub language: String,
    /// `None`: it is being made.
    pub text: Option<String>,
    pub token_count: i64,
    /// The provider that translated it; `None` if that was deleted, or if no model was needed.
    pub provider_id: Option<ProviderId>,
    /// The fencing number.
    pub lease: i64,
    pub heartbeat_at: Timestamp,
    pub created_at: Timestamp,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(
        belongs_to = "crate::conversations::message::Entity",
        from = "Column::MessageId",
        to = "crate::conversations::message::Column::Id"
    )]
    Message,
}

impl Related<crate::conversations::message::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Message.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}

/// What identifies a translation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TranslationKey {
    pub message: MessageId,
    pub version: i64,
    pub language: LanguageTag,
}

/// A translation that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTranslation {
    pub text: String,
    pub token_count: i64,
    pub provider: Option<ProviderId>,
}

/// The result of a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum TranslationClaim {
    /// The caller makes it, under this lease.
    Claimed(i64),
    /// Another node makes it.
    Busy,
    /// It exists, with this text.
    Stored(String),
    /// The message was changed or deleted.
    Outdated,
}

/// Returns the text of a translation, if it was made.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn find_text(
    db: &impl ConnectionTrait,
    key: &TranslationKey,
) -> Result<Option<String>, DbErr> {
    Ok(find(db, key).await?.and_then(|it| it.text))
}

async fn find(db: &impl ConnectionTrait, key: &TranslationKey) -> Result<Option<Model>, DbErr> {
    let id = (key.message, key.version, key.language.as_str().to_owned());
    Entity::find_by_id(id).one(db).await
}

/// Returns the translations of the shown versions of these messages into a language.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn load(
    db: &impl ConnectionTrait,
    messages: impl IntoIterator<Item = MessageId>,
    language: &str,
) -> Result<HashMap<MessageId, Model>, DbErr> {
    let messages: Vec<MessageId> = messages.into_iter().collect();
    if messages.is_empty() {
        return Ok(HashMap::new());
    }
    let version = Expr::col((Entity, Column::Version));
    let rows = Entity::find()
        .join(JoinType::InnerJoin, Relation::Message.def())
        .filter(version.equals((message::Entity, message::Column::Version)))
        .filter(Column::MessageId.is_in(messages))
        .filter(Column::Language.eq(language))
        .filter(Column::Text.is_not_null())
        .all(db)
        .await?;
    Ok(rows.into_iter().map(|it| (it.message_id, it)).collect())
}

/// Claims a translation, so that no other node makes it.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn claim(
    tx: &impl ConnectionTrait,
    key: &TranslationKey,
    now: Timestamp,
    stale: &StaleAfter,
) -> Result<TranslationClaim, DbErr> {
    // A change of the message waits for this transaction, and then deletes what it has inserted.
    let shown: Option<MessageId> = message::Entity::find_by_id(key.message)
        .select_only()
        .column(message::Column::Id)
        .filter(message::Column::Version.eq(key.version))
        .filter(message::Column::Visibility.ne(message::Visibility::Hidden))
        .lock(LockType::Share)
        .into_tuple()
        .one(tx)
        .await?;
    if shown.is_none() {
        return Ok(TranslationClaim::Outdated);
    }
    if insert(tx, key, now, stale).await? {
        return Ok(TranslationClaim::Claimed(1));
    }
    let Some(row) = find(tx, key).await? else {
        return Ok(TranslationClaim::Busy); // released in the meantime
    };
    if let Some(text) = row.text {
        return Ok(TranslationClaim::Stored(text));
    }
    let taken = of_lease(key, row.lease)
        .col_expr(Column::Lease, Expr::col(Column::Lease).add(1))
        .col_expr(Column::HeartbeatAt, backend::lease_time(stale.backend, now))
        .filter(stale.condition(Column::HeartbeatAt, now))
        .exec(tx)
        .await?;
    Ok(match taken.rows_affected {
        0 => TranslationClaim::Busy,
        _ => TranslationClaim::Claimed(row.lease + 1),
    })
}

/// Inserts the row of a translation that is being made; returns `false` if there is one.
async fn insert(
    tx: &impl ConnectionTrait,
    key: &TranslationKey,
    now: Timestamp,
    stale: &StaleAfter,
) -> Result<bool, DbErr> {
    let insert = Query::insert()
        .into_table(Entity)
        .columns([
            Column::MessageId,
            Column::Version,
            Column::Language,
            Column::HeartbeatAt,
            Column::CreatedAt,
        ])
        .values_panic([
            Expr::value(key.message),
            Expr::value(key.version),
            Expr::value(key.language.as_str()),
            backend::lease_time(stale.backend, now),
            Expr::value(now),
        ])
        .on_conflict(OnConflict::new().do_nothing().to_owned())
        .to_owned();
    Ok(tx.execute(&insert).await?.rows_affected() == 1)
}

/// Renews a lease. Returns `false` if it was lost, or if the message was changed.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn renew(
    tx: &impl ConnectionTrait,
    key: &TranslationKey,
    lease: i64,
    now: Timestamp,
    stale: &StaleAfter,
) -> Result<bool, DbErr> {
    let at = backend::lease_time(stale.backend, now);
    let renewed = of_lease(key, lease).col_expr(Column::HeartbeatAt, at);
    Ok(renewed.exec(tx).await?.rows_affected == 1)
}

/// Stores the text. Returns `false` if the lease was lost, or if the message was changed.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn finish(
    tx: &impl ConnectionTrait,
    key: &TranslationKey,
    lease: i64,
    new: NewTranslation,
    now: Timestamp,
) -> Result<bool, DbErr> {
    let finished = of_lease(key, lease)
        .col_expr(Column::Text, Expr::value(new.text))
        .col_expr(Column::TokenCount, Expr::value(new.token_count))
        .col_expr(Column::ProviderId, Expr::value(new.provider))
        .col_expr(Column::CreatedAt, Expr::value(now));
    Ok(finished.exec(tx).await?.rows_affected == 1)
}

/// Removes a translation that could not be made, so that the next request tries again.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn release(
    tx: &impl ConnectionTrait,
    key: &TranslationKey,
    lease: i64,
) -> Result<(), DbErr> {
    Entity::delete_many()
        .filter(Column::MessageId.eq(key.message))
        .filter(Column::Version.eq(key.version))
        .filter(Column::Language.eq(key.language.as_str()))
        .filter(Column::Lease.eq(lease))
        .filter(Column::Text.is_null())
        .exec(tx)
        .await
        .map(drop)
}

/// Deletes the translations of messages whose text was changed, or that were hidden.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn delete_for(
    tx: &impl ConnectionTrait,
    messages: impl IntoIterator<Item = MessageId>,
) -> Result<(), DbErr> {
    Entity::delete_many()
        .filter(Column::MessageId.is_in(messages))
        .exec(tx)
        .await
        .map(drop)
}

/// Selects a translation that is being made under this lease.
fn of_lease(key: &TranslationKey, lease: i64) -> sea_orm::UpdateMany<Entity> {
    Entity::update_many()
        .filter(Column::MessageId.eq(key.message))
        .filter(Column::Version.eq(key.version))
        .filter(Column::Language.eq(key.language.as_str()))
        .filter(Column::Lease.eq(lease))
        .filter(Column::Text.is_null())
}
