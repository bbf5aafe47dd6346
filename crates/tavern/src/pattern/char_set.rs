//! Sets of characters, as sorted ranges.

/// A set of code points or UTF-16 code units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CharSet {
    /// Sorted; neither overlapping nor adjacent. Both bounds are part of a range.
    ranges: Vec<(u32, u32)>,
}

impl CharSet {
    /// Creates the set of one character.
    pub fn single(char: u32) -> Self {
        Self {
            ranges: vec![(char, char)],
        }
    }

    /// Creates a set from ranges in any order.
    pub fn from_ranges(ranges: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut all: Vec<(u32, u32)> = ranges.into_iter().collect();
        all.sort_unstable();
        let mut ranges: Vec<(u32, u32)> = Vec::with_capacity(all.len());
        for (first, last) in all {
            match ranges.last_mut() {
                Some(previous) if first <= previous.1.saturating_add(1) => {
                    previous.1 = previous.1.max(last);
                }
                _ => ranges.push((first, last)),
            }
        }
        Self { ranges }
    }

    /// Returns the ranges in ascending order.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    /// Returns all characters in ascending order.
    pub fn chars(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranges.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// Returns the number of characters.
    pub fn n_chars(&self) -> u64 {
        let sizes = self.ranges.iter();
        sizes.map(|(first, last)| u64::from(last - first) + 1).sum()
    }

    /// Returns the only character, if there is exactly one.
    pub fn as_single(&self) -> Option<u32> {
        match self.ranges.as_slice() {
            [(first, last)] if first == last => Some(*first),
            _ => None,
        }
    }

    /// Returns whether the set has a character.
    pub fn contains(&self, char: u32) -> bool {
        let next = self.ranges.partition_point(|(_, last)| *last < char);
        self.ranges
            .get(next)
            .is_some_and(|(first, _)| *first <= char)
    }

    /// Returns the characters of both sets.
    pub fn union(&self, other: &Self) -> Self {
        Self::from_ranges(self.ranges.iter().chain(&other.ranges).copied())
    }

    /// Returns the characters from 0 to `max` that are not in the set.
    pub fn complement(&self, max: u32) -> Self {
        let mut ranges = Vec::with_capacity(self.ranges.len() + 1);
        let mut next = 0;
        for (first, last) in &self.ranges {
            if *first > next {
                ranges.push((next, first - 1));
            }
            next = last.saturating_add(1);
        }
        if next <= max {
            ranges.push((next, max));
        }
        Self { ranges }
    }

    /// Returns the characters that are in both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        let (mut left, mut right) = (
            self.ranges.iter().peekable(),
            other.ranges.iter().peekable(),
        );
        let mut ranges = Vec::new();
        while let (Some(one), Some(two)) = (left.peek(), right.peek()) {
            let (first, last) = (one.0.max(two.0), one.1.min(two.1));
            if first <= last {
                ranges.push((first, last));
            }
            if one.1 < two.1 {
                left.next();
            } else {
                right.next();
            }
        }
        Self { ranges }
    }

    /// Returns the characters of this set that are not in the other.
    pub fn difference(&self, other: &Self) -> Self {
        self.intersection(&other.complement(u32::MAX))
    }
}
