//! Endpoints that list, create, show, change and delete conversations, and mark them as read.

use actix_web::HttpResponse;
use actix_web::web::{Data, Json, Path};
use base::display_name;
use base::ids::{ConversationId, SpaceId};

use crate::app::App;
use crate::conversations::audience::viewer::Viewer;
use crate::conversations::{conversation, read_mark, root_conversation};
use crate::db::reading::page::{PageOf, PageQuery};
use crate::runs::conversation_start::NewConversation;
use crate::runs::reading::conversation_list;
use crate::runs::reading::views::ConversationView;
use crate::spaces::permissions::Action;
use crate::spaces::{events, membership};
use crate::web::api::conversation_bodies::{
    ConversationSummary, CreateConversation, MarkRead, NewConversationKind, UpdateConversation,
};
use crate::web::api::engine_error::api_error;
use crate::web::api::jobs::JobStarted;
use crate::web::api::{conversation_actions, jobs, membership_announcements, space_settings};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::space_access;

/// Lists the conversations of a space.
#[utoipa::path(
    get,
    path = "/api/spaces/{space_id}/conversations",
    tag = "conversations",
    params(PageQuery),
    responses((status = 200, body = PageOf<ConversationSummary>))
)]
pub async fn list(
    app: Data<App>,
    caller: CurrentUser,
    space: Path<SpaceId>,
    page: PageQuery,
) -> ApiResult<Json<PageOf<ConversationSummary>>> {
    let at = space_access::load_space_access(&app, &caller, space.into_inner()).await?;
    let reader = (caller.id(), at.viewer());
    let found = conversation_list::load_page(&app.db, reader, at.space.id, page).await?;
    Ok(Json(found.map(|(view, last_read_seq)| {
        ConversationSummary {
            last_read_seq,
            view,
        }
    })))
}

/// Creates a conversation. Its characters post their greetings.
#[utoipa::path(
    post,
    path = "/api/spaces/{space_id}/conversations",
    tag = "conversations",
    request_body = CreateConversation,
    responses((status = 201, body = ConversationView))
)]
pub async fn create(
    app: Data<App>,
    caller: CurrentUser,
    space: Path<SpaceId>,
    body: JsonBody<CreateConversation>,
) -> ApiResult<HttpResponse> {
    let at = space_access::load_space_access(&app, &caller, space.into_inner()).await?;
    at.require_write(Action::ManageConversation)?;
    let body = body.read().await?;
    let kind = body.kind.unwrap_or(NewConversationKind::Root);
    let new = NewConversation {
        title: body.title.as_deref().map(parse_title).transpose()?,
        kind: match kind {
            NewConversationKind::Root => conversation::ConversationKind::Root,
            NewConversationKind::Thread => conversation::ConversationKind::Thread,
        },
        parent: validate_parent(&app, &at, kind, body.parent_conversation_id).await?,
    };
    let row = app
        .engine
        .create_conversation(at.space.id, new)
        .await
        .map_err(api_error)?;
    let view = app.engine.conversation_view(row.id, at.viewer()).await?;
    announce(&app, row.id).await?;
    Ok(HttpResponse::Created().json(view))
}

/// Validates the parent: required for a thread, not allowed for a root.
async fn validate_parent(
    app: &App,
    at: &space_access::SpaceAccess,
    kind: NewConversationKind,
    parent: Option<ConversationId>,
) -> ApiResult<Option<ConversationId>> {
    let wrong = |message: &str| Err(ApiError::invalid_value("parent_conversation_id", message));
    match (kind, parent) {
        (NewConversationKind::Root, None) => Ok(None),
        (NewConversationKind::Root, Some(_)) => wrong("Only a thread can have a parent."),
        (NewConversationKind::Thread, None) => {
            wrong("A thread requires the id of its parent conversation.")
        }
        (NewConversationKind::Thread, Some(id)) => {
            match conversation::find_in_space(app.db.reader(), at.space.id, id).await? {
                Some(it) => Ok(Some(it.id)),
                None => wrong("This space has no such conversation."),
            }
        }
    }
}

/// Returns a conversation with its state, its round, and the queued and running runs.
#[utoipa::path(
    get,
    path = "/api/conversations/{conversation_id}",
    tag = "conversations",
    responses((status = 200, body = ConversationView))
)]
pub async fn show(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ConversationId>,
) -> ApiResult<Json<ConversationView>> {
    let at = space_access::load_conversation_access(&app, &caller, id.into_inner()).await?;
    Ok(Json(
        conversation_actions::conversation_view(&app, &at).await?,
    ))
}

/// Changes the title or the settings.
#[utoipa::path(
    patch,
    path = "/api/conversations/{conversation_id}",
    operation_id = "change",
    tag = "conversations",
    request_body = UpdateConversation,
    responses((status = 200, body = ConversationView))
)]
pub async fn update(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ConversationId>,
    body: JsonBody<UpdateConversation>,
) -> ApiResult<Json<ConversationView>> {
    let at = space_access::load_conversation_access(&app, &caller, id.into_inner()).await?;
    at.require_write(Action::ManageConversation)?;
    let body = body.read().await?;
    let title = body.title.as_deref().map(parse_title).transpose()?;
    let settings = body.settings.map(space_settings::parse).transpose()?;
    let row = conversation::update(&app.db, at.conversation.id, title, settings)
        .await?
        .ok_or_else(ApiError::not_found)?;
    let view = app.engine.conversation_view(row.id, at.viewer()).await?;
    announce(&app, row.id).await?;
    Ok(Json(view))
}

/// Deletes a conversation that has no branches or threads. It is hidden from everyone immediately.
///
/// With more than 2,000 messages a background job deletes them.
#[utoipa::path(
    delete,
    path = "/api/conversations/{conversation_id}",
    tag = "conversations",
    responses(
        (status = 204),
        (status = 202, description = "More than 2,000 messages: a job deletes them.", body = JobStarted),
        (status = 409, description = "`root_conversation`; `has_children`; `already_finished`.")
    )
)]
pub async fn delete(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ConversationId>,
) -> ApiResult<HttpResponse> {
    let at = space_access::load_conversation_access(&app, &caller, id.into_inner()).await?;
    at.require_write(Action::DeleteConversation)?;
    let db = app.db.reader();
    let id = at.conversation.id;
    if root_conversation::find_for_space(db, at.space.id).await? == Some(id) {
        return Err(ApiError::conflict(
            "root_conversation",
            "This is the space's root conversation. Delete the space instead.",
        ));
    }
    if conversation::count_children(db, id).await? > 0 {
        return Err(has_children_error());
    }
    let deleted = app.engine.delete_conversation(id, caller.id()).await;
    let deletion = deleted.map_err(api_error)?.ok_or_else(has_children_error)?;
    for membership in &deletion.copilots {
        membership_announcements::announce_copilot(&app, membership);
    }
    app.hub
        .publish(events::conversation_deleted(at.space.id, id));
    // Subscribed sockets check their access again and drop the conversation.
    let memberships = membership::list_active(db, at.space.id).await?;
    let listeners = memberships.iter().filter_map(|it| it.user_id);
    membership_announcements::request_access_review(
        &app,
        at.space.id,
        listeners.chain([caller.id()]),
    );
    Ok(match app.engine.wait_for_deletion(deletion).await? {
        None => HttpResponse::NoContent().finish(),
        Some(job) => jobs::accepted_response(&job),
    })
}

/// Sets how far the caller has read.
#[utoipa::path(
    post,
    path = "/api/conversations/{conversation_id}/read",
    operation_id = "read",
    tag = "conversations",
    request_body = MarkRead,
    responses((status = 204))
)]
pub async fn mark_read(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ConversationId>,
    body: JsonBody<MarkRead>,
) -> ApiResult<HttpResponse> {
    let at = space_access::load_conversation_access(&app, &caller, id.into_inner()).await?;
    let seq = body.read().await?.seq;
    if !(0..=at.conversation.last_seq).contains(&seq) {
        return Err(ApiError::invalid_value(
            "seq",
            "No message has this `seq` yet.",
        ));
    }
    let id = at.conversation.id;
    if read_mark::advance(&app.db, caller.id(), id, seq).await? {
        let event = read_mark::read_updated(caller.id(), id, seq);
        app.hub.publish(event);
    }
    Ok(HttpResponse::NoContent().finish())
}

fn has_children_error() -> ApiError {
    let message = "This conversation has branches or threads. Delete them first.";
    ApiError::conflict("has_children", message)
}

/// Publishes the conversation to the subscribers of its space, without its whispers.
///
/// # Errors
/// Returns 404 when it was deleted in the meantime.
pub async fn announce(app: &App, id: ConversationId) -> ApiResult<()> {
    let view = app.engine.conversation_view(id, Viewer::Outsider).await?;
    app.hub
        .publish(events::conversation_updated(view.space_id, &view));
    Ok(())
}

/// Validates a title.
///
/// # Errors
/// Returns 422 for a title that cannot be displayed.
pub fn parse_title(text: &str) -> ApiResult<String> {
    display_name::parse(text, 200)
        .map_err(|error| ApiError::invalid_value("title", error.to_string()))
}
