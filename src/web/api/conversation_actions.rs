//! Endpoints that control the scheduler of a conversation: generate a reply, stop, pause, resume,
//! skip a speaker, and retry.

use actix_web::HttpResponse;
use actix_web::web::{Data, Path, Query};
use base::ids::{ConversationId, MembershipId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::runs::reading::views::ConversationView;
use crate::runs::scheduling::command::ForcedTurn;
use crate::runs::store::run_view::RunView;
use crate::spaces::permissions::Action;
use crate::web::api::engine_error::api_error;
use crate::web::api::messages;
use crate::web::error::ApiResult;
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::{json_body, space_access};

/// The speaker of the reply, and who sees it.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Generate)]
pub struct GenerateRequest {
    /// Defaults to the next speaker.
    speaker_id: Option<MembershipId>,
    /// The memberships that see the reply, besides the caller; null: everyone. Without it, the reply has the
    /// audience of the newest message, if caller and speaker belong to it.
    #[serde(default, deserialize_with = "json_body::nullable")]
    #[schema(value_type = Option<Vec<MembershipId>>)]
    audience: Option<Option<Vec<MembershipId>>>,
}

/// The speaker of the reply, in the query.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct GenerateQuery {
    /// Defaults to the next speaker.
    #[param(inline)]
    speaker_id: Option<MembershipId>,
}

/// How to stop.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Stop)]
pub struct StopRequest {
    /// Keep the text generated so far as the message.
    #[serde(default)]
    keep_partial: bool,
}

/// An empty body; it may be omitted.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Nothing)]
pub struct EmptyBody {}

/// The run that was planned.
#[derive(Serialize, ToSchema)]
pub struct PlannedRun {
    pub run: RunView,
}

/// Triggers a reply. The speaker may be given in the query or in the body.
#[utoipa::path(
    post,
    path = "/api/conversations/{conversation_id}/generate",
    tag = "conversations",
    params(GenerateQuery),
    request_body = Option<GenerateRequest>,
    responses(
        (status = 202, body = PlannedRun),
        (status = 409, description = "`already_finished`."),
        (status = 422, description = "`no_speaker`; `invalid_value`.")
    )
)]
pub async fn generate(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ConversationId>,
    query: Query<GenerateQuery>,
    body: JsonBody<GenerateRequest>,
) -> ApiResult<HttpResponse> {
    let at = space_access::load_conversation_access(&app, &caller, id.into_inner()).await?;
    at.require_write(Action::Generate)?;
    let body = body.read_or_default().await?;
    let speaker = query.speaker_id.or(body.speaker_id);
    let turn = ForcedTurn {
        audience: messages::requested_audience(body.audience),
        ..ForcedTurn::new(speaker, at.display_name(&caller), at.viewer())
    };
    let forced = app.engine.force_talk(at.conversation.id, turn).await;
    let run = forced.map_err(api_error)?;
    Ok(HttpResponse::Accepted().json(PlannedRun { run }))
}

/// Stops the running run, cancels the queued ones and pauses the round.
#[utoipa::path(
    post,
    path = "/api/conversations/{conversation_id}/stop",
    tag = "conversations",
    request_body = Option<StopRequest>,
    responses(
        (status = 202, body = ConversationView),
        (status = 409, description = "`already_finished`.")
    )
)]
pub async fn stop(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ConversationId>,
    body: JsonBody<StopRequest>,
) -> ApiResult<HttpResponse> {
    let at = space_access::load_conversation_access(&app, &caller, id.into_inner()).await?;
    at.require_write(Action::Generate)?;
    let keep_partial = body.read_or_default().await?.keep_partial;
    app.engine
        .stop(at.conversation.id, keep_partial)
        .await
        .map_err(api_error)?;
    Ok(HttpResponse::Accepted().json(conversation_view(&app, &at).await?))
}

/// Pauses the round after the running run.
#[utoipa::path(
    post,
    path = "/api/conversations/{conversation_id}/pause",
    tag = "conversations",
    request_body = Option<EmptyBody>,
    responses(
        (status = 200, body = ConversationView),
        (status = 409, description = "`no_round`; `already_finished`.")
    )
)]
pub async fn pause(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ConversationId>,
    body: JsonBody<EmptyBody>,
) -> ApiResult<HttpResponse> {
    let at = authorize_action(&app, &caller, *id, Action::ManageConversation, body).await?;
    app.engine
        .pause(at.conversation.id)
        .await
        .map_err(api_error)?;
    Ok(HttpResponse::Ok().json(conversation_view(&app, &at).await?))
}

/// Resumes a paused round.
#[utoipa::path(
    post,
    path = "/api/conversations/{conversation_id}/resume",
    tag = "conversations",
    request_body = Option<EmptyBody>,
    responses(
        (status = 200, body = ConversationView),
        (status = 409, description = "`nothing_paused`; `already_finished`.")
    )
)]
pub async fn resume(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ConversationId>,
    body: JsonBody<EmptyBody>,
) -> ApiResult<HttpResponse> {
    let at = authorize_action(&app, &caller, *id, Action::ManageConversation, body).await?;
    let resumed = app.engine.resume(at.conversation.id).await;
    resumed.map_err(api_error)?;
    Ok(HttpResponse::Ok().json(conversation_view(&app, &at).await?))
}

/// Skips the current speaker.
///
/// Everyone may skip their own turn, members also those of characters, and moderators those of other people.
#[utoipa::path(
    post,
    path = "/api/conversations/{conversation_id}/skip",
    tag = "conversations",
    request_body = Option<EmptyBody>,
    responses(
        (status = 200, body = ConversationView),
        (status = 403, description = "Also for the turn of another person, and for the round of a whisper that the caller does not see."),
        (status = 409, description = "`no_round`; `already_finished`.")
    )
)]
pub async fn skip(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ConversationId>,
    body: JsonBody<EmptyBody>,
) -> ApiResult<HttpResponse> {
    let at = authorize_action(&app, &caller, *id, Action::Read, body).await?;
    let scope = (at.conversation.id, at.viewer());
    let skipped = app.engine.skip(scope, at.access.skip_right()).await;
    skipped.map_err(api_error)?;
    Ok(HttpResponse::Ok().json(conversation_view(&app, &at).await?))
}

/// Retries a reply that failed or was stopped. Only moderators can retry a new version in place.
#[utoipa::path(
    post,
    path = "/api/conversations/{conversation_id}/retry",
    tag = "conversations",
    request_body = Option<EmptyBody>,
    responses(
        (status = 202, body = PlannedRun),
        (status = 409, description = "`nothing_to_retry`; `already_finished`.")
    )
)]
pub async fn retry(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ConversationId>,
    body: JsonBody<EmptyBody>,
) -> ApiResult<HttpResponse> {
    let at = authorize_action(&app, &caller, *id, Action::Generate, body).await?;
    let may_edit = at.access.can(Action::EditAnyMessage);
    let scope = (at.conversation.id, at.viewer());
    let run = app.engine.retry(scope, may_edit).await.map_err(api_error)?;
    Ok(HttpResponse::Accepted().json(PlannedRun { run }))
}

/// Loads the conversation and checks that the caller may do `act`.
///
/// # Errors
/// Returns 404, 403, or 400 for a body with fields.
async fn authorize_action(
    app: &App,
    caller: &CurrentUser,
    id: ConversationId,
    act: Action,
    body: JsonBody<EmptyBody>,
) -> ApiResult<space_access::ConversationAccess> {
    let at = space_access::load_conversation_access(app, caller, id).await?;
    at.require_write(act)?;
    let EmptyBody {} = body.read_or_default().await?;
    Ok(at)
}

/// Loads the conversation after an action.
///
/// # Errors
/// Returns 404 when it was deleted in the meantime.
pub async fn conversation_view(
    app: &App,
    at: &space_access::ConversationAccess,
) -> ApiResult<ConversationView> {
    let view = app
        .engine
        .conversation_view(at.conversation.id, at.viewer());
    Ok(view.await?)
}
