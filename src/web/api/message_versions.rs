//! Endpoints that regenerate a message as a new swipe, create a branch from a message, and select
//! the swipe that a message shows.

use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, HttpResponse};
use base::ids::{ConversationId, MessageId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::accounts::name_schemas::TitleSchema;
use crate::app::App;
use crate::conversations::message;
use crate::runs::reading::views::ConversationView;
use crate::runs::regeneration;
use crate::runs::regeneration::{BranchResult, Requester};
use crate::runs::scheduling::command::VersionRequest;
use crate::runs::store::run_view::RunView;
use crate::spaces::permissions::Action;
use crate::web::api::engine_error::api_error;
use crate::web::api::jobs::JobStarted;
use crate::web::api::{conversations, jobs, message_changes, messages};
use crate::web::error::ApiResult;
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::space_access;

/// The message to regenerate.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Regenerate {
    /// Defaults to the newest message.
    message_id: Option<MessageId>,
    /// Whether the new version is added to the message even if other messages follow it.
    #[serde(default)]
    in_place: bool,
}

/// The run that generates the new swipe, and its conversation.
#[derive(Serialize, ToSchema)]
#[schema(as = PlannedText)]
pub struct PlannedSwipe {
    pub run: RunView,
    pub conversation_id: ConversationId,
}

/// The message to branch from, and the title of the branch.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Fork)]
pub struct CreateBranch {
    message_id: MessageId,
    #[schema(value_type = Option<TitleSchema>)]
    title: Option<String>,
}

/// A new branch.
#[derive(Serialize, ToSchema)]
pub struct Branch {
    conversation: ConversationView,
}

/// The swipe that a message shows.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SwipeChoice)]
pub struct SelectSwipe {
    /// Counted from 0.
    #[schema(minimum = 0)]
    position: i64,
    /// The message's version on which the selection is based.
    #[schema(minimum = 1)]
    expected_version: Option<i64>,
}

/// Regenerates a model's message as a new swipe.
///
/// If the message is not the newest, or a branch starts from it, a new branch is created and the
/// message is regenerated there. With `in_place`, which only moderators may use, the new version is
/// added to that message: the prompt ends before it, and later messages stay as they are.
#[utoipa::path(
    post,
    path = "/api/conversations/{conversation_id}/regenerate",
    tag = "conversations",
    request_body = Option<Regenerate>,
    responses(
        (status = 202, body = PlannedSwipe),
        (status = 409, description = "`already_finished`."),
        (status = 422, description = "`nothing_to_regenerate`; `not_an_ai_message`: with `in_place`; `no_speaker`; `invalid_value`."),
        (status = 423)
    )
)]
pub async fn regenerate(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ConversationId>,
    body: JsonBody<Regenerate>,
) -> ApiResult<HttpResponse> {
    let at = space_access::load_conversation_access(&app, &caller, id.into_inner()).await?;
    at.require_write(Action::Generate)?;
    let Regenerate {
        message_id: message,
        in_place,
    } = body.read_or_default().await?;
    let by = at.display_name(&caller);
    if in_place {
        at.require_write(Action::EditAnyMessage)?;
        let viewer = at.viewer();
        let request = VersionRequest {
            instruction: None,
            message,
            by,
            viewer,
        };
        let again = (app.engine).regenerate_in_place(at.conversation.id, request);
        let planned = again.await.map_err(api_error)?;
        return Ok(accepted(planned.run, planned.conversation));
    }
    let by = Requester {
        user: Some(caller.id()),
        name: by,
        viewer: at.viewer(),
    };
    let planned = app.engine.begin_regenerate(at.conversation.id, message, by);
    let planned = match planned.await.map_err(api_error)? {
        regeneration::RegenerationPlan::Run(planned) => *planned,
        regeneration::RegenerationPlan::Job(job) => return Ok(jobs::accepted_response(&job)),
    };
    if let Some(branch) = planned.branch {
        conversations::announce(&app, branch.id).await?;
    }
    Ok(accepted(planned.run, planned.conversation))
}

fn accepted(run: RunView, conversation_id: ConversationId) -> HttpResponse {
    HttpResponse::Accepted().json(PlannedSwipe {
        run,
        conversation_id,
    })
}

/// Creates a branch: a conversation that continues from a message, with all messages up to it.
///
/// With more than 2,000 messages a background job creates it, and it is hidden until it is
/// complete.
#[utoipa::path(
    post,
    path = "/api/conversations/{conversation_id}/branch",
    tag = "conversations",
    request_body = CreateBranch,
    responses(
        (status = 201, body = Branch),
        (status = 202, description = "More than 2,000 messages: a job creates it.", body = JobStarted),
        (status = 409, description = "`message_being_written`: a reply is being written into this message; `job_running`: another branch is being created."),
        (status = 413, description = "`storage_full`."),
        (status = 423)
    )
)]
pub async fn branch(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ConversationId>,
    body: JsonBody<CreateBranch>,
) -> ApiResult<HttpResponse> {
    let at = space_access::load_conversation_access(&app, &caller, id.into_inner()).await?;
    at.require_write(Action::Generate)?;
    let body = body.read().await?;
    let title = body
        .title
        .as_deref()
        .map(conversations::parse_title)
        .transpose()?;
    let branched = app.engine.begin_branch(regeneration::BranchRequest {
        conversation: at.conversation.id,
        at: body.message_id,
        viewer: at.viewer(),
        title: title.unwrap_or_default(),
        user: Some(caller.id()),
    });
    let (branch, is_announced) = match branched.await.map_err(api_error)? {
        BranchResult::Whole { row, is_announced } => (row, is_announced),
        BranchResult::Job(job) => return Ok(jobs::accepted_response(&job)),
    };
    let conversation = app.engine.conversation_view(branch.id, at.viewer()).await?;
    if !is_announced {
        conversations::announce(&app, branch.id).await?;
    }
    Ok(HttpResponse::Created().json(Branch { conversation }))
}

/// Selects the swipe that a message shows, at any place of the timeline.
#[utoipa::path(
    patch,
    path = "/api/messages/{message_id}/swipe",
    operation_id = "select_swipe",
    tag = "messages",
    request_body = SelectSwipe,
    params(("html" = inline(Option<bool>), Query, description = "Whether the message includes its HTML.")),
    responses(
        (status = 200, body = message::MessageView),
        (status = 409, description = "`edit_conflict`: `error.current` is the current message; `message_being_written`; `already_finished`."),
        (status = 422, description = "`invalid_value`: no such swipe."),
        (status = 429, description = "`rate_limited`: too many changes in a minute.")
    )
)]
pub async fn select(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<MessageId>,
    body: JsonBody<SelectSwipe>,
    request: HttpRequest,
) -> ApiResult<Json<message::MessageView>> {
    let html = messages::wants_html(&request)?;
    let (row, at) = space_access::load_message_access(&app, &caller, id.into_inner()).await?;
    at.require_select_swipe(&row)?;
    let SelectSwipe {
        position,
        expected_version,
    } = body.read().await?;
    message_changes::acquire_edit(&app, &caller).await?;
    let by = at.membership.as_ref().map(|it| it.id);
    let selection = (position, expected_version);
    let scope = (at.conversation.id, at.viewer());
    let selected = app.engine.select_swipe(scope, row.id, selection, by);
    match selected.await {
        Ok(message) => Ok(Json(messages::filter_html(message, html))),
        Err(error) => Err(message_changes::edit_error(&app, &at, (row.id, html), error).await),
    }
}

/// Selects the swipe that a message shows; the same as `PATCH /api/messages/{message_id}/swipe`.
#[utoipa::path(
    post,
    path = "/api/messages/{message_id}/swipes/select",
    operation_id = "select",
    tag = "messages",
    request_body = SelectSwipe,
    params(("html" = inline(Option<bool>), Query, description = "Whether the message includes its HTML.")),
    responses(
        (status = 200, body = message::MessageView),
        (status = 409, description = "`edit_conflict`: `error.current` is the current message; `message_being_written`; `already_finished`."),
        (status = 422, description = "`invalid_value`: no such swipe."),
        (status = 429, description = "`rate_limited`: too many changes in a minute.")
    )
)]
pub async fn select_by_post(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<MessageId>,
    body: JsonBody<SelectSwipe>,
    request: HttpRequest,
) -> ApiResult<Json<message::MessageView>> {
    select(app, caller, id, body, request).await
}
