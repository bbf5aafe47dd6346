//! The state of a search, and its limits.
//!
//! **Invariant:** a search never executes more steps than it may, and its memory is limited. A step
//! is an instruction, or a character that a repetition reads.

use crate::pattern::program::Program;
use crate::pattern::run_memo::RunMemo;

/// The value of a register without a position.
pub const UNSET: u32 = u32::MAX;
/// The maximum number of frames, 16 bytes each.
const MAX_FRAMES: usize = 1024 * 1024;

/// The next instruction and its position, or `None` if the branch has failed.
pub type Next = Option<(u32, usize)>;

/// The search needs more steps, or more memory, than it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the search needs more steps than it may use")]
pub struct StepLimitExceeded;

/// The memory of a search.
#[derive(Debug, Default)]
pub struct SearchMemory {
    pub frames: Vec<Frame>,
    pub registers: Vec<u32>,
    pub memos: Vec<RunMemo>,
}

/// What is tried or restored when a branch has failed. Numbers are indexes of instructions,
/// positions in the text, registers and frames.
#[derive(Clone, Copy, Debug)]
pub enum Frame {
    /// Continue at an instruction from a position.
    Branch { instruction: u32, at: u32 },
    /// Start an iteration of a lazy loop.
    Iteration { instruction: u32, at: u32 },
    /// Try the next end of a repetition after `at`, up to `last`.
    Run {
        instruction: u32,
        at: u32,
        last: u32,
    },
    /// End a look-around whose body does not match.
    Look {
        instruction: u32,
        at: u32,
        outer: u32,
    },
    /// Restore a register.
    Register { register: u32, value: u32 },
}

/// A search in one text.
pub struct Search<'s, T> {
    pub memory: &'s mut SearchMemory,
    pub program: &'s Program,
    pub text: &'s [T],
    /// The index of the frame of the innermost look-around that is being matched, or `UNSET`.
    pub look: u32,
    pub steps_left: &'s mut u64,
}

impl<T: Copy + Into<u32>> Search<'_, T> {
    /// Spends this many steps.
    ///
    /// # Errors
    /// Returns `StepLimitExceeded` if fewer are left.
    pub fn spend(&mut self, steps: usize) -> Result<(), StepLimitExceeded> {
        match self.steps_left.checked_sub(steps as u64) {
            Some(left) => {
                *self.steps_left = left;
                Ok(())
            }
            None => {
                *self.steps_left = 0;
                Err(StepLimitExceeded)
            }
        }
    }

    /// Returns the character at a position in a direction, and the position after it.
    #[inline]
    pub fn read(&self, at: usize, is_backward: bool) -> Option<(u32, usize)> {
        if is_backward {
            let before = at.checked_sub(1)?;
            return Some((self.text[before].into(), before));
        }
        Some(((*self.text.get(at)?).into(), at + 1))
    }

    /// Adds a frame.
    ///
    /// # Errors
    /// Returns `StepLimitExceeded` if there are too many.
    pub fn push(&mut self, frame: Frame) -> Result<(), StepLimitExceeded> {
        if self.memory.frames.len() >= MAX_FRAMES {
            return Err(StepLimitExceeded);
        }
        self.memory.frames.push(frame);
        Ok(())
    }

    /// Sets a register until the search backtracks.
    ///
    /// # Errors
    /// Returns `StepLimitExceeded` if there are too many frames.
    pub fn set_register(&mut self, register: u32, value: u32) -> Result<(), StepLimitExceeded> {
        let before = std::mem::replace(&mut self.memory.registers[register as usize], value);
        self.push(Frame::Register {
            register,
            value: before,
        })
    }
}
