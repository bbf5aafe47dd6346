//! Searches for a pattern in a text, by backtracking with counted steps.
//!
//! **Invariant:** a search never executes more steps than it may, and its memory is limited. A step
//! is an instruction, or a character that a repetition reads.

use std::ops::{ControlFlow, Range};

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

/// A match. Bounds are UTF-16 code units, or code points with the flags `u` and `v`.
#[derive(Clone, Copy, Debug)]
pub struct PatternMatch<'m> {
    start: usize,
    end: usize,
    registers: &'m [u32],
}

impl PatternMatch<'_> {
    /// Returns the bounds of the whole match.
    pub fn range(&self) -> Range<usize> {
        self.start..self.end
    }

    /// Returns the bounds of a capture group, from 1, that took part in the match; also `None` if the
    /// pattern does not store captures.
    pub fn group(&self, group: usize) -> Option<Range<usize>> {
        let (start, end) = (
            *self.registers.get(group * 2)?,
            *self.registers.get(group * 2 + 1)?,
        );
        (start != UNSET && end != UNSET).then_some(start as usize..end as usize)
    }
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
        let mut found = None;
        self.find_each(pattern, text, steps_left, |it| {
            found = Some(it.range());
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// Calls `on_match` for each match that a global search finds, in order and without overlaps,
    /// until it breaks. An empty match moves the search by one character. Subtracts the steps from
    /// `steps_left`.
    ///
    /// # Errors
    /// Returns `StepLimitExceeded` if more steps than `steps_left` are needed.
    pub fn find_each(
        &mut self,
        pattern: &JsPattern,
        text: &PatternText,
        steps_left: &mut u64,
        on_match: impl FnMut(PatternMatch<'_>) -> ControlFlow<()>,
    ) -> Result<(), StepLimitExceeded> {
        match pattern.flags.unicode {
            true => self.find_each_in(pattern, text.code_points(), steps_left, on_match),
            false => self.find_each_in(pattern, text.units(), steps_left, on_match),
        }
    }

    fn find_each_in<T: Copy + Into<u32>>(
        &mut self,
        pattern: &JsPattern,
        text: &[T],
        steps_left: &mut u64,
        mut on_match: impl FnMut(PatternMatch<'_>) -> ControlFlow<()>,
    ) -> Result<(), StepLimitExceeded> {
        let memory = &mut self.memory;
        // Where a repetition has failed does not depend on where the search began, so that the memos
        // are valid for all matches in this text.
        memory.memos.clear();
        memory
            .memos
            .resize(pattern.program.n_runs, RunMemo::default());
        let n_registers = pattern.program.n_registers;
        let mut search = Search {
            memory,
            program: &pattern.program,
            text,
            look: UNSET,
            steps_left,
        };
        let mut from = 0;
        while from <= text.len() {
            search.memory.registers.clear();
            search.memory.registers.resize(n_registers, UNSET);
            let Some((start, end)) = find_from(&mut search, pattern, from)? else {
                break;
            };
            let found = PatternMatch {
                start,
                end,
                registers: &search.memory.registers
                    [..n_registers.min((pattern.n_captures + 1) * 2)],
            };
            if on_match(found).is_break() {
                break;
            }
            from = end + usize::from(start == end);
        }
        Ok(())
    }
}

/// Returns the bounds of the first match that starts at `from` or later; with the flag `y` only at
/// `from`.
fn find_from<T: Copy + Into<u32>>(
    search: &mut Search<'_, T>,
    pattern: &JsPattern,
    from: usize,
) -> Result<Option<(usize, usize)>, StepLimitExceeded> {
    let text = search.text;
    let last = match (pattern.flags.sticky, pattern.is_anchored) {
        (true, _) => from,
        (false, true) => 0,
        (false, false) => text.len(),
    };
    let mut start = from;
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
            return Ok(Some((start, end)));
        }
        start += 1;
    }
    Ok(None)
}

#[cfg(test)]
#[path = "matcher_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "pattern_property_tests.rs"]
mod property_tests;
