//! Stores the values that macros read besides names and card fields: time, random seed, last
//! messages, variables, outlets and model. Records whether text of a card or the summary was inserted.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use base::clock::Timestamp;

use crate::macros::card_use::CardUse;
use crate::macros::variables::Variables;

/// The values that macros read in addition to names and card fields.
#[derive(Clone, Debug, Default)]
pub struct MacroEnvironment {
    /// The time for date and time macros; without it they are left unexpanded.
    pub now: Option<Timestamp>,
    pub seed: MacroSeed,
    pub last_messages: LastMessages,
    /// The summary of the conversation so far. Macros in it are not expanded.
    pub summary: String,
    /// The maximum number of tokens of a prompt.
    pub max_prompt_tokens: i64,
    /// The name of the model.
    pub model: String,
    /// Variables; macros change them during an expansion.
    pub variables: RefCell<Variables>,
    /// The texts of outlets by name.
    pub outlets: BTreeMap<String, String>,
    /// Whether text of a card was inserted since the last [`Self::take_card_use`].
    pub card_use: Cell<CardUse>,
    /// Whether the summary was inserted since the last [`Self::take_summary_use`].
    pub has_used_summary: Cell<bool>,
}

/// The seed of random macros. It is combined with the text that is expanded, so the same prompt
/// gets the same draws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MacroSeed {
    pub conversation: i64,
    /// The newest message.
    pub message: i64,
}

/// The last messages. Chat text: macros in it are not expanded.
#[derive(Clone, Debug, Default)]
pub struct LastMessages {
    pub message: String,
    pub user_message: String,
    pub character_message: String,
    /// The number of the last message.
    pub message_id: Option<i64>,
    /// When the last user message was written.
    pub user_spoke_at: Option<Timestamp>,
    /// The user's instruction for an impersonation.
    pub input: String,
}

impl MacroEnvironment {
    /// Records that text of a card was inserted.
    pub fn record_card_use(&self, origin: CardUse) {
        self.card_use.set(self.card_use.get().max(origin));
    }

    /// Returns whether text of a card was inserted since the last call, and resets it.
    pub fn take_card_use(&self) -> CardUse {
        self.card_use.take()
    }

    /// Returns the summary to insert, and records that it was inserted.
    pub fn use_summary(&self) -> String {
        self.has_used_summary.set(true);
        self.summary.clone()
    }

    /// Returns whether the summary was inserted since the last call, and resets it.
    pub fn take_summary_use(&self) -> bool {
        self.has_used_summary.take()
    }

    /// Runs `act` and then discards the variables that it set.
    pub fn without_variables<T>(&self, act: impl FnOnce() -> T) -> T {
        let before = self.variables.borrow().clone();
        let done = act();
        self.variables.replace(before);
        done
    }
}
