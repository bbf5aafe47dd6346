//! Finding messages by what they say.

use crate::app::App;
use crate::clock::Timestamp;
use crate::conversations::conversation;
use crate::conversations::message;
use crate::conversations::search;
use crate::conversations::search::Terms;
use crate::conversations::snippet;
use crate::conversations::snippet::Snippet;
use crate::http::auth::CurrentUser;
use crate::http::error::ApiError;
use crate::http::error::ApiResult;
use crate::http::page;
use crate::http::page::Listing;
use crate::http::page::Page;
use crate::http::seat;
use crate::ids::ConversationId;
use crate::ids::MembershipId;
use crate::ids::MessageId;
use crate::ids::SpaceId;
use crate::spaces::membership;
use crate::spaces::roster;
use crate::spaces::space;
use crate::spaces::tenancy;
use actix_web::HttpRequest;
use actix_web::web::Data;
use actix_web::web::Json;
use sea_orm::ColumnTrait;
use sea_orm::EntityTrait;
use sea_orm::QueryFilter;
use sea_orm::QuerySelect;
use sea_orm::QueryTrait;
use serde::Serialize;
use std::collections::HashMap;
use std::collections::HashSet;
use utoipa::ToSchema;

/// A message that says what was looked for.
#[derive(Serialize, ToSchema)]
#[schema(as = SearchHit)]
pub struct Hit {
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

/// Messages that say something, of every space one sits in or of one; the newest first.
///
/// Every word of `q` must be in the text that is shown, as it is or as a part of another; capitals
/// do not matter. Hidden messages are not found. A cursor is the id of a message.
#[utoipa::path(
    get,
    path = "/api/search",
    tag = "messages",
    params(
        Page,
        ("q" = inline(Option<Wanted>), Query, description = "What to look for; without it nothing is found."),
        ("space_id" = inline(Option<SpaceId>), Query, description = "Only in this space.")
    ),
    responses((status = 200, body = Listing<Hit>), (status = 404))
)]
pub async fn find(
    app: Data<App>,
    caller: CurrentUser,
    request: HttpRequest,
    page: Page,
) -> ApiResult<Json<Listing<Hit>>> {
    let query = request.query_string();
    let text = page::text_of(query, "q")?.unwrap_or_default();
    if text.chars().count() > search::MAX_CHARS {
        let message = format!("Look for at most {} characters.", search::MAX_CHARS);
        return Err(ApiError::new(400, "invalid_value", message).about("q"));
    }
    let (spaces, allowed) = match page::value_of::<SpaceId>(query, "space_id")? {
        Some(id) => {
            let at = seat::in_space(&app, &caller, id).await?;
            (search::only(at.space.id), HashSet::from([at.space.id]))
        }
        None => {
            let seats = roster::taken_by(app.db.reader(), caller.id()).await?;
            let own = tenancy::of_user(caller.id())
                .select_only()
                .column(space::Column::Id)
                .into_query();
            (own, seats.into_iter().map(|it| it.space_id).collect())
        }
    };
    let Some(terms) = Terms::parse(&text) else {
        return Ok(Json(Listing::whole(Vec::new())));
    };
    let select = search::found(&terms, spaces, app.db.dialect());
    let found = page
        .newest_first(select, message::Column::Id, app.db.reader())
        .await?;
    hits(&app, found, &terms, &allowed).await.map(Json)
}

/// What to look for, as the document tells of it.
#[derive(ToSchema)]
#[schema(max_length = 200)]
pub struct Wanted(#[allow(dead_code)] String);

/// Shows what was found. What is not in a space that the caller may see is left out, whatever the
/// query said.
async fn hits(
    app: &App,
    found: Listing<message::Model>,
    terms: &Terms,
    allowed: &HashSet<SpaceId>,
) -> ApiResult<Listing<Hit>> {
    let places = places(app, &found.data).await?;
    let names = names(app, &found.data).await?;
    let data = found.data.iter().filter_map(|row| {
        let (conversation, space_name) = places.get(&row.conversation_id)?;
        if !allowed.contains(&conversation.space_id) {
            tracing::error!(message.id = %row.id, "a search found what it must not");
            return None;
        }
        Some(Hit {
            message_id: row.id,
            conversation_id: row.conversation_id,
            conversation_title: conversation.title.clone(),
            space_id: conversation.space_id,
            space_name: space_name.clone(),
            seq: row.seq,
            author_name: names
                .get(&row.space_membership_id)
                .cloned()
                .unwrap_or_default(),
            snippet: snippet::around(&row.content, terms.words()),
            created_at: row.created_at,
        })
    });
    Ok(Listing {
        data: data.collect(),
        has_more: found.has_more,
    })
}

async fn places(
    app: &App,
    found: &[message::Model],
) -> ApiResult<HashMap<ConversationId, (conversation::Model, String)>> {
    let ids: HashSet<ConversationId> = found.iter().map(|it| it.conversation_id).collect();
    let rows = conversation::Entity::find()
        .filter(conversation::Column::Id.is_in(ids))
        .find_also_related(space::Entity)
        .all(app.db.reader())
        .await?;
    let places = rows.into_iter().filter_map(|(row, space)| {
        let name = space?.name;
        Some((row.id, (row, name)))
    });
    Ok(places.collect())
}

async fn names(app: &App, found: &[message::Model]) -> ApiResult<HashMap<MembershipId, String>> {
    let ids: HashSet<MembershipId> = found.iter().map(|it| it.space_membership_id).collect();
    let rows = membership::Entity::find()
        .filter(membership::Column::Id.is_in(ids))
        .all(app.db.reader())
        .await?;
    let names = rows.into_iter().map(|it| (it.id, it.cached_display_name));
    Ok(names.collect())
}
