//! Endpoint of full-text search in the messages of one space or of all of the caller's spaces;
//! returns an excerpt of each message found.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use actix_web::HttpRequest;
use actix_web::web::{Data, Json};
use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, MessageId, SpaceId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::conversations::search::{SearchScope, SearchTerms};
use crate::conversations::snippet::Snippet;
use crate::conversations::{conversation, message, search, snippet};
use crate::db::reading::page::{PageOf, PageQuery};
use crate::db::reading::row_slices;
use crate::spaces::{membership, roster_changes};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::{pagination, space_access};

/// A message that matches the search.
#[derive(Serialize, ToSchema)]
#[schema(as = SearchHit)]
pub struct SearchHit {
    message_id: MessageId,
    conversation_id: ConversationId,
    conversation_title: String,
    space_id: SpaceId,
    space_name: String,
    seq: i64,
    author_name: String,
    #[serde(flatten)]
    snippet: Snippet,
    created_at: Timestamp,
}

/// Searches the messages of one space or of all of the caller's spaces; newest first.
///
/// Every word of `q` must occur in the selected swipe, as a word or as part of one, in upper or
/// lower case. Hidden messages and whispers to others are not found. A cursor is the id of a message.
#[utoipa::path(
    get,
    path = "/api/search",
    operation_id = "find",
    tag = "messages",
    params(
        PageQuery,
        ("q" = inline(Option<SearchQuery>), Query, description = "The search text; without it nothing is found."),
        ("space_id" = inline(Option<SpaceId>), Query, description = "Only in this space.")
    ),
    responses((status = 200, body = PageOf<SearchHit>), (status = 404))
)]
pub async fn search(
    app: Data<App>,
    caller: CurrentUser,
    request: HttpRequest,
    page: PageQuery,
) -> ApiResult<Json<PageOf<SearchHit>>> {
    let query = request.query_string();
    let text = pagination::parse_text(query, "q")?.unwrap_or_default();
    if text.chars().count() > search::MAX_CHARS {
        let message = format!("Must have at most {} characters.", search::MAX_CHARS);
        return Err(ApiError::new(400, "invalid_value", message).with_param("q"));
    }
    let db = app.db.reader();
    let (scope, allowed) = match pagination::parse_value::<SpaceId>(query, "space_id")? {
        Some(id) => {
            let at = space_access::load_space_access(&app, &caller, id).await?;
            (
                SearchScope::Space(at.space.id, at.viewer()),
                HashSet::from([at.space.id]),
            )
        }
        None => {
            let memberships = roster_changes::list_active_for_user(db, caller.id()).await?;
            let allowed = memberships.into_iter().map(|it| it.space_id).collect();
            (SearchScope::SpacesOfUser(caller.id()), allowed)
        }
    };
    let Some(terms) = SearchTerms::parse(&text) else {
        return Ok(Json(PageOf::complete(Vec::new())));
    };
    let keys = search::load_keys(db, app.db.backend(), &terms, scope, page).await?;
    let cursor = keys.rows.last().filter(|_| keys.has_more);
    let cursor = cursor.map(|(id, _)| (*id).into());
    let mut found = load_messages(&app, &keys.rows, &terms).await?;
    found.sort_by_key(|it| Reverse(it.id));
    Ok(Json(PageOf {
        data: build_hits(&app, found, &allowed).await?,
        has_more: keys.has_more,
        cursor,
    }))
}

/// The schema of the search text for the API document.
#[derive(ToSchema)]
#[schema(max_length = 200)]
#[schema(as = Wanted)]
pub struct SearchQuery(#[allow(dead_code)] String);

/// A message that was found, without its text.
struct FoundMessage {
    id: MessageId,
    conversation: ConversationId,
    seq: i64,
    author: MembershipId,
    created_at: Timestamp,
    snippet: Snippet,
}

/// Loads the messages that match, and reads long texts one slice at a time.
async fn load_messages(
    app: &App,
    keys: &[(i64, i64)],
    terms: &SearchTerms,
) -> ApiResult<Vec<FoundMessage>> {
    let mut found = Vec::with_capacity(keys.len());
    for slice in row_slices::split_into_slices(keys, row_slices::SLICE_BYTES) {
        let ids = slice.iter().map(|(id, _)| MessageId(*id));
        let rows = message::list_visible(app.db.reader(), ids).await?;
        found.extend(rows.into_iter().map(|row| FoundMessage {
            id: row.id,
            conversation: row.conversation_id,
            seq: row.seq,
            author: row.space_membership_id,
            created_at: row.created_at,
            snippet: snippet::extract(&row.content, terms.words()),
        }));
    }
    Ok(found)
}

/// Builds the hits. Messages outside of `allowed` are dropped regardless of what the query
/// returned.
async fn build_hits(
    app: &App,
    found: Vec<FoundMessage>,
    allowed: &HashSet<SpaceId>,
) -> ApiResult<Vec<SearchHit>> {
    let db = app.db.reader();
    let ids: HashSet<_> = found.iter().map(|it| it.conversation).collect();
    let conversations = conversation::list_with_spaces(db, ids).await?;
    let conversations: HashMap<_, _> = conversations.into_iter().map(|it| (it.0.id, it)).collect();
    let ids: HashSet<_> = found.iter().map(|it| it.author).collect();
    let names = membership::list_display_names(db, ids).await?;
    let hits = found.into_iter().filter_map(|it| {
        let (conversation, space) = conversations.get(&it.conversation)?;
        if !allowed.contains(&conversation.space_id) {
            tracing::error!(message.id = %it.id, "search returned a message of a space that the caller may not see");
            return None;
        }
        Some(SearchHit {
            message_id: it.id,
            conversation_id: it.conversation,
            conversation_title: conversation.title.clone(),
            space_id: conversation.space_id,
            space_name: space.name.clone(),
            seq: it.seq,
            author_name: names.get(&it.author).cloned().unwrap_or_default(),
            snippet: it.snippet,
            created_at: it.created_at,
        })
    });
    Ok(hits.collect())
}
