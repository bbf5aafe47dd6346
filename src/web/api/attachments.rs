//! Endpoints that upload a picture before it is posted with a message, return its bytes, and describe
//! or delete it.
//!
//! **Invariant:** before it is posted, only its owner knows of a picture; then those who may see its
//! message. All bytes were encoded by this server.

use std::io::BufReader;

use actix_web::HttpResponse;
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, ContentDisposition, DispositionParam, DispositionType,
};
use actix_web::web::{Data, Json, Path, Query};
use base::ids::AttachmentId;
use serde::Deserialize;
use tavern::pictures::decoder::PictureError;
use tavern::pictures::message_picture;
use tavern::pictures::message_picture::MessagePicture;
use utoipa::ToSchema;

use crate::app::App;
use crate::attachments::attachment::AttachmentView;
use crate::attachments::attachment_store::NewAttachment;
use crate::attachments::{attachment, attachment_store};
use crate::characters::asset;
use crate::characters::quota::QuotaError;
use crate::conversations::message;
use crate::runs::message_changes::attachments::{AttachmentChange, AttachmentError};
use crate::web::api::{avatars, card_files, message_changes, personas};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::space_access;
use crate::web::extract::space_access::ConversationAccess;
use crate::web::extract::upload::{PendingUpload, TempFileUpload, TextField};

/// The field with the description. UTF-8 needs at most four bytes for a character.
const ALT: TextField = TextField {
    name: "alt",
    max_bytes: 4 * attachment::MAX_ALT_CHARS,
};

/// A form with a picture.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PictureForm)]
#[allow(dead_code)] // only the document reads it
pub struct PictureForm {
    /// A PNG, JPEG, WebP or GIF with at most 50 megapixels.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
    /// What the picture shows.
    #[schema(max_length = 1000, nullable = false)]
    alt: Option<String>,
}

/// The description of a picture.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AttachmentChange)]
pub struct UpdateAttachment {
    /// What the picture shows; may be empty.
    #[schema(max_length = 1000)]
    alt: String,
}

/// The query of a picture's address.
#[derive(Deserialize)]
pub struct PictureQuery {
    size: Option<PictureSize>,
}

/// The sizes in which a picture is returned.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PictureSize {
    Full,
    Thumbnail,
}

/// Uploads a picture, to be posted with a message within 24 hours; then it is deleted.
///
/// It is re-encoded without its metadata, upright and with at most 2,048 pixels on each side. Of an
/// animation the first picture is kept.
#[utoipa::path(
    post,
    path = "/api/attachments",
    operation_id = "upload",
    tag = "messages",
    request_body(content = PictureForm, content_type = "multipart/form-data"),
    responses(
        (status = 201, body = AttachmentView),
        (status = 413, description = "`too_large`: more than `LIMIT_PICTURE_MB`; `storage_full`."),
        (status = 415, description = "`unsupported_media_type`: a multipart form with a file is required."),
        (status = 422, description = "`not_a_picture`, with the reason; `picture_too_large`: more than 50 megapixels; `too_long`: a description of more than 1,000 characters; `invalid_value`."),
        (status = 429, description = "`rate_limited`: too many pictures in a minute.")
    )
)]
pub async fn upload(
    app: Data<App>,
    caller: CurrentUser,
    upload: PendingUpload,
) -> ApiResult<HttpResponse> {
    let permit = app.limits.uploads.acquire(caller.id()).await;
    permit.map_err(|wait| {
        ApiError::rate_limited(wait.0, "Too many pictures. Wait, then try again.")
    })?;
    let limit = match app.config.limits.picture_bytes {
        0 => u64::from(u32::MAX),
        limit => limit,
    };
    let (file, alt) = upload.save_with_text(limit, ALT).await?;
    let alt = parse_alt(alt.as_deref().unwrap_or_default())?;
    let name = Some(file.name.trim().to_owned()).filter(|it| !it.is_empty());
    let new = NewAttachment {
        picture: redraw(&app, file).await?,
        file_name: name,
        alt,
    };
    let quota = personas::quota_of(&app, &caller);
    let stored = attachment_store::create(&app.db, quota, new, app.clock.now()).await;
    let stored = stored.map_err(|error| match error {
        QuotaError::Exceeded(full) => ApiError::new(413, "storage_full", full.to_string()),
        QuotaError::Db(error) => error.into(),
    })?;
    Ok(HttpResponse::Created().json(stored.view()))
}

async fn redraw(app: &App, file: TempFileUpload) -> ApiResult<MessagePicture> {
    let draw = move || message_picture::redraw(BufReader::new(file.file));
    let drawn = card_files::run_blocking_limited(app, draw).await?;
    drawn.map_err(|error| match error {
        PictureError::TooLarge => {
            let message = "The picture has more than 50 megapixels.";
            ApiError::new(422, "picture_too_large", message).with_param("file")
        }
        error => ApiError::new(422, "not_a_picture", error.to_string()).with_param("file"),
    })
}

/// Returns a picture: one that the caller has uploaded, or one of a message that they may see.
#[utoipa::path(
    get,
    path = "/api/attachments/{attachment_id}",
    operation_id = "attachment",
    tag = "messages",
    params(
        ("size" = inline(Option<PictureSize>), Query, description = "`full` has at most 2,048 pixels on each side, `thumbnail` at most 640. The default is `full`.")
    ),
    responses(
        (
            status = 200,
            description = "A JPEG, or a PNG if the picture is partly transparent.",
            content((String = "image/jpeg"), (String = "image/png")),
        ),
        (status = 400, description = "An unknown `size`."),
        (status = 404)
    )
)]
pub async fn show(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<AttachmentId>,
    query: Query<PictureQuery>,
) -> ApiResult<HttpResponse> {
    let (found, _) = find_visible(&app, &caller, id.into_inner()).await?;
    let stored = match query.size.unwrap_or(PictureSize::Full) {
        PictureSize::Full => found.asset_id,
        PictureSize::Thumbnail => found.thumbnail_asset_id,
    };
    let bytes = asset::load_bytes(app.db.reader(), stored).await?;
    let bytes = bytes.ok_or_else(ApiError::not_found)?;
    let ending = match found.media_type.as_str() {
        "image/png" => "png",
        _ => "jpg",
    };
    // The name comes from this server: that of the file could end in anything.
    let name = DispositionParam::Filename(format!("picture-{}.{ending}", found.id));
    Ok(HttpResponse::Ok()
        .content_type(found.media_type)
        // What the address returns never changes. A user who loses access keeps only what they have seen.
        .insert_header((CACHE_CONTROL, avatars::CACHE_FOREVER))
        .insert_header((CONTENT_SECURITY_POLICY, avatars::CONTENT_POLICY))
        .insert_header(ContentDisposition {
            disposition: DispositionType::Inline,
            parameters: vec![name],
        })
        .body(bytes))
}

/// Describes a picture. Those who may edit its message may describe it, too.
#[utoipa::path(
    patch,
    path = "/api/attachments/{attachment_id}",
    operation_id = "describe",
    tag = "messages",
    request_body = UpdateAttachment,
    responses(
        (status = 200, body = AttachmentView),
        (status = 409, description = "`already_finished`: the picture is just being posted."),
        (status = 422, description = "`too_long`: more than 1,000 characters; `invalid_value`."),
        (status = 429, description = "`rate_limited`: too many changes in a minute.")
    )
)]
pub async fn update(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<AttachmentId>,
    body: JsonBody<UpdateAttachment>,
) -> ApiResult<Json<AttachmentView>> {
    let (found, at) = find_visible(&app, &caller, id.into_inner()).await?;
    if let Some((row, at)) = &at {
        at.require_edit_message(row)?;
    }
    let alt = parse_alt(&body.read().await?.alt)?;
    message_changes::acquire_edit(&app, &caller).await?;
    let Some((row, at)) = at else {
        let changed = attachment_store::describe_unposted(&app.db, caller.id(), found.id, alt);
        let changed = changed.await?;
        return changed.map(|it| Json(it.view())).ok_or_else(|| {
            let message = "The picture was just posted. Try again.";
            ApiError::conflict("already_finished", message)
        });
    };
    let change = change_of(&found, &row, &at, Some(alt));
    let message = app.engine.change_attachment(change).await?;
    let mut pictures = message.attachments.into_iter();
    let changed = pictures.find(|it| it.id == found.id);
    changed.map(Json).ok_or_else(ApiError::not_found)
}

/// Deletes a picture. Those who may delete its message may delete it, too; a message must keep a text
/// or a picture.
#[utoipa::path(
    delete,
    path = "/api/attachments/{attachment_id}",
    operation_id = "delete_attachment",
    tag = "messages",
    responses(
        (status = 204),
        (status = 422, description = "`blank_message`: the last picture of a message without a text."),
        (status = 429, description = "`rate_limited`: too many changes in a minute.")
    )
)]
pub async fn delete(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<AttachmentId>,
) -> ApiResult<HttpResponse> {
    let (found, at) = find_visible(&app, &caller, id.into_inner()).await?;
    if let Some((row, at)) = &at {
        at.require_change_message(row)?;
    }
    message_changes::acquire_edit(&app, &caller).await?;
    match at {
        Some((row, at)) => {
            let change = change_of(&found, &row, &at, None);
            app.engine.change_attachment(change).await?;
        }
        None => {
            let (owner, id) = (caller.id(), found.id);
            let deleted = app
                .db
                .write(move |tx| Box::pin(attachment::delete_unposted(tx, owner, id)));
            if !deleted.await? {
                return Err(ApiError::not_found());
            }
        }
    }
    Ok(HttpResponse::NoContent().finish())
}

/// Returns a picture that the caller may see, and its message if it was posted.
async fn find_visible(
    app: &App,
    caller: &CurrentUser,
    id: AttachmentId,
) -> ApiResult<(
    attachment::Model,
    Option<(message::Model, ConversationAccess)>,
)> {
    let found = attachment::find(app.db.reader(), id).await?;
    let found = found.ok_or_else(ApiError::not_found)?;
    let Some(message) = found.message_id else {
        return match found.owner_id == caller.id() {
            true => Ok((found, None)),
            false => Err(ApiError::not_found()),
        };
    };
    let (row, at) = space_access::load_message_access(app, caller, message).await?;
    match row.visibility {
        message::Visibility::Hidden => Err(ApiError::not_found()),
        _ => Ok((found, Some((row, at)))),
    }
}

fn change_of(
    found: &attachment::Model,
    row: &message::Model,
    at: &ConversationAccess,
    alt: Option<String>,
) -> AttachmentChange {
    AttachmentChange {
        conversation: at.conversation.id,
        message: row.id,
        attachment: found.id,
        alt,
        viewer: at.viewer(),
    }
}

fn parse_alt(text: &str) -> ApiResult<String> {
    if text.contains('\0') {
        let message = "Must not contain the character U+0000.";
        return Err(ApiError::invalid_value("alt", message));
    }
    let most = attachment::MAX_ALT_CHARS;
    match text.chars().count() <= most {
        true => Ok(text.trim().to_owned()),
        false => {
            let message = format!("A description has at most {most} characters.");
            Err(ApiError::new(422, "too_long", message).with_param("alt"))
        }
    }
}

impl From<AttachmentError> for ApiError {
    fn from(error: AttachmentError) -> Self {
        match error {
            AttachmentError::NotFound => Self::not_found(),
            AttachmentError::NothingShown => {
                let message = "The message would have neither a text nor a picture.";
                Self::new(422, "blank_message", message)
            }
            AttachmentError::Database(error) => error.into(),
            error @ AttachmentError::TaskEnded(_) => Self::internal(error),
        }
    }
}
