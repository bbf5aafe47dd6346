//! Endpoints that list and post the messages of a conversation.

use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use base::ids::{AttachmentId, ConversationId, MembershipId, MessageId, PersonaId};
use base::message_text;
use base::message_text::MessageText;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::attachments::attachment;
use crate::conversations::{message, timeline};
use crate::db::reading::page::{PageOf, PageQuery};
use crate::personas::persona_choice::PersonaChoice;
use crate::runs::reading::message_pages::MessageQuery;
use crate::runs::scheduling::messages::new_post::{NewPost, PostKind, RequestedAudience};
use crate::runs::store::run_view::RunView;
use crate::spaces::permissions::Action;
use crate::web::api::engine_error::api_error;
use crate::web::api::post_kinds;
use crate::web::api::post_kinds::RequestedKind;
use crate::web::encoded_page;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::space_access::ConversationAccess;
use crate::web::extract::{json_body, pagination, space_access};

/// The maximum length of `client_id`, in characters.
const MAX_CLIENT_ID_CHARS: usize = 100;

/// A new message.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewMessage)]
pub struct CreateMessage {
    /// May be blank if there are pictures.
    #[schema(value_type = MessageText)]
    content: String,
    /// An id chosen by the client. The same text with the same id is posted only once.
    #[schema(min_length = 1, max_length = 100)]
    client_id: Option<String>,
    /// The memberships to which it is addressed.
    #[serde(default)]
    mentions: Vec<MembershipId>,
    /// Whether it is out of character: shown to people, but in no prompt, and no one replies. Without
    /// it, a text is out of character if it is enclosed in `((` and `))`.
    #[serde(default)]
    is_ooc: Option<bool>,
    /// The persona under which it is posted; null: none. Without it, a text that begins with `=name ` is
    /// posted under the persona with this name, and any other under the `active_persona_id` of the
    /// membership, or else the default persona.
    #[serde(default, deserialize_with = "json_body::nullable")]
    #[schema(value_type = Option<PersonaId>)]
    persona_id: Option<Option<PersonaId>>,
    /// The message of this conversation that it answers. This mentions nobody.
    reply_to_id: Option<MessageId>,
    /// As what it is posted; without it, as the caller's own text. No one replies to any other kind.
    kind: Option<RequestedKind>,
    /// The membership of the character in whose name it is posted; only with `kind` `character`.
    speaker_id: Option<MembershipId>,
    /// Its pictures in their order: at most four that the caller has uploaded and not posted.
    #[serde(default)]
    #[schema(max_items = 4)]
    attachment_ids: Vec<AttachmentId>,
    /// The memberships that see it, besides the author: a whisper. Null: everyone. Without it, a reply to
    /// a whisper has the same audience. It never changes.
    #[serde(default, deserialize_with = "json_body::nullable")]
    #[schema(value_type = Option<Vec<MembershipId>>)]
    audience: Option<Option<Vec<MembershipId>>>,
}

/// A posted message.
#[derive(Serialize, ToSchema)]
#[schema(as = PostedMessage)]
pub struct CreatedMessage {
    message: message::MessageView,
    /// The run that will reply, if one is planned.
    run: Option<RunView>,
}

/// Lists messages by ascending `seq`; the newest page, unless a cursor is given.
///
/// A cursor is a `seq`. Hidden messages are omitted. A page ends before 2 MiB of JSON, but has at
/// least one message. `around` is the id of a message and excludes the cursors: half of the page
/// precedes that message, `has_more` refers to both sides, and `cursor` is null.
#[utoipa::path(
    get,
    path = "/api/conversations/{conversation_id}/messages",
    tag = "messages",
    params(
        PageQuery,
        ("around" = inline(Option<MessageId>), Query, description = "The id of the message in the middle of the page."),
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
    let around = pagination::parse_value::<MessageId>(request.query_string(), "around")?;
    let part = match (around, page.before, page.after) {
        (Some(message), None, None) => page_around(&app, &at, message).await?,
        (Some(_), _, _) => return Err(around_alone_error()),
        (None, Some(before), Some(after)) => timeline::TimelinePage::Between(after, before),
        (None, Some(seq), None) => timeline::TimelinePage::Before(seq),
        (None, None, Some(seq)) => timeline::TimelinePage::After(seq),
        (None, None, None) => timeline::TimelinePage::Newest,
    };
    let wanted = MessageQuery {
        page: part,
        limit: page.limit,
        html: wants_html(&request)?,
        viewer: at.viewer(),
        bookmarked_by: None,
    };
    let found = app.engine.list_messages(at.conversation.id, wanted).await?;
    Ok(encoded_page::json_page(
        found.entries,
        found.has_more,
        found.cursor,
    ))
}

/// Returns whether the client requests HTML.
///
/// # Errors
/// Returns 400 for an invalid value.
pub fn wants_html(request: &HttpRequest) -> ApiResult<bool> {
    let html = pagination::parse_value(request.query_string(), "html")?;
    Ok(html.unwrap_or(false))
}

/// Removes the HTML unless it was requested.
pub fn filter_html(mut view: message::MessageView, html: bool) -> message::MessageView {
    view.html = view.html.filter(|_| html);
    view
}

/// Returns the page around a message, or 404 if it is hidden, in another conversation, or a whisper that
/// the caller does not see.
async fn page_around(
    app: &App,
    at: &ConversationAccess,
    message: MessageId,
) -> ApiResult<timeline::TimelinePage> {
    let (db, id) = (app.db.reader(), at.conversation.id);
    let seq = timeline::find_seq(db, id, at.viewer(), message).await?;
    seq.map(timeline::TimelinePage::Around)
        .ok_or_else(ApiError::not_found)
}

fn around_alone_error() -> ApiError {
    let message = "Cannot be combined with `before` or `after`.";
    ApiError::new(400, "invalid_value", message).with_param("around")
}

/// Posts a message and lets the scheduler decide who replies.
///
/// `kind` requires a role: `narrator` that of a member, `character` that of a moderator. The dice of a
/// `roll` are the `content`, such as `2d6+3`; the server rolls them. None of these kinds has pictures or is
/// out of character.
///
/// Repeating a request with the same `client_id`, text, `reply_to_id` and pictures returns the first
/// response again, with status 200.
#[utoipa::path(
    post,
    path = "/api/conversations/{conversation_id}/messages",
    tag = "messages",
    request_body = CreateMessage,
    params(("html" = inline(Option<bool>), Query, description = "Whether the message includes its HTML.")),
    responses(
        (status = 200, description = "Already posted.", body = CreatedMessage),
        (status = 201, body = CreatedMessage),
        (status = 409, description = "`copilot_active`; `already_finished`; `name_taken_here`: the name of the persona looks like that of another member."),
        (status = 413, description = "`storage_full`: the quota of the space's owner is used up."),
        (status = 422, description = "`blank_message`; `too_long`: more than 64 KiB; `too_many`: more than four pictures; `client_id_reused`; `invalid_value`."),
        (status = 423),
        (status = 429, description = "`rate_limited`: too many messages in a minute; `slow_mode`: too early in a space in slow mode, with `retry_after`.")
    )
)]
pub async fn create(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ConversationId>,
    body: JsonBody<CreateMessage>,
    request: HttpRequest,
) -> ApiResult<HttpResponse> {
    let html = wants_html(&request)?;
    let at = space_access::load_conversation_access(&app, &caller, id.into_inner()).await?;
    at.require_write(Action::Post)?;
    let author = at.own_membership()?;
    let permit = app.limits.posts.acquire(caller.id()).await;
    permit.map_err(|wait| {
        ApiError::rate_limited(wait.0, "Too many messages. Wait, then try again.")
    })?;
    let body = body.read().await?;
    require_attachment_list(&body.attachment_ids)?;
    let text = parse_text_beside(&body.content, !body.attachment_ids.is_empty())?;
    let kind = post_kinds::parse(body.kind, body.speaker_id, &text)?;
    post_kinds::require_right(&at, kind)?;
    if kind != PostKind::Own {
        post_kinds::require_plain(
            !body.attachment_ids.is_empty(),
            body.is_ooc == Some(true),
            body.persona_id.flatten().is_some() && !matches!(kind, PostKind::Roll(_)),
        )?;
    }
    let client_id = body.client_id.map(parse_client_id).transpose()?;
    // This also applies to a repeated post, whose mentions are not looked up again.
    if body.mentions.iter().any(|it| it.0 < 1) {
        return Err(ApiError::invalid_value(
            "mentions",
            "Ids must be at least 1.",
        ));
    }
    let mut post = NewPost {
        kind,
        client_id,
        reply_to: body.reply_to_id,
        attachments: body.attachment_ids,
        mentions: body.mentions,
        is_ooc: body.is_ooc,
        ..NewPost::new(author.id, text)
    };
    post.requested.audience = requested_audience(body.audience);
    if let Some(persona) = body.persona_id {
        post.requested.persona = PersonaChoice::Chosen(persona);
    }
    let posted = app.engine.post(at.conversation.id, author, post).await;
    let posted = posted.map_err(api_error)?;
    let mut reply = match posted.is_repeated {
        true => HttpResponse::Ok(),
        false => HttpResponse::Created(),
    };
    Ok(reply.json(CreatedMessage {
        message: filter_html(posted.message, html),
        run: posted.run,
    }))
}

/// Returns who should see a post or a reply: absent, null or a list.
pub fn requested_audience(audience: Option<Option<Vec<MembershipId>>>) -> RequestedAudience {
    match audience {
        None => RequestedAudience::Inherited,
        Some(None) => RequestedAudience::Everyone,
        Some(Some(members)) => RequestedAudience::Only(members),
    }
}

/// Parses the text of a message.
///
/// # Errors
/// Returns 422 `blank_message`, `too_long` or `invalid_value`.
pub fn parse_text(content: &str) -> ApiResult<String> {
    match MessageText::parse(content) {
        Ok(text) => Ok(text.into_string()),
        Err(error) => {
            Err(ApiError::new(422, error.code(), error.to_string()).with_param("content"))
        }
    }
}

/// Parses the text of a message, which may be blank next to pictures.
///
/// # Errors
/// As [`parse_text`].
pub fn parse_text_beside(content: &str, has_pictures: bool) -> ApiResult<String> {
    match has_pictures && message_text::is_blank(content) {
        true => Ok(String::new()),
        false => parse_text(content),
    }
}

fn require_attachment_list(ids: &[AttachmentId]) -> ApiResult<()> {
    let most = attachment::MAX_PER_MESSAGE;
    if ids.len() > most {
        let message = format!("A message has at most {most} pictures.");
        return Err(ApiError::new(422, "too_many", message).with_param("attachment_ids"));
    }
    let is_repeated = |(at, id): (usize, &AttachmentId)| ids[..at].contains(id);
    if ids.iter().any(|it| it.0 < 1) || ids.iter().enumerate().any(is_repeated) {
        let message = "Ids must be at least 1, each once.";
        return Err(ApiError::invalid_value("attachment_ids", message));
    }
    Ok(())
}

fn parse_client_id(text: String) -> ApiResult<String> {
    let fits = !text.is_empty() && text.chars().count() <= MAX_CLIENT_ID_CHARS;
    match fits {
        true => Ok(text),
        false => Err(ApiError::invalid_value(
            "client_id",
            format!("Must have 1 to {MAX_CLIENT_ID_CHARS} characters."),
        )),
    }
}
