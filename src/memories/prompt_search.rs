//! Finds the memories for a prompt, within a time limit. A failure costs the memories, never the
//! prompt.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::ids::{ConversationId, MembershipId};
use recall::entry::RecallScope;
use recall::index::MemoryIndex;
use recall::search::{FoundMemory, QueryText, RecallRules, search};
use tokio::time::timeout;

use crate::db::connect::Db;
use crate::memories::error::MemoryError;
use crate::memories::index_cache::MemoryIndexes;
use crate::memories::memory_settings::MemorySettings;
use crate::spaces::space;

/// A prompt does not wait longer for its memories.
const TIMEOUT: Duration = Duration::from_millis(250);

/// What to search for, and for whom.
#[derive(Clone, Debug)]
pub struct RecallRequest {
    pub space: space::Model,
    /// The speaker of the prompt, or the person who searches.
    pub member: Option<MembershipId>,
    /// The conversation of the prompt and its ancestors; see [`RecallScope::lineage`].
    pub lineage: Option<BTreeMap<ConversationId, i64>>,
    /// The conversation of the prompt and the first `seq` of its history.
    pub history: Option<(ConversationId, i64)>,
    /// The texts to search for. A memory is found by the one that fits it best.
    pub queries: Vec<String>,
    /// What to return; `None`: what the settings of the space say.
    pub rules: Option<RecallRules>,
    /// The tokens of the whole prompt.
    pub prompt_tokens: i64,
}

/// The result of a search.
#[derive(Clone, Debug, Default)]
pub struct RecallResult {
    /// What is recalled, best first, and then what came close.
    pub found: Vec<FoundMemory>,
    /// Whether it failed or took too long.
    pub is_degraded: bool,
}

/// Searches the memories of a space, if its settings allow. Executes no statement if nothing was ever
/// remembered there.
pub async fn recall(db: &Db, indexes: &MemoryIndexes, request: RecallRequest) -> RecallResult {
    let settings = MemorySettings::of_space(&request.space.settings);
    // A person may search what prompts do not recall.
    let is_allowed = settings.recalls() || request.rules.is_some();
    if !is_allowed || request.space.memory_version == 0 {
        return RecallResult::default();
    }
    let stop = StopOnDrop::default();
    let is_stopped = stop.0.clone();
    let (db, indexes) = (db.clone(), indexes.clone());
    // A task, because a large space that takes longer must be there for the next prompt.
    let searching = tokio::spawn(async move {
        let index = indexes.load(&db, &request.space).await?;
        let work = move || {
            let should_stop = || is_stopped.load(Ordering::Relaxed);
            search_index(&index, &request, &settings, &should_stop)
        };
        Ok::<_, MemoryError>(tokio::task::spawn_blocking(work).await?)
    });
    let error = match timeout(TIMEOUT, searching).await {
        Ok(Ok(Ok(found))) => {
            return RecallResult {
                found,
                is_degraded: false,
            };
        }
        Ok(Ok(Err(error))) => error.to_string(),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    tracing::debug!(%error, "no memories were recalled: {error}");
    RecallResult {
        found: Vec::new(),
        is_degraded: true,
    }
}

fn search_index(
    index: &MemoryIndex,
    request: &RecallRequest,
    settings: &MemorySettings,
    should_stop: &dyn Fn() -> bool,
) -> Vec<FoundMemory> {
    let scope = RecallScope {
        member: request.member,
        lineage: request.lineage.clone(),
        history: request.history,
    };
    let vectors: Vec<Vec<f32>> = request
        .queries
        .iter()
        .map(|it| local_embedding::embed(it))
        .collect();
    let queries: Vec<QueryText<'_>> = request
        .queries
        .iter()
        .zip(&vectors)
        .map(|(text, vector)| QueryText {
            text,
            vector: Some(vector),
            second: None,
        })
        .collect();
    let of_space = || settings.rules(request.prompt_tokens, local_embedding::COSINE_RANGE);
    let rules = request.rules.unwrap_or_else(of_space);
    search(index, &scope, &queries, &rules, should_stop)
}

/// Stops a search whose result nobody waits for.
#[derive(Default)]
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
