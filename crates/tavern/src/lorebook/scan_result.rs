//! Defines the output of the lorebook engine: which entries are activated or skipped, each with its
//! reason.

use std::fmt;

use base::ids::{LorebookEntryId, LorebookId};

use crate::import_warning::ImportWarning;
use crate::lorebook::engine_lorebook::InsertionPosition;
use crate::lorebook::scan_budget::SearchLimit;
use crate::lorebook::timed_effects::TimedEffects;

/// The result of a scan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScanResult {
    /// The activated entries in the order in which they are inserted at each position.
    pub activated: Vec<ActivatedEntry>,
    /// The entries that exceeded the budget; also part of `skipped`.
    pub dropped: Vec<EntryRef>,
    /// The entries that are not activated, with the reasons.
    pub skipped: Vec<SkippedEntry>,
    /// Problems of the lorebooks, for their authors.
    pub warnings: Vec<ImportWarning>,
    /// The effects for the next scan. Must be stored only if this run succeeds.
    pub timed_effects: TimedEffects,
}

/// Identifies an entry and its lorebook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRef {
    pub lorebook: String,
    pub lorebook_id: Option<LorebookId>,
    /// The key of the entry, unique within its lorebook.
    pub key: String,
    pub entry_id: Option<LorebookEntryId>,
    pub name: String,
}

/// An activated entry.
#[derive(Clone, Debug, PartialEq)]
pub struct ActivatedEntry {
    pub entry: EntryRef,
    pub reason: ActivationReason,
    /// Whether the entry is constant, whatever activated it in this scan.
    pub is_constant: bool,
    /// The content without decorators, macros expanded. May be blank.
    pub text: String,
    pub tokens: i64,
    pub order: i64,
    pub priority: i64,
    pub position: InsertionPosition,
}

/// An entry that is not activated.
#[derive(Clone, Debug, PartialEq)]
pub struct SkippedEntry {
    pub entry: EntryRef,
    pub reason: SkipReason,
}

/// Why an entry is activated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActivationReason {
    /// It is constant.
    Constant,
    /// The caller activated it: a vectorized entry whose content is similar to the scanned texts.
    External,
    /// `@@activate`.
    Decorator,
    /// This key was found.
    Key(String),
    /// It was activated a few messages ago and is sticky.
    Sticky,
    /// It was activated once and stays active permanently.
    KeptAfterMatch,
}

impl fmt::Display for ActivationReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant => f.write_str("constant"),
            Self::External => f.write_str("vectorized"),
            Self::Decorator => f.write_str("decorator: @@activate"),
            Self::Key(key) => write!(f, "key: {key}"),
            Self::Sticky => f.write_str("sticky"),
            Self::KeptAfterMatch => f.write_str("kept_after_match"),
        }
    }
}

/// Why an entry is not activated, in the order of the checks.
#[derive(Clone, Debug, PartialEq)]
pub enum SkipReason {
    Disabled,
    /// The filter excludes this speaker.
    CharacterFilter,
    /// Not for this generation trigger.
    Trigger,
    /// The conversation has fewer messages than this.
    Delay(i64),
    /// It was activated a few messages ago and has a cooldown.
    Cooldown,
    /// It waits for recursion.
    WaitsForRecursion,
    /// The number of replies does not match.
    Replies,
    /// It was activated once and is now permanently disabled.
    DisabledAfterMatch,
    /// `@@dont_activate`.
    Decorator,
    /// This key is not a valid pattern.
    InvalidPattern(String),
    /// The search for this key was aborted because of a limit.
    TooSlow {
        key: String,
        limit: SearchLimit,
    },
    /// It has no keys, and nothing else activates it.
    NoKeys,
    /// None of its keys was found.
    NoKey,
    /// This excluded key was found.
    Excluded(String),
    /// A primary key was found, but the secondary keys do not match.
    Secondary,
    /// Another entry of this inclusion group is activated.
    Group(String),
    /// The probability check failed; the value is the entry's probability in percent.
    Probability(f64),
    /// The budget is used up.
    Budget,
    /// The budget of its lorebook is used up.
    LorebookBudget,
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disabled => f.write_str("disabled"),
            Self::CharacterFilter => f.write_str("character_filter"),
            Self::Trigger => f.write_str("trigger"),
            Self::Delay(n) => write!(f, "delay: {n}"),
            Self::Cooldown => f.write_str("cooldown"),
            Self::WaitsForRecursion => f.write_str("waits_for_recursion"),
            Self::Replies => f.write_str("replies"),
            Self::DisabledAfterMatch => f.write_str("done_after_match"),
            Self::Decorator => f.write_str("decorator: @@dont_activate"),
            Self::InvalidPattern(key) => write!(f, "bad_pattern: {key}"),
            Self::TooSlow { key, .. } => write!(f, "too_slow: {key}"),
            Self::NoKeys => f.write_str("no_keys"),
            Self::NoKey => f.write_str("no_key"),
            Self::Excluded(key) => write!(f, "excluded: {key}"),
            Self::Secondary => f.write_str("secondary_keys"),
            Self::Group(group) => write!(f, "group: {group}"),
            Self::Probability(percent) => write!(f, "dice: {percent}"),
            Self::Budget => f.write_str("budget"),
            Self::LorebookBudget => f.write_str("book_budget"),
        }
    }
}

impl SkipReason {
    /// Returns how many checks an entry passed before it was skipped.
    pub fn check_rank(&self) -> u8 {
        match self {
            Self::Disabled | Self::CharacterFilter | Self::Trigger => 0,
            Self::Delay(_) | Self::Cooldown => 1,
            Self::WaitsForRecursion => 2,
            Self::Replies | Self::DisabledAfterMatch | Self::Decorator => 3,
            Self::InvalidPattern(_) | Self::NoKeys => 4,
            Self::NoKey => 5,
            // An aborted search is reported even if an earlier pass had checked all keys.
            Self::Excluded(_) | Self::Secondary | Self::TooSlow { .. } => 6,
            Self::Group(_) => 7,
            Self::Probability(_) | Self::Budget | Self::LorebookBudget => 8,
        }
    }
}
