//! The buttons that move the schedule of a conversation.

use actix_web::HttpResponse;
use actix_web::web::{Data, Path, Query};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::api::engine_error::api_error;
use crate::app::App;
use crate::http::authentication::CurrentUser;
use crate::http::error::ApiResult;
use crate::http::json_body::JsonBody;
use crate::http::space_access;
use crate::ids::{ConversationId, MembershipId};
use crate::runs::run;
use crate::runs::views::ConversationView;
use crate::spaces::permissions::Action;

/// Who is to speak.
#[derive(Debug, Default, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
#[schema(as = Generate)]
pub struct GenerateRequest {
    /// Whoever is next, unless said.
    #[param(inline)]
    speaker_id: Option<MembershipId>,
}

/// What becomes of the text so far.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Stop)]
pub struct StopRequest {
    /// Keep what was written until now as the message.
    #[serde(default)]
    keep_partial: bool,
}

/// A body without a field; it may be left out.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Nothing)]
pub struct EmptyBody {}

/// The run that was planned.
#[derive(Serialize, ToSchema)]
pub struct PlannedRun {
    pub run: run::RunView,
}

/// Makes somebody speak. The speaker may stand in the query or in the body.
#[utoipa::path(
    post,
    path = "/api/conversations/{conversation_id}/generate",
    tag = "conversations",
    params(GenerateRequest),
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
    query: Query<GenerateRequest>,
    body: JsonBody<GenerateRequest>,
) -> ApiResult<HttpResponse> {
    let at = space_access::load_conversation_access(&app, &caller, id.into_inner()).await?;
    at.require_write(Action::Generate)?;
    let speaker = query
        .speaker_id
        .or(body.read_or_default().await?.speaker_id);
    let by = at.display_name(&caller);
    let run = app
        .engine
        .force_talk(at.conversation.id, speaker, by)
        .await
        .map_err(api_error)?;
    Ok(HttpResponse::Accepted().json(PlannedRun { run }))
}

/// Stops what runs and what waits. The round rests.
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

/// Lets the running run finish, and nothing follow.
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

/// A paused round goes on.
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

/// Passes over whose turn it is.
#[utoipa::path(
    post,
    path = "/api/conversations/{conversation_id}/skip",
    tag = "conversations",
    request_body = Option<EmptyBody>,
    responses(
        (status = 200, body = ConversationView),
        (status = 409, description = "`no_round`; `already_finished`.")
    )
)]
pub async fn skip(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ConversationId>,
    body: JsonBody<EmptyBody>,
) -> ApiResult<HttpResponse> {
    let at = authorize_action(&app, &caller, *id, Action::Generate, body).await?;
    app.engine
        .skip(at.conversation.id)
        .await
        .map_err(api_error)?;
    Ok(HttpResponse::Ok().json(conversation_view(&app, &at).await?))
}

/// Tries again what failed or was stopped.
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
    let run = app
        .engine
        .retry(at.conversation.id)
        .await
        .map_err(api_error)?;
    Ok(HttpResponse::Accepted().json(PlannedRun { run }))
}

/// The caller at the conversation whose button they press, which takes no more than the press.
///
/// # Errors
/// 404, 403; 400 for a body with something in it.
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

/// The conversation as it is after a button.
///
/// # Errors
/// 404 when it was deleted meanwhile.
pub async fn conversation_view(
    app: &App,
    at: &space_access::ConversationAccess,
) -> ApiResult<ConversationView> {
    Ok(app.engine.conversation_view(at.conversation.id).await?)
}
