//! Searches an index: scores each memory in scope by words and by vector, fuses both rankings, and
//! selects what is recalled.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use crate::entry::{MemoryEntry, RecallScope};
use crate::index::MemoryIndex;
use crate::quantized_vector::QuantizedVector;
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
/// The weight of a term that no memory contains, for example "breed" in "the breed of my dog". It is
/// only weak evidence that the query is about something else.
const UNKNOWN_TERM_WEIGHT: f32 = 0.4;
/// The memories that are scored between two checks whether the search must stop.
const STOP_CHECK_INTERVAL: usize = 4_096;

/// A text to search for, and its vector if it has one.
#[derive(Clone, Copy, Debug)]
pub struct QueryText<'a> {
    pub text: &'a str,
    /// Of length 1; compared only with vectors of as many dimensions.
    pub vector: Option<&'a [f32]>,
    /// Compared with the memories that have a second vector of the same model; the other memories are
    /// compared by the first vector.
    pub second: Option<SecondVector<'a>>,
}

/// The vector of a query by another embedding model.
#[derive(Clone, Copy, Debug)]
pub struct SecondVector<'a> {
    pub vector: &'a QuantizedVector,
    /// The cosines of this model that count as a vector score of 0 and of 1.
    pub cosine_range: (f32, f32),
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
    /// The cosines of the first vectors that count as a vector score of 0 and of 1, which depend on the
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
    should_stop: &dyn Fn() -> bool,
) -> Vec<FoundMemory> {
    let queries: Vec<_> = queries.iter().map(PreparedQuery::new).collect();
    let mut scored: Vec<ScoredMemory<'_>> = Vec::new();
    // For each query, the terms that each memory contains.
    let mut sets: Vec<Vec<TermSet>> = vec![Vec::new(); queries.len()];
    for (n, memory) in index.in_scope(scope).enumerate() {
        if n.is_multiple_of(STOP_CHECK_INTERVAL) && should_stop() {
            return Vec::new();
        }
        let vector_scores = queries
            .iter()
            .filter_map(|it| it.vector_score(memory, rules.cosine_range));
        scored.push(ScoredMemory {
            memory,
            vector_score: vector_scores.reduce(f32::max),
            text_score: 0.0,
            matched: None,
        });
        for (query, sets) in queries.iter().zip(&mut sets) {
            sets.push(query.terms_of(memory));
        }
    }
    for (query, sets) in queries.iter().zip(&sets) {
        query.score_terms(&mut scored, sets);
    }
    select(fuse(&scored), &scored, rules)
}

/// A memory in scope with its scores.
struct ScoredMemory<'a> {
    memory: &'a Arc<MemoryEntry>,
    vector_score: Option<f32>,
    text_score: f32,
    /// The query with the highest text score, and its terms that the memory contains.
    matched: Option<(&'a PreparedQuery<'a>, TermSet)>,
}

impl ScoredMemory<'_> {
    fn best_score(&self) -> f32 {
        self.text_score.max(self.vector_score.unwrap_or(0.0))
    }

    fn found(&self, rank: Option<usize>, score: f32) -> FoundMemory {
        let matched = self.matched.map(|(query, set)| query.names(set));
        FoundMemory {
            memory: self.memory.clone(),
            rank,
            score,
            vector_score: self.vector_score,
            text_score: self.text_score,
            matched: matched.unwrap_or_default(),
        }
    }
}

/// The terms of a query that a memory contains, a bit for each.
type TermSet = u64;

struct PreparedQuery<'a> {
    terms: Vec<String>,
    /// The hash of each term, and its bit. Ascending.
    bits: Vec<(u64, TermSet)>,
    /// The last six bits of the hashes: most terms of a memory are in no query, and are skipped.
    hash_ends: u64,
    vector: Option<&'a [f32]>,
    second: Option<SecondVector<'a>>,
}

impl<'a> PreparedQuery<'a> {
    fn new(query: &QueryText<'a>) -> Self {
        let mut terms = terms(query.text);
        terms.truncate(MAX_TERMS);
        let bits = terms.iter().enumerate();
        let mut bits: Vec<_> = bits.map(|(n, it)| (term_hash(it), 1 << n)).collect();
        bits.sort_unstable();
        Self {
            hash_ends: bits.iter().fold(0, |ends, it| ends | hash_end(it.0)),
            bits,
            terms,
            vector: query.vector,
            second: query.second,
        }
    }

    fn terms_of(&self, memory: &MemoryEntry) -> TermSet {
        let possible = memory
            .terms
            .iter()
            .filter(|it| self.hash_ends & hash_end(**it) != 0);
        possible.fold(0, |set, term| {
            let found = self.bits.binary_search_by_key(term, |it| it.0);
            found.map_or(set, |at| set | self.bits[at].1)
        })
    }

    /// Returns the score by the second vectors, or by the first ones if one of the two is missing.
    fn vector_score(&self, memory: &MemoryEntry, cosine_range: (f32, f32)) -> Option<f32> {
        if let Some(score) = self.second_score(memory) {
            return Some(score);
        }
        let cosine = dot(self.vector?, memory.vector.as_deref()?)?;
        Some(to_score(cosine, cosine_range))
    }

    fn second_score(&self, memory: &MemoryEntry) -> Option<f32> {
        let second = self.second?;
        let cosine = second.vector.dot(memory.second_vector.as_ref()?)?;
        Some(to_score(cosine, second.cosine_range))
    }

    /// Raises the text scores of the memories that fit this query better than earlier ones.
    fn score_terms<'s>(&'s self, scored: &mut [ScoredMemory<'s>], sets: &[TermSet]) {
        let weights = self.weights(sets);
        let total: f32 = weights.iter().sum();
        for (it, set) in scored.iter_mut().zip(sets).filter(|(_, set)| **set != 0) {
            let score = weight_of(*set, &weights) / total;
            if score > it.text_score {
                it.text_score = score;
                it.matched = Some((self, *set));
            }
        }
    }

    /// Returns the inverse document frequency of each term, as BM25 defines it, except for terms
    /// that no memory contains.
    fn weights(&self, sets: &[TermSet]) -> Vec<f32> {
        let mut n_containing = [0u32; MAX_TERMS];
        for set in sets {
            bits_of(*set).for_each(|n| n_containing[n] += 1);
        }
        let n_memories = sets.len() as f32;
        let weight = |n: &u32| match *n {
            0 => UNKNOWN_TERM_WEIGHT,
            n => (1.0 + (n_memories - n as f32 + 0.5) / (n as f32 + 0.5)).ln(),
        };
        n_containing[..self.terms.len()]
            .iter()
            .map(weight)
            .collect()
    }

    fn names(&self, set: TermSet) -> Vec<String> {
        bits_of(set).map(|n| self.terms[n].clone()).collect()
    }
}

fn to_score(cosine: f32, (low, high): (f32, f32)) -> f32 {
    ((cosine - low) / (high - low)).clamp(0.0, 1.0)
}

/// Returns the bit that stands for the last six bits of a hash.
fn hash_end(hash: u64) -> u64 {
    1 << (hash % 64)
}

/// Returns the positions of the bits that are set, ascending.
fn bits_of(mut set: TermSet) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(lowest)
    })
}

fn weight_of(set: TermSet, weights: &[f32]) -> f32 {
    bits_of(set).map(|n| weights[n]).sum()
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
    let by_text = |it: &ScoredMemory<'_>| (it.text_score, it.vector_score.unwrap_or(0.0));
    let by_vector = |it: &ScoredMemory<'_>| (it.vector_score.unwrap_or(0.0), it.text_score);
    for ranking in [best(scored, by_text), best(scored, by_vector)] {
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

/// Returns the positions of the memories with the highest first scores above 0. Ties are broken by
/// the second score, because many memories contain only the same name, and then by age: the newer one
/// is first.
fn best(
    scored: &[ScoredMemory<'_>],
    scores: impl Fn(&ScoredMemory<'_>) -> (f32, f32),
) -> Vec<usize> {
    type Ranked = (usize, (f32, f32));
    let all = scored.iter().map(scores).enumerate();
    let mut found: Vec<Ranked> = all.filter(|(_, scores)| scores.0 > 0.0).collect();
    let order = |(at, a): &Ranked, (other, b): &Ranked| {
        let by_score = descending(a.0, b.0).then_with(|| descending(a.1, b.1));
        by_score.then_with(|| other.cmp(at))
    };
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
