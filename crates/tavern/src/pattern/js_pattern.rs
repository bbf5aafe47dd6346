//! A compiled pattern.

use crate::pattern::char_set::CharSet;
use crate::pattern::program::{MatchSet, Program};
use crate::pattern::syntax::flags::PatternFlags;
use crate::pattern::syntax::syntax_error::PatternSyntaxError;
use crate::pattern::syntax::{flags, parser};
use crate::pattern::{compiler, first_chars, required_literals};

/// The maximum length of a pattern, in bytes.
const MAX_LENGTH: usize = 4096;

/// A regular expression with the meaning that it has in JavaScript.
#[derive(Debug)]
pub struct JsPattern {
    pub flags: PatternFlags,
    pub program: Program,
    /// Whether a match can only start at the start of the text.
    pub is_anchored: bool,
    /// The characters with which a match can start, unless it can be empty.
    pub first_chars: Option<MatchSet>,
    /// What every text with a match contains, if both are converted to lower case: at least one
    /// literal of each list.
    pub required_literals: Vec<Vec<String>>,
    /// The number of capture groups whose bounds a match has; 0 if they are not stored.
    pub n_captures: usize,
    /// The names of capture groups, each with its group, in order.
    pub group_names: Vec<(String, u32)>,
}

impl JsPattern {
    /// Compiles a pattern, as `new RegExp(source, flags)` does.
    ///
    /// # Errors
    /// Returns why the pattern or a flag is invalid, also if the pattern is longer than 4096 bytes.
    pub fn compile(source: &str, flags: &str) -> Result<Self, PatternSyntaxError> {
        Self::compile_with(source, flags, false)
    }

    /// Compiles a pattern like [`Self::compile`]; its matches have the bounds of their capture groups,
    /// for which a search needs more steps.
    ///
    /// # Errors
    /// The same.
    pub fn compile_with_captures(source: &str, flags: &str) -> Result<Self, PatternSyntaxError> {
        Self::compile_with(source, flags, true)
    }

    fn compile_with(
        source: &str,
        flags: &str,
        keeps_captures: bool,
    ) -> Result<Self, PatternSyntaxError> {
        let error = |reason| PatternSyntaxError {
            reason,
            position: source.chars().count(),
        };
        if source.len() > MAX_LENGTH {
            return Err(error("longer than 4096 bytes"));
        }
        let flags = flags::parse_flags(flags).ok_or_else(|| error("invalid flags"))?;
        let tree = parser::parse(source, flags)?;
        let first: Option<CharSet> = first_chars::first_chars(&tree.root);
        Ok(Self {
            flags,
            program: compiler::compile(&tree, flags.unicode, keeps_captures),
            is_anchored: flags.sticky || first_chars::is_anchored(&tree.root),
            first_chars: first.map(|it| MatchSet::new(&it)),
            required_literals: required_literals::find(&tree.root),
            n_captures: if keeps_captures {
                tree.n_groups as usize
            } else {
                0
            },
            group_names: tree.group_names,
        })
    }
}

#[cfg(test)]
#[path = "js_pattern_tests.rs"]
mod tests;
