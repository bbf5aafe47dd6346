//! The memories in the scope of a search with their scores.

use std::sync::Arc;

use base::ids::MemoryId;

use crate::entry::MemoryEntry;
use crate::query::{PreparedQuery, TermWeights};
use crate::scan::ScannedBlock;

/// A memory with its scores.
#[derive(Clone, Copy)]
pub struct ScoredMemory<'a> {
    pub id: MemoryId,
    pub scores: MemoryScores,
    block: &'a ScannedBlock<'a>,
    position: usize,
}

/// How well a memory fits to the queries.
#[derive(Clone, Copy)]
pub struct MemoryScores {
    pub vector: Option<f32>,
    pub text: f32,
}

impl MemoryScores {
    /// Returns the larger of both scores.
    pub fn best(self) -> f32 {
        self.text.max(self.vector.unwrap_or(0.0))
    }
}

impl<'a> ScoredMemory<'a> {
    /// Returns the memory itself.
    pub fn entry(&self) -> &'a Arc<MemoryEntry> {
        self.block.block.entry(self.position)
    }
}

/// All memories in scope.
pub struct ScoredMemories<'a> {
    queries: &'a [PreparedQuery<'a>],
    /// The weights of the terms of each query.
    weights: Vec<TermWeights>,
    blocks: &'a [ScannedBlock<'a>],
}

impl<'a> ScoredMemories<'a> {
    /// Weights the terms of the queries by their frequency in these blocks.
    pub fn new(queries: &'a [PreparedQuery<'a>], blocks: &'a [ScannedBlock<'a>]) -> Self {
        let n_memories = blocks.iter().map(|it| it.in_scope.len()).sum();
        let weights = queries.iter().enumerate().map(|(at, query)| {
            let mut n_containing = vec![0; query.hashes().len()];
            for block in blocks {
                let of_block = &block.terms[at].n_containing;
                n_containing
                    .iter_mut()
                    .zip(of_block)
                    .for_each(|(n, of_block)| *n += of_block);
            }
            query.weights(&n_containing, n_memories)
        });
        Self {
            queries,
            weights: weights.collect(),
            blocks,
        }
    }

    /// Calls `visit` with the scores of each memory in scope, and with a function that creates the
    /// [`ScoredMemory`], because only a few are needed.
    pub fn for_each(&self, mut visit: impl FnMut(MemoryScores, &dyn Fn() -> ScoredMemory<'a>)) {
        for block in self.blocks {
            for position in block.in_scope.iter().copied() {
                let scores = self.scores(block, position);
                visit(scores, &|| Self::memory(block, position, scores));
            }
        }
    }

    /// Returns the pinned memories.
    pub fn pinned(&self) -> Vec<ScoredMemory<'a>> {
        let all = self.blocks.iter().flat_map(|block| {
            let positions = block.in_scope.iter().copied();
            let pinned = positions.filter(|it| block.block.keys()[*it].is_pinned);
            pinned.map(move |it| Self::memory(block, it, self.scores(block, it)))
        });
        all.collect()
    }

    /// Returns the terms that the memory contains, of the query with the highest text score.
    pub fn matched(&self, memory: &ScoredMemory<'_>) -> Vec<String> {
        let sets = memory.block.terms.iter().map(|it| it.sets[memory.position]);
        let mut best = (0.0, Vec::new());
        for ((query, weights), set) in self.queries.iter().zip(&self.weights).zip(sets) {
            let score = weights.share(set);
            if score > best.0 {
                best = (score, query.names(set));
            }
        }
        best.1
    }

    fn scores(&self, block: &ScannedBlock<'_>, position: usize) -> MemoryScores {
        let terms = block.terms.iter().zip(&self.weights);
        let shares = terms.map(|(terms, weights)| weights.share(terms.sets[position]));
        let vector = block.vector_scores[position];
        MemoryScores {
            vector: (!vector.is_nan()).then_some(vector),
            text: shares.fold(0.0, f32::max),
        }
    }

    fn memory(
        block: &'a ScannedBlock<'a>,
        position: usize,
        scores: MemoryScores,
    ) -> ScoredMemory<'a> {
        ScoredMemory {
            id: block.block.keys()[position].id,
            scores,
            block,
            position,
        }
    }
}
