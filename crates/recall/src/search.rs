//! Searches an index: scores each memory in scope by words and by vector, fuses both rankings, and
//! selects what is recalled, within the limits.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::entry::{MemoryEntry, RecallScope};
use crate::index::MemoryIndex;
use crate::query::{PreparedQuery, QueryText};
use crate::ranking::fuse;
use crate::scan::Scan;
use crate::scored_memory::{ScoredMemories, ScoredMemory};

/// The pinned memories that are recalled whatever the query is.
const MAX_PINNED: usize = 2;
/// The memories that are returned although they are not recalled.
const MAX_NEAR_MISSES: usize = 10;

/// What a search recalls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecallRules {
    /// The maximum number of memories, pinned ones included.
    pub top_k: usize,
    /// The minimum of the larger of both scores, from 0 to 1.
    pub threshold: f32,
    /// The maximum number of tokens.
    pub token_budget: i64,
    /// The cosines of the local vectors that count as a vector score of 0 and of 1, which depend on the
    /// embedding model.
    pub cosine_range: (f32, f32),
}

impl Default for RecallRules {
    fn default() -> Self {
        Self {
            top_k: 5,
            threshold: 0.6,
            token_budget: 512,
            cosine_range: (0.0, 1.0),
        }
    }
}

/// A memory that was recalled, or came close.
#[derive(Clone, Debug)]
pub struct FoundMemory {
    pub memory: Arc<MemoryEntry>,
    /// From 0; `None` if it is not recalled.
    pub rank: Option<usize>,
    /// The fused score, by which the memories are ordered.
    pub score: f32,
    /// From 0 to 1; `None` if no vectors were compared.
    pub vector_score: Option<f32>,
    /// From 0 to 1: the share of the query's terms that it contains, weighted by their rarity.
    pub text_score: f32,
    /// The terms of the query that it contains.
    pub matched: Vec<String>,
}

/// Returns the memories that are recalled, best first, and then those that came close. A memory is
/// scored by the query that fits it best. Returns nothing if `should_stop` returns `true` meanwhile.
pub fn search(
    index: &MemoryIndex,
    scope: &RecallScope,
    queries: &[QueryText<'_>],
    rules: &RecallRules,
    should_stop: &(dyn Fn() -> bool + Sync),
) -> Vec<FoundMemory> {
    let queries: Vec<_> = queries.iter().map(PreparedQuery::new).collect();
    let scan = Scan {
        scope,
        queries: &queries,
        cosine_range: rules.cosine_range,
        should_stop,
    };
    match scan.read(index.parts()) {
        Some(blocks) => select(&ScoredMemories::new(&queries, &blocks), rules),
        None => Vec::new(),
    }
}

/// Selects the memories that are recalled, pinned ones first, within the limits.
fn select(memories: &ScoredMemories<'_>, rules: &RecallRules) -> Vec<FoundMemory> {
    let fused = fuse(memories);
    let score_of = |it: &ScoredMemory<'_>| {
        let same = fused.iter().find(|(other, _)| other.id == it.id);
        same.map_or(0.0, |(_, score)| *score)
    };
    let pinned = last_recalled(memories.pinned());
    let core = pinned.iter().map(|it| (it, score_of(it), true));
    let rest = fused.iter();
    let rest = rest.filter(|(it, _)| pinned.iter().all(|pinned| pinned.id != it.id));
    let rest = rest.map(|(it, score)| (it, *score, it.scores.best() >= rules.threshold));
    let (mut recalled, mut near) = (Vec::new(), Vec::new());
    let mut tokens_left = rules.token_budget;
    for (it, score, is_close) in core.chain(rest) {
        let found = |rank| FoundMemory {
            memory: it.entry().clone(),
            rank,
            score,
            vector_score: it.scores.vector,
            text_score: it.scores.text,
            matched: memories.matched(it),
        };
        let tokens = it.entry().tokens;
        if is_close && recalled.len() < rules.top_k && tokens <= tokens_left {
            tokens_left -= tokens;
            recalled.push(found(Some(recalled.len())));
        } else if near.len() < MAX_NEAR_MISSES {
            near.push(found(None));
        }
    }
    recalled.extend(near);
    recalled
}

/// Returns those of the pinned memories that were recalled last.
fn last_recalled(mut pinned: Vec<ScoredMemory<'_>>) -> Vec<ScoredMemory<'_>> {
    pinned.sort_by_key(|it| Reverse((it.entry().last_recalled_at, it.id)));
    pinned.truncate(MAX_PINNED);
    pinned
}

#[cfg(test)]
#[path = "search_fixtures.rs"]
mod fixtures;

#[cfg(test)]
#[path = "search_score_tests.rs"]
mod score_tests;

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "search_reference_tests.rs"]
mod reference_tests;
