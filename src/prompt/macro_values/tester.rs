//! Expands a text as an entry of a preset would be expanded, without building a prompt. No I/O.

use base::ids::CharacterId;
use tavern::macros::bindings::Bindings;
use tavern::macros::card_use::CardUse;
use tavern::macros::environment::{InvalidMacro, MacroEnvironment};
use tavern::macros::expansion::expand;

use crate::prompt::cards::card_texts;
use crate::prompt::context::PromptContext;
use crate::prompt::lore;
use crate::prompt::macro_values::environment::macro_environment;

/// The name of the text in a failure.
const FIELD: &str = "Text";

/// A text with its macros expanded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestedText {
    pub text: String,
    /// Whether macros inserted text of a card, and the cards that the prompt includes.
    pub card_use: CardUse,
    pub cards: Vec<CharacterId>,
}

/// Expands a text with the values of a prompt; `count` returns the number of tokens of a text.
///
/// # Errors
/// Returns the field whose macros exceed a limit.
pub fn expand_in(
    context: &PromptContext,
    text: &str,
    count: &dyn Fn(&str) -> i64,
) -> Result<TestedText, InvalidMacro> {
    let mut environment = macro_environment(context);
    let count_for_model = |text: &str| context.token_factors.apply(text, count(text));
    lore::activate(context, &mut environment, &count_for_model);
    let cards = card_texts::expand_cards(context, &environment);
    let of_cards = environment.take_card_use();
    environment.set_field(FIELD);
    let text = expand(text, &cards.bindings, &environment);
    if let Some(failure) = environment.failure.take() {
        return Err(failure);
    }
    let card_use = match environment.take_card_use() {
        CardUse::Entered => of_cards.max(CardUse::Entered),
        other => other,
    };
    Ok(TestedText {
        text,
        card_use,
        cards: card_texts::included_characters(context),
    })
}

/// Expands a text without a conversation: `{{user}}` is this person, `{{char}}` is `Character`, and
/// all other values are empty.
///
/// # Errors
/// Returns the limit that its macros exceed.
pub fn expand_alone(
    text: &str,
    user: &str,
    environment: &MacroEnvironment,
) -> Result<String, InvalidMacro> {
    const CHARACTER: &str = "Character";
    let bindings = Bindings {
        character: CHARACTER.to_owned(),
        group: CHARACTER.to_owned(),
        group_not_muted: CHARACTER.to_owned(),
        user: user.to_owned(),
        users: user.to_owned(),
        not_character: user.to_owned(),
        ..Bindings::default()
    };
    environment.set_field(FIELD);
    let text = expand(text, &bindings, environment);
    match environment.failure.take() {
        Some(failure) => Err(failure),
        None => Ok(text),
    }
}
