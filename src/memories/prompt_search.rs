//! Finds the memories for a prompt, within a time limit. A failure leaves the memories out and
//! never fails the prompt; if only the provider's model fails, they are found by words and local vectors.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, MemoryId};
use recall::entry::RecallScope;
use recall::query::QueryText;
use recall::search::{FoundMemory, RecallRules, search};
use sea_orm::{ConnectionTrait, DbErr};
use tokio::time::timeout;

use crate::db::connect::Db;
use crate::memories::embedding::query_embedding::QueryVectors;
use crate::memories::error::MemoryError;
use crate::memories::index_cache::{MemoryIndexes, SpaceIndex};
use crate::memories::memory_settings::MemorySettings;
use crate::memories::metrics::memory_metrics::{RecallOutcome, RecallSource};
use crate::memories::other_sources;
use crate::spaces::space;

/// How long a prompt waits for the index or the search.
const TIMEOUT: Duration = Duration::from_millis(250);
/// How long a prompt waits for its memories if a provider embeds the queries.
const TIMEOUT_WITH_PROVIDER: Duration = Duration::from_secs(2);

/// A text to search for.
#[derive(Clone, Debug)]
pub struct RecallQuery {
    pub text: String,
    /// The names of the authors, if the text consists of messages; see [`QueryText::authors`].
    pub authors: String,
    /// What is embedded: each message with the name of its author, because memories begin with names, too.
    pub embedded: String,
}

impl From<String> for RecallQuery {
    fn from(text: String) -> Self {
        Self {
            embedded: text.clone(),
            authors: String::new(),
            text,
        }
    }
}

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
    /// Only these memories; see [`RecallScope::chosen`].
    pub chosen: Option<HashSet<MemoryId>>,
    /// The texts to search for. A memory is found by the one that fits it best.
    pub queries: Vec<RecallQuery>,
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
    /// Whether the search or a part of it failed or timed out.
    pub is_degraded: bool,
    /// Whether nothing was searched at all.
    pub has_failed: bool,
}

impl RecallResult {
    /// Removes the memories that a member does not know who heard only what was said since `time`.
    ///
    /// # Errors
    /// Returns the database error if a query fails.
    pub async fn retain_heard(
        &mut self,
        db: &impl ConnectionTrait,
        member: MembershipId,
        time: Timestamp,
    ) -> Result<(), DbErr> {
        let ids: Vec<MemoryId> = self.found.iter().map(|it| it.memory.id).collect();
        let heard = other_sources::list_heard(db, &ids, member, time).await?;
        self.found.retain(|it| heard.contains(&it.memory.id));
        Ok(())
    }

    fn outcome(&self) -> RecallOutcome {
        let is_hit = self.found.iter().any(|it| it.rank.is_some());
        match (self.is_degraded, is_hit) {
            (true, _) => RecallOutcome::Degraded,
            (false, true) => RecallOutcome::Hit,
            (false, false) => RecallOutcome::Empty,
        }
    }
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
    let started = Instant::now();
    let result = recall_in_time(db, indexes, request, settings).await;
    indexes
        .metrics
        .recalled(result.outcome(), started.elapsed());
    result
}

async fn recall_in_time(
    db: &Db,
    indexes: &MemoryIndexes,
    request: RecallRequest,
    settings: MemorySettings,
) -> RecallResult {
    let limit = match request.space.embedding_model_id {
        Some(_) => TIMEOUT_WITH_PROVIDER,
        None => TIMEOUT,
    };
    let searched = timeout(limit, search_space(db, indexes, request, settings)).await;
    let error = match searched {
        Ok(Ok(result)) => return result,
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    tracing::debug!(%error, "no memories were recalled: {error}");
    indexes.metrics.source_failed(RecallSource::Index);
    RecallResult {
        found: Vec::new(),
        is_degraded: true,
        has_failed: true,
    }
}

/// Loads the index and embeds the queries at the same time, and searches.
async fn search_space(
    db: &Db,
    indexes: &MemoryIndexes,
    request: RecallRequest,
    settings: MemorySettings,
) -> Result<RecallResult, MemoryError> {
    let texts: Vec<String> = request
        .queries
        .iter()
        .map(|it| it.embedded.clone())
        .collect();
    let embedding = indexes.queries.embed(db, &request.space, &texts);
    // A failure of the index does not wait for the provider.
    let (index, embedded) = tokio::try_join!(load_index(db, indexes, &request.space), async {
        Ok(embedding.await)
    })?;
    let is_degraded = embedded.is_err();
    let vectors = embedded.unwrap_or_else(|error| {
        tracing::debug!(%error, "memories are compared by local vectors: {error}");
        indexes.metrics.source_failed(RecallSource::Vectors);
        None
    });
    let stop = StopOnDrop::default();
    let is_stopped = stop.0.clone();
    let work = move || {
        let should_stop = || is_stopped.load(Ordering::Relaxed);
        search_index(&index, &request, &settings, vectors.as_ref(), &should_stop)
    };
    let searching = timeout(TIMEOUT, tokio::task::spawn_blocking(work));
    let found = searching.await.map_err(|_| MemoryError::TimedOut)??;
    Ok(RecallResult {
        found,
        is_degraded,
        has_failed: false,
    })
}

async fn load_index(
    db: &Db,
    indexes: &MemoryIndexes,
    space: &space::Model,
) -> Result<Arc<SpaceIndex>, MemoryError> {
    let (db, indexes, space) = (db.clone(), indexes.clone(), space.clone());
    // A task, so that the index of a large space is ready for the next prompt if this one times out.
    let loading = tokio::spawn(async move { indexes.load(&db, &space).await });
    let loaded = timeout(TIMEOUT, loading).await;
    loaded.map_err(|_| MemoryError::TimedOut)??
}

fn search_index(
    index: &SpaceIndex,
    request: &RecallRequest,
    settings: &MemorySettings,
    of_provider: Option<&QueryVectors>,
    should_stop: &(dyn Fn() -> bool + Sync),
) -> Vec<FoundMemory> {
    let scope = RecallScope {
        member: request.member,
        lineage: request.lineage.clone(),
        history: request.history,
        chosen: request.chosen.clone(),
    };
    // The index may be newer than the row of the space that the request has.
    let of_provider = of_provider.filter(|it| Some(it.model) == index.provider_model);
    let vectors: Vec<Vec<f32>> = request
        .queries
        .iter()
        .map(|it| local_embedding::embed(&it.embedded))
        .collect();
    let queries: Vec<QueryText<'_>> = request
        .queries
        .iter()
        .zip(&vectors)
        .enumerate()
        .map(|(at, (query, vector))| QueryText {
            text: &query.text,
            authors: &query.authors,
            vector: Some(vector),
            provider_vector: of_provider.and_then(|it| it.at(at)),
        })
        .collect();
    let of_space = || settings.rules(request.prompt_tokens, local_embedding::COSINE_RANGE);
    let rules = request.rules.unwrap_or_else(of_space);
    search(&index.memories, &scope, &queries, &rules, should_stop)
}

/// Stops a search whose result nobody waits for.
#[derive(Default)]
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
