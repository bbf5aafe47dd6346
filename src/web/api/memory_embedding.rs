//! Endpoints for the embedding model of a space's memories: its state and a test. Checks the model in
//! the settings of a space.

use actix_web::web::{Data, Json, Path};
use base::clock::Timestamp;
use base::display_name;
use base::ids::{ConversationId, MemoryTaskId, ProviderId, SpaceId};
use llm::embeddings::error::EmbeddingError;
use llm::embeddings::options::{CallKind, EmbeddingOptions};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::accounts::name_schemas::TitleSchema;
use crate::app::App;
use crate::memories::embedding::embedding_state;
use crate::memories::embedding::embedding_state::EmbeddingState;
use crate::memories::embedding::model_choice::EmbeddingChoice;
use crate::memories::tasks::failed_tasks;
use crate::memories::tasks::failed_tasks::FailedTask;
use crate::memories::tasks::memory_task::MemoryTaskKind;
use crate::providers::provider;
use crate::spaces::lifecycle::SpaceRules;
use crate::spaces::permissions::Action;
use crate::spaces::space;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::space_access;

/// The text that a test embeds.
const TEST_TEXT: &str = "The lighthouse keeper likes the sea.";
/// The maximum length of a model name, in characters.
const MAX_MODEL_CHARS: usize = 200;

/// The background work on the memories of a space.
#[derive(Serialize, ToSchema)]
#[schema(as = MemoryState)]
pub struct MemoryStateView {
    embedding: EmbeddingStateView,
    tasks: MemoryTasksView,
    /// The newest tasks that are not retried, at most five.
    failed_tasks: Vec<FailedTaskView>,
    /// Used by model calls for memories and summaries of this space.
    tokens_used: i64,
}

/// The embedding model of a space.
#[derive(Serialize, ToSchema)]
#[schema(as = MemoryEmbeddingState)]
struct EmbeddingStateView {
    /// Null: the local model.
    provider_id: Option<ProviderId>,
    model: String,
    /// Null until the first vector of a provider's model is stored.
    dimensions: Option<i64>,
    /// How many memories have a vector of this model. The others are found by their local vectors.
    embedded: u64,
    total: u64,
    /// When this node calls the provider again after failures.
    breaker_until: Option<Timestamp>,
    /// Whether prompts recall memories by words and local vectors only, because the provider failed or
    /// is switched off.
    degraded: bool,
    /// Why the last attempt to embed memories failed.
    error: Option<String>,
}

/// Tasks in the background.
#[derive(Serialize, ToSchema)]
#[schema(as = MemoryTasks)]
struct MemoryTasksView {
    /// Queued and running tasks.
    queued: u64,
    /// Tasks that are not retried.
    failed: u64,
}

/// A task that is not retried by itself.
#[derive(Serialize, ToSchema)]
#[schema(as = FailedMemoryTask)]
struct FailedTaskView {
    id: MemoryTaskId,
    kind: MemoryTaskKind,
    /// Null for a task of the whole space.
    conversation_id: Option<ConversationId>,
    error: Option<String>,
    created_at: Timestamp,
}

/// An embedding model to test.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = EmbeddingModelTest)]
pub struct TestEmbedding {
    #[schema(minimum = 1, value_type = i64)]
    provider_id: ProviderId,
    #[schema(value_type = TitleSchema)]
    model: String,
}

/// An embedding model that works.
#[derive(Serialize, ToSchema)]
#[schema(as = TestedEmbeddingModel)]
pub struct TestedEmbedding {
    pub dimensions: usize,
}

/// Returns how many memories of a space are embedded, whether the provider works, which tasks in the
/// background have failed, and how many tokens were used.
#[utoipa::path(
    get,
    path = "/api/spaces/{space_id}/memories/state",
    operation_id = "state",
    tag = "memories",
    responses((status = 200, body = MemoryStateView))
)]
pub async fn show_state(
    app: Data<App>,
    caller: CurrentUser,
    space: Path<SpaceId>,
) -> ApiResult<Json<MemoryStateView>> {
    let at = space_access::load_space_access(&app, &caller, space.into_inner()).await?;
    let own = at.membership.as_ref().map(|it| it.id);
    let state = embedding_state::load(&app.db, &app.models, &at.space, own).await?;
    let failed = match state.tasks.failed {
        0 => Vec::new(),
        _ => failed_tasks::list_newest(app.db.reader(), at.space.id).await?,
    };
    Ok(Json(MemoryStateView {
        tasks: MemoryTasksView {
            queued: state.tasks.queued,
            failed: state.tasks.failed,
        },
        failed_tasks: failed.into_iter().map(to_failed_view).collect(),
        tokens_used: at.space.memory_tokens_used,
        embedding: to_view(state, app.clock.now()),
    }))
}

fn to_failed_view(task: FailedTask) -> FailedTaskView {
    FailedTaskView {
        id: task.id,
        kind: task.kind,
        conversation_id: task.conversation,
        error: task.error,
        created_at: task.created_at,
    }
}

fn to_view(state: EmbeddingState, now: Timestamp) -> EmbeddingStateView {
    let until = state.breaker_open_for.map(|it| {
        let left = i64::try_from(it.as_millis()).unwrap_or(i64::MAX);
        Timestamp(now.0.saturating_add(left))
    });
    EmbeddingStateView {
        provider_id: state.provider,
        model: state.model,
        dimensions: state.dimensions,
        embedded: state.embedded,
        total: state.total,
        degraded: until.is_some() || state.is_paused,
        breaker_until: until,
        error: state.tasks.embedding_error,
    }
}

/// Embeds a sentence by a provider's model, and returns the number of dimensions.
#[utoipa::path(
    post,
    path = "/api/spaces/{space_id}/memories/test_embedding",
    tag = "memories",
    request_body = TestEmbedding,
    responses(
        (status = 200, body = TestedEmbedding),
        (status = 422, description = "`invalid_value`: there is no such provider, or it has no embeddings."),
        (status = 503, description = "`upstream_error`: the provider returned an error or no valid response; `internal`.")
    )
)]
pub async fn test_embedding(
    app: Data<App>,
    caller: CurrentUser,
    space: Path<SpaceId>,
    body: JsonBody<TestEmbedding>,
) -> ApiResult<Json<TestedEmbedding>> {
    let at = space_access::load_space_access(&app, &caller, space.into_inner()).await?;
    at.require_action(Action::Configure)?;
    let TestEmbedding { provider_id, model } = body.read().await?;
    let model = display_name::parse(&model, MAX_MODEL_CHARS)
        .map_err(|error| ApiError::invalid_value("model", error.to_string()))?;
    let choice = find_choice(&app, provider_id, model, "provider_id").await?;
    let client = choice.new_client(&app.models)?;
    let options = EmbeddingOptions {
        // No retry: the person sees the first failure.
        max_retries: Some(0),
        ..choice.write_options()
    };
    // On the main runtime, which owns the connections.
    let call = app.shutdown.spawn(async move {
        let vectors = client
            .embed(&[TEST_TEXT], CallKind::Write, &options)
            .await?;
        Ok::<_, EmbeddingError>(vectors.first().map_or(0, |it| it.len()))
    });
    let dimensions = call.await.map_err(ApiError::internal)?;
    let dimensions =
        dimensions.map_err(|error| ApiError::new(503, "upstream_error", error.to_string()))?;
    Ok(Json(TestedEmbedding { dimensions }))
}

/// Finds the provider of an embedding model.
async fn find_choice(
    app: &App,
    id: ProviderId,
    model: String,
    param: &str,
) -> ApiResult<EmbeddingChoice> {
    let Some(provider) = provider::find(app.db.reader(), id).await? else {
        let message = "This provider does not exist.";
        return Err(ApiError::invalid_value(param, message));
    };
    EmbeddingChoice::new(provider, model)
        .ok_or_else(|| ApiError::invalid_value(param, "This provider has no embeddings."))
}

/// Checks that the provider of a space's embedding model exists and has embeddings, if the settings
/// differ from the stored ones.
///
/// # Errors
/// Returns 422 `invalid_value`.
pub async fn require_usable_in_settings(
    app: &App,
    rules: &SpaceRules,
    present: Option<&space::Model>,
) -> ApiResult<()> {
    let Some(settings) = &rules.settings else {
        return Ok(());
    };
    let chosen = embedding_of(settings);
    // A provider that was deleted since must not prevent other changes.
    if present.is_some_and(|it| embedding_of(&it.settings) == chosen) {
        return Ok(());
    }
    let (Some(id), Some(model)) = (chosen["provider_id"].as_i64(), chosen["model"].as_str()) else {
        return Ok(());
    };
    let param = "settings.memory.embedding.provider_id";
    let model = model.trim().to_owned();
    find_choice(app, ProviderId(id), model, param)
        .await
        .map(drop)
}

/// Requests new vectors if the embedding model in the settings of a space has changed.
///
/// # Errors
/// Returns 500 when the database fails.
pub async fn apply_settings(
    app: &App,
    before: &space::Model,
    after: &space::Model,
) -> ApiResult<()> {
    let is_changed = embedding_of(&before.settings) != embedding_of(&after.settings);
    if is_changed && after.memory_version > 0 {
        app.embedding.request_for_space(after.id).await?;
    }
    Ok(())
}

fn embedding_of(settings: &Value) -> &Value {
    &settings["memory"]["embedding"]
}
