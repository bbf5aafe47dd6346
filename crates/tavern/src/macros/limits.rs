//! Defines the limits of the expansion of one prompt, and counts what was used of them.
//!
//! Text without macros is not limited here, because each field of a card, a lorebook and a preset has
//! a limit of its own: only what macros insert counts.

/// The maximum depth of macros in macros, and of texts that macros insert into texts.
pub const MAX_LEVELS: usize = 64;
/// The maximum number of delimiters (`{{`, `}}`, `::`, `<USER>`, `\{`) of one text.
pub const MAX_DELIMITERS: usize = 250_000;
/// The maximum number of macros that one prompt may expand.
pub const MAX_EXPANSIONS: usize = 100_000;
/// The maximum size of all that the macros of one prompt insert, in bytes.
pub const MAX_OUTPUT: usize = 1024 * 1024;

/// The limit that a text exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MacroLimit {
    #[error("Its macros are nested more than {MAX_LEVELS} levels deep.")]
    Levels,
    #[error("It has more than {MAX_DELIMITERS} braces and separators of macros.")]
    Delimiters,
    #[error("The macros of the prompt are expanded more than {MAX_EXPANSIONS} times.")]
    Expansions,
    #[error("The macros of the prompt insert more than {MAX_OUTPUT} bytes.")]
    Output,
}

/// What the texts of one prompt have used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MacroUse {
    pub n_expansions: usize,
    pub n_bytes: usize,
}

impl MacroUse {
    /// Counts one macro.
    ///
    /// # Errors
    /// `Expansions` when the limit is exceeded.
    pub fn count_expansion(&mut self) -> Result<(), MacroLimit> {
        self.n_expansions += 1;
        match self.n_expansions > MAX_EXPANSIONS {
            true => Err(MacroLimit::Expansions),
            false => Ok(()),
        }
    }

    /// Counts the value of a macro.
    ///
    /// # Errors
    /// `Output` when the limit is exceeded.
    pub fn count_output(&mut self, n_bytes: usize) -> Result<(), MacroLimit> {
        self.n_bytes += n_bytes;
        match self.n_bytes > MAX_OUTPUT {
            true => Err(MacroLimit::Output),
            false => Ok(()),
        }
    }
}
