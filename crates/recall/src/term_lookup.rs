//! Finds the terms of all queries of a search among the terms of a memory, in one pass.

use crate::query::{PreparedQuery, TermSet};

/// The number of bits of the filter: with 30 terms, it lets pass 3 of 100 terms that are in no query.
const FILTER_BITS: usize = 1_024;
const WORD_BITS: usize = u64::BITS as usize;

/// The terms of several queries.
pub struct TermLookup {
    /// The last bits of the hashes of the terms: most terms of a memory are in no query, and are skipped.
    filter: [u64; FILTER_BITS / WORD_BITS],
    /// The hash of each term, the position of its query, and its bit there. Ascending.
    terms: Vec<(u64, usize, TermSet)>,
}

impl TermLookup {
    /// Collects the terms of these queries.
    pub fn new(queries: &[PreparedQuery<'_>]) -> Self {
        let mut lookup = Self {
            filter: [0; FILTER_BITS / WORD_BITS],
            terms: Vec::new(),
        };
        for (at, query) in queries.iter().enumerate() {
            let terms = query.hashes().map(|(hash, bit)| (hash, at, bit));
            lookup.terms.extend(terms);
        }
        lookup.terms.sort_unstable();
        for (hash, ..) in &lookup.terms {
            let (word, bit) = position(*hash);
            lookup.filter[word] |= bit;
        }
        lookup
    }

    /// Sets in the set of each query the bits of those of its terms that are among the terms of a memory.
    pub fn find(&self, terms_of_memory: &[u64], sets: &mut [TermSet]) {
        sets.fill(0);
        for hash in terms_of_memory {
            let (word, bit) = position(*hash);
            if self.filter[word] & bit == 0 {
                continue;
            }
            let first = self.terms.partition_point(|it| it.0 < *hash);
            let same = self.terms[first..].iter().take_while(|it| it.0 == *hash);
            same.for_each(|(_, at, bit)| sets[*at] |= bit);
        }
    }
}

/// Returns the word of the filter and the bit in it that stand for a hash.
fn position(hash: u64) -> (usize, u64) {
    // The remainder is less than the number of bits.
    let at = (hash % FILTER_BITS as u64) as usize;
    (at / WORD_BITS, 1 << (at % WORD_BITS))
}
