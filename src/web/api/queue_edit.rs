//! Endpoint that replaces the upcoming speakers in the current round of a conversation.

use actix_web::web::{Data, Json, Path};
use base::ids::{ConversationId, MembershipId, RoundId};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::runs::reading::views::ConversationView;
use crate::runs::scheduling::command;
use crate::spaces::permissions::Action;
use crate::web::api::conversation_actions;
use crate::web::api::engine_error::api_error;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::space_access;

/// More slots than anyone plans ahead.
const MAX_SLOTS: usize = 100;

/// The complete list of pending slots of a round.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueEdit {
    /// The round that the list refers to.
    round_id: RoundId,
    /// The upcoming speakers in order; a member that occurs twice speaks twice. Null: a pending slot for
    /// which the director chooses; such slots can be moved and removed, but not added.
    #[schema(max_items = 100)]
    slots: Vec<Option<MembershipId>>,
}

/// Replaces the upcoming speakers.
///
/// The list replaces the slots after the current one, and the current one too if its reply has not
/// started.
#[utoipa::path(
    patch,
    path = "/api/conversations/{conversation_id}/round",
    operation_id = "arrange",
    tag = "conversations",
    request_body = QueueEdit,
    responses(
        (status = 200, body = ConversationView),
        (status = 409, description = "`stale_round`; `already_finished`."),
        (status = 422, description = "`invalid_value`: a member who cannot be scheduled, or null without such a slot.")
    )
)]
pub async fn replace(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ConversationId>,
    body: JsonBody<QueueEdit>,
) -> ApiResult<Json<ConversationView>> {
    let at = space_access::load_conversation_access(&app, &caller, id.into_inner()).await?;
    at.require_write(Action::ManageConversation)?;
    let body = body.read().await?;
    if body.slots.len() > MAX_SLOTS {
        let message = format!("Must have at most {MAX_SLOTS} slots.");
        return Err(ApiError::invalid_value("slots", message));
    }
    let edit = command::SlotsEdit {
        round: body.round_id,
        slots: body.slots,
        by: at.display_name(&caller),
        viewer: at.viewer(),
    };
    let edited = app.engine.edit_queue(at.conversation.id, edit).await;
    edited.map_err(api_error)?;
    Ok(Json(
        conversation_actions::conversation_view(&app, &at).await?,
    ))
}
