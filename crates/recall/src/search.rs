//! Searches an index: scores each memory in scope by words and by vector, fuses both rankings, and
//! selects what is recalled.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use crate::entry::{MemoryEntry, RecallScope};
use crate::index::MemoryIndex;
use crate::terms::{term_hash, terms};

/// The best memories of each ranking that are fused.
const MAX_CANDIDATES: usize = 40;
/// The constant of reciprocal rank fusion: Cormack, Clarke and Büttcher, SIGIR 2009.
const RANK_CONSTANT: f32 = 60.0;
/// The pinned memories that are recalled whatever the query is.
const MAX_PINNED: usize = 2;
/// The memories that are returned although they are not recalled.
const MAX_NEAR_MISSES: usize = 10;
/// The terms of a query that are used; each is a bit of a [`TermSet`].
const MAX_TERMS: usize = 64;
/// The weight of a term that no memory contains, for example "name" in "the name of my dog". It shows
/// only weakly that the query is about something else.
const UNKNOWN_TERM_WEIGHT: f32 = 0.4;
/// The memories that are scored between two checks whether the search must stop.
const STOP_CHECK_INTERVAL: usize = 4_096;

/// A text to search for, and its vector if it has one.
#[derive(Clone, Copy, Debug)]
pub struct QueryText<'a> {
    pub text: &'a str,
    /// Of length 1; compared only with vectors of as many dimensions.
    pub vector: Option<&'a [f32]>,
}

/// What a search recalls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecallRules {
    /// The maximum number of memories, pinned ones included.
    pub top_k: usize,
    /// The minimum of the larger of both scores, from 0 to 1.
    pub threshold: f32,
    /// The maximum number of tokens.
    pub token_budget: i64,
    /// The cosines that count as a vector score of 0 and of 1, which depend on the embedding model.
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
    should_stop: &dyn Fn() -> bool,
) -> Vec<FoundMemory> {
    let mut scored: Vec<ScoredMemory<'_>> = Vec::new();
    for (n, memory) in index.in_scope(scope).enumerate() {
        if n.is_multiple_of(STOP_CHECK_INTERVAL) && should_stop() {
            return Vec::new();
        }
        scored.push(ScoredMemory::new(memory));
    }
    for query in queries {
        let query = PreparedQuery::new(query);
        if !query.score(&mut scored, rules.cosine_range, should_stop) {
            return Vec::new();
        }
    }
    select(fuse(&scored), &scored, rules)
}

/// A memory in scope and its scores so far.
struct ScoredMemory<'a> {
    memory: &'a Arc<MemoryEntry>,
    vector_score: Option<f32>,
    text_score: f32,
    matched: Vec<String>,
}

impl<'a> ScoredMemory<'a> {
    fn new(memory: &'a Arc<MemoryEntry>) -> Self {
        Self {
            memory,
            vector_score: None,
            text_score: 0.0,
            matched: Vec::new(),
        }
    }

    fn best_score(&self) -> f32 {
        self.text_score.max(self.vector_score.unwrap_or(0.0))
    }

    fn found(&self, rank: Option<usize>, score: f32) -> FoundMemory {
        FoundMemory {
            memory: self.memory.clone(),
            rank,
            score,
            vector_score: self.vector_score,
            text_score: self.text_score,
            matched: self.matched.clone(),
        }
    }
}

/// The terms of a query that a memory contains, a bit for each.
type TermSet = u64;

struct PreparedQuery<'a> {
    terms: Vec<String>,
    /// The hash of each term, and its bit.
    bits: HashMap<u64, TermSet>,
    vector: Option<&'a [f32]>,
}

impl<'a> PreparedQuery<'a> {
    fn new(query: &QueryText<'a>) -> Self {
        let mut terms = terms(query.text);
        terms.truncate(MAX_TERMS);
        let bits = terms.iter().enumerate();
        Self {
            bits: bits.map(|(n, it)| (term_hash(it), 1 << n)).collect(),
            terms,
            vector: query.vector,
        }
    }

    /// Raises the scores of the memories that fit this query better. Returns `false` if it stopped.
    fn score(
        &self,
        scored: &mut [ScoredMemory<'_>],
        cosine_range: (f32, f32),
        should_stop: &dyn Fn() -> bool,
    ) -> bool {
        let mut sets = Vec::with_capacity(scored.len());
        for part in scored.chunks_mut(STOP_CHECK_INTERVAL) {
            if should_stop() {
                return false;
            }
            for it in part {
                sets.push(self.terms_of(it.memory));
                if let Some(score) = self.vector_score(it.memory, cosine_range) {
                    it.vector_score = Some(score.max(it.vector_score.unwrap_or(0.0)));
                }
            }
        }
        let weights = self.weights(&sets);
        let total: f32 = weights.iter().sum();
        for (it, set) in scored.iter_mut().zip(sets).filter(|(_, set)| *set != 0) {
            let score = weight_of(set, &weights) / total;
            if score > it.text_score {
                it.text_score = score;
                it.matched = self.names(set);
            }
        }
        true
    }

    fn terms_of(&self, memory: &MemoryEntry) -> TermSet {
        let bits = memory.terms.iter().filter_map(|it| self.bits.get(it));
        bits.fold(0, |set, bit| set | bit)
    }

    fn vector_score(&self, memory: &MemoryEntry, (low, high): (f32, f32)) -> Option<f32> {
        let cosine = dot(self.vector?, memory.vector.as_deref()?)?;
        Some(((cosine - low) / (high - low)).clamp(0.0, 1.0))
    }

    /// Returns the inverse document frequency of each term, as BM25 defines it, except for terms
    /// that no memory contains.
    fn weights(&self, sets: &[TermSet]) -> Vec<f32> {
        let n_memories = sets.len() as f32;
        let weight = |n: usize| {
            let n_containing = sets.iter().filter(|set| **set >> n & 1 == 1).count() as f32;
            if n_containing == 0.0 {
                return UNKNOWN_TERM_WEIGHT;
            }
            (1.0 + (n_memories - n_containing + 0.5) / (n_containing + 0.5)).ln()
        };
        (0..self.terms.len()).map(weight).collect()
    }

    fn names(&self, set: TermSet) -> Vec<String> {
        let terms = self.terms.iter().enumerate();
        let contained = terms.filter(|(n, _)| set >> n & 1 == 1);
        contained.map(|(_, term)| term.clone()).collect()
    }
}

fn weight_of(set: TermSet, weights: &[f32]) -> f32 {
    let weights = weights.iter().enumerate();
    weights
        .filter(|(n, _)| set >> n & 1 == 1)
        .map(|(_, it)| it)
        .sum()
}

/// Returns the scalar product, which is the cosine of vectors of length 1. Returns `None` if the
/// vectors have different dimensions, because they are of different models.
fn dot(a: &[f32], b: &[f32]) -> Option<f32> {
    const LANES: usize = 8;
    if a.len() != b.len() {
        return None;
    }
    // Independent sums, which the compiler turns into vector instructions.
    let mut sums = [0.0f32; LANES];
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f32 = a
        .remainder()
        .iter()
        .zip(b.remainder())
        .map(|(a, b)| a * b)
        .sum();
    for (a, b) in a.zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    Some(sums.iter().sum::<f32>() + rest)
}

/// Returns the positions and fused scores of the best memories of both rankings, best first.
fn fuse(scored: &[ScoredMemory<'_>]) -> Vec<(usize, f32)> {
    let mut fused: HashMap<usize, f32> = HashMap::new();
    let by_text = |at: usize| Some(scored[at].text_score);
    let by_vector = |at: usize| scored[at].vector_score;
    for ranking in [best(scored.len(), by_text), best(scored.len(), by_vector)] {
        for (rank, at) in (1u8..).zip(ranking) {
            *fused.entry(at).or_default() += 1.0 / (RANK_CONSTANT + f32::from(rank));
        }
    }
    let mut fused: Vec<_> = fused.into_iter().collect();
    for (at, score) in &mut fused {
        *score *= 0.75 + 0.5 * scored[*at].memory.importance;
    }
    fused.sort_unstable_by(|a, b| descending(a.1, b.1).then(b.0.cmp(&a.0)));
    fused
}

/// Returns the positions of the memories with the highest scores above 0; of equal ones the newer.
fn best(n_memories: usize, score: impl Fn(usize) -> Option<f32>) -> Vec<usize> {
    let positive = (0..n_memories).filter_map(|at| Some((at, score(at).filter(|it| *it > 0.0)?)));
    let mut found: Vec<(usize, f32)> = positive.collect();
    let order = |a: &(usize, f32), b: &(usize, f32)| descending(a.1, b.1).then(b.0.cmp(&a.0));
    if found.len() > MAX_CANDIDATES {
        found.select_nth_unstable_by(MAX_CANDIDATES, order);
        found.truncate(MAX_CANDIDATES);
    }
    found.sort_unstable_by(order);
    found.into_iter().map(|(at, _)| at).collect()
}

fn descending(a: f32, b: f32) -> Ordering {
    b.total_cmp(&a)
}

/// Selects the memories that are recalled, pinned ones first, within the limits.
fn select(
    fused: Vec<(usize, f32)>,
    scored: &[ScoredMemory<'_>],
    rules: &RecallRules,
) -> Vec<FoundMemory> {
    let scores: HashMap<usize, f32> = fused.iter().copied().collect();
    let pinned = pinned(scored);
    let core = pinned.iter().map(|at| (*at, true));
    let rest = fused.iter().filter(|(at, _)| !pinned.contains(at));
    let rest = rest.map(|(at, _)| (*at, scored[*at].best_score() >= rules.threshold));
    let (mut recalled, mut near) = (Vec::new(), Vec::new());
    let mut tokens_left = rules.token_budget;
    for (at, is_close) in core.chain(rest) {
        let it = &scored[at];
        let score = scores.get(&at).copied().unwrap_or(0.0);
        if is_close && recalled.len() < rules.top_k && it.memory.tokens <= tokens_left {
            tokens_left -= it.memory.tokens;
            recalled.push(it.found(Some(recalled.len()), score));
        } else if near.len() < MAX_NEAR_MISSES {
            near.push(it.found(None, score));
        }
    }
    recalled.extend(near);
    recalled
}

/// Returns the positions of the pinned memories that were recalled last.
fn pinned(scored: &[ScoredMemory<'_>]) -> Vec<usize> {
    let mut pinned: Vec<usize> = (0..scored.len())
        .filter(|at| scored[*at].memory.is_pinned)
        .collect();
    pinned.sort_by_key(|at| {
        let memory = scored[*at].memory;
        std::cmp::Reverse((memory.last_recalled_at, memory.id))
    });
    pinned.truncate(MAX_PINNED);
    pinned
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
