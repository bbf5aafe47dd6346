//! A text to search for: its terms, its vectors, and how well a memory fits to them.

use crate::quantized_vector::QueryVector;
use crate::terms::{term_hash, terms};

/// The terms of a query that are used; each is a bit of a [`TermSet`].
const MAX_TERMS: usize = 64;
/// The weight of a term that no memory contains, for example "breed" in "the breed of my dog". It is
/// only weak evidence that the query is about something else.
const UNKNOWN_TERM_WEIGHT: f32 = 0.4;
/// In a space with fewer memories, the frequency of a term of the text is computed as if there were this
/// many: that one of three memories contains a word does not mean that the word is common.
const MIN_COUNTED_MEMORIES: usize = 50;
/// The share of the weight of a term that is only in the name of an author: most messages are not about
/// the person who writes them, but many memories contain the name.
const AUTHOR_SHARE: f32 = 0.25;

/// A text to search for, and its vector if it has one.
#[derive(Clone, Copy, Debug)]
pub struct QueryText<'a> {
    pub text: &'a str,
    /// The names of those who wrote the text, if it consists of messages. Their words count less than those
    /// of the text, and find nothing alone.
    pub authors: &'a str,
    /// By the local model, of length 1; compared only with vectors of as many dimensions.
    pub vector: Option<&'a [f32]>,
    /// Compared with the memories that have a vector of the same model of a provider; the other memories
    /// are compared by the local vector.
    pub provider_vector: Option<ProviderVector<'a>>,
}

/// The vector of a query by the embedding model of a provider.
#[derive(Clone, Copy, Debug)]
pub struct ProviderVector<'a> {
    pub vector: &'a QueryVector,
    /// The cosines of this model that count as a vector score of 0 and of 1.
    pub cosine_range: (f32, f32),
}

/// The model of the vectors that are compared.
#[derive(Clone, Copy, Debug)]
pub enum VectorSource {
    /// The local model, with the cosines that count as a score of 0 and of 1.
    Local((f32, f32)),
    Provider,
}

/// The terms of a query that a memory contains, a bit for each.
pub type TermSet = u64;

/// A query with its terms.
pub struct PreparedQuery<'a> {
    /// Those of the text, and then those that are only in the names of the authors.
    terms: Vec<String>,
    hashes: Vec<u64>,
    /// The number of terms of the text.
    n_in_text: usize,
    vector: Option<QueryVector>,
    provider_vector: Option<ProviderVector<'a>>,
}

impl<'a> PreparedQuery<'a> {
    /// Splits the text of a query into terms.
    pub fn new(query: &QueryText<'a>) -> Self {
        let mut all = terms(query.text);
        let n_in_text = all.len();
        if n_in_text > 0 {
            let in_text: Vec<u64> = all.iter().map(|it| term_hash(it)).collect();
            let of_authors = terms(query.authors).into_iter();
            all.extend(of_authors.filter(|it| !in_text.contains(&term_hash(it))));
        }
        all.truncate(MAX_TERMS);
        Self {
            hashes: all.iter().map(|it| term_hash(it)).collect(),
            terms: all,
            n_in_text,
            vector: query.vector.map(QueryVector::new),
            provider_vector: query.provider_vector,
        }
    }

    /// Returns the hash of each of its terms; the bit with the same position in a [`TermSet`] stands
    /// for the term.
    pub fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// Returns its vector by the local model or by that of a provider, with the cosines that count as a
    /// score of 0 and of 1.
    pub fn vector(&self, source: VectorSource) -> Option<(&QueryVector, (f32, f32))> {
        match source {
            VectorSource::Local(cosine_range) => Some((self.vector.as_ref()?, cosine_range)),
            VectorSource::Provider => self.provider_vector.map(|it| (it.vector, it.cosine_range)),
        }
    }

    /// Returns the inverse document frequency of each term, as BM25 defines it, except for terms
    /// that no memory contains; `n_containing` are the numbers of memories that contain each term.
    pub fn weights(&self, n_containing: &[usize], n_memories: usize) -> TermWeights {
        let inverse_frequency = |n: usize, of: usize| match n {
            0 => UNKNOWN_TERM_WEIGHT,
            n => (1.0 + (of as f32 - n as f32 + 0.5) / (n as f32 + 0.5)).ln(),
        };
        let weight = |(at, n): (usize, &usize)| match at < self.n_in_text {
            true => inverse_frequency(*n, n_memories.max(MIN_COUNTED_MEMORIES)),
            // Names of authors are in many memories, also in a small space.
            false => inverse_frequency(*n, n_memories) * AUTHOR_SHARE,
        };
        TermWeights::new(n_containing.iter().enumerate().map(weight).collect())
    }

    /// Returns these terms, in the order of the query.
    pub fn names(&self, set: TermSet) -> Vec<String> {
        bits_of(set).map(|n| self.terms[n].clone()).collect()
    }
}

/// Returns the positions of the bits that are set, ascending.
fn bits_of(mut set: TermSet) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(lowest)
    })
}

/// The weights of the terms of a query.
pub struct TermWeights {
    /// For each group of 8 terms, the sum of the weights of each subset of the group. Adding the weights of
    /// the terms for each memory would take longer.
    sums: Vec<[f32; 256]>,
    total: f32,
}

impl TermWeights {
    fn new(weights: Vec<f32>) -> Self {
        let sums = |weights: &[f32]| -> [f32; 256] {
            std::array::from_fn(|set| {
                let numbered = weights.iter().enumerate();
                let contained = numbered.filter(|(n, _)| set & (1 << n) != 0);
                contained.map(|it| it.1).sum()
            })
        };
        Self {
            sums: weights.chunks(8).map(sums).collect(),
            total: weights.iter().sum(),
        }
    }

    /// Returns the share of the weights that these terms have, from 0 to 1.
    pub fn share(&self, set: TermSet) -> f32 {
        if set == 0 {
            return 0.0;
        }
        let parts = self.sums.iter().zip(set.to_le_bytes());
        let sum: f32 = parts.map(|(sums, part)| sums[usize::from(part)]).sum();
        sum / self.total
    }
}
