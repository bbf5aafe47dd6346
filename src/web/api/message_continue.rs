//! Endpoint that lets a character continue its message, the newest one.

use actix_web::HttpResponse;
use actix_web::web::{Data, Path};
use base::ids::{ConversationId, MessageId};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::runs::scheduling::command::VersionRequest;
use crate::spaces::permissions::Action;
use crate::web::api::candidates;
use crate::web::api::conversation_actions::PlannedRun;
use crate::web::api::engine_error::api_error;
use crate::web::error::ApiResult;
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::space_access;

/// The message to continue.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Continue)]
pub struct ContinueRequest {
    /// Defaults to the newest message, and must be the newest.
    message_id: Option<MessageId>,
    /// What the continuation should contain.
    #[schema(max_length = 2_000)]
    instruction: Option<String>,
}

/// Continues the newest message, which a model wrote.
///
/// The text is extended where it ends. The whole text becomes a new swipe of the message.
#[utoipa::path(
    post,
    path = "/api/conversations/{conversation_id}/continue",
    tag = "conversations",
    request_body = Option<ContinueRequest>,
    responses(
        (status = 202, body = PlannedRun),
        (status = 409, description = "`not_the_newest`; `already_finished`."),
        (status = 422, description = "`nothing_to_continue`; `no_speaker`; `too_long`; `invalid_value`."),
        (status = 423)
    )
)]
pub async fn continue_message(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ConversationId>,
    body: JsonBody<ContinueRequest>,
) -> ApiResult<HttpResponse> {
    let at = space_access::load_conversation_access(&app, &caller, id.into_inner()).await?;
    at.require_write(Action::Generate)?;
    let body = body.read_or_default().await?;
    let instruction = body.instruction.map(candidates::parse_instruction);
    let request = VersionRequest {
        message: body.message_id,
        instruction: instruction.transpose()?.flatten(),
        by: at.display_name(&caller),
        viewer: at.viewer(),
    };
    let continued = app.engine.continue_message(at.conversation.id, request);
    let run = continued.await.map_err(api_error)?;
    Ok(HttpResponse::Accepted().json(PlannedRun { run }))
}
