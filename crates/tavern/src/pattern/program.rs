//! Defines the instructions of a compiled pattern.

use crate::pattern::char_set::CharSet;
use crate::pattern::syntax::tree::{Assertion, BackReference};

/// A compiled pattern. Its size is proportional to the length of the pattern.
#[derive(Debug, Default)]
pub struct Program {
    pub instructions: Vec<Instruction>,
    pub sets: Vec<MatchSet>,
    pub back_references: Vec<BackReference>,
    /// Whether texts consist of code points instead of UTF-16 code units.
    pub is_unicode: bool,
    /// Registers hold the bounds of capture groups, and the state of loops.
    pub n_registers: usize,
    /// The number of instructions `Run`.
    pub n_runs: usize,
}

/// An instruction. Numbers are indexes of instructions, sets, back-references and registers.
#[derive(Clone, Copy, Debug)]
pub enum Instruction {
    /// Matches this character.
    Char {
        char: u32,
        is_backward: bool,
    },
    /// Matches a character of a set.
    Set {
        set: u32,
        is_backward: bool,
    },
    Assertion(Assertion),
    BackReference {
        reference: u32,
        is_backward: bool,
    },
    /// Continues at the first instruction, and at the other one if that fails.
    Split {
        first: u32,
        other: u32,
    },
    Jump(u32),
    /// Repeats a set.
    Run(Run),
    /// Stores the position in a register.
    Save(u32),
    /// Clears the registers from the first one to before the other.
    Clear(u32, u32),
    /// Sets the counter of a loop to 0.
    StartLoop(u32),
    Loop(Loop),
    /// Starts look-ahead or look-behind, which ends at `LookEnd`; continues at `after` from the same
    /// position.
    Look {
        is_negated: bool,
        after: u32,
    },
    LookEnd,
    Match,
}

/// The repetition of a set.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The number of this instruction among those of its kind.
    pub number: u32,
    pub set: u32,
    pub min: u32,
    pub max: u32,
    pub is_lazy: bool,
    pub is_backward: bool,
    /// Whether what follows depends only on the position, so that a failure can be remembered.
    pub is_memoized: bool,
}

/// The head of a loop with a counter, which is executed before each iteration. The body follows it
/// and jumps back to it.
#[derive(Clone, Copy, Debug)]
pub struct Loop {
    /// The register with the number of iterations. The next one has the start of the iteration.
    pub counter: u32,
    pub min: u32,
    pub max: u32,
    pub is_lazy: bool,
    pub exit: u32,
}

/// A set for fast tests.
#[derive(Debug)]
pub struct MatchSet {
    /// A bit for each character below 256.
    low: [u64; 4],
    /// The ranges from 256 on.
    high: Box<[(u32, u32)]>,
}

impl MatchSet {
    /// Creates the set.
    pub fn new(set: &CharSet) -> Self {
        let mut low = [0; 4];
        let chars = set.chars().take_while(|char| *char < 256);
        chars.for_each(|char| low[char as usize / 64] |= 1 << (char % 64));
        let high = set.ranges().iter().filter(|(_, last)| *last >= 256);
        Self {
            low,
            high: high
                .map(|(first, last)| (*(first.max(&256)), *last))
                .collect(),
        }
    }

    /// Returns whether the set has a character.
    #[inline]
    pub fn contains(&self, char: u32) -> bool {
        if char < 256 {
            return self.low[char as usize / 64] & (1 << (char % 64)) != 0;
        }
        let next = self.high.partition_point(|(_, last)| *last < char);
        self.high.get(next).is_some_and(|(first, _)| *first <= char)
    }
}
