//! Endpoints of the caller's bookmarks: mark a message, remove the mark, list the marked messages.

use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use base::ids::{ConversationId, MessageId};

use crate::app::App;
use crate::conversations::annotations::bookmark;
use crate::conversations::{message, timeline};
use crate::db::reading::page::{PageOf, PageQuery};
use crate::runs::reading::message_pages::MessageQuery;
use crate::web::api::{messages, reactions};
use crate::web::encoded_page;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::space_access;

/// Marks a message for the caller alone; does nothing if it is marked already.
///
/// A user can mark 500 messages of a conversation.
#[utoipa::path(
    put,
    path = "/api/messages/{message_id}/bookmark",
    operation_id = "add_bookmark",
    tag = "messages",
    responses(
        (status = 204),
        (status = 422, description = "`too_many`: 500 messages of this conversation are marked."),
        (status = 429, description = "`rate_limited`: too many bookmarks in a minute.")
    )
)]
pub async fn add(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<MessageId>,
) -> ApiResult<HttpResponse> {
    let (row, at) = space_access::load_message_access(&app, &caller, id.into_inner()).await?;
    if row.visibility == message::Visibility::Hidden {
        return Err(ApiError::not_found());
    }
    reactions::require_rate(&app, &caller).await?;
    let new = bookmark::Model {
        user_id: caller.id(),
        message_id: row.id,
        created_at: app.clock.now(),
    };
    let conversation = at.conversation.id;
    let is_marked = bookmark::add(&app.db, conversation, new).await?;
    match is_marked {
        true => Ok(HttpResponse::NoContent().finish()),
        false => Err(too_many()),
    }
}

fn too_many() -> ApiError {
    let max = bookmark::MAX_BOOKMARKS;
    let message = format!("At most {max} messages of a conversation can be marked.");
    ApiError::new(422, "too_many", message)
}

/// Removes the caller's mark of a message; does nothing if there is none.
#[utoipa::path(
    delete,
    path = "/api/messages/{message_id}/bookmark",
    operation_id = "remove_bookmark",
    tag = "messages",
    responses(
        (status = 204),
        (status = 429, description = "`rate_limited`: too many bookmarks in a minute.")
    )
)]
pub async fn remove(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<MessageId>,
) -> ApiResult<HttpResponse> {
    let (row, _) = space_access::load_message_access(&app, &caller, id.into_inner()).await?;
    reactions::require_rate(&app, &caller).await?;
    bookmark::remove(&app.db, caller.id(), row.id).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Lists the messages that the caller has marked, by ascending `seq`, from the first one unless a cursor
/// is given.
///
/// A cursor is a `seq`. Hidden messages are omitted. A page ends before 2 MiB of JSON, but has at
/// least one message.
#[utoipa::path(
    get,
    path = "/api/conversations/{conversation_id}/bookmarks",
    operation_id = "list_bookmarks",
    tag = "messages",
    params(
        PageQuery,
        ("html" = inline(Option<bool>), Query, description = "Whether each message includes its HTML.")
    ),
    responses((status = 200, body = PageOf<message::MessageView>), (status = 404))
)]
pub async fn list(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ConversationId>,
    page: PageQuery,
    request: HttpRequest,
) -> ApiResult<HttpResponse> {
    let at = space_access::load_conversation_access(&app, &caller, id.into_inner()).await?;
    let part = match (page.before, page.after) {
        (Some(before), Some(after)) => timeline::TimelinePage::Between(after, before),
        (Some(before), None) => timeline::TimelinePage::Before(before),
        (None, after) => timeline::TimelinePage::After(after.unwrap_or(0)),
    };
    let query = MessageQuery {
        page: part,
        limit: page.limit,
        html: messages::wants_html(&request)?,
        viewer: at.viewer(),
        bookmarked_by: Some(caller.id()),
    };
    let found = app.engine.list_messages(at.conversation.id, query).await?;
    Ok(encoded_page::json_page(
        found.entries,
        found.has_more,
        found.cursor,
    ))
}
