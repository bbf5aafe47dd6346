//! Defines the kinds of passes of a lorebook scan, and the state of an entry between passes.

use crate::lorebook::scan_result::SkipReason;

/// Why the lorebooks are scanned once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassKind {
    /// The first scan of the messages.
    First,
    /// Activated entries may activate others.
    Recursion,
    /// Too few entries are active: more messages are scanned.
    Wider,
}

/// The state of an entry during a scan.
#[derive(Clone, Debug)]
pub enum EntryState {
    /// Not activated yet, with the reason; a later pass may activate it.
    Inactive(SkipReason),
    /// Cannot be activated in this scan, with the reason.
    Excluded(SkipReason),
    /// Activated.
    Active,
}
