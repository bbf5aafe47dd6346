//! Endpoint that lists the texts of a message that edits have replaced.

use actix_web::HttpResponse;
use actix_web::web::{Data, Path};
use base::ids::MessageId;

use crate::app::App;
use crate::conversations::revisions::message_revision;
use crate::conversations::revisions::message_revision::RevisionView;
use crate::conversations::timeline_page::PageBudget;
use crate::conversations::{message, timeline_page};
use crate::db::reading::page::{PageOf, PageQuery};
use crate::spaces::permissions::Action;
use crate::web::encoded_page;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::space_access;

/// The size of a list without its entries, in bytes.
const FRAME_BYTES: usize = 64;

/// Lists the texts of a message that edits have replaced, the newest first; for moderators.
///
/// A cursor is a version, and only `before` leads to a next page. The newest 20 replaced texts of a
/// message are kept. A page ends before 2 MiB of JSON, but has at least one text.
#[utoipa::path(
    get,
    path = "/api/messages/{message_id}/revisions",
    operation_id = "revisions",
    tag = "messages",
    params(PageQuery),
    responses((status = 200, body = PageOf<RevisionView>), (status = 403))
)]
pub async fn list(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<MessageId>,
    page: PageQuery,
) -> ApiResult<HttpResponse> {
    let (row, at) = space_access::load_message_access(&app, &caller, id.into_inner()).await?;
    at.require_action(Action::EditAnyMessage)?;
    if row.visibility == message::Visibility::Hidden {
        return Err(ApiError::not_found());
    }
    let before = page.before.unwrap_or(i64::MAX);
    let found = message_revision::list_before(app.db.reader(), row.id, before).await?;
    let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
    let mut budget = PageBudget::new(timeline_page::MAX_BYTES - FRAME_BYTES);
    let (n_found, mut last) = (found.len(), None);
    let mut entries = Vec::with_capacity(n_found);
    let is_wanted =
        |it: &message_revision::Model| page.after.is_none_or(|after| it.version > after);
    for revision in found.into_iter().filter(is_wanted).take(limit) {
        let version = revision.version;
        let json = serde_json::to_string(&RevisionView::from(revision));
        let json = json.map_err(ApiError::internal)?;
        if !budget.try_add(json.len()) {
            break;
        }
        entries.push(json);
        last = Some(version);
    }
    let has_more = entries.len() < n_found && page.after.is_none();
    Ok(encoded_page::json_page(entries, has_more, last))
}
