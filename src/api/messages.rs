//! Messages: read, post, edit, hide.

use crate::api::engine_error::answer;
use crate::app::App;
use crate::conversations::message;
use crate::conversations::message_text::MessageText;
use crate::conversations::swipe;
use crate::conversations::timeline;
use crate::http::auth::CurrentUser;
use crate::http::error::ApiError;
use crate::http::error::ApiResult;
use crate::http::json::Body;
use crate::http::page::Listing;
use crate::http::page::Page;
use crate::http::seat;
use crate::ids::ConversationId;
use crate::ids::MembershipId;
use crate::ids::MessageId;
use crate::spaces::permissions::Act;
use actix_web::HttpResponse;
use actix_web::web;
use actix_web::web::Data;
use actix_web::web::Json;
use actix_web::web::Path;
use sea_orm::ColumnTrait;
use sea_orm::EntityTrait;
use sea_orm::QueryFilter;
use sea_orm::QueryOrder;
use serde::Deserialize;
use serde_json::json;

/// The longest `client_id`, in characters.
const MAX_CLIENT_ID: usize = 100;

/// The body of a post.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Post {
    content: String,
    client_id: Option<String>,
    #[serde(default)]
    mentions: Vec<MembershipId>,
}

/// The body of a change.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    content: Option<String>,
    visibility: Option<message::Visibility>,
}

/// `GET /api/conversations/{id}/messages`
#[utoipa::path(
    get,
    path = "/api/conversations/{conversation_id}/messages",
    tag = "messages"
)]
pub async fn list(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ConversationId>,
    page: Page,
) -> ApiResult<Json<Listing<message::View>>> {
    let at = seat::in_conversation(&app, &caller, id.into_inner()).await?;
    let part = match (page.before, page.after) {
        (Some(_), Some(_)) => {
            let message = "Say `before` or `after`, not both.";
            return Err(ApiError::new(400, "invalid_value", message).about("before"));
        }
        (Some(seq), None) => timeline::Page::Before(seq),
        (None, Some(seq)) => timeline::Page::After(seq),
        (None, None) => timeline::Page::Newest,
    };
    let (data, has_more) = app
        .engine
        .messages(at.conversation.id, part, page.limit)
        .await?;
    Ok(Json(Listing { data, has_more }))
}

/// `POST /api/conversations/{id}/messages`: adds a message, and lets the engine decide who answers.
#[utoipa::path(
    post,
    path = "/api/conversations/{conversation_id}/messages",
    tag = "messages"
)]
pub async fn create(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ConversationId>,
    body: Body<Post>,
) -> ApiResult<HttpResponse> {
    let at = seat::in_conversation(&app, &caller, id.into_inner()).await?;
    at.may_write(Act::Post)?;
    let author = at.own_seat()?;
    app.limits.posts.take(caller.id()).map_err(|wait| {
        ApiError::rate_limited(wait.0, "You write faster than this server lets anybody.")
    })?;
    let body = body.read().await?;
    let text = text(&body.content)?;
    let client_id = body.client_id.map(client_id).transpose()?;
    let posted = app
        .engine
        .post_message(
            at.conversation.id,
            author.id,
            text,
            client_id,
            body.mentions,
        )
        .await
        .map_err(answer)?;
    let mut reply = match posted.repeated {
        true => HttpResponse::Ok(),
        false => HttpResponse::Created(),
    };
    Ok(reply.json(json!({ "message": posted.message, "run": posted.run })))
}

/// `PATCH /api/messages/{id}`
#[utoipa::path(patch, path = "/api/messages/{message_id}", tag = "messages")]
pub async fn change(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<MessageId>,
    body: Body<Change>,
) -> ApiResult<Json<message::View>> {
    let (row, at) = seat::at_message(&app, &caller, id.into_inner()).await?;
    at.may_change_message(&row)?;
    let body = body.read().await?;
    match (body.content, body.visibility) {
        (Some(content), None) => {
            at.may_edit_message(&row)?;
            let edit = app.engine.edit(at.conversation.id, row.id, text(&content)?);
            Ok(Json(edit.await.map_err(answer)?))
        }
        (None, Some(visibility)) => Ok(Json(set_visibility(&app, &at, &row, visibility).await?)),
        (None, None) => {
            Err(ApiError::new(400, "missing_field", "Say what to change.").about("content"))
        }
        (Some(_), Some(_)) => Err(ApiError::invalid_value(
            "visibility",
            "Change the text or the visibility, one at a time.",
        )),
    }
}

/// `DELETE /api/messages/{id}`: hides it for everyone.
#[utoipa::path(delete, path = "/api/messages/{message_id}", tag = "messages")]
pub async fn hide(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<MessageId>,
) -> ApiResult<HttpResponse> {
    let (row, at) = seat::at_message(&app, &caller, id.into_inner()).await?;
    at.may_change_message(&row)?;
    set_visibility(&app, &at, &row, message::Visibility::Hidden).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// `GET /api/messages/{id}/swipes`: every text of a message, from 0.
#[utoipa::path(get, path = "/api/messages/{message_id}/swipes", tag = "messages")]
pub async fn swipes(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<MessageId>,
) -> ApiResult<HttpResponse> {
    let (row, _) = seat::at_message(&app, &caller, id.into_inner()).await?;
    if row.visibility == message::Visibility::Hidden {
        return Err(ApiError::not_found());
    }
    let found = swipe::Entity::find()
        .filter(swipe::Column::MessageId.eq(row.id))
        .order_by_asc(swipe::Column::Position)
        .all(app.db.reader())
        .await?;
    let markdown = app.engine.context().markdown.clone();
    let show = move |position: i64, content: &str, run: Option<crate::ids::RunId>| {
        json!({
            "position": position,
            "content": content,
            "html": markdown.render(content),
            "conversation_run_id": run,
        })
    };
    // Many long texts are much to render: not on the thread of this door.
    let rendering = web::block(move || -> Vec<_> {
        match found.is_empty() {
            true => vec![show(0, &row.content, row.conversation_run_id)],
            false => found
                .iter()
                .map(|it| show(it.position, &it.content, it.conversation_run_id))
                .collect(),
        }
    });
    let data = rendering.await.map_err(ApiError::internal)?;
    Ok(HttpResponse::Ok().json(json!({ "data": data, "has_more": false })))
}

async fn set_visibility(
    app: &App,
    at: &seat::InConversation,
    row: &message::Model,
    visibility: message::Visibility,
) -> ApiResult<message::View> {
    let change = app
        .engine
        .set_visibility(at.conversation.id, row.id, visibility);
    change.await.map_err(answer)
}

fn text(content: &str) -> ApiResult<String> {
    match MessageText::parse(content) {
        Ok(text) => Ok(text.into_string()),
        Err(error) => Err(ApiError::new(422, error.code(), error.to_string()).about("content")),
    }
}

fn client_id(text: String) -> ApiResult<String> {
    let fits = !text.is_empty() && text.chars().count() <= MAX_CLIENT_ID;
    match fits {
        true => Ok(text),
        false => Err(ApiError::invalid_value(
            "client_id",
            format!("This takes 1 to {MAX_CLIENT_ID} characters."),
        )),
    }
}
