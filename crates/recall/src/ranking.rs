//! Ranks scored memories by words and by vectors, and fuses both rankings.

use std::cmp::Ordering;
use std::collections::HashMap;

use base::ids::MemoryId;

use crate::scored_memory::{MemoryScores, ScoredMemories, ScoredMemory};

/// The best memories of each ranking that are fused.
const MAX_CANDIDATES: usize = 40;
/// The candidates that are collected before those that are not among the best are removed.
const MAX_COLLECTED: usize = 4 * MAX_CANDIDATES;
/// The constant of reciprocal rank fusion: Cormack, Clarke and Büttcher, SIGIR 2009.
const RANK_CONSTANT: f32 = 60.0;

/// Returns the best memories of both rankings with their fused scores, best first.
pub fn fuse<'a>(memories: &ScoredMemories<'a>) -> Vec<(ScoredMemory<'a>, f32)> {
    let mut by_text = Ranking::new(|it| (it.text, it.vector.unwrap_or(0.0)));
    let mut by_vector = Ranking::new(|it| (it.vector.unwrap_or(0.0), it.text));
    memories.for_each(|scores, memory| {
        by_text.add(scores, memory);
        by_vector.add(scores, memory);
    });
    let mut fused: HashMap<MemoryId, (ScoredMemory<'a>, f32)> = HashMap::new();
    for ranking in [by_text, by_vector] {
        for (rank, it) in (1u8..).zip(ranking.best()) {
            let (_, score) = fused.entry(it.id).or_insert((it, 0.0));
            *score += 1.0 / (RANK_CONSTANT + f32::from(rank));
        }
    }
    let mut fused: Vec<_> = fused.into_values().collect();
    for (it, score) in &mut fused {
        *score *= 0.75 + 0.5 * it.entry().importance;
    }
    fused.sort_unstable_by(|(a, score), (b, other)| {
        descending(*score, *other).then_with(|| b.id.cmp(&a.id))
    });
    fused
}

/// The score by which memories are ranked, and the score that breaks a tie.
type RankScores = (f32, f32);

/// Collects the memories with the highest first scores above 0. Ties are broken by the second score,
/// because many memories contain only the same name, and then by age: the newer one is first.
struct Ranking<'a> {
    scores: fn(MemoryScores) -> RankScores,
    found: Vec<(RankScores, ScoredMemory<'a>)>,
    /// The lowest scores among the best memories so far: a memory with lower scores is not one of the best.
    minimum: RankScores,
}

impl<'a> Ranking<'a> {
    fn new(scores: fn(MemoryScores) -> RankScores) -> Self {
        Self {
            scores,
            found: Vec::with_capacity(MAX_COLLECTED),
            minimum: (0.0, 0.0),
        }
    }

    fn add(&mut self, scores: MemoryScores, memory: &dyn Fn() -> ScoredMemory<'a>) {
        let scores = (self.scores)(scores);
        if scores.0 <= 0.0 || scores < self.minimum {
            return;
        }
        self.found.push((scores, memory()));
        if self.found.len() == MAX_COLLECTED {
            self.found.select_nth_unstable_by(MAX_CANDIDATES - 1, order);
            self.found.truncate(MAX_CANDIDATES);
            self.minimum = self.found[MAX_CANDIDATES - 1].0;
        }
    }

    /// Returns the best memories in their order.
    fn best(mut self) -> impl Iterator<Item = ScoredMemory<'a>> {
        self.found.sort_unstable_by(order);
        self.found.into_iter().take(MAX_CANDIDATES).map(|it| it.1)
    }
}

fn order(
    (a, memory): &(RankScores, ScoredMemory<'_>),
    (b, other): &(RankScores, ScoredMemory<'_>),
) -> Ordering {
    let by_score = descending(a.0, b.0).then_with(|| descending(a.1, b.1));
    by_score.then_with(|| other.id.cmp(&memory.id))
}

fn descending(a: f32, b: f32) -> Ordering {
    b.total_cmp(&a)
}
