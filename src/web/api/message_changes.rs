//! Endpoints that change a message: its text, its visibility and its marks.

use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, HttpResponse};
use base::ids::MessageId;
use base::message_text::MessageText;
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::app::App;
use crate::conversations::message;
use crate::runs::error::EngineError;
use crate::runs::scheduling::command::{CommandError, MessageEdit};
use crate::web::api::engine_error::api_error;
use crate::web::api::messages;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::{if_match, json_body, space_access};

/// The message of an error.
const ONE_CHANGE: &str = "Change either the text, the visibility, `remember` or `is_ooc`.";

/// A new text, a new visibility, whether it is remembered, or whether it is out of character; exactly
/// one of them.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = MessageChange, min_properties = 1, max_properties = 2)]
pub struct UpdateMessage {
    #[serde(default, deserialize_with = "json_body::present")]
    /// May be blank if the message has pictures.
    #[schema(value_type = MessageText)]
    content: Option<String>,
    /// With `content`: the `version` of the message that was edited. The header `If-Match` can be
    /// used instead.
    #[serde(default, deserialize_with = "json_body::present")]
    #[schema(nullable = false, minimum = 1)]
    expected_version: Option<i64>,
    #[serde(default, deserialize_with = "json_body::present")]
    #[schema(nullable = false)]
    visibility: Option<message::Visibility>,
    /// Whether memories are made from it, and summaries cover it.
    #[serde(default, deserialize_with = "json_body::present")]
    #[schema(nullable = false)]
    remember: Option<bool>,
    /// Whether it is out of character. Only messages that people wrote can be.
    #[serde(default, deserialize_with = "json_body::present")]
    #[schema(nullable = false)]
    is_ooc: Option<bool>,
}

/// Edits a message, changes its visibility, switches its memory on or off, or marks it as out of
/// character.
///
/// The author and moderators edit a message at any place of the timeline, also while a reply is
/// generated. Replies are not planned again. Moderators find the replaced text among the revisions.
///
/// `remember: false` also deletes the memories that were made from this message alone; those with other
/// sources are made again without it. No new summary contains it. `remember: true` restores these
/// memories, and memories are made from the message again.
#[utoipa::path(
    patch,
    path = "/api/messages/{message_id}",
    operation_id = "change",
    tag = "messages",
    params(
        ("If-Match" = Option<String>, Header, description = "The `version` that was edited, in quotes, such as `\"3\"`."),
        ("html" = inline(Option<bool>), Query, description = "Whether the message includes its HTML.")
    ),
    request_body = UpdateMessage,
    responses(
        (status = 200, body = message::MessageView),
        (status = 409, description = "`edit_conflict`: `error.current` is the current message; `message_being_written`; `fork_point`: only for `hidden`; `already_finished`."),
        (status = 413, description = "`storage_full`: the quota of the space's owner is used up."),
        (status = 422, description = "`blank_message`; `too_long`; `invalid_value`."),
        (status = 429, description = "`rate_limited`: too many changes in a minute.")
    )
)]
pub async fn update(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<MessageId>,
    body: JsonBody<UpdateMessage>,
    request: HttpRequest,
) -> ApiResult<Json<message::MessageView>> {
    let html = messages::wants_html(&request)?;
    let (row, at) = space_access::load_message_access(&app, &caller, id.into_inner()).await?;
    at.require_change_message(&row)?;
    let body = body.read().await?;
    if let Some(is_ooc) = body.is_ooc {
        let others = (body.content, body.visibility, body.remember);
        if others != (None, None, None) {
            return Err(ApiError::invalid_value("is_ooc", ONE_CHANGE));
        }
        let scope = (at.conversation.id, at.viewer());
        let change = app.engine.set_out_of_character(scope, row.id, is_ooc);
        let changed = change.await.map_err(api_error)?;
        return Ok(Json(messages::filter_html(changed, html)));
    }
    if body.content.is_some() {
        acquire_edit(&app, &caller).await?;
    }
    match (body.content, body.visibility, body.remember) {
        (Some(content), None, None) => {
            at.require_edit_message(&row)?;
            let edit = MessageEdit {
                message: row.id,
                content: messages::parse_text_beside(&content, row.has_attachments)?,
                token_count: 0,
                expected_version: if_match::expected_version(&request, body.expected_version)?,
                by: at.membership.as_ref().map(|it| it.id),
                unscripted: None,
            };
            let scripted = app.engine.run_scripts_on_edit(&at.space, &row, edit);
            let edit = scripted.await.map_err(api_error)?;
            let scope = (at.conversation.id, at.viewer());
            match app.engine.edit_message(scope, edit).await {
                Ok(message) => Ok(Json(messages::filter_html(message, html))),
                Err(error) => Err(edit_error(&app, &at, (row.id, html), error).await),
            }
        }
        (None, Some(visibility), None) => {
            let changed = set_visibility(&app, &at, &row, visibility).await?;
            Ok(Json(messages::filter_html(changed, html)))
        }
        (None, None, Some(remember)) => {
            let scope = (at.conversation.id, at.viewer());
            let change = app.engine.set_remembered(scope, row.id, remember);
            let changed = change.await.map_err(api_error)?;
            Ok(Json(messages::filter_html(changed, html)))
        }
        (None, None, None) => {
            Err(ApiError::new(400, "missing_field", "No changes given.").with_param("content"))
        }
        (_, _, Some(_)) => Err(ApiError::invalid_value("remember", ONE_CHANGE)),
        (Some(_), Some(_), None) => Err(ApiError::invalid_value("visibility", ONE_CHANGE)),
    }
}

/// Counts an edit or the selection of a swipe.
///
/// # Errors
/// Returns 429 if the caller has made too many within a minute.
pub async fn acquire_edit(app: &App, caller: &CurrentUser) -> ApiResult<()> {
    let permit = app.limits.edits.acquire(caller.id()).await;
    permit
        .map(drop)
        .map_err(|wait| ApiError::rate_limited(wait.0, "Too many changes. Wait, then try again."))
}

/// Converts the error of an edit; a version conflict contains the current message.
pub async fn edit_error(
    app: &App,
    at: &space_access::ConversationAccess,
    (id, html): (MessageId, bool),
    error: EngineError,
) -> ApiError {
    let is_conflict = matches!(error, EngineError::Rejected(CommandError::EditConflict));
    let mut refused = api_error(error);
    if is_conflict {
        match app.engine.find_message(at.viewer(), id).await {
            Ok(present) => {
                refused.current =
                    present.map(|it| Box::new(json!(messages::filter_html(it, html))));
            }
            Err(error) => return error.into(),
        }
    }
    refused
}

/// Hides a message from everyone.
#[utoipa::path(
    delete,
    path = "/api/messages/{message_id}",
    tag = "messages",
    responses(
        (status = 204),
        (status = 409, description = "`fork_point`; `already_finished`."),
        (status = 423)
    )
)]
pub async fn hide(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<MessageId>,
) -> ApiResult<HttpResponse> {
    let (row, at) = space_access::load_message_access(&app, &caller, id.into_inner()).await?;
    at.require_change_message(&row)?;
    set_visibility(&app, &at, &row, message::Visibility::Hidden).await?;
    Ok(HttpResponse::NoContent().finish())
}

async fn set_visibility(
    app: &App,
    at: &space_access::ConversationAccess,
    row: &message::Model,
    visibility: message::Visibility,
) -> ApiResult<message::MessageView> {
    let scope = (at.conversation.id, at.viewer());
    let change = app.engine.set_visibility(scope, row.id, visibility);
    change.await.map_err(api_error)
}
