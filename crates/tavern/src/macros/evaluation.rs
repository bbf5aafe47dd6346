//! Returns the value of one macro whose arguments are already expanded.

use base::clock::Timestamp;

use crate::macros::bindings::Bindings;
use crate::macros::card_use::CardUse;
use crate::macros::environment::MacroEnvironment;
use crate::macros::output::MacroEffect;
use crate::macros::syntax::names::TIME_AT_OFFSET;
use crate::macros::variables::VariableScope;
use crate::macros::{date_time, random, values};
use crate::seeded_random::SeededRandom;

/// The maximum number of line breaks or spaces that one macro inserts.
const MAX_REPEATED: usize = 1_000;

/// What the value of a macro depends on.
pub struct Evaluation<'e, 'a> {
    pub bindings: &'a Bindings,
    pub environment: &'a MacroEnvironment,
    /// The whole text: random draws depend on it.
    pub text: &'a str,
    /// The fingerprint of the text, computed for the first draw.
    pub fingerprint: &'e mut Option<random::TextFingerprint>,
    /// A hash of the macro's position.
    pub position: u64,
}

impl<'a> Evaluation<'_, 'a> {
    /// Evaluates the macro with this first name; `None` if its arguments have no meaning. `written` is
    /// its name in the text. The caller has checked the number of arguments.
    pub fn evaluate(self, name: &str, written: &str, args: &[String]) -> Option<MacroEffect<'a>> {
        if let Some(meaning) = self.bindings.get(name) {
            if self.bindings.is_card_text(name) {
                self.environment.record_card_use(CardUse::Entered);
            }
            return Some(MacroEffect::from_binding(meaning));
        }
        match name {
            "trim" if args.is_empty() => return Some(MacroEffect::Trim),
            "noop" => return Some(MacroEffect::KeepLineBreaks),
            "greeting" => return Some(self.greeting(args)),
            _ => {}
        }
        let value = self
            .of_conversation(name)
            .or_else(|| self.of_time(name, written, args))
            .or_else(|| self.of_variable(name, args))
            .or_else(|| self.of_text(name, args))
            .or_else(|| self.of_chance(name, args));
        value.map(MacroEffect::Plain)
    }

    /// Returns a greeting of the card: 0 is the first message, 1 the first alternate greeting.
    fn greeting(&self, args: &[String]) -> MacroEffect<'a> {
        let at = args.first().map_or(Some(0), |it| it.parse().ok());
        let found = at.and_then(|at: usize| self.bindings.greetings.get(at));
        self.environment.record_card_use(CardUse::Entered);
        found.map_or_else(
            || MacroEffect::Plain(String::new()),
            |it| MacroEffect::Text(it),
        )
    }

    /// Returns what the conversation and the model determine.
    fn of_conversation(&self, name: &str) -> Option<String> {
        let environment = self.environment;
        let last = &environment.last_messages;
        let or_empty = |number: Option<i64>| number.map_or_else(String::new, |it| it.to_string());
        let limits = environment.token_limits;
        Some(match name {
            "lastmessage" => last.message.clone(),
            "lastusermessage" => last.user_message.clone(),
            "lastcharmessage" => last.character_message.clone(),
            "lastmessageid" => or_empty(last.message_id),
            "firstincludedmessageid" => or_empty(last.first_included_id),
            "lastswipeid" => or_empty(last.n_swipes),
            "currentswipeid" => or_empty(last.swipe),
            "allchatrange" => last
                .message_id
                .map_or_else(String::new, |it| format!("0-{it}")),
            "input" => last.input.clone(),
            "summary" => environment.use_summary(),
            "idleduration" => match last.user_spoke_at.zip(environment.now) {
                Some((then, now)) => date_time::humanize_duration(now.ms_since(then)),
                None => date_time::humanize_duration(0),
            },
            "maxprompt" => (limits.context - limits.response).to_string(),
            "maxcontext" => limits.context.to_string(),
            "maxresponse" => limits.response.to_string(),
            "model" => environment.model.clone(),
            "lastgenerationtype" => environment.generation_type.to_owned(),
            "ismobile" | "hasextension" => "false".to_owned(),
            "exampleseparator" | "chatstart" => environment.template_text(name),
            name if name.starts_with("instruct") => environment.template_text(name),
            _ => return None,
        })
    }

    /// Returns a time or a date; `None` without a clock.
    fn of_time(&self, name: &str, written: &str, args: &[String]) -> Option<String> {
        let time = || self.environment.now.map(Timestamp::to_utc);
        match (name, args) {
            ("timediff", [one, other]) => date_time::difference(one, other),
            ("datetimeformat", [pattern]) => Some(date_time::format_in(pattern, time()?)),
            ("time", [zone]) => date_time::expand_with_offset(zone, time()?),
            (TIME_AT_OFFSET, minutes) => {
                let hours = written.get("time_".len()..).unwrap_or_default();
                let minutes = minutes.first().map(|it| format!(":{it}"));
                let zone = hours.to_owned() + &minutes.unwrap_or_default();
                date_time::expand_with_offset(&zone, time()?)
            }
            (name, []) => date_time::expand(name, time()?),
            _ => None,
        }
    }

    /// Reads or changes a variable.
    fn of_variable(&self, name: &str, args: &[String]) -> Option<String> {
        let scope = match name.contains("global") {
            true => VariableScope::Space,
            false => VariableScope::Conversation,
        };
        let action = name.replace("global", "");
        let mut variables = self.environment.variables.borrow_mut();
        let value = match (action.as_str(), args) {
            ("getvar", [of]) => variables.get(scope, of).to_owned(),
            ("setvar", [of, value]) => {
                variables.set(scope, of, value);
                String::new()
            }
            ("addvar", [of, value]) => {
                variables.add(scope, of, value);
                String::new()
            }
            ("incvar" | "decvar", [of]) => {
                let step = if action == "incvar" { "1" } else { "-1" };
                variables.add(scope, of, step);
                variables.get(scope, of).to_owned()
            }
            ("hasvar", [of]) => return Some(variables.is_set(scope, of).to_string()),
            ("deletevar", [of]) => {
                variables.delete(scope, of);
                String::new()
            }
            ("getvarkey", [of, key]) => variables.get_key(scope, of, key),
            ("setvarkey", [of, key, value]) => {
                variables.set_key(scope, of, key, value);
                String::new()
            }
            _ => return None,
        };
        if !value.is_empty() {
            self.environment.record_card_use(CardUse::Unknown);
        }
        Some(value)
    }

    /// Returns a text made from the arguments.
    fn of_text(&self, name: &str, args: &[String]) -> Option<String> {
        match (name, args) {
            ("newline", args) => repeat("\n", args),
            ("space", args) => repeat(" ", args),
            ("trim", [text]) => Some(text.trim().to_owned()),
            ("reverse", [text]) => Some(text.chars().rev().collect()),
            ("banned", _) => Some(String::new()),
            ("outlet", [outlet]) => {
                let found = self.environment.outlets.get(values::unquote(outlet));
                if found.is_some() {
                    self.environment.record_card_use(CardUse::Unknown);
                }
                Some(found.cloned().unwrap_or_default())
            }
            _ => None,
        }
    }

    /// Returns the result of a random macro: a choice from a list or a dice roll.
    fn of_chance(self, name: &str, args: &[String]) -> Option<String> {
        match (name, args) {
            ("random" | "pick", choices) => {
                let choices = random::split_choices(choices);
                let mut source = self.random_source(name == "pick");
                source.choose(&choices).cloned()
            }
            ("roll", [formula]) => {
                let rolled = random::roll(&mut self.random_source(false), formula);
                Some(rolled.map_or_else(String::new, |it| it.to_string()))
            }
            _ => None,
        }
    }

    fn random_source(self, is_pick: bool) -> SeededRandom {
        let text = self.text;
        let of_text = *self
            .fingerprint
            .get_or_insert_with(|| random::TextFingerprint::new(text));
        random::draw_source(self.environment.seed, is_pick, of_text, self.position)
    }
}

/// Repeats a character as often as the argument says, or once.
fn repeat(character: &str, args: &[String]) -> Option<String> {
    let n: usize = args.first().map_or(Some(1), |it| it.parse().ok())?;
    Some(character.repeat(n.min(MAX_REPEATED)))
}

#[cfg(test)]
#[path = "case_fixture.rs"]
pub mod case_fixture;

#[cfg(test)]
#[path = "syntax_tests.rs"]
mod syntax_tests;

#[cfg(test)]
#[path = "value_tests.rs"]
mod value_tests;

#[cfg(test)]
#[path = "variables_tests.rs"]
mod variables_tests;
