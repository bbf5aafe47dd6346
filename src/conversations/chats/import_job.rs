//! Table `imports`: one row for each import of a chat or a space, with its status and result. Ends
//! abandoned imports, deletes their hidden spaces, and excludes these from the list of all spaces.
//!
//! **Invariant:** no one sees a partial import. It is written to a hidden space without members.
//! The last transaction moves the result to its target; a failure, a cancellation, and the cleanup
//! after a crash delete the hidden space with everything in it.

use base::clock::Timestamp;
use base::ids::{ConversationId, ImportId, SpaceId, UserId};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, SelectStatement};
use sea_orm::{PaginatorTrait, QuerySelect, QueryTrait, Select};
use serde::Serialize;
use tavern::chats::line_report::LineReport;
use utoipa::ToSchema;

use crate::db::backend;
use crate::db::backend::{Backend, StaleAfter};
use crate::db::connect::Db;
use crate::db::reading::page::{PageOf, PageQuery};
use crate::db::string_enum::string_enum;
use crate::spaces::space;

/// How long an ended import is kept.
const RETENTION_MS: i64 = 7 * 24 * 60 * 60 * 1000;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "imports")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: ImportId,
    pub user_id: UserId,
    pub kind: ImportKind,
    pub status: ImportStatus,
    /// The hidden space to which the import writes.
    pub hidden_space_id: Option<SpaceId>,
    /// The target space.
    pub space_id: Option<SpaceId>,
    /// The imported conversation.
    pub conversation_id: Option<ConversationId>,
    pub n_messages: i64,
    pub bytes_read: i64,
    pub bytes_total: i64,
    #[sea_orm(column_type = "JsonBinary")]
    pub report: Json,
    pub heartbeat_at: Timestamp,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

string_enum! {
    /// What is imported.
    #[schema(as = ImportKind)]
    ImportKind { Chat, Space }
    /// The status of an import.
    #[schema(as = ImportStatus)]
    ImportStatus { Running, Succeeded, Failed, Canceled }
}

/// An import, visible only to the user who started it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Import)]
pub struct ImportView {
    pub id: ImportId,
    pub kind: ImportKind,
    pub status: ImportStatus,
    /// The target space.
    pub space_id: Option<SpaceId>,
    /// The imported conversation, after success.
    pub conversation_id: Option<ConversationId>,
    pub n_messages: i64,
    pub bytes_read: i64,
    pub bytes_total: i64,
    pub report: LineReport,
    /// Why the import failed.
    pub error: Option<ImportFailure>,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

/// Why an import failed.
#[derive(Clone, Debug, Serialize, serde::Deserialize, ToSchema)]
#[schema(as = ImportError)]
pub struct ImportFailure {
    pub code: String,
    pub message: String,
}

impl Model {
    /// Returns the document for the user who started the import.
    pub fn view(&self) -> ImportView {
        let part = |key: &str| self.report.get(key).cloned().unwrap_or_default();
        ImportView {
            id: self.id,
            kind: self.kind,
            status: self.status,
            space_id: self.space_id,
            conversation_id: self.conversation_id,
            n_messages: self.n_messages,
            bytes_read: self.bytes_read,
            bytes_total: self.bytes_total,
            report: serde_json::from_value(part("report")).unwrap_or_default(),
            error: serde_json::from_value(part("error")).unwrap_or_default(),
            created_at: self.created_at,
            finished_at: self.finished_at,
        }
    }
}

/// Renews the leases of imports, and returns those that are still running.
pub async fn heartbeat(
    db: &impl ConnectionTrait,
    held: &[ImportId],
    now: Timestamp,
    backend: Backend,
) -> Result<Vec<Model>, DbErr> {
    Entity::update_many()
        .col_expr(Column::HeartbeatAt, backend::lease_time(backend, now))
        .filter(Column::Id.is_in(held.iter().copied()))
        .filter(Column::Status.eq(ImportStatus::Running))
        .exec_with_returning(db)
        .await
}

/// Saves the progress. Returns `false` if the import was canceled or cleaned up.
pub async fn save_progress(
    tx: &impl ConnectionTrait,
    id: ImportId,
    bytes_read: i64,
    n_messages: i64,
) -> Result<bool, DbErr> {
    let result = Entity::update_many()
        .col_expr(Column::BytesRead, Expr::value(bytes_read))
        .col_expr(Column::NMessages, Expr::value(n_messages))
        .filter(Column::Id.eq(id))
        .filter(Column::Status.eq(ImportStatus::Running))
        .exec(tx)
        .await?;
    Ok(result.rows_affected == 1)
}

/// Ends a running import without result and deletes what it wrote. Returns `false` if it had
/// already ended.
pub async fn abort(
    db: &Db,
    id: ImportId,
    status: ImportStatus,
    report: Json,
    now: Timestamp,
) -> Result<bool, DbErr> {
    db.write(move |tx| {
        Box::pin(async move {
            let ended = Entity::update_many()
                .col_expr(Column::Status, Expr::value(status))
                .col_expr(Column::Report, Expr::value(report))
                .col_expr(Column::FinishedAt, Expr::value(now))
                .filter(Column::Id.eq(id))
                .filter(Column::Status.eq(ImportStatus::Running))
                .exec(tx)
                .await?;
            if ended.rows_affected == 0 {
                return Ok(false);
            }
            let hidden = Entity::find_by_id(id)
                .select_only()
                .column(Column::HiddenSpaceId);
            delete_spaces(tx, hidden.into_query()).await?;
            Ok(true)
        })
    })
    .await
}

/// Ends the imports whose heartbeat is stale after `stale_after_ms`, except those of this node.
pub async fn end_abandoned(
    db: &Db,
    stale_after_ms: i64,
    held_ids: Vec<ImportId>,
    now: Timestamp,
) -> Result<(), DbErr> {
    let stale = StaleAfter {
        after_ms: stale_after_ms,
        backend: db.backend(),
    };
    db.write(move |tx| {
        Box::pin(async move {
            let report = error_report("interrupted", "The server stopped during the import.");
            // The import is ended before its space is deleted: if it completes first, nothing is
            // deleted.
            let ended = Entity::update_many()
                .col_expr(Column::Status, Expr::value(ImportStatus::Failed))
                .col_expr(Column::Report, Expr::value(report))
                .col_expr(Column::FinishedAt, Expr::value(now))
                .filter(Column::Status.eq(ImportStatus::Running))
                .filter(stale.condition(Column::HeartbeatAt, now))
                .filter(Column::Id.is_not_in(held_ids))
                .exec_with_returning(tx)
                .await?;
            for import in ended {
                let hidden = Entity::find_by_id(import.id)
                    .select_only()
                    .column(Column::HiddenSpaceId);
                delete_spaces(tx, hidden.into_query()).await?;
            }
            Ok(())
        })
    })
    .await
}

/// Deletes rows of imports that ended long ago.
pub async fn delete_expired(db: &Db, now: Timestamp) -> Result<(), DbErr> {
    db.write(move |tx| {
        Box::pin(async move {
            Entity::delete_many()
                .filter(Column::FinishedAt.lt(now.plus_ms(-RETENTION_MS)))
                .exec(tx)
                .await
                .map(|_| ())
        })
    })
    .await
}

/// Returns the value of the column `report` for a failed import.
pub fn error_report(code: &str, message: &str) -> Json {
    serde_json::json!({"error": {"code": code, "message": message}})
}

async fn delete_spaces(tx: &impl ConnectionTrait, ids: SelectStatement) -> Result<(), DbErr> {
    space::Entity::delete_many()
        .filter(space::Column::Id.in_subquery(ids))
        .exec(tx)
        .await
        .map(|_| ())
}

/// Returns a page of all spaces but those that are being imported or deleted, for admins.
pub async fn list_visible_spaces(
    db: &impl ConnectionTrait,
    page: PageQuery,
) -> Result<PageOf<space::Model>, DbErr> {
    page.load(visible_spaces(), space::Column::Id, db).await
}

/// Returns the number of those spaces.
pub async fn count_visible_spaces(db: &impl ConnectionTrait) -> Result<u64, DbErr> {
    visible_spaces().count(db).await
}

fn visible_spaces() -> Select<space::Entity> {
    space::Entity::find()
        .filter(space::Column::IsHidden.eq(false))
        .filter(space::Column::Id.not_in_subquery(hidden_space_ids()))
}

/// Selects the hidden spaces of imports, to which no one has access, not even admins.
pub fn hidden_space_ids() -> SelectStatement {
    Entity::find()
        .select_only()
        .column(Column::HiddenSpaceId)
        .filter(Column::HiddenSpaceId.is_not_null())
        .into_query()
}

/// Returns whether this is the hidden space of an import.
pub async fn is_hidden(db: &impl ConnectionTrait, space: SpaceId) -> Result<bool, DbErr> {
    let found = Entity::find().filter(Column::HiddenSpaceId.eq(space));
    Ok(found.one(db).await?.is_some())
}

/// Returns an import that a user started.
pub async fn find_for_user(
    db: &impl ConnectionTrait,
    user: UserId,
    id: ImportId,
) -> Result<Option<Model>, DbErr> {
    let import = Entity::find_by_id(id).filter(Column::UserId.eq(user));
    import.one(db).await
}

/// Returns whether the user has a running import.
pub async fn has_running(db: &impl ConnectionTrait, user: UserId) -> Result<bool, DbErr> {
    let running = Entity::find()
        .filter(Column::UserId.eq(user))
        .filter(Column::Status.eq(ImportStatus::Running));
    Ok(running.one(db).await?.is_some())
}
