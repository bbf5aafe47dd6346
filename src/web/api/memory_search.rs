//! Searches the memories of a space for a person.

use std::collections::HashMap;

use actix_web::web::Json;
use base::ids::MemoryId;
use recall::search::{FoundMemory, RecallRules};

use crate::app::App;
use crate::db::reading::page::PageOf;
use crate::memories::memory::MemoryFilter;
use crate::memories::prompt_search::RecallRequest;
use crate::memories::{memory, prompt_search};
use crate::web::api::memory_bodies::{ListedMemory, because};
use crate::web::api::memory_recalls::LastRecalls;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::space_access::SpaceAccess;

/// A search by a person finds more than a prompt recalls.
const SEARCH_THRESHOLD: f32 = 0.2;
/// The maximum length of a search, in characters.
const MAX_SEARCH_CHARS: usize = 2_000;

/// Returns the memories that match a text and a filter, best first.
///
/// # Errors
/// Returns 422 `invalid_value` if the text is too long.
pub async fn search(
    app: &App,
    at: SpaceAccess,
    text: String,
    filter: &MemoryFilter,
    limit: u64,
) -> ApiResult<Json<PageOf<ListedMemory>>> {
    if text.chars().count() > MAX_SEARCH_CHARS {
        let message = format!("Must have at most {MAX_SEARCH_CHARS} characters.");
        return Err(ApiError::invalid_value("q", message));
    }
    let (space, db, viewer) = (at.space.id, app.db.reader(), at.viewer());
    // Chosen before the search, which returns only the best.
    let chosen = match filter.is_restrictive() {
        true => Some(
            memory::list_ids(db, space, filter)
                .await?
                .into_iter()
                .collect(),
        ),
        false => None,
    };
    let request = RecallRequest {
        member: filter.viewer,
        lineage: None,
        history: None,
        chosen,
        queries: vec![text.into()],
        rules: Some(RecallRules {
            top_k: usize::MAX,
            threshold: SEARCH_THRESHOLD,
            token_budget: i64::MAX,
            cosine_range: local_embedding::COSINE_RANGE,
        }),
        prompt_tokens: i64::MAX,
        space: at.space,
    };
    let indexes = &app.engine.context().prompt_caches.memories;
    let result = prompt_search::recall(&app.db, indexes, request).await;
    if result.has_failed {
        let message = "The memories are being loaded. Try again in a moment.";
        return Err(ApiError::new(503, "unavailable", message));
    }
    let ids = result.found.iter().map(|it| it.memory.id);
    let rows = memory::list_matching(db, space, filter, ids).await?;
    let recalls = LastRecalls::load(app, space, &rows, viewer).await?;
    let mut rows: HashMap<MemoryId, memory::Model> =
        rows.into_iter().map(|it| (it.id, it)).collect();
    // Pinned memories are recalled for every prompt, but not found by every search.
    let mut found: Vec<(f32, FoundMemory)> = result
        .found
        .into_iter()
        .map(|it| (it.text_score.max(it.vector_score.unwrap_or(0.0)), it))
        .filter(|(score, _)| *score >= SEARCH_THRESHOLD)
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let data = found.into_iter().filter_map(|(score, it)| {
        let row = rows.remove(&it.memory.id)?;
        let because = because(&it.matched, it.vector_score, row.is_pinned);
        Some(recalls.listed(&row, Some((score, because))))
    });
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    Ok(Json(PageOf {
        data: data.take(limit).collect(),
        has_more: false,
        cursor: None,
    }))
}
