//! Endpoint that previews who speaks next in a conversation.

use actix_web::web::{Data, Json, Path};
use base::ids::ConversationId;

use crate::app::App;
use crate::runs::reading::next_speaker;
use crate::runs::reading::next_speaker::NextSpeaker;
use crate::web::error::ApiResult;
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::space_access;

/// Returns who speaks next: the turns that are decided, and the odds of the choice after them.
///
/// It draws nothing and changes nothing. The odds are exact for a message that mentions no one, unless the
/// conversation has whispers to others: they are made of the messages and turns that the caller sees.
#[utoipa::path(
    get,
    path = "/api/conversations/{conversation_id}/next_speaker",
    operation_id = "show_next_speaker",
    tag = "conversations",
    responses((status = 200, body = NextSpeaker), (status = 404))
)]
pub async fn show(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ConversationId>,
) -> ApiResult<Json<NextSpeaker>> {
    let at = space_access::load_conversation_access(&app, &caller, id.into_inner()).await?;
    let preview = next_speaker::load(&app.db, at.conversation.id, at.viewer()).await?;
    Ok(Json(preview))
}
