//! What the engine answers: which entries enter a prompt, and why not the others.

use std::fmt;

use crate::ids::{LorebookEntryId, LorebookId};
use crate::import_warning::ImportWarning;
use crate::lore::engine_lorebook::InsertionPosition;
use crate::lore::timed_effects::TimedEffects;

/// What became of every entry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScanResult {
    /// What enters the prompt, in the order in which it is put there: those of one place one below
    /// the other.
    pub activated: Vec<ActivatedEntry>,
    /// What would have entered if there had been room. Part of `not_fired`.
    pub dropped: Vec<EntryRef>,
    /// What does not enter, and why.
    pub skipped: Vec<SkippedEntry>,
    /// What is wrong with the books, for whoever wrote them.
    pub warnings: Vec<ImportWarning>,
    /// What the next turn needs to know. To be kept only if this turn comes to an end.
    pub timed_effects: TimedEffects,
}

/// Which entry of which book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRef {
    pub lorebook: String,
    pub lorebook_id: Option<LorebookId>,
    /// The key of the entry within its book.
    pub key: String,
    pub entry_id: Option<LorebookEntryId>,
    pub name: String,
}

/// An entry that enters.
#[derive(Clone, Debug, PartialEq)]
pub struct ActivatedEntry {
    pub entry: EntryRef,
    pub reason: ActivationReason,
    /// What it says, without decorators, macros done. May be blank.
    pub text: String,
    pub tokens: i64,
    pub order: i64,
    pub priority: i64,
    pub position: InsertionPosition,
}

/// An entry that does not enter.
#[derive(Clone, Debug, PartialEq)]
pub struct SkippedEntry {
    pub entry: EntryRef,
    pub reason: SkipReason,
}

/// Why an entry enters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActivationReason {
    /// It always does.
    Constant,
    /// `@@activate`.
    Decorator,
    /// This key was found.
    Key(String),
    /// It entered a few messages ago, and stays.
    Sticky,
    /// It entered once, and stays for good.
    KeptAfterMatch,
}

impl fmt::Display for ActivationReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant => f.write_str("constant"),
            Self::Decorator => f.write_str("decorator: @@activate"),
            Self::Key(key) => write!(f, "key: {key}"),
            Self::Sticky => f.write_str("sticky"),
            Self::KeptAfterMatch => f.write_str("kept_after_match"),
        }
    }
}

/// Why an entry does not enter, in the order in which that is found out.
#[derive(Clone, Debug, PartialEq)]
pub enum SkipReason {
    Disabled,
    /// Not for this speaker.
    CharacterFilter,
    /// Not in this kind of turn.
    Trigger,
    /// Not before there are so many messages.
    Delay(i64),
    /// It entered a few messages ago, and rests.
    Cooldown,
    /// Waits to be woken by another entry.
    WaitsForRecursion,
    /// Not with this many replies.
    Replies,
    /// It entered once, and never again.
    DisabledAfterMatch,
    /// `@@dont_activate`.
    Decorator,
    /// A key of it cannot be read as a pattern.
    InvalidPattern(String),
    /// There was no time to look for this key.
    TooSlow(String),
    /// It has no keys, and nothing else wakes it.
    NoKeys,
    /// None of its keys was found.
    NoKey,
    /// This key must not be there.
    Excluded(String),
    /// A key was found, but the others do not fit.
    Secondary,
    /// Another entry of this group enters.
    Group(String),
    /// The dice fell over so many percent.
    Probability(f64),
    /// There is no room.
    Budget,
    /// There is no room among the entries of its book.
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
            Self::TooSlow(key) => write!(f, "too_slow: {key}"),
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
    /// How far an entry came before it was stopped.
    pub fn check_rank(&self) -> u8 {
        match self {
            Self::Disabled | Self::CharacterFilter | Self::Trigger => 0,
            Self::Delay(_) | Self::Cooldown => 1,
            Self::WaitsForRecursion => 2,
            Self::Replies | Self::DisabledAfterMatch | Self::Decorator => 3,
            Self::InvalidPattern(_) | Self::TooSlow(_) | Self::NoKeys => 4,
            Self::NoKey => 5,
            Self::Excluded(_) | Self::Secondary => 6,
            Self::Group(_) => 7,
            Self::Probability(_) | Self::Budget | Self::LorebookBudget => 8,
        }
    }
}
