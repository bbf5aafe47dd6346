//! Searches for a pattern in a text, by backtracking with counted steps.
//!
//! **Invariant:** a search never executes more steps than it may, and its memory is limited. A step
//! is an instruction, or a character that a repetition reads.

use std::ops::Range;

use crate::pattern::js_pattern::JsPattern;
use crate::pattern::pattern_text::PatternText;
use crate::pattern::run_memo::RunMemo;
use crate::pattern::search::{Search, SearchMemory, StepLimitExceeded, UNSET};

/// Positions at which no match can start are skipped, and this number of them costs a step.
const SKIPPED_PER_STEP: usize = 16;

/// Searches for patterns. Its memory is used again by the next search.
#[derive(Debug, Default)]
pub struct Matcher {
    memory: SearchMemory,
}

impl Matcher {
    /// Returns the first match, as a range of UTF-16 code units, or of code points with the flags
    /// `u` and `v`. Subtracts the steps from `steps_left`.
    ///
    /// # Errors
    /// Returns `StepLimitExceeded` if more steps than `steps_left` are needed.
    pub fn find(
        &mut self,
        pattern: &JsPattern,
        text: &PatternText,
        steps_left: &mut u64,
    ) -> Result<Option<Range<usize>>, StepLimitExceeded> {
        match pattern.flags.unicode {
            true => self.find_in(pattern, text.code_points(), steps_left),
            false => self.find_in(pattern, text.units(), steps_left),
        }
    }

    fn find_in<T: Copy + Into<u32>>(
        &mut self,
        pattern: &JsPattern,
        text: &[T],
        steps_left: &mut u64,
    ) -> Result<Option<Range<usize>>, StepLimitExceeded> {
        let memory = &mut self.memory;
        memory.registers.clear();
        memory.registers.resize(pattern.program.n_registers, UNSET);
        memory.memos.clear();
        memory
            .memos
            .resize(pattern.program.n_runs, RunMemo::default());
        let mut search = Search {
            memory,
            program: &pattern.program,
            text,
            look: UNSET,
            steps_left,
        };
        let last = match pattern.is_anchored {
            true => 0,
            false => text.len(),
        };
        let mut start = 0;
        while start <= last {
            if let Some(first) = &pattern.first_chars {
                let mut rest = text[start..].iter();
                let next = rest.position(|it| first.contains((*it).into()));
                let n_skipped = next.unwrap_or(text.len() - start);
                search.spend(n_skipped / SKIPPED_PER_STEP)?;
                start += n_skipped;
                if next.is_none() || start > last {
                    return Ok(None);
                }
            }
            if let Some(end) = search.match_at(start)? {
                return Ok(Some(start..end));
            }
            start += 1;
        }
        Ok(None)
    }
}

#[cfg(test)]
#[path = "matcher_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "pattern_property_tests.rs"]
mod property_tests;
