//! Stores the values that macros read besides names and card fields: time, random seed, last
//! messages, variables, outlets and model. Counts what the macros of one prompt use, and records
//! whether text of a card or the summary was inserted.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use base::clock::Timestamp;

use crate::instruct::text_templates::TextTemplates;
use crate::macros::card_use::CardUse;
use crate::macros::limits::{MacroLimit, MacroUse};
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
    pub token_limits: TokenLimits,
    /// The name of the model.
    pub model: String,
    /// The kind of generation, as SillyTavern names it: `normal`, `continue`, …
    pub generation_type: &'static str,
    /// The templates of a text completion.
    pub templates: Option<TextTemplates>,
    /// Variables; macros change them during an expansion.
    pub variables: RefCell<Variables>,
    /// The texts of outlets by name.
    pub outlets: BTreeMap<String, String>,
    /// Whether text of a card was inserted since the last [`Self::take_card_use`].
    pub card_use: Cell<CardUse>,
    /// Whether the summary was inserted since the last [`Self::take_summary_use`].
    pub has_used_summary: Cell<bool>,
    /// What the texts expanded so far have used of the limits.
    pub macro_use: Cell<MacroUse>,
    /// The name of the field whose text is expanded, for the failure.
    pub field: RefCell<String>,
    /// The first text that exceeded a limit.
    pub failure: RefCell<Option<InvalidMacro>>,
}

/// A text with macros that exceed a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The macros of “{field}” cannot be expanded. {limit}")]
pub struct InvalidMacro {
    /// The name of the field.
    pub field: String,
    pub limit: MacroLimit,
}

/// The seed of random macros. It is combined with the text that is expanded and with the position of
/// the macro, so the same prompt gets the same draws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MacroSeed {
    pub conversation: i64,
    /// The newest message.
    pub message: i64,
}

/// The sizes of a prompt, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenLimits {
    /// The context window of the model.
    pub context: i64,
    /// The part reserved for the reply.
    pub response: i64,
}

/// The last messages. Chat text: macros in it are not expanded.
#[derive(Clone, Debug, Default)]
pub struct LastMessages {
    pub message: String,
    pub user_message: String,
    pub character_message: String,
    /// The number of the last message, from 0.
    pub message_id: Option<i64>,
    /// The number of the first message that the history contains, from 0.
    pub first_included_id: Option<i64>,
    /// How many swipes the last message has; `None` for a message of a user.
    pub n_swipes: Option<i64>,
    /// The number of its active swipe, from 1; `None` for a message of a user.
    pub swipe: Option<i64>,
    /// When the last user message was written.
    pub user_spoke_at: Option<Timestamp>,
    /// The user's instruction for an impersonation.
    pub input: String,
}

impl MacroEnvironment {
    /// Returns the value of a macro of the templates; empty in a chat completion.
    pub fn template_text(&self, name: &str) -> String {
        let templates = self.templates.as_ref();
        templates.map_or_else(String::new, |it| it.macro_value(name).to_owned())
    }

    /// Names the field whose text is expanded next.
    pub fn set_field(&self, name: &str) {
        name.clone_into(&mut self.field.borrow_mut());
    }

    /// Records that a text exceeds a limit.
    pub fn record_failure(&self, limit: MacroLimit) {
        self.failure
            .borrow_mut()
            .get_or_insert_with(|| InvalidMacro {
                field: self.field.borrow().clone(),
                limit,
            });
    }

    /// Counts one macro.
    ///
    /// # Errors
    /// `Expansions` when the limit of the prompt is exceeded.
    pub fn count_expansion(&self) -> Result<(), MacroLimit> {
        let mut used = self.macro_use.get();
        let counted = used.count_expansion();
        self.macro_use.set(used);
        counted
    }

    /// Counts the value of a macro.
    ///
    /// # Errors
    /// `Output` when the limit of the prompt is exceeded.
    pub fn count_output(&self, n_bytes: usize) -> Result<(), MacroLimit> {
        let mut used = self.macro_use.get();
        let counted = used.count_output(n_bytes);
        self.macro_use.set(used);
        counted
    }

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
