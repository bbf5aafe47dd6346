//! Defines the syntax tree of a pattern. Flags are already applied to its nodes: a character that
//! matches in both cases is a set.

use crate::pattern::char_set::CharSet;

/// A parsed pattern.
#[derive(Debug)]
pub struct SyntaxTree {
    pub root: Node,
    /// The number of capture groups.
    pub n_groups: u32,
    /// The names of capture groups, each with its group, in order.
    pub group_names: Vec<(String, u32)>,
    /// Whether a back-reference reads a capture group.
    pub has_back_references: bool,
}

/// A node. Characters are code points with the flags `u` and `v`, and UTF-16 code units otherwise.
#[derive(Debug)]
pub enum Node {
    Char(u32),
    /// One character of a set.
    Set(CharSet),
    Sequence(Vec<Node>),
    Alternation(Vec<Node>),
    /// A capture group; the first one has the number 1.
    Group(u32, Box<Node>),
    BackReference(BackReference),
    Assertion(Assertion),
    Look(Box<Look>),
    Repeat(Box<Repeat>),
}

/// A reference to the text of a capture group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackReference {
    /// Several groups have one name in different alternatives; at most one of them has a text.
    pub groups: Vec<u32>,
    pub ignore_case: bool,
}

/// A condition on a position that reads at most one character on each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assertion {
    TextStart,
    TextEnd,
    LineStart,
    LineEnd,
    /// `\b` and `\B`.
    WordBoundary {
        is_negated: bool,
        /// Whether U+017F and U+212A, which case folding maps to `s` and `k`, are word characters.
        is_folded: bool,
    },
}

/// Look-ahead or look-behind.
#[derive(Debug)]
pub struct Look {
    pub is_behind: bool,
    pub is_negated: bool,
    pub body: Node,
}

/// A quantifier.
#[derive(Debug)]
pub struct Repeat {
    pub body: Node,
    pub min: u32,
    /// The largest number for no maximum.
    pub max: u32,
    pub is_lazy: bool,
    /// The capture groups in the body: the first one, and the one after the last.
    pub groups: (u32, u32),
}

impl Node {
    /// Returns the smallest number of characters that a match of the node has.
    pub fn min_len(&self) -> u32 {
        match self {
            Self::Char(_) | Self::Set(_) => 1,
            Self::Sequence(nodes) => nodes.iter().fold(0, |n, it| n.saturating_add(it.min_len())),
            Self::Alternation(nodes) => nodes.iter().map(Self::min_len).min().unwrap_or(0),
            Self::Group(_, body) => body.min_len(),
            Self::BackReference(_) | Self::Assertion(_) | Self::Look(_) => 0,
            Self::Repeat(repeat) => repeat.body.min_len().saturating_mul(repeat.min),
        }
    }
}
