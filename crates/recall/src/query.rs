//! A text to search for: its terms, its vectors, and how well a memory fits to them.

use crate::entry::MemoryEntry;
use crate::quantized_vector::QueryVector;
use crate::terms::{term_hash, terms};

/// The terms of a query that are used; each is a bit of a [`TermSet`].
const MAX_TERMS: usize = 64;
/// The weight of a term that no memory contains, for example "breed" in "the breed of my dog". It is
/// only weak evidence that the query is about something else.
const UNKNOWN_TERM_WEIGHT: f32 = 0.4;
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

/// The terms of a query that a memory contains, a bit for each.
pub type TermSet = u64;

/// A query with its terms.
pub struct PreparedQuery<'a> {
    /// Those of the text, and then those that are only in the names of the authors.
    terms: Vec<String>,
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
            terms: all,
            n_in_text,
            vector: query.vector.map(QueryVector::new),
            provider_vector: query.provider_vector,
        }
    }

    /// Returns the hash of each of its terms, and the bit that stands for the term.
    pub fn hashes(&self) -> impl Iterator<Item = (u64, TermSet)> {
        let terms = self.terms.iter().enumerate();
        terms.map(|(n, it)| (term_hash(it), 1 << n))
    }

    /// Returns the score by the vectors of the provider, or by the local ones if one of the two is missing.
    pub fn vector_score(&self, memory: &MemoryEntry, cosine_range: (f32, f32)) -> Option<f32> {
        if let Some(score) = self.provider_score(memory) {
            return Some(score);
        }
        let cosine = self.vector.as_ref()?.dot(memory.vector.as_ref()?)?;
        Some(to_score(cosine, cosine_range))
    }

    fn provider_score(&self, memory: &MemoryEntry) -> Option<f32> {
        let query = self.provider_vector?;
        let cosine = query.vector.dot(memory.provider_vector.as_ref()?)?;
        Some(to_score(cosine, query.cosine_range))
    }

    /// Returns the inverse document frequency of each term, as BM25 defines it, except for terms
    /// that no memory contains; `sets` are the terms that each memory contains.
    pub fn weights(&self, sets: &[TermSet]) -> Vec<f32> {
        let mut n_containing = [0u32; MAX_TERMS];
        for set in sets {
            bits_of(*set).for_each(|n| n_containing[n] += 1);
        }
        let n_memories = sets.len() as f32;
        let weight = |(at, n): (usize, &u32)| {
            let weight = match *n {
                0 => UNKNOWN_TERM_WEIGHT,
                n => (1.0 + (n_memories - n as f32 + 0.5) / (n as f32 + 0.5)).ln(),
            };
            let is_in_text = at < self.n_in_text;
            weight * if is_in_text { 1.0 } else { AUTHOR_SHARE }
        };
        let counts = n_containing[..self.terms.len()].iter();
        counts.enumerate().map(weight).collect()
    }

    /// Returns these terms, in the order of the query.
    pub fn names(&self, set: TermSet) -> Vec<String> {
        bits_of(set).map(|n| self.terms[n].clone()).collect()
    }
}

fn to_score(cosine: f32, (low, high): (f32, f32)) -> f32 {
    ((cosine - low) / (high - low)).clamp(0.0, 1.0)
}

/// Returns the positions of the bits that are set, ascending.
fn bits_of(mut set: TermSet) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(lowest)
    })
}

/// Returns the sum of the weights of these terms.
pub fn weight_of(set: TermSet, weights: &[f32]) -> f32 {
    bits_of(set).map(|n| weights[n]).sum()
}
