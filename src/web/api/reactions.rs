//! Endpoints that add and remove the caller's reactions to a message.

use actix_web::HttpResponse;
use actix_web::web::{Data, Path};
use base::ids::MessageId;

use crate::app::App;
use crate::conversations::annotations::emoji::Emoji;
use crate::conversations::annotations::reaction;
use crate::conversations::message;
use crate::runs::message_changes::reactions::{ReactionChange, ReactionError};
use crate::spaces::permissions::Action;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::space_access;

/// Reacts to a message with an emoji; does nothing if the caller already has.
///
/// A message can have 20 different emoji.
#[utoipa::path(
    put,
    path = "/api/messages/{message_id}/reactions/{emoji}",
    operation_id = "add_reaction",
    tag = "messages",
    params(("emoji" = inline(String), Path, description = "One emoji, as it is shown in color by itself, in at most 32 bytes.")),
    responses(
        (status = 204),
        (status = 422, description = "`invalid_value`: not a single emoji; `too_many`: the message has 20 other emoji."),
        (status = 429, description = "`rate_limited`: too many reactions in a minute.")
    )
)]
pub async fn add(
    app: Data<App>,
    caller: CurrentUser,
    path: Path<(MessageId, String)>,
) -> ApiResult<HttpResponse> {
    change(&app, &caller, path.into_inner(), true).await
}

/// Removes the caller's reaction; does nothing if there is none.
#[utoipa::path(
    delete,
    path = "/api/messages/{message_id}/reactions/{emoji}",
    operation_id = "remove_reaction",
    tag = "messages",
    params(("emoji" = inline(String), Path, description = "The emoji of the reaction.")),
    responses(
        (status = 204),
        (status = 422, description = "`invalid_value`: not a single emoji."),
        (status = 429, description = "`rate_limited`: too many reactions in a minute.")
    )
)]
pub async fn remove(
    app: Data<App>,
    caller: CurrentUser,
    path: Path<(MessageId, String)>,
) -> ApiResult<HttpResponse> {
    change(&app, &caller, path.into_inner(), false).await
}

async fn change(
    app: &App,
    caller: &CurrentUser,
    (id, emoji): (MessageId, String),
    is_added: bool,
) -> ApiResult<HttpResponse> {
    let (row, at) = space_access::load_message_access(app, caller, id).await?;
    at.require_write(Action::Post)?;
    let membership = at.own_membership()?.id;
    if row.visibility == message::Visibility::Hidden {
        return Err(ApiError::not_found());
    }
    let emoji = Emoji::parse(&emoji);
    let emoji = emoji.ok_or_else(|| ApiError::invalid_value("emoji", "Must be one emoji."))?;
    require_rate(app, caller).await?;
    let change = ReactionChange {
        conversation: at.conversation.id,
        message: row.id,
        membership,
        emoji,
        is_added,
    };
    app.engine.set_reaction(change).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Counts a change of a reaction or bookmark.
///
/// # Errors
/// Returns 429 for too many in a minute.
pub async fn require_rate(app: &App, caller: &CurrentUser) -> ApiResult<()> {
    let permit = app.limits.reactions.acquire(caller.id()).await;
    permit
        .map(drop)
        .map_err(|wait| ApiError::rate_limited(wait.0, "Too many changes. Wait, then try again."))
}

impl From<ReactionError> for ApiError {
    fn from(error: ReactionError) -> Self {
        match error {
            ReactionError::NotFound => Self::not_found(),
            ReactionError::TooMany => {
                let max = reaction::MAX_EMOJI;
                let message = format!("A message can have at most {max} different emoji.");
                Self::new(422, "too_many", message).with_param("emoji")
            }
            ReactionError::Database(error) => error.into(),
            error @ ReactionError::TaskEnded(_) => Self::internal(error),
        }
    }
}
