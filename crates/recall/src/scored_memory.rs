//! The memories of an index that are in the scope of a search, with their scores.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use crate::entry::{MemoryEntry, RecallScope};
use crate::query::{PreparedQuery, TermSet, weight_of};
use crate::term_lookup::TermLookup;

/// The memories that are scored between two checks whether the search must stop.
pub const STOP_CHECK_INTERVAL: usize = 4_096;
/// So many memories take a few milliseconds: a thread of their own is worth its start.
pub const MIN_PER_THREAD: usize = 16_384;
/// A search must not keep more cores from the rest of the server.
const MAX_THREADS: usize = 4;

/// A memory in scope with its scores.
pub struct ScoredMemory<'a> {
    pub memory: &'a Arc<MemoryEntry>,
    pub vector_score: Option<f32>,
    pub text_score: f32,
    /// The query with the highest text score, and its terms that the memory contains.
    pub matched: Option<(&'a PreparedQuery<'a>, TermSet)>,
}

impl ScoredMemory<'_> {
    /// Returns the larger of both scores.
    pub fn best_score(&self) -> f32 {
        self.text_score.max(self.vector_score.unwrap_or(0.0))
    }
}

/// How memories are scored.
#[derive(Clone, Copy)]
pub struct Scoring<'a> {
    pub scope: &'a RecallScope,
    pub queries: &'a [PreparedQuery<'a>],
    /// The cosines of the local vectors that count as a score of 0 and of 1.
    pub cosine_range: (f32, f32),
    pub should_stop: &'a (dyn Fn() -> bool + Sync),
}

/// Scored memories without text scores, which depend on all of them.
struct Part<'a> {
    scored: Vec<ScoredMemory<'a>>,
    /// For each query, the terms that each memory contains.
    sets: Vec<Vec<TermSet>>,
}

impl<'a> Scoring<'a> {
    /// Scores those of these memories that are in scope, in their order. Returns `None` if the search
    /// must stop.
    pub fn score(self, memories: &'a [Arc<MemoryEntry>]) -> Option<Vec<ScoredMemory<'a>>> {
        let Part { mut scored, sets } = self.score_parts(memories)?;
        for (query, sets) in self.queries.iter().zip(&sets) {
            score_terms(query, &mut scored, sets);
        }
        Some(scored)
    }

    /// Divides many memories among several threads.
    fn score_parts(self, memories: &'a [Arc<MemoryEntry>]) -> Option<Part<'a>> {
        let n_threads = n_threads(memories.len());
        if n_threads < 2 {
            return self.score_part(memories);
        }
        thread::scope(|threads| {
            let parts = memories.chunks(memories.len().div_ceil(n_threads));
            let start = |part| threads.spawn(move || self.score_part(part));
            let running: Vec<_> = parts.map(start).collect();
            let ended = running.into_iter().map(|it| it.join());
            let parts = ended.map(|it| it.unwrap_or_else(|panic| resume_unwind(panic)));
            parts.reduce(|all, next| Some(all?.followed_by(next?)))?
        })
    }

    fn score_part(self, memories: &'a [Arc<MemoryEntry>]) -> Option<Part<'a>> {
        let lookup = TermLookup::new(self.queries);
        let mut found = vec![0; self.queries.len()];
        let mut part = Part {
            scored: Vec::with_capacity(memories.len()),
            sets: vec![Vec::with_capacity(memories.len()); self.queries.len()],
        };
        for block in memories.chunks(STOP_CHECK_INTERVAL) {
            if (self.should_stop)() {
                return None;
            }
            for memory in block.iter().filter(|it| self.scope.contains(it)) {
                let scores = self.queries.iter();
                let scores = scores.filter_map(|it| it.vector_score(memory, self.cosine_range));
                part.scored.push(ScoredMemory {
                    memory,
                    vector_score: scores.reduce(f32::max),
                    text_score: 0.0,
                    matched: None,
                });
                lookup.find(&memory.terms, &mut found);
                for (sets, found) in part.sets.iter_mut().zip(&found) {
                    sets.push(*found);
                }
            }
        }
        Some(part)
    }
}

impl Part<'_> {
    fn followed_by(mut self, next: Self) -> Self {
        self.scored.extend(next.scored);
        for (sets, next) in self.sets.iter_mut().zip(next.sets) {
            sets.extend(next);
        }
        self
    }
}

fn n_threads(n_memories: usize) -> usize {
    match n_memories / MIN_PER_THREAD {
        // The number of cores is read from files.
        0 | 1 => 1,
        n => n.min(MAX_THREADS).min(n_cores()),
    }
}

fn n_cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Raises the text scores of the memories that fit this query better than earlier ones.
fn score_terms<'a>(
    query: &'a PreparedQuery<'a>,
    scored: &mut [ScoredMemory<'a>],
    sets: &[TermSet],
) {
    let weights = query.weights(sets);
    let total: f32 = weights.iter().sum();
    for (it, set) in scored.iter_mut().zip(sets).filter(|(_, set)| **set != 0) {
        let score = weight_of(*set, &weights) / total;
        if score > it.text_score {
            it.text_score = score;
            it.matched = Some((query, *set));
        }
    }
}
