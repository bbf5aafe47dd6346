//! Endpoints that list the tool calls of characters that wait for a decision, and with which
//! moderators approve or deny a call.

use actix_web::web::{Data, Json, Path};
use base::ids::{ConversationId, ToolApprovalId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::runs::store::tool_approval;
use crate::runs::store::tool_approval::ToolApprovalView;
use crate::spaces::permissions::Action;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::space_access;

/// Whether the tool may be called.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ToolDecision)]
pub struct Decision {
    approve: bool,
}

/// The pending approvals of a conversation, oldest first.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ToolApprovals)]
pub struct OpenApprovals {
    data: Vec<ToolApprovalView>,
}

/// Lists the tool calls that wait for a moderator's decision.
#[utoipa::path(
    get,
    path = "/api/conversations/{conversation_id}/tool_approvals",
    operation_id = "open",
    tag = "conversations",
    responses((status = 200, body = OpenApprovals))
)]
pub async fn list_open(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ConversationId>,
) -> ApiResult<Json<OpenApprovals>> {
    let at = space_access::load_conversation_access(&app, &caller, id.into_inner()).await?;
    let data = app
        .engine
        .list_open_tool_approvals(at.conversation.id, at.viewer())
        .await?;
    Ok(Json(OpenApprovals { data }))
}

/// Approves or denies one tool call of a character.
#[utoipa::path(
    post,
    path = "/api/tool_approvals/{tool_approval_id}",
    tag = "conversations",
    request_body = Decision,
    responses(
        (status = 200, body = ToolApprovalView),
        (status = 409, description = "`already_decided`, also when the run has ended.")
    )
)]
pub async fn decide(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ToolApprovalId>,
    body: JsonBody<Decision>,
) -> ApiResult<Json<ToolApprovalView>> {
    let id = id.into_inner();
    let found = tool_approval::find(app.db.reader(), id).await?;
    let row = found.ok_or_else(ApiError::not_found)?;
    let at = space_access::load_conversation_access(&app, &caller, row.conversation_id).await?;
    if !at.viewer().sees(row.audience.as_ref()) {
        return Err(ApiError::not_found());
    }
    at.require_write(Action::Moderate)?;
    let Decision { approve } = body.read().await?;
    let by = at.display_name(&caller);
    let decided = app.engine.decide_tool_approval(id, approve, by).await?;
    let decided = decided.ok_or_else(|| {
        let message = "This was already decided, or the run has ended.";
        ApiError::conflict("already_decided", message)
    })?;
    Ok(Json(decided.view()))
}
