//! Branches of a search: repetitions, loops and look-around, and how a search returns to them.

use crate::pattern::program::{Instruction, Loop, Run};
use crate::pattern::search::{Frame, Next, Search, StepLimitExceeded};

impl<T: Copy + Into<u32>> Search<'_, T> {
    /// Returns to the latest branch that can be continued.
    ///
    /// # Errors
    /// Returns `StepLimitExceeded` if the steps are used up.
    pub fn backtrack(&mut self) -> Result<Next, StepLimitExceeded> {
        while let Some(frame) = self.memory.frames.pop() {
            match frame {
                Frame::Branch { instruction, at } => return Ok(Some((instruction, at as usize))),
                Frame::Register { register, value } => {
                    self.memory.registers[register as usize] = value;
                }
                Frame::Iteration { instruction, at } => {
                    if let Instruction::Loop(head) = self.program.instructions[instruction as usize]
                    {
                        self.start_iteration(head, at as usize)?;
                    }
                    return Ok(Some((instruction + 1, at as usize)));
                }
                Frame::Run {
                    instruction,
                    at,
                    last,
                } => {
                    if let Some(next) = self.resume_run(instruction, at as usize, last as usize)? {
                        return Ok(Some(next));
                    }
                }
                Frame::Look {
                    instruction,
                    at,
                    outer,
                } => {
                    self.look = outer;
                    if let Instruction::Look {
                        is_negated: true,
                        after,
                    } = self.program.instructions[instruction as usize]
                    {
                        return Ok(Some((after, at as usize)));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Ends the innermost look-around, whose body matches. Its other branches are dropped.
    pub fn end_look(&mut self) -> Next {
        let frame = self.look as usize;
        let Frame::Look {
            instruction,
            at,
            outer,
        } = self.memory.frames[frame]
        else {
            return None;
        };
        self.look = outer;
        let Instruction::Look { is_negated, after } =
            self.program.instructions[instruction as usize]
        else {
            return None;
        };
        if is_negated {
            for n in (frame..self.memory.frames.len()).rev() {
                if let Frame::Register { register, value } = self.memory.frames[n] {
                    self.memory.registers[register as usize] = value;
                }
            }
            self.memory.frames.truncate(frame);
            return None;
        }
        // The captures of the body stay, and are restored when the search returns behind it.
        let mut kept = frame;
        for n in frame + 1..self.memory.frames.len() {
            if let restore @ Frame::Register { .. } = self.memory.frames[n] {
                self.memory.frames[kept] = restore;
                kept += 1;
            }
        }
        self.memory.frames.truncate(kept);
        Some((after, at as usize))
    }

    /// Starts an iteration of a loop, or leaves the loop.
    ///
    /// # Errors
    /// Returns `StepLimitExceeded` if there are too many frames.
    pub fn iterate(
        &mut self,
        head: Loop,
        instruction: u32,
        at: usize,
    ) -> Result<Next, StepLimitExceeded> {
        let count = self.memory.registers[head.counter as usize];
        let start = self.memory.registers[head.counter as usize + 1];
        // An iteration beyond the minimum must not be empty.
        if count > head.min && start == at as u32 {
            return Ok(None);
        }
        if count >= head.max {
            return Ok(Some((head.exit, at)));
        }
        if count >= head.min {
            let at = at as u32;
            if head.is_lazy {
                self.push(Frame::Iteration { instruction, at })?;
                return Ok(Some((head.exit, at as usize)));
            }
            let instruction = head.exit;
            self.push(Frame::Branch { instruction, at })?;
        }
        self.start_iteration(head, at)?;
        Ok(Some((instruction + 1, at)))
    }

    fn start_iteration(&mut self, head: Loop, at: usize) -> Result<(), StepLimitExceeded> {
        let count = self.memory.registers[head.counter as usize];
        self.set_register(head.counter, count + 1)?;
        self.set_register(head.counter + 1, at as u32)
    }

    /// Starts a repetition of a set.
    ///
    /// # Errors
    /// Returns `StepLimitExceeded` if the steps are used up.
    pub fn start_run(
        &mut self,
        run: Run,
        instruction: u32,
        at: usize,
    ) -> Result<Next, StepLimitExceeded> {
        let wanted = match run.is_lazy {
            true => run.min,
            false => run.max,
        };
        let end = self.run_end(run, at, wanted)?;
        if at.abs_diff(end) < run.min as usize {
            return Ok(None);
        }
        let last = match (run.is_lazy, run.is_backward) {
            (false, false) => at + run.min as usize,
            (false, true) => at - run.min as usize,
            (true, false) => at.saturating_add(run.max as usize).min(self.text.len()),
            (true, true) => at.saturating_sub(run.max as usize),
        };
        self.try_end(run, instruction, end, last)
    }

    /// Continues after the repetition from the end `at`, or from the next one at which what follows
    /// has not failed before.
    fn try_end(
        &mut self,
        run: Run,
        instruction: u32,
        mut at: usize,
        last: usize,
    ) -> Result<Next, StepLimitExceeded> {
        while let Some(failed) = self.memory.memos[run.number as usize].failed_range(at) {
            let memo = &self.memory.memos[run.number as usize];
            let n_failed = match (run.is_lazy, run.is_backward) {
                (false, false) => at - failed.start,
                (false, true) => failed.end - 1 - at,
                // A lazy repetition may have ended before some of these positions.
                (true, false) => memo.known_end(at).min(failed.end - 1) - at,
                (true, true) => 0,
            };
            if n_failed >= at.abs_diff(last) {
                return Ok(None);
            }
            let at_failed = match run.is_backward == run.is_lazy {
                true => at - n_failed,
                false => at + n_failed,
            };
            match self.next_end(run, at_failed)? {
                Some(next) => at = next,
                None => return Ok(None),
            }
        }
        if at != last {
            self.push(Frame::Run {
                instruction,
                at: at as u32,
                last: last as u32,
            })?;
        }
        Ok(Some((instruction + 1, at)))
    }

    /// Continues a repetition after what follows has failed at the end `at`.
    fn resume_run(
        &mut self,
        instruction: u32,
        at: usize,
        last: usize,
    ) -> Result<Next, StepLimitExceeded> {
        let Instruction::Run(run) = self.program.instructions[instruction as usize] else {
            return Ok(None);
        };
        if run.is_memoized {
            self.memory.memos[run.number as usize].record_failure(at);
        }
        match self.next_end(run, at)? {
            Some(next) => self.try_end(run, instruction, next, last),
            None => Ok(None),
        }
    }

    /// Returns the end that is tried after the end `at`: one character less, or more if lazy.
    fn next_end(&mut self, run: Run, at: usize) -> Result<Option<usize>, StepLimitExceeded> {
        self.spend(1)?;
        if !run.is_lazy {
            return Ok(Some(match run.is_backward {
                true => at + 1,
                false => at - 1,
            }));
        }
        let set = &self.program.sets[run.set as usize];
        let next = self.read(at, run.is_backward);
        let next = next.filter(|(it, _)| set.contains(*it)).map(|(_, at)| at);
        if next.is_some() && !run.is_backward {
            self.memory.memos[run.number as usize].record_extent(at, at + 1);
        }
        Ok(next)
    }

    /// Returns the end of the longest repetition of at most `max` characters.
    fn run_end(&mut self, run: Run, at: usize, max: u32) -> Result<usize, StepLimitExceeded> {
        let set = &self.program.sets[run.set as usize];
        let max = max as usize;
        if run.is_backward {
            return self.backward_run_end(run, at, at.saturating_sub(max));
        }
        let end = at.saturating_add(max).min(self.text.len());
        let memo = &mut self.memory.memos[run.number as usize];
        let known = memo.known_end(at).min(end);
        let rest = self.text[known..end].iter();
        let n_chars = rest.take_while(|it| set.contains((**it).into())).count();
        memo.record_extent(at, known + n_chars);
        self.spend(n_chars)?;
        Ok(known + n_chars)
    }

    /// Returns the start of the longest repetition that ends at `at`, but not one before `first`.
    fn backward_run_end(
        &mut self,
        run: Run,
        at: usize,
        first: usize,
    ) -> Result<usize, StepLimitExceeded> {
        let set = &self.program.sets[run.set as usize];
        let memo = &mut self.memory.memos[run.number as usize];
        let (mut start, mut n_read) = (at, 0);
        loop {
            start = memo.known_start(start).max(first);
            if start == first || !set.contains(self.text[start - 1].into()) {
                break;
            }
            start -= 1;
            n_read += 1;
        }
        memo.record_extent(start, at);
        self.spend(n_read)?;
        Ok(start)
    }
}
