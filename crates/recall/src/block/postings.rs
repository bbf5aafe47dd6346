//! The terms of the memories of a block: for each term, the memories that contain it. A search reads
//! only the lists of its own terms.

/// The hashes of terms, and the positions of the memories that contain each.
#[derive(Debug, Default)]
pub struct Postings {
    /// Ascending.
    hashes: Box<[u64]>,
    /// Where the list of each term ends.
    ends: Box<[u32]>,
    /// One list after the other, each ascending.
    positions: Box<[u16]>,
}

impl Postings {
    /// Collects the terms of memories: the position of each memory with each of its distinct terms.
    pub fn new(terms: impl Iterator<Item = (u64, u16)>) -> Self {
        let mut terms: Vec<(u64, u16)> = terms.collect();
        terms.sort_unstable();
        let (mut hashes, mut ends): (Vec<u64>, Vec<u32>) = (Vec::new(), Vec::new());
        for (end, (hash, _)) in (1..).zip(&terms) {
            match ends.last_mut() {
                Some(last) if hashes.last() == Some(hash) => *last = end,
                _ => {
                    hashes.push(*hash);
                    ends.push(end);
                }
            }
        }
        Self {
            hashes: hashes.into(),
            ends: ends.into(),
            positions: terms.into_iter().map(|it| it.1).collect(),
        }
    }

    /// Returns the positions of the memories that contain a term.
    pub fn containing(&self, hash: u64) -> &[u16] {
        let at = self.hashes.binary_search(&hash);
        at.map_or(&[], |at| self.list(at))
    }

    /// Returns the terms of each of the first `n` memories.
    pub fn terms_of_each(&self, n: usize) -> Vec<Vec<u64>> {
        let mut terms = vec![Vec::new(); n];
        for (at, hash) in self.hashes.iter().enumerate() {
            for position in self.list(at) {
                terms[usize::from(*position)].push(*hash);
            }
        }
        terms
    }

    /// Returns its approximate size in memory, in bytes, without the structure itself.
    pub fn n_bytes(&self) -> usize {
        size_of_val(&*self.hashes) + size_of_val(&*self.ends) + size_of_val(&*self.positions)
    }

    fn list(&self, at: usize) -> &[u16] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.positions[start as usize..self.ends[at] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::Postings;

    #[test]
    fn each_term_has_the_positions_that_contain_it() {
        let postings = Postings::new([(7, 0), (3, 0), (7, 2), (9, 1)].into_iter());

        assert_eq!(postings.containing(7), [0, 2]);
        assert_eq!(postings.containing(3), [0]);
        assert_eq!(postings.containing(9), [1]);
        assert!(postings.containing(8).is_empty());
        assert_eq!(postings.terms_of_each(3), [vec![3, 7], vec![9], vec![7]]);
    }

    #[test]
    fn without_terms_nothing_is_found() {
        assert!(Postings::default().containing(0).is_empty());
        assert_eq!(Postings::new(std::iter::empty()).n_bytes(), 0);
    }
}
