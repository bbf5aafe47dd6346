//! The report of an import of memories: how many were stored, and which lines were skipped, with the reason.

use recall::memory_line::MemoryLineError;
use serde::Serialize;
use tavern::chats::line_report::{LineProblem, LineReport};
use tavern::import_warning::ImportWarning;
use utoipa::ToSchema;

/// How many duplicates, and how many other lines, are listed; further ones are only counted.
const MAX_LISTED: usize = 100;

/// The result of an import of memories.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[schema(as = MemoryImport)]
pub struct MemoryImportReport {
    /// Memories that were stored.
    pub n_imported: u64,
    /// Memories that already exist.
    pub n_duplicates: u64,
    /// Lines that were skipped: they are invalid, or the caller may not import their memory.
    pub n_skipped: u64,
    /// Memories that were stored without the member they are about, who is unknown here.
    pub n_unlinked: u64,
    /// The first hundred duplicates and the first hundred other lines with a problem.
    pub lines: Vec<LineProblem>,
    #[serde(skip)]
    n_listed_duplicates: usize,
}

/// The outcome of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineOutcome {
    Imported,
    /// It was imported without the member it is about.
    Unlinked,
    Duplicate,
    Invalid(MemoryLineError),
    UnknownOwner,
    OtherOwner,
    TooMany,
}

impl LineOutcome {
    /// Returns the problem; `None` if there is none.
    fn warning(self) -> Option<ImportWarning> {
        let invalid = match self {
            Self::Imported => return None,
            Self::Unlinked => {
                let sentence = "No member of this space has the name in `about`; the memory was imported without it.";
                return Some(ImportWarning::new("memory_about_unknown", sentence));
            }
            Self::Duplicate => {
                let sentence = "This memory already exists.";
                return Some(ImportWarning::new("memory_duplicate", sentence));
            }
            Self::UnknownOwner => {
                let sentence = "No member of this space has the name in `owner`.";
                return Some(ImportWarning::new("memory_owner_unknown", sentence));
            }
            Self::OtherOwner => {
                let sentence = "The memory belongs to another person.";
                return Some(ImportWarning::new("memory_owner_other", sentence));
            }
            Self::TooMany => {
                let sentence = "A file can contain at most 100,000 memories.";
                return Some(ImportWarning::new("memory_too_many", sentence));
            }
            Self::Invalid(error) => error,
        };
        let sentence = invalid.to_string();
        Some(match invalid {
            MemoryLineError::Broken => ImportWarning::new("memory_line_broken", sentence),
            MemoryLineError::TooLong => ImportWarning::new("memory_line_too_long", sentence),
            MemoryLineError::InvalidContent => ImportWarning::new("memory_line_content", sentence),
            MemoryLineError::InvalidField(_) => ImportWarning::new("memory_line_field", sentence),
            MemoryLineError::HasAudience => ImportWarning::new("memory_line_audience", sentence),
        })
    }
}

impl MemoryImportReport {
    /// Counts a line. Call it in the order of the lines.
    pub fn record(&mut self, line: u64, outcome: LineOutcome) {
        let is_duplicate = outcome == LineOutcome::Duplicate;
        let is_skipped = !matches!(outcome, LineOutcome::Imported | LineOutcome::Unlinked);
        match (is_skipped, is_duplicate) {
            (false, _) => self.n_imported += 1,
            (true, true) => self.n_duplicates += 1,
            (true, false) => self.n_skipped += 1,
        }
        self.n_unlinked += u64::from(outcome == LineOutcome::Unlinked);
        let Some(warning) = outcome.warning() else {
            return;
        };
        let n_listed = match is_duplicate {
            true => self.n_listed_duplicates,
            false => self.lines.len() - self.n_listed_duplicates,
        };
        if n_listed >= MAX_LISTED {
            return;
        }
        self.n_listed_duplicates += usize::from(is_duplicate);
        self.lines.push(LineProblem {
            line,
            code: warning.code.to_string(),
            reason: warning.message,
            skipped: is_skipped,
        });
    }

    /// Returns the report in the form of the report of a space import.
    pub fn into_line_report(self) -> LineReport {
        LineReport {
            n_skipped: self.n_skipped + self.n_duplicates,
            n_repaired: self.n_unlinked,
            lines: self.lines,
            ..LineReport::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LineOutcome, MAX_LISTED, MemoryImportReport};

    #[test]
    fn duplicates_do_not_hide_other_lines() {
        let mut report = MemoryImportReport::default();

        report.record(1, LineOutcome::Imported);
        for line in 2..=201 {
            report.record(line, LineOutcome::Duplicate);
        }
        report.record(202, LineOutcome::OtherOwner);
        report.record(203, LineOutcome::Unlinked);

        let counts = (
            report.n_imported,
            report.n_duplicates,
            report.n_skipped,
            report.n_unlinked,
        );
        assert_eq!(counts, (2, 200, 1, 1));
        assert_eq!(report.lines.len(), MAX_LISTED + 2);
        let others: Vec<_> = report.lines[MAX_LISTED..].iter().collect();
        assert_eq!(
            (others[0].line, &*others[0].code, others[0].skipped),
            (202, "memory_owner_other", true)
        );
        assert_eq!(
            (others[1].line, &*others[1].code, others[1].skipped),
            (203, "memory_about_unknown", false)
        );
    }
}
