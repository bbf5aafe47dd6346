//! Which characters equal each other when case is ignored, as ECMAScript defines it
//! (`Canonicalize`).

use std::collections::HashMap;
use std::sync::LazyLock;

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use crate::pattern::char_set::CharSet;

/// Above this number of characters, all groups of equal characters are compared with a set.
const MAX_LOOKUPS: u64 = 512;
/// No character with two cases is beyond it.
const LAST_CASED: u32 = 0x1_ffff;

/// When two characters are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseRule {
    /// Their upper case is equal and one UTF-16 code unit; a character outside ASCII never equals
    /// one of ASCII. For patterns without the flags `u` and `v`.
    UpperCase,
    /// Their simple case folding is equal. For patterns with `u` or `v`.
    Folding,
}

/// The characters that have another case.
struct CaseTable {
    groups: Vec<Vec<u32>>,
    group_of: HashMap<u32, usize>,
}

impl CaseRule {
    /// Returns the rule for patterns with, or without, the flags `u` and `v`.
    pub fn from_unicode(is_unicode: bool) -> Self {
        if is_unicode {
            Self::Folding
        } else {
            Self::UpperCase
        }
    }

    /// Returns a character that represents all that are equal to this one.
    pub fn canonicalize(self, char: u32) -> u32 {
        self.table().group(char).map_or(char, |group| group[0])
    }

    /// Adds to a set all characters that are equal to one in it.
    pub fn close(self, set: &CharSet) -> CharSet {
        let table = self.table();
        let mut ranges = set.ranges().to_vec();
        let mut add = |group: &[u32]| ranges.extend(group.iter().map(|it| (*it, *it)));
        if set.n_chars() <= MAX_LOOKUPS {
            set.chars()
                .filter_map(|it| table.group(it))
                .for_each(&mut add);
        } else {
            let touched = |it: &&Vec<u32>| it.iter().any(|char| set.contains(*char));
            let groups = table.groups.iter().filter(touched);
            groups.for_each(|it| add(it));
        }
        CharSet::from_ranges(ranges)
    }

    fn table(self) -> &'static CaseTable {
        static UPPER_CASE: LazyLock<CaseTable> =
            LazyLock::new(|| CaseTable::new((0..=0xffff).map(upper_case)));
        static FOLDING: LazyLock<CaseTable> =
            LazyLock::new(|| CaseTable::new((0..=LAST_CASED).map(fold)));
        match self {
            Self::UpperCase => &UPPER_CASE,
            Self::Folding => &FOLDING,
        }
    }
}

impl CaseTable {
    /// Groups the characters 0, 1, … by what they map to.
    fn new(mapped: impl Iterator<Item = u32>) -> Self {
        let mut by_target: HashMap<u32, Vec<u32>> = HashMap::new();
        for (char, target) in (0..).zip(mapped) {
            if char != target {
                let group = by_target.entry(target).or_insert_with(|| vec![target]);
                group.push(char);
            }
        }
        let groups: Vec<Vec<u32>> = by_target.into_values().collect();
        let members = groups.iter().enumerate();
        let group_of = members
            .flat_map(|(n, group)| group.iter().map(move |it| (*it, n)))
            .collect();
        Self { groups, group_of }
    }

    fn group(&self, char: u32) -> Option<&[u32]> {
        self.group_of.get(&char).map(|n| self.groups[*n].as_slice())
    }
}

fn upper_case(unit: u32) -> u32 {
    let Some(char) = char::from_u32(unit) else {
        return unit;
    };
    let mut upper = char.to_uppercase();
    match (upper.next().map(u32::from), upper.next()) {
        (Some(one), None) if one <= 0xffff && (unit < 128 || one >= 128) => one,
        _ => unit,
    }
}

/// Returns the smallest character with the same simple case folding.
fn fold(code_point: u32) -> u32 {
    let Some(char) = char::from_u32(code_point) else {
        return code_point;
    };
    let is_cased = !char.to_lowercase().eq([char]) || !char.to_uppercase().eq([char]);
    if !is_cased {
        return code_point;
    }
    let mut class = ClassUnicode::new([ClassUnicodeRange::new(char, char)]);
    class.case_fold_simple();
    let first = class.ranges().first();
    first.map_or(code_point, |range| u32::from(range.start()))
}
