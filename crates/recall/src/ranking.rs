//! Ranks scored memories by words and by vectors, and fuses both rankings.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::scored_memory::ScoredMemory;

/// The best memories of each ranking that are fused.
const MAX_CANDIDATES: usize = 40;
/// The candidates that are collected before those that are not among the best are removed.
const MAX_COLLECTED: usize = 4 * MAX_CANDIDATES;
/// The constant of reciprocal rank fusion: Cormack, Clarke and Büttcher, SIGIR 2009.
const RANK_CONSTANT: f32 = 60.0;

/// Returns the positions and fused scores of the best memories of both rankings, best first.
pub fn fuse(scored: &[ScoredMemory<'_>]) -> Vec<(usize, f32)> {
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

/// A position with the score by which it is ranked, and the score that breaks a tie.
type Ranked = (usize, (f32, f32));

/// Returns the positions of the memories with the highest first scores above 0. Ties are broken by
/// the second score, because many memories contain only the same name, and then by age: the newer one
/// is first.
fn best(
    scored: &[ScoredMemory<'_>],
    scores: impl Fn(&ScoredMemory<'_>) -> (f32, f32),
) -> Vec<usize> {
    let mut found: Vec<Ranked> = Vec::with_capacity(MAX_COLLECTED);
    // The worst of the best so far; only what precedes it can be one of the best.
    let mut worst: Option<Ranked> = None;
    for it in scored.iter().map(scores).enumerate() {
        if it.1.0 <= 0.0 || worst.is_some_and(|worst| order(&it, &worst).is_gt()) {
            continue;
        }
        found.push(it);
        if found.len() == MAX_COLLECTED {
            found.select_nth_unstable_by(MAX_CANDIDATES - 1, order);
            found.truncate(MAX_CANDIDATES);
            worst = found.last().copied();
        }
    }
    found.sort_unstable_by(order);
    found.truncate(MAX_CANDIDATES);
    found.into_iter().map(|(at, _)| at).collect()
}

fn order((at, a): &Ranked, (other, b): &Ranked) -> Ordering {
    let by_score = descending(a.0, b.0).then_with(|| descending(a.1, b.1));
    by_score.then_with(|| other.cmp(at))
}

fn descending(a: f32, b: f32) -> Ordering {
    b.total_cmp(&a)
}
