//! Reads the memories of an index: which of them are in the scope of a search, which terms of the
//! queries they contain, and how similar their vectors are.

use std::panic::resume_unwind;
use std::thread;

use crate::block::memory_block::{MAX_MEMORIES, MemoryBlock};
use crate::block::vector_rows::VectorRows;
use crate::entry::RecallScope;
use crate::index::IndexPart;
use crate::query::{PreparedQuery, TermSet, VectorSource};

/// The minimum number of memories of a thread: reading them takes a few milliseconds, much longer than the
/// start of the thread.
pub const MIN_PER_THREAD: usize = 16 * MAX_MEMORIES;
/// The maximum number of threads of a search, so that it leaves cores to the rest of the server.
const MAX_THREADS: usize = 4;

/// The parameters of a search that reads memories.
#[derive(Clone, Copy)]
pub struct Scan<'a> {
    pub scope: &'a RecallScope,
    pub queries: &'a [PreparedQuery<'a>],
    /// The cosines of the local vectors that count as a score of 0 and of 1.
    pub cosine_range: (f32, f32),
    pub should_stop: &'a (dyn Fn() -> bool + Sync),
}

/// The values that were read of a block.
pub struct ScannedBlock<'a> {
    pub block: &'a MemoryBlock,
    /// The positions of the memories in scope, ascending.
    pub in_scope: Vec<usize>,
    /// By position; NaN if no vectors were compared.
    pub vector_scores: Vec<f32>,
    pub terms: Vec<ScannedTerms>,
}

/// Which terms of a query the memories of a block contain.
pub struct ScannedTerms {
    /// By position.
    pub sets: Vec<TermSet>,
    /// For each term, the number of memories in scope that contain it.
    pub n_containing: Vec<usize>,
}

impl<'a> Scan<'a> {
    /// Reads all blocks, many of them in several threads. Returns `None` if the search must stop.
    pub fn read(self, parts: &'a [IndexPart]) -> Option<Vec<ScannedBlock<'a>>> {
        let n_threads = n_threads(parts.len() * MAX_MEMORIES);
        if n_threads < 2 {
            return self.read_part(parts);
        }
        thread::scope(|threads| {
            let shares = parts.chunks(parts.len().div_ceil(n_threads));
            let start = |share| threads.spawn(move || self.read_part(share));
            let running: Vec<_> = shares.map(start).collect();
            let ended = running.into_iter().map(|it| it.join());
            let shares = ended.map(|it| it.unwrap_or_else(|panic| resume_unwind(panic)));
            let shares: Option<Vec<_>> = shares.collect();
            Some(shares?.into_iter().flatten().collect())
        })
    }

    fn read_part(self, parts: &'a [IndexPart]) -> Option<Vec<ScannedBlock<'a>>> {
        let blocks = parts.iter();
        let blocks = blocks.map(|it| (!(self.should_stop)()).then(|| self.read_block(it)));
        blocks.collect()
    }

    fn read_block(self, part: &'a IndexPart) -> ScannedBlock<'a> {
        let block = &*part.block;
        let keys = block.keys().iter();
        let mut is_in_scope: Vec<bool> = keys
            .map(|it| self.scope.contains(it, block.audiences()))
            .collect();
        for position in &part.removed {
            is_in_scope[usize::from(*position)] = false;
        }
        let terms = self
            .queries
            .iter()
            .map(|it| find_terms(it, block, &is_in_scope));
        ScannedBlock {
            block,
            terms: terms.collect(),
            vector_scores: self.compare_vectors(block, &is_in_scope),
            in_scope: (0..block.len()).filter(|it| is_in_scope[*it]).collect(),
        }
    }

    /// Returns the best score of each memory. A query is compared by the vectors of the provider, and by
    /// the local ones if one of the two is missing.
    fn compare_vectors(self, block: &MemoryBlock, is_in_scope: &[bool]) -> Vec<f32> {
        let mut scores = vec![vec![f32::NAN; block.len()]; self.queries.len()];
        for rows in block.provider_vectors() {
            self.compare_rows(rows, VectorSource::Provider, is_in_scope, &mut scores);
        }
        for rows in block.vectors() {
            let source = VectorSource::Local(self.cosine_range);
            self.compare_rows(rows, source, is_in_scope, &mut scores);
        }
        let best = |mut best: Vec<f32>, scores: Vec<f32>| {
            // The maximum of a number and NaN is the number.
            let pairs = best.iter_mut().zip(scores);
            pairs.for_each(|(best, score)| *best = best.max(score));
            best
        };
        let scores = scores.into_iter().reduce(best);
        scores.unwrap_or_else(|| vec![f32::NAN; block.len()])
    }

    /// Sets the scores that are not set yet. Each row is compared with all queries before the next one,
    /// because reading it from memory takes longer than comparing it.
    fn compare_rows(
        self,
        rows: &VectorRows,
        source: VectorSource,
        is_in_scope: &[bool],
        scores: &mut [Vec<f32>],
    ) {
        let queries = self.queries.iter().map(|it| it.vector(source)).zip(scores);
        let queries = queries.filter_map(|(vector, scores)| Some((vector?, scores)));
        let of_model = queries.filter(|((it, _), _)| it.dimensions() == rows.dimensions());
        let mut of_model: Vec<_> = of_model.collect();
        if of_model.is_empty() {
            return;
        }
        for (position, codes, factor) in rows.rows().filter(|it| is_in_scope[it.0]) {
            for ((vector, cosine_range), scores) in &mut of_model {
                let score = &mut scores[position];
                if score.is_nan() {
                    *score = to_score(vector.dot(codes, factor), *cosine_range);
                }
            }
        }
    }
}

fn find_terms(
    query: &PreparedQuery<'_>,
    block: &MemoryBlock,
    is_in_scope: &[bool],
) -> ScannedTerms {
    let mut sets: Vec<TermSet> = vec![0; block.len()];
    let count = |(n, hash): (usize, &u64)| {
        let mut count = 0;
        for position in block.containing(*hash) {
            let position = usize::from(*position);
            sets[position] |= TermSet::from(is_in_scope[position]) << n;
            count += usize::from(is_in_scope[position]);
        }
        count
    };
    let n_containing = query.hashes().iter().enumerate().map(count).collect();
    ScannedTerms { sets, n_containing }
}

fn to_score(cosine: f32, (low, high): (f32, f32)) -> f32 {
    ((cosine - low) / (high - low)).clamp(0.0, 1.0)
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
