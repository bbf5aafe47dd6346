//! Conversations as files.

use crate::app::App;
use crate::conversations::export::Export;
use crate::conversations::export::Format;
use crate::http::auth::CurrentUser;
use crate::http::error::ApiResult;
use crate::http::page;
use crate::http::seat;
use crate::ids::ConversationId;
use crate::spaces::permissions::Act;
use actix_web::HttpRequest;
use actix_web::HttpResponse;
use actix_web::http::header::ContentDisposition;
use actix_web::http::header::DispositionParam;
use actix_web::http::header::DispositionType;
use actix_web::web::Bytes;
use actix_web::web::Data;
use actix_web::web::Path;
use futures::stream;
use sea_orm::DbErr;
use std::str::FromStr;
use utoipa::ToSchema;

/// A conversation as a file: what is not hidden, with all versions of each text.
///
/// `jsonl` is the form of SillyTavern, `txt` is for people and has the shown texts alone.
#[utoipa::path(
    get,
    path = "/api/conversations/{conversation_id}/export",
    tag = "conversations",
    params(("format" = inline(Option<ChatFormat>), Query, description = "`jsonl` unless said.")),
    responses((
        status = 200,
        description = "The file, in pieces.",
        content((String = "application/x-ndjson"), (String = "text/plain")),
        headers(("content-disposition" = String))
    ), (status = 403))
)]
pub async fn export(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ConversationId>,
    request: HttpRequest,
) -> ApiResult<HttpResponse> {
    let at = seat::in_conversation(&app, &caller, id.into_inner()).await?;
    at.may(Act::Direct)?;
    let format = page::value_of(request.query_string(), "format")?.unwrap_or(ChatFormat::Jsonl);
    let (format, kind, ending) = match format {
        ChatFormat::Jsonl => (Format::Jsonl, "application/x-ndjson", "jsonl"),
        ChatFormat::Txt => (Format::Txt, "text/plain; charset=utf-8", "txt"),
    };
    let name = match at.conversation.title.as_str() {
        "" => &at.space.name,
        title => title,
    };
    let named = attachment(name, ending);
    let export = Export::begin(app.db.reader().clone(), at.conversation, format).await?;
    let pieces = stream::try_unfold(export, |mut export| async move {
        let piece = export.next().await?;
        Ok::<_, DbErr>(piece.map(|it| (Bytes::from(it), export)))
    });
    Ok(HttpResponse::Ok()
        .insert_header(named)
        .content_type(kind)
        .streaming(pieces))
}

/// A file of this name, whatever signs the name has.
pub fn attachment(name: &str, ending: &str) -> ContentDisposition {
    let name: String = name
        .chars()
        .map(|it| if it.is_alphanumeric() { it } else { '_' })
        .take(60)
        .collect();
    ContentDisposition {
        disposition: DispositionType::Attachment,
        parameters: vec![DispositionParam::Filename(format!("{name}.{ending}"))],
    }
}

/// The forms in which a conversation leaves.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum ChatFormat {
    Jsonl,
    Txt,
}

impl FromStr for ChatFormat {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        match word {
            "jsonl" => Ok(Self::Jsonl),
            "txt" => Ok(Self::Txt),
            _ => Err(()),
        }
    }
}
