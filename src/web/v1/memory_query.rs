//! Handler of `POST /v1/memory/query`: returns the newest messages of a conversation of a space, and
//! the memories that a prompt there would recall for a text.
//!
//! The memories fail open: if they cannot be searched in time, the answer has none and says so.

use std::collections::HashMap;

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use base::ids::MemoryId;
use recall::search::RecallRules;
use responses_api::objects::ObjectType;
use responses_api::request::memory_query::{MemorySearch, MemorySpan};
use responses_api::schemas::request_bodies::MemoryQueryBody;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::conversations::message::MessageRole;
use crate::conversations::{branching, timeline};
use crate::db::backend::DbError;
use crate::memories::memory::{MemoryFilter, MemoryKind};
use crate::memories::memory_settings::{MemberSwitches, MemorySettings};
use crate::memories::prompt_search::RecallRequest;
use crate::memories::{memory, prompt_search};
use crate::prompt::loading::memory_loader;
use crate::spaces::membership;
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::space_access;
use crate::web::extract::space_access::ConversationAccess;
use crate::web::v1::api_key_auth::ApiKeyCaller;
use crate::web::v1::error::{V1Error, V1Result};
use crate::web::v1::parsing::body;
use crate::web::v1::responses;

/// The result of a search. The order of the fields is the order on the wire.
#[derive(Serialize, ToSchema)]
struct MemorySearchResult {
    object: ObjectType,
    /// The newest messages, oldest first.
    short: Vec<ShortTermMessage>,
    #[schema(value_type = Vec<LongTermMemory>)]
    long: LongTermMemories,
    degraded: bool,
}

#[derive(Serialize, ToSchema)]
struct ShortTermMessage {
    role: MessageRole,
    name: String,
    content: String,
    seq: i64,
}

/// Memories, best first.
type LongTermMemories = Vec<LongTermMemory>;

#[derive(Serialize, ToSchema)]
struct LongTermMemory {
    id: MemoryId,
    kind: MemoryKind,
    content: String,
    importance: f64,
    /// From 0 to 1: how well it fits the text.
    score: f32,
}

/// Returns the newest messages of a conversation, and the memories that are recalled for a text.
///
/// # Errors
/// Returns 400 for an invalid search, and 404 if the caller may not see the conversation.
#[utoipa::path(
    post,
    path = "/v1/memory/query",
    operation_id = "query_memory",
    tag = "v1",
    request_body = MemoryQueryBody,
    responses((status = 200, body = MemorySearchResult), (status = 404))
)]
pub async fn query(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
    payload: Payload,
) -> V1Result<HttpResponse> {
    responses::require_rate_limit(&app, &caller).await?;
    let body = body::object(&app, &caller, &http, payload).await?;
    let search = MemorySearch::parse(&body)?;
    let at = load_conversation(&app, &caller, &search).await?;
    let short = match search.span {
        MemorySpan::Long => Vec::new(),
        MemorySpan::Short | MemorySpan::Mixed => list_messages(&app, &at, &search).await?,
    };
    let (long, degraded) = match search.span {
        MemorySpan::Short => (Vec::new(), false),
        MemorySpan::Long | MemorySpan::Mixed => recall(&app, &at, &search).await,
    };
    Ok(HttpResponse::Ok().json(MemorySearchResult {
        object: ObjectType::MemoryQuery,
        short,
        long,
        degraded,
    }))
}

async fn load_conversation(
    app: &App,
    caller: &CurrentUser,
    search: &MemorySearch,
) -> V1Result<ConversationAccess> {
    let of_conversation = |error: V1Error| match error.status {
        404 => error.for_param("conversation_id"),
        _ => error,
    };
    let Some(id) = search.conversation else {
        return Err(of_conversation(V1Error::not_found()));
    };
    let found = space_access::load_conversation_access(app, caller, id).await;
    found.map_err(|error| of_conversation(error.into()))
}

async fn list_messages(
    app: &App,
    at: &ConversationAccess,
    search: &MemorySearch,
) -> Result<Vec<ShortTermMessage>, DbError> {
    let db = app.db.reader();
    let messages =
        timeline::list_newest(db, at.conversation.id, at.viewer(), search.n_messages).await?;
    let authors = messages.iter().map(|it| it.space_membership_id);
    let names = membership::list_display_names(db, authors).await?;
    let messages = messages.into_iter().map(|it| ShortTermMessage {
        role: it.role,
        name: names
            .get(&it.space_membership_id)
            .cloned()
            .unwrap_or_default(),
        content: it.content,
        seq: it.seq,
    });
    Ok(messages.collect())
}

/// Returns the memories, and whether they could not be searched.
async fn recall(
    app: &App,
    at: &ConversationAccess,
    search: &MemorySearch,
) -> (LongTermMemories, bool) {
    let own = at.membership.as_ref().map(|it| &it.settings);
    let is_on = MemorySettings::of_space(&at.space.settings).recalls()
        && own.is_none_or(|it| MemberSwitches::of_member(it).recall);
    let Some(text) = search.query.clone().filter(|_| is_on) else {
        return (Vec::new(), false);
    };
    let recalled = try_recall(app, at, search, text).await;
    recalled.unwrap_or_else(|error| {
        tracing::debug!(%error, "no memories were recalled: {error}");
        (Vec::new(), true)
    })
}

async fn try_recall(
    app: &App,
    at: &ConversationAccess,
    search: &MemorySearch,
    text: String,
) -> Result<(LongTermMemories, bool), DbError> {
    let db = app.db.reader();
    let own = at.membership.as_ref().map(|it| it.id);
    let request = RecallRequest {
        space: at.space.clone(),
        member: own,
        lineage: Some(branching::load_lineage(db, &at.conversation).await?),
        history: None,
        chosen: None,
        queries: vec![memory_loader::newest_chars(text).into()],
        rules: Some(RecallRules {
            top_k: search.top_k,
            // A score does not need the precision of `f64`.
            threshold: search.threshold as f32,
            token_budget: i64::MAX,
            cosine_range: local_embedding::COSINE_RANGE,
        }),
        prompt_tokens: i64::MAX,
    };
    let indexes = &app.engine.context().prompt_caches.memories;
    let result = prompt_search::recall(&app.db, indexes, request).await;
    let recalled: Vec<_> = result
        .found
        .into_iter()
        .filter(|it| it.rank.is_some())
        .collect();
    if recalled.is_empty() {
        return Ok((Vec::new(), result.is_degraded));
    }
    let filter = MemoryFilter {
        viewer: own,
        ..MemoryFilter::default()
    };
    let ids = recalled.iter().map(|it| it.memory.id);
    // From the rows, because a memory may have been deleted since the version of the index.
    let rows = memory::list_matching(db, at.space.id, &filter, ids).await?;
    let mut rows: HashMap<MemoryId, memory::Model> =
        rows.into_iter().map(|it| (it.id, it)).collect();
    let memories = recalled.into_iter().filter_map(|it| {
        let row = rows.remove(&it.memory.id)?;
        Some(LongTermMemory {
            id: row.id,
            kind: row.kind,
            content: row.content,
            importance: row.importance,
            score: it.text_score.max(it.vector_score.unwrap_or(0.0)),
        })
    });
    Ok((memories.collect(), result.is_degraded))
}
