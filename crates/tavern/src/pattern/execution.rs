//! Executes the instructions of a pattern at one position of a text.

use crate::pattern::case_folding::CaseRule;
use crate::pattern::program::Instruction;
use crate::pattern::search::{Frame, Search, StepLimitExceeded, UNSET};
use crate::pattern::syntax::escape::{FOLDED_WORD_CHARS, WORD_CHARS};
use crate::pattern::syntax::parser::LINE_TERMINATORS;
use crate::pattern::syntax::tree::{Assertion, BackReference};

impl<T: Copy + Into<u32>> Search<'_, T> {
    /// Returns the end of the match that starts at a position.
    ///
    /// # Errors
    /// Returns `StepLimitExceeded` if it needs more steps or memory than it may use.
    pub fn match_at(&mut self, start: usize) -> Result<Option<usize>, StepLimitExceeded> {
        self.memory.frames.clear();
        self.look = UNSET;
        let (mut instruction, mut at) = (0, start);
        loop {
            self.spend(1)?;
            let next = match self.program.instructions[instruction as usize] {
                Instruction::Match => return Ok(Some(at)),
                Instruction::Char { char, is_backward } => self
                    .read(at, is_backward)
                    .filter(|(it, _)| *it == char)
                    .map(|(_, after)| (instruction + 1, after)),
                Instruction::Set { set, is_backward } => self
                    .read(at, is_backward)
                    .filter(|(it, _)| self.program.sets[set as usize].contains(*it))
                    .map(|(_, after)| (instruction + 1, after)),
                Instruction::Assertion(assertion) => {
                    self.holds(assertion, at).then_some((instruction + 1, at))
                }
                Instruction::BackReference {
                    reference,
                    is_backward,
                } => {
                    let reference = &self.program.back_references[reference as usize];
                    let after = self.match_reference(reference, at, is_backward)?;
                    after.map(|after| (instruction + 1, after))
                }
                Instruction::Split { first, other } => {
                    self.push(Frame::Branch {
                        instruction: other,
                        at: at as u32,
                    })?;
                    Some((first, at))
                }
                Instruction::Jump(target) => Some((target, at)),
                Instruction::Run(run) => self.start_run(run, instruction, at)?,
                Instruction::Save(register) => {
                    self.set_register(register, at as u32)?;
                    Some((instruction + 1, at))
                }
                Instruction::Clear(first, end) => {
                    for register in first..end {
                        self.set_register(register, UNSET)?;
                    }
                    Some((instruction + 1, at))
                }
                Instruction::StartLoop(counter) => {
                    self.set_register(counter, 0)?;
                    Some((instruction + 1, at))
                }
                Instruction::Loop(head) => self.iterate(head, instruction, at)?,
                Instruction::Look { .. } => {
                    let outer = self.look;
                    self.look = self.memory.frames.len() as u32;
                    self.push(Frame::Look {
                        instruction,
                        at: at as u32,
                        outer,
                    })?;
                    Some((instruction + 1, at))
                }
                Instruction::LookEnd => self.end_look(),
            };
            match next {
                Some(next) => (instruction, at) = next,
                None => match self.backtrack()? {
                    Some(next) => (instruction, at) = next,
                    None => return Ok(None),
                },
            }
        }
    }

    fn holds(&self, assertion: Assertion, at: usize) -> bool {
        let ends_line = |it: (u32, usize)| is_in(&LINE_TERMINATORS, it.0);
        match assertion {
            Assertion::TextStart => at == 0,
            Assertion::TextEnd => at == self.text.len(),
            Assertion::LineStart => self.read(at, true).is_none_or(ends_line),
            Assertion::LineEnd => self.read(at, false).is_none_or(ends_line),
            Assertion::WordBoundary {
                is_negated,
                is_folded,
            } => {
                let is_word = |it: (u32, usize)| {
                    is_in(&WORD_CHARS, it.0) || (is_folded && is_in(&FOLDED_WORD_CHARS, it.0))
                };
                let before = self.read(at, true).is_some_and(is_word);
                let after = self.read(at, false).is_some_and(is_word);
                (before != after) != is_negated
            }
        }
    }

    /// Returns the position after the text of a group, or the same one if the group has none.
    fn match_reference(
        &mut self,
        reference: &BackReference,
        at: usize,
        is_backward: bool,
    ) -> Result<Option<usize>, StepLimitExceeded> {
        let bounds = |group: &u32| {
            let register = *group as usize * 2;
            let (start, end) = (
                self.memory.registers[register],
                self.memory.registers[register + 1],
            );
            (start != UNSET && end != UNSET).then_some(start as usize..end as usize)
        };
        let Some(group) = reference.groups.iter().find_map(bounds) else {
            return Ok(Some(at));
        };
        let n_chars = group.len();
        let start = match is_backward {
            true => at.checked_sub(n_chars),
            false => Some(at),
        };
        let Some(other) = start.and_then(|start| self.text.get(start..start + n_chars)) else {
            return Ok(None);
        };
        let rule = CaseRule::from_unicode(self.program.is_unicode);
        let are_equal = |(one, two): (&T, &T)| {
            let (one, two): (u32, u32) = ((*one).into(), (*two).into());
            one == two
                || (reference.ignore_case && rule.canonicalize(one) == rule.canonicalize(two))
        };
        let pairs = self.text[group].iter().zip(other);
        let n_equal = pairs.take_while(|it| are_equal(*it)).count();
        self.spend(n_equal)?;
        let after = match is_backward {
            true => at - n_chars,
            false => at + n_chars,
        };
        Ok((n_equal == n_chars).then_some(after))
    }
}

fn is_in(ranges: &[(u32, u32)], char: u32) -> bool {
    ranges
        .iter()
        .any(|(first, last)| (*first..=*last).contains(&char))
}
