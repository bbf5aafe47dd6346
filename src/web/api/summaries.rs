//! Endpoints that list, request, show, change and restore the summaries of a conversation.

use actix_web::HttpResponse;
use actix_web::web::{Data, Json, Path};
use base::ids::{ConversationId, SummaryId};
use base::message_text;
use recall::content::one_line;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::app::App;
use crate::memories::memory_settings::SummarySettings;
use crate::memories::summaries::summary::{MAX_FACT_CHARS, MAX_FACTS, SummaryLevel, SummaryView};
use crate::memories::summaries::summary_edit::{SummaryEdit, SummaryUpdate};
use crate::memories::summaries::summary_request::MAX_CONTENT_CHARS;
use crate::memories::summaries::{summary, summary_edit};
use crate::spaces::permissions::Action;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::space_access;
use crate::web::extract::space_access::ConversationAccess;

/// The summaries of a conversation.
#[derive(Serialize, ToSchema)]
pub struct SummaryList {
    /// The running summary in use, its older versions (the newest first), and the parts in use, in the
    /// order of their messages.
    pub data: Vec<SummaryView>,
}

/// The summary is being written in the background.
#[derive(Serialize, ToSchema)]
pub struct SummaryRequested {}

/// A change of a summary; a missing field does not change.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SummaryChange)]
pub struct UpdateSummary {
    #[schema(min_length = 1, max_length = 8_000)]
    pub content: Option<String>,
    /// Only for the running summary. Each fact has at most 300 characters; line breaks become spaces.
    #[schema(max_items = 20)]
    pub pinned_facts: Option<Vec<String>>,
    /// The version that the person saw.
    pub expected_version: i64,
}

/// Lists the summaries of a conversation.
#[utoipa::path(
    get,
    path = "/api/conversations/{conversation_id}/summaries",
    operation_id = "list_summaries",
    tag = "memories",
    responses((status = 200, body = SummaryList))
)]
pub async fn list(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ConversationId>,
) -> ApiResult<Json<SummaryList>> {
    let at = space_access::load_conversation_access(&app, &caller, id.into_inner()).await?;
    let (db, id) = (app.db.reader(), at.conversation.id);
    let mut rows = summary::list_running(db, id).await?;
    rows.extend(summary::list_parts(db, id).await?);
    let data = rows.iter().map(summary::Model::view).collect();
    Ok(Json(SummaryList { data }))
}

/// Requests to summarize all messages but the newest ones, and to regenerate the texts that are out of
/// date. A model writes them in the background.
#[utoipa::path(
    post,
    path = "/api/conversations/{conversation_id}/summaries",
    operation_id = "request_summary",
    tag = "memories",
    responses(
        (status = 202, body = SummaryRequested),
        (status = 409, description = "`memory_off`, `no_model` or `nothing_to_summarize`.")
    )
)]
pub async fn request(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ConversationId>,
) -> ApiResult<HttpResponse> {
    let at = space_access::load_conversation_access(&app, &caller, id.into_inner()).await?;
    at.require_write(Action::ManageConversation)?;
    let settings = SummarySettings::of_space(&at.space.settings);
    if !settings.is_enabled {
        let message = "Summaries are turned off in this space.";
        return Err(ApiError::new(409, "memory_off", message));
    }
    let model = app
        .memory_models
        .find_model(&at.space, settings.model.as_ref());
    if model.await?.is_none() {
        let message = "No model can write a summary: the space has none, only the demo model, or no \
                       tokens left.";
        return Err(ApiError::new(409, "no_model", message));
    }
    let now = app.clock.now();
    match summary_edit::request_now(&app.db, at.conversation.id, now).await? {
        true => Ok(HttpResponse::Accepted().json(SummaryRequested {})),
        false => {
            let message = "All messages but the newest ones are already summarized.";
            Err(ApiError::new(409, "nothing_to_summarize", message))
        }
    }
}

/// Returns a version of a summary.
#[utoipa::path(
    get,
    path = "/api/summaries/{summary_id}",
    operation_id = "show_summary",
    tag = "memories",
    responses((status = 200, body = SummaryView))
)]
pub async fn show(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<SummaryId>,
) -> ApiResult<Json<SummaryView>> {
    let (_, row) = load(&app, &caller, id.into_inner()).await?;
    Ok(Json(row.view()))
}

/// Changes a summary in use, as a new version. A model does not replace a person's text; it continues
/// it when more messages are summarized.
#[utoipa::path(
    patch,
    path = "/api/summaries/{summary_id}",
    operation_id = "update_summary",
    tag = "memories",
    request_body = UpdateSummary,
    responses(
        (status = 200, body = SummaryView),
        (status = 409, description = "`edit_conflict`: `current` is the version in use."),
        (status = 422, description = "`invalid_value`.")
    )
)]
pub async fn update(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<SummaryId>,
    body: JsonBody<UpdateSummary>,
) -> ApiResult<Json<SummaryView>> {
    let (at, row) = load(&app, &caller, id.into_inner()).await?;
    at.require_write(Action::ManageConversation)?;
    let body = body.read().await?;
    let facts = body.pinned_facts.as_deref().map(parse_facts).transpose()?;
    if facts.is_some() && row.level == SummaryLevel::Part {
        let message = "Only the running summary can have pinned facts.";
        return Err(ApiError::invalid_value("pinned_facts", message));
    }
    let change = SummaryEdit {
        content: body.content.as_deref().map(parse_content).transpose()?,
        facts,
    };
    let by = (caller.id(), body.expected_version);
    let updated = summary_edit::edit(&app.db, &row, change, by, app.clock.now()).await?;
    match updated.ok_or_else(ApiError::not_found)? {
        SummaryUpdate::Updated(row) => {
            app.engine.context().memory_events.summary_updated(&row);
            Ok(Json(row.view()))
        }
        SummaryUpdate::Stale(row) => {
            let message = "This summary was changed since you loaded it.";
            let mut error = ApiError::new(409, "edit_conflict", message);
            error.current = Some(Box::new(json!(row.view())));
            Err(error)
        }
    }
}

/// Restores an older version of the running summary, as a new version.
#[utoipa::path(
    post,
    path = "/api/summaries/{summary_id}/restore",
    operation_id = "restore_summary",
    tag = "memories",
    responses(
        (status = 200, body = SummaryView),
        (status = 422, description = "`invalid_value`: it is the summary of a part.")
    )
)]
pub async fn restore(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<SummaryId>,
) -> ApiResult<Json<SummaryView>> {
    let (at, row) = load(&app, &caller, id.into_inner()).await?;
    at.require_write(Action::ManageConversation)?;
    if row.level == SummaryLevel::Part {
        let message = "Only versions of the running summary can be restored.";
        return Err(ApiError::invalid_value("summary_id", message));
    }
    let (conversation, now) = (at.conversation.id, app.clock.now());
    let restored = summary_edit::restore(&app.db, row.id, conversation, caller.id(), now).await?;
    let restored = restored.ok_or_else(ApiError::not_found)?;
    app.engine
        .context()
        .memory_events
        .summary_updated(&restored);
    Ok(Json(restored.view()))
}

async fn load(
    app: &App,
    caller: &CurrentUser,
    id: SummaryId,
) -> ApiResult<(ConversationAccess, summary::Model)> {
    let row = summary::find(app.db.reader(), id).await?;
    let row = row.ok_or_else(ApiError::not_found)?;
    let at = space_access::load_conversation_access(app, caller, row.conversation_id).await?;
    Ok((at, row))
}

fn parse_content(content: &str) -> ApiResult<String> {
    let content = content.trim();
    let n_chars = content.chars().count();
    let is_valid = n_chars <= MAX_CONTENT_CHARS && !content.contains('\0');
    match is_valid && !message_text::is_blank(content) {
        true => Ok(content.to_owned()),
        false => {
            let message = format!("Must have 1 to {MAX_CONTENT_CHARS} characters and no NUL.");
            Err(ApiError::invalid_value("content", message))
        }
    }
}

fn parse_facts(facts: &[String]) -> ApiResult<Vec<String>> {
    let short = |it: &String| one_line(it).filter(|it| it.chars().count() <= MAX_FACT_CHARS);
    let parsed: Option<Vec<String>> = facts.iter().map(short).collect();
    parsed.filter(|it| it.len() <= MAX_FACTS).ok_or_else(|| {
        let message =
            format!("Must be at most {MAX_FACTS} texts of 1 to {MAX_FACT_CHARS} characters each.");
        ApiError::invalid_value("pinned_facts", message)
    })
}
