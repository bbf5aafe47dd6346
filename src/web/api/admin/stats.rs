//! Endpoint that returns server statistics to admins: totals, current load, and token usage by
//! space and day.

use std::collections::{HashMap, HashSet};

use actix_web::HttpRequest;
use actix_web::web::{Data, Json};
use base::clock::Timestamp;
use base::ids::SpaceId;
use llm::embeddings::breaker::BreakerState;
use serde::Serialize;
use utoipa::ToSchema;

use crate::accounts::{session, user};
use crate::app::App;
use crate::conversations::chats::import_job;
use crate::conversations::{conversation, message};
use crate::db::backend::Backend;
use crate::memories::metrics::memory_load;
use crate::responses::provider_calls::ProviderLoad;
use crate::runs::reading::history;
use crate::runs::reading::history::{DAY_MS, DailyUsage};
use crate::spaces::space;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::Admin;
use crate::web::extract::pagination;

const DEFAULT_DAYS: i64 = 30;
const MAX_DAYS: i64 = 90;

/// The number of spaces that are listed individually; the rest is summed.
const MAX_SPACES: usize = 50;

/// The statistics of the server.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Stats)]
pub struct ServerStats {
    version: &'static str,
    database: &'static str,
    started_at: Timestamp,
    uptime_ms: i64,
    totals: ServerTotals,
    token_use: TokenUse,
    /// On this node, for each provider that `/v1` has called since the start.
    provider_calls: Vec<ProviderLoad>,
    memory: MemoryStats,
}

/// Current totals.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StatsTotals)]
pub struct ServerTotals {
    users: u64,
    /// Users without a password.
    guests: u64,
    active_sessions: u64,
    spaces: u64,
    conversations: u64,
    messages: u64,
    queued_runs: i64,
    running_runs: i64,
    /// The age of the run that has been queued longest.
    oldest_queued_age_ms: Option<i64>,
    /// On this node.
    open_sockets: usize,
}

/// The memories of all spaces, and the work on them.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StatsMemory)]
pub struct MemoryStats {
    /// Counted once a minute at most.
    memories: u64,
    /// Memories that wait for a vector of the model of their space; counted once a minute at most.
    vectors_stale: u64,
    queued_tasks: u64,
    running_tasks: u64,
    /// Tasks that are not retried.
    failed_tasks: u64,
    /// The age of the oldest task that is queued or running.
    oldest_task_age_ms: Option<i64>,
    /// The embedding models that this node used last.
    breakers: Vec<BreakerView>,
    /// Used by model calls for memories and summaries, in all spaces.
    tokens_used: i64,
}

/// The circuit breaker of an embedding model.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StatsBreaker)]
pub struct BreakerView {
    /// The kind of the provider.
    provider: String,
    model: String,
    /// Whether the provider is not called because of failures, or only to test it.
    open: bool,
}

/// Token usage of the last days, including today. Days are in UTC.
#[derive(Debug, Serialize, ToSchema)]
pub struct TokenUse {
    days: i64,
    from: String,
    to: String,
    /// One row for each space and day on which a run ended; newest day first, then by usage.
    data: Vec<DailySpaceUsage>,
}

/// The usage of one space on one day.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TokenUseRow)]
pub struct DailySpaceUsage {
    /// Null: the sum of all other spaces.
    space_id: Option<SpaceId>,
    space_name: Option<String>,
    day: String,
    #[serde(flatten)]
    sum: UsageSum,
}

/// The usage of a group of runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = TokenUseSum)]
pub struct UsageSum {
    prompt_tokens: i64,
    completion_tokens: i64,
    runs: i64,
    failed: i64,
}

impl UsageSum {
    fn add(&mut self, spent: &DailyUsage) {
        self.prompt_tokens += spent.prompt_tokens;
        self.completion_tokens += spent.completion_tokens;
        self.runs += spent.n_runs;
        self.failed += spent.n_failed;
    }

    fn total_tokens(&self) -> i64 {
        self.prompt_tokens + self.completion_tokens
    }
}

/// Returns the statistics of the server.
#[utoipa::path(
    get,
    path = "/api/admin/stats",
    tag = "admin",
    operation_id = "show_stats",
    params(("days" = Option<i64>, Query, minimum = 1, maximum = 90, description = "The number of days of token usage; the default is 30.")),
    responses((status = 200, body = ServerStats), (status = 403))
)]
pub async fn show(
    app: Data<App>,
    _admin: Admin,
    request: HttpRequest,
) -> ApiResult<Json<ServerStats>> {
    let days = match pagination::parse_value(request.query_string(), "days")? {
        None => DEFAULT_DAYS,
        Some(days @ 1..=MAX_DAYS) => days,
        Some(_) => {
            let message = format!("Must be an integer between 1 and {MAX_DAYS}.");
            return Err(ApiError::new(400, "invalid_value", message).with_param("days"));
        }
    };
    let now = app.clock.now();
    Ok(Json(ServerStats {
        version: env!("CARGO_PKG_VERSION"),
        database: match app.db.backend() {
            Backend::Sqlite => "sqlite",
            Backend::Postgres => "postgres",
        },
        started_at: app.started_at,
        uptime_ms: now.ms_since(app.started_at),
        totals: load_totals(&app, now).await?,
        token_use: load_token_use(&app, now, days).await?,
        provider_calls: app.responses.services().provider_queues.list_loads(),
        memory: load_memory(&app, now).await?,
    }))
}

async fn load_memory(app: &App, now: Timestamp) -> ApiResult<MemoryStats> {
    let cache = &app.engine.context().prompt_caches.memories.metrics.totals;
    let tasks = memory_load::count_tasks(app.db.reader()).await?;
    let totals = cache.load(&app.db, &app.shutdown, now).await;
    let uncounted = || ApiError::internal("the memories could not be counted");
    let totals = totals.ok_or_else(uncounted)?;
    let breakers = app.models.embeddings.list_breakers().into_iter();
    let breakers = breakers.map(|it| BreakerView {
        provider: it.kind.to_string(),
        model: it.model,
        open: it.state != BreakerState::Closed,
    });
    Ok(MemoryStats {
        memories: totals.memories,
        vectors_stale: totals.vectors_stale,
        queued_tasks: tasks.queued,
        running_tasks: tasks.running,
        failed_tasks: tasks.failed,
        oldest_task_age_ms: tasks.oldest_age_ms(now),
        breakers: breakers.collect(),
        tokens_used: space::sum_memory_tokens(app.db.reader()).await?,
    })
}

async fn load_totals(app: &App, now: Timestamp) -> ApiResult<ServerTotals> {
    let db = app.db.reader();
    let load = history::queue_load(db).await?;
    Ok(ServerTotals {
        users: user::count(db).await?,
        guests: user::count_guests(db).await?,
        active_sessions: session::count_active(db, now).await?,
        spaces: import_job::count_visible_spaces(db).await?,
        conversations: conversation::count_visible(db).await?,
        messages: message::count_in_visible_conversations(db).await?,
        queued_runs: load.n_queued,
        running_runs: load.n_running,
        oldest_queued_age_ms: load.oldest_queued_at.map(|at| now.ms_since(at).max(0)),
        open_sockets: app.limits.sockets.n_open(),
    })
}

async fn load_token_use(app: &App, now: Timestamp, days: i64) -> ApiResult<TokenUse> {
    let db = app.db.reader();
    let today = now.0.div_euclid(DAY_MS);
    let first = today - days + 1;
    let from = Timestamp(first * DAY_MS);
    let spent = history::daily_usage_since(db, app.db.backend(), from).await?;
    let listed = top_spaces(&spent);
    let names = space::list_names(db, listed.iter().copied()).await?;
    let row = |((day, space_id), sum): ((i64, Option<SpaceId>), UsageSum)| DailySpaceUsage {
        space_id,
        space_name: space_id.and_then(|it| names.get(&it).cloned()),
        day: format_date(day),
        sum,
    };
    Ok(TokenUse {
        days,
        from: format_date(first),
        to: format_date(today),
        data: sum_by_day(&spent, &listed).into_iter().map(row).collect(),
    })
}

/// Returns the spaces that are listed individually.
fn top_spaces(spent: &[DailyUsage]) -> HashSet<SpaceId> {
    let mut sums: HashMap<SpaceId, UsageSum> = HashMap::new();
    for it in spent {
        sums.entry(it.space_id).or_default().add(it);
    }
    let mut order: Vec<(SpaceId, UsageSum)> = sums.into_iter().collect();
    order.sort_by_key(|(id, sum)| (-sum.total_tokens(), -sum.runs, *id));
    order.into_iter().take(MAX_SPACES).map(|it| it.0).collect()
}

/// Sums the usage by day and listed space, in the order of the response.
fn sum_by_day(
    spent: &[DailyUsage],
    listed: &HashSet<SpaceId>,
) -> Vec<((i64, Option<SpaceId>), UsageSum)> {
    let mut sums: HashMap<(i64, Option<SpaceId>), UsageSum> = HashMap::new();
    for it in spent {
        let space = listed.contains(&it.space_id).then_some(it.space_id);
        sums.entry((it.day, space)).or_default().add(it);
    }
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.sort_by_key(|((day, space), sum)| {
        let is_rest = space.is_none();
        (-day, is_rest, -sum.total_tokens(), -sum.runs, *space)
    });
    rows
}

fn format_date(day: i64) -> String {
    let at = Timestamp(day * DAY_MS).to_utc();
    at.format("%Y-%m-%d").to_string()
}

#[cfg(test)]
mod tests {
    use base::ids::SpaceId;

    use super::{MAX_SPACES, format_date, sum_by_day, top_spaces};
    use crate::runs::reading::history::DailyUsage;

    fn spent(space: i64, day: i64, tokens: i64) -> DailyUsage {
        DailyUsage {
            space_id: SpaceId(space),
            day,
            prompt_tokens: tokens,
            completion_tokens: 1,
            n_runs: 2,
            n_failed: 1,
        }
    }

    #[test]
    fn the_newest_day_comes_first_and_the_largest_usage_within_it() {
        let spent = [spent(1, 8, 5), spent(2, 9, 5), spent(1, 9, 7)];

        let rows = sum_by_day(&spent, &top_spaces(&spent));

        let order: Vec<_> = rows
            .iter()
            .map(|((day, space), _)| (*day, space.unwrap().0))
            .collect();
        assert_eq!(order, [(9, 1), (9, 2), (8, 1)]);
    }

    #[test]
    fn the_usage_beyond_the_listed_spaces_is_one_row() {
        let n = MAX_SPACES as i64 + 3;
        let spent: Vec<_> = (1..=n).map(|it| spent(it, 3, it * 10)).collect();

        let rows = sum_by_day(&spent, &top_spaces(&spent));

        assert_eq!(rows.len(), MAX_SPACES + 1);
        let ((_, rest), sum) = rows[MAX_SPACES];
        assert_eq!((rest, sum.prompt_tokens), (None, 10 + 20 + 30));
        assert_eq!((sum.completion_tokens, sum.runs, sum.failed), (3, 6, 3));
    }

    #[test]
    fn a_day_number_is_formatted_as_a_date() {
        assert_eq!(format_date(0), "1970-01-01");
        assert_eq!(format_date(20_778), "2026-11-21");
    }
}
