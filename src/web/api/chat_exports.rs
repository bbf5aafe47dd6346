//! Endpoint that exports a conversation as a file.

use std::str::FromStr;

use actix_web::web::{Bytes, Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use base::ids::ConversationId;
use futures::stream;
use serde_json::json;
use utoipa::ToSchema;

use crate::app::App;
use crate::conversations::chats::chat_export::{ChatExportFormat, ChatExporter};
use crate::lorebooks::exported_lore;
use crate::spaces::permissions::Action;
use crate::web::api::{downloads, prompts};
use crate::web::error::ApiResult;
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::{pagination, space_access};

/// Exports a conversation without hidden messages, with all swipes.
///
/// `jsonl` is SillyTavern's format; it names the timed effects of entries in the caller's lorebooks.
/// `txt` is for reading and contains only the selected swipes.
#[utoipa::path(
    get,
    path = "/api/conversations/{conversation_id}/export",
    tag = "conversations",
    params(("format" = inline(Option<ChatFormat>), Query, description = "The default is `jsonl`.")),
    responses((
        status = 200,
        description = "The file, streamed.",
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
    let at = space_access::load_conversation_access(&app, &caller, id.into_inner()).await?;
    at.require_action(Action::ManageConversation)?;
    let format =
        pagination::parse_value(request.query_string(), "format")?.unwrap_or(ChatFormat::Jsonl);
    let (format, kind, ending) = match format {
        ChatFormat::Jsonl => (ChatExportFormat::Jsonl, "application/x-ndjson", "jsonl"),
        ChatFormat::Txt => (ChatExportFormat::Txt, "text/plain; charset=utf-8", "txt"),
    };
    let name = match at.conversation.title.as_str() {
        "" => &at.space.name,
        title => title,
    };
    let named = downloads::attachment(name, ending);
    let (db, viewer) = (app.db.reader().clone(), at.viewer());
    let hidden = prompts::hidden_cards(&app, &caller, at.space.id).await?;
    let mut conversation = at.conversation;
    // Macros may have put the text of any card into variables, and it may have activated entries.
    if !hidden.is_empty() {
        conversation.variables = json!({});
    }
    let lore = conversation.variables["lore"].clone();
    let mut export = ChatExporter::start(db.clone(), conversation, viewer, format).await?;
    if format == ChatExportFormat::Jsonl {
        let effects = exported_lore::name_effects(&db, caller.id(), &lore).await?;
        export = export.with_timed_effects(effects).await?;
    }
    let pieces = stream::try_unfold(export, |mut export| async move {
        let piece = export.next_chunk().await;
        piece.map(|it| it.map(|it| (Bytes::from(it), export)))
    });
    Ok(HttpResponse::Ok()
        .insert_header(named)
        .content_type(kind)
        .streaming(pieces))
}

/// The export formats of a conversation.
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
