//! Defines the enum that states whether a prompt text contains text of a card: no, yes, or unknown.

use serde::{Deserialize, Serialize};

/// Whether a text comes from a card.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum CardUse {
    /// From no card.
    #[default]
    None,
    /// From the cards that are included in this prompt.
    Entered,
    /// From a variable or an outlet, which any card may have written.
    Unknown,
}

impl CardUse {
    /// Returns whether it is [`CardUse::None`].
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}
