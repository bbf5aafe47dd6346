//! Defines the report of an import of a chat: skipped and changed lines, and warnings about the whole
//! file.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::import_warning;
use crate::import_warning::ImportWarning;

/// Maximum number of problems that are listed; further ones are only counted.
const MAX_REPORTED: usize = 100;

/// Problems in the lines of an imported file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ImportReport)]
pub struct LineReport {
    /// Number of skipped lines: they contain no usable message.
    #[serde(default)]
    pub n_skipped: u64,
    /// Number of messages that were imported with changes.
    #[serde(default)]
    pub n_repaired: u64,
    /// The first hundred skipped or changed lines.
    #[serde(default)]
    pub lines: Vec<LineProblem>,
    /// Warnings about the whole file, as sentences.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The same warnings, in the same order, as codes.
    #[serde(default)]
    pub warnings_coded: Vec<ImportWarning>,
}

/// A problem in one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ImportTrouble)]
pub struct LineProblem {
    /// Counted from 1.
    pub line: u64,
    pub reason: String,
    /// A stable code for `reason`. Empty in reports written before codes existed.
    #[serde(default)]
    pub code: String,
    /// Whether the line was skipped.
    pub skipped: bool,
}

impl LineReport {
    /// Adds warnings about the whole file; of more than a hundred only the first.
    pub fn warn(&mut self, warnings: &[ImportWarning]) {
        let n_free = MAX_REPORTED.saturating_sub(self.warnings_coded.len());
        let warnings = &warnings[..warnings.len().min(n_free)];
        self.warnings.extend(import_warning::sentences(warnings));
        self.warnings_coded.extend_from_slice(warnings);
    }

    /// Adds the report about another part of the file.
    pub fn append(&mut self, other: Self) {
        self.n_skipped += other.n_skipped;
        self.n_repaired += other.n_repaired;
        let n_free = MAX_REPORTED.saturating_sub(self.lines.len());
        self.lines.extend(other.lines.into_iter().take(n_free));
        self.warnings.extend(other.warnings);
        self.warnings_coded.extend(other.warnings_coded);
    }

    /// Adds a problem of a line; of more than a hundred only the number.
    pub fn record(&mut self, line: u64, warning: &ImportWarning, skipped: bool) {
        match skipped {
            true => self.n_skipped += 1,
            false => self.n_repaired += 1,
        }
        if self.lines.len() < MAX_REPORTED {
            self.lines.push(LineProblem {
                line,
                reason: warning.message.clone(),
                code: warning.code.to_string(),
                skipped,
            });
        }
    }
}
