//! Queries runs in any status, ended ones included, for lists, the load of the queue, and daily
//! usage statistics.
//!
//! **Invariant:** read-only; the execution of runs never waits for these queries.

use base::clock::Timestamp;
use base::ids::{ConversationId, RunId, SpaceId};
use sea_orm::sea_query::{Expr, ExprTrait, SimpleExpr};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, FromQueryResult, JoinType, QueryFilter,
    QuerySelect, QueryTrait, RelationTrait, Select,
};

use crate::conversations::conversation;
use crate::db::backend;
use crate::db::backend::Backend;
use crate::db::reading::page::{PageOf, PageQuery};
use crate::runs::store::run;
use crate::runs::store::run::{Column, Entity, Model, Relation, RunKind, RunStatus};

/// Filters for runs; `None` matches all. Runs with an audience have no known kind and error: they match
/// only if all kinds and errors do.
#[derive(Clone, Debug, Default)]
pub struct RunQuery {
    pub conversation: Option<ConversationId>,
    pub space: Option<SpaceId>,
    pub status: Option<RunStatus>,
    pub kind: Option<RunKind>,
    /// The code of the run's error.
    pub error_code: Option<String>,
}

impl RunQuery {
    /// Returns a page of the matching runs, newest first.
    pub async fn list(
        self,
        db: &impl ConnectionTrait,
        backend: Backend,
        page: PageQuery<RunId>,
    ) -> Result<PageOf<Model>, DbErr> {
        let runs = self.select(backend);
        page.load_newest_first(runs, Column::Id, db).await
    }

    /// Returns a page of the matching runs of a conversation, newest first; `None` if a cursor is
    /// not a run of the conversation.
    pub async fn list_in_conversation(
        self,
        db: &impl ConnectionTrait,
        backend: Backend,
        id: ConversationId,
        page: PageQuery<RunId>,
    ) -> Result<Option<PageOf<Model>>, DbErr> {
        let mut run_seqs = [None; 2];
        for (run_seq, cursor) in run_seqs.iter_mut().zip([page.after, page.before]) {
            let Some(cursor) = cursor else { continue };
            match run::find_in_conversation(db, id, cursor).await? {
                Some(run) => *run_seq = Some(run.run_seq),
                None => return Ok(None),
            }
        }
        let [after, before] = run_seqs;
        let limit = page.limit;
        let page = PageQuery {
            limit,
            after,
            before,
        };
        let conversation = Some(id);
        let runs = Self {
            conversation,
            ..self
        };
        page.load_newest_first(runs.select(backend), Column::RunSeq, db)
            .await
            .map(Some)
    }

    fn select(self, backend: Backend) -> Select<Entity> {
        let mut runs = Entity::find();
        if let Some(id) = self.conversation {
            runs = runs.filter(Column::ConversationId.eq(id));
        }
        if let Some(id) = self.space {
            let of_space = conversation::Entity::find()
                .select_only()
                .column(conversation::Column::Id)
                .filter(conversation::Column::SpaceId.eq(id));
            runs = runs.filter(Column::ConversationId.in_subquery(of_space.into_query()));
        }
        runs = match self.status {
            Some(RunStatus::Queued) => runs.filter(is_in_partial_index("status = 'queued'")),
            Some(RunStatus::Running) => runs.filter(is_in_partial_index("status = 'running'")),
            Some(status) => runs
                .filter(Column::Status.eq(status))
                .filter(Column::FinishedAt.is_not_null()),
            None => runs,
        };
        // The kind and the error of a run are for its audience.
        if self.kind.is_some() || self.error_code.is_some() {
            runs = runs.filter(Column::Audience.is_null());
        }
        if let Some(kind) = self.kind {
            runs = runs.filter(Column::Kind.eq(kind));
        }
        if let Some(code) = self.error_code {
            runs = runs.filter(backend::json_text(backend, Column::Error, "code").eq(code));
        }
        runs
    }
}

/// Matches the runs of a partial index whose condition is the literal `condition`.
///
/// Without the subquery SQLite also reads finished runs, because their index has the order of the
/// page.
fn is_in_partial_index(condition: &'static str) -> SimpleExpr {
    let runs = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Expr::cust(condition));
    Column::Id.in_subquery(runs.into_query())
}

/// The numbers of queued and running runs on all nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueLoad {
    pub n_queued: i64,
    pub n_running: i64,
    /// When the oldest queued run was created.
    pub oldest_queued_at: Option<Timestamp>,
}

/// Returns the current load. Reads only the partial indexes, no finished runs.
pub async fn queue_load(db: &impl ConnectionTrait) -> Result<QueueLoad, DbErr> {
    let of = |status: &'static str| {
        Entity::find()
            .select_only()
            .column_as(Column::Id.count(), "n")
            .column_as(Column::CreatedAt.min(), "oldest")
            .filter(Expr::cust(status))
            .into_tuple::<(i64, Option<Timestamp>)>()
            .one(db)
    };
    let queued = of("status = 'queued'").await?;
    let running = of("status = 'running'").await?;
    let (n_queued, oldest_queued_at) = queued.unwrap_or_default();
    Ok(QueueLoad {
        n_queued,
        n_running: running.unwrap_or_default().0,
        oldest_queued_at,
    })
}

/// Totals of the runs of one space that ended on one day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromQueryResult)]
pub struct DailyUsage {
    pub space_id: SpaceId,
    /// Days since 1970-01-01, UTC.
    pub day: i64,
    pub prompt_tokens: i64,
    pub completion_tokens: i64,
    /// All ended runs except skipped ones.
    pub n_runs: i64,
    pub n_failed: i64,
}

/// Milliseconds per day.
pub const DAY_MS: i64 = 86_400_000;

/// Returns the usage of each space per day since `from`, with one statement.
pub async fn daily_usage_since(
    db: &impl ConnectionTrait,
    backend: Backend,
    from: Timestamp,
) -> Result<Vec<DailyUsage>, DbErr> {
    let tokens = |key| sum_or_zero(backend::json_number(backend, (Entity, Column::Usage), key));
    let failed = Expr::case(Column::Status.eq(RunStatus::Failed), 1).finally(0);
    // Both databases truncate integer division, which gives whole days.
    let day = Expr::col((Entity, Column::FinishedAt)).div(DAY_MS);
    Entity::find()
        .select_only()
        .column(conversation::Column::SpaceId)
        .column_as(day.clone(), "day")
        .column_as(tokens("prompt_tokens"), "prompt_tokens")
        .column_as(tokens("completion_tokens"), "completion_tokens")
        .column_as(Column::Id.count(), "n_runs")
        .column_as(sum_or_zero(failed.into()), "n_failed")
        .join(JoinType::InnerJoin, Relation::Conversation.def())
        .filter(Column::FinishedAt.gte(from))
        .filter(Column::Status.ne(RunStatus::Skipped))
        .group_by(conversation::Column::SpaceId)
        .group_by(Expr::cust("day"))
        .into_model()
        .all(db)
        .await
}

/// Returns the sum of a column as a 64-bit integer on both databases; 0 if all values are null.
fn sum_or_zero(value: SimpleExpr) -> SimpleExpr {
    let sum = Expr::expr(value).sum();
    Expr::expr(sum.if_null(0)).cast_as("bigint")
}
