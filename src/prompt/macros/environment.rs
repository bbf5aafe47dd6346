//! What macros can know beside people and cards: the hour, the dice, what has been said last, and
//! what is remembered.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use crate::clock::Timestamp;
use crate::prompt::card_use::CardUse;
use crate::prompt::macros::variables::Variables;

/// What macros can know beside people and cards.
#[derive(Clone, Debug, Default)]
pub struct MacroEnvironment {
    /// The moment told by the clock macros; without it they stay as they are written.
    pub now: Option<Timestamp>,
    pub seed: MacroSeed,
    pub last_messages: LastMessages,
    /// The most tokens a prompt may have.
    pub max_prompt_tokens: i64,
    /// What the model is called.
    pub model: String,
    /// What was set, and is set while texts are expanded.
    pub variables: RefCell<Variables>,
    /// Lore that is put in only where it is asked for, by name.
    pub outlets: BTreeMap<String, String>,
    /// Whether text of a card was put in since this was last taken.
    pub card_use: Cell<CardUse>,
}

/// What all draws come from, with the text they stand in: the same prompt is drawn the same way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MacroSeed {
    pub conversation: i64,
    /// The newest message that is known.
    pub message: i64,
}

/// What has been said last. Chat text: no macro runs in it.
#[derive(Clone, Debug, Default)]
pub struct LastMessages {
    pub message: String,
    pub user_message: String,
    pub character_message: String,
    /// The number of the last message.
    pub message_id: Option<i64>,
    /// When a person spoke last.
    pub user_spoke_at: Option<Timestamp>,
    /// What a person asks for who has words found for them.
    pub input: String,
}

impl MacroEnvironment {
    /// Notes that text of a card was put in.
    pub fn record_card_use(&self, origin: CardUse) {
        self.card_use.set(self.card_use.get().max(origin));
    }

    /// Whether text of a card was put in since the last call.
    pub fn take_card_use(&self) -> CardUse {
        self.card_use.take()
    }

    /// Does something after which nothing is remembered that it set.
    pub fn without_variables<T>(&self, act: impl FnOnce() -> T) -> T {
        let before = self.variables.borrow().clone();
        let done = act();
        self.variables.replace(before);
        done
    }
}
