//! Replaces the macros of a text by their values. A value may contain macros (`{{description}}`),
//! so depth, number and size are limited: macros beyond a limit are left as they are, and a longer
//! result is cut.

use crate::macros::bindings::{Binding, Bindings};
use crate::macros::card_use::CardUse;
use crate::macros::effect::MacroEffect;
use crate::macros::environment::MacroEnvironment;
use crate::macros::syntax::{IfBlock, MAX_NESTING, MacroCall, MacroNode, parse};
use crate::macros::variables::scope_of;
use crate::macros::{date_time, random};
use crate::seeded_random::SeededRandom;

/// The maximum number of macros that one text may evaluate.
const MAX_STEPS: usize = 20_000;
/// The maximum length of a result, in bytes; a longer one is cut.
pub const MAX_OUTPUT: usize = 256 * 1024;
/// The maximum number of delimiters (`{{`, `}}`, `::`) to parse; the rest is left as it is.
const MAX_DELIMITERS: usize = 200_000;
/// The maximum length of an input, in bytes; an expansion reads and writes at most twice as many.
const MAX_WORK: usize = 4 * 1024 * 1024;

/// Returns `text` with its macros expanded.
pub fn expand(text: &str, bindings: &Bindings, environment: &MacroEnvironment) -> String {
    expand_counted(text, bindings, environment).0
}

/// Returns `text` with its macros expanded, and the work: macros evaluated, bytes read and written.
pub fn expand_counted(
    text: &str,
    bindings: &Bindings,
    environment: &MacroEnvironment,
) -> (String, usize, usize) {
    let text = &text[..text.floor_char_boundary(MAX_WORK)];
    let mut expansion = Expansion {
        bindings,
        environment,
        text,
        original: bindings.original.as_deref(),
        is_full: false,
        steps_left: MAX_STEPS,
        work_left: MAX_WORK * 2,
        delimiters_left: MAX_DELIMITERS,
        n_draws: 0,
        fingerprint: None,
    };
    let mut out = ExpansionOutput::default();
    expansion.expand_text(text, &mut out, 0);
    let steps = MAX_STEPS - expansion.steps_left;
    (out.text, steps, MAX_WORK * 2 - expansion.work_left)
}

struct Expansion<'a> {
    bindings: &'a Bindings,
    environment: &'a MacroEnvironment,
    /// The whole text: random draws depend on it.
    text: &'a str,
    /// The value of `{{original}}`, which only the first one receives.
    original: Option<&'a str>,
    /// A limit was reached; nothing more is written.
    is_full: bool,
    steps_left: usize,
    work_left: usize,
    delimiters_left: usize,
    n_draws: usize,
    /// The fingerprint of the text, computed for the first draw.
    fingerprint: Option<random::TextFingerprint>,
}

/// The text written so far.
#[derive(Default)]
struct ExpansionOutput {
    text: String,
    /// The last item was a `{{trim}}`: line breaks that follow are removed.
    trims_newlines: bool,
}

impl<'a> Expansion<'a> {
    /// Expands a text and appends the result to `out`.
    fn expand_text(&mut self, text: &str, out: &mut ExpansionOutput, depth: usize) {
        self.spend_work(text.len());
        if !self.is_full {
            let nodes = parse(text, &mut self.delimiters_left);
            self.write_all(&nodes, out, depth);
        }
    }

    fn spend_work(&mut self, n_bytes: usize) {
        self.is_full |= n_bytes > self.work_left;
        self.work_left = self.work_left.saturating_sub(n_bytes);
    }

    fn write_all(&mut self, nodes: &[MacroNode<'_>], out: &mut ExpansionOutput, depth: usize) {
        for node in nodes {
            if self.is_full {
                return;
            }
            match node {
                MacroNode::Text(text) => self.write(text, out),
                MacroNode::Angle(name) => self.expand_angle(name, out, depth),
                MacroNode::Macro(call) => self.expand_call(call, out, depth),
                MacroNode::If(choice) => self.expand_if(choice, out, depth),
            }
        }
    }

    fn expand_angle(&mut self, name: &str, out: &mut ExpansionOutput, depth: usize) {
        let known = self.binding(&name.to_lowercase());
        match known.filter(|_| self.can_step(depth)) {
            Some(meaning) => {
                self.steps_left -= 1;
                self.apply(MacroEffect::from_binding(meaning), out, depth);
            }
            None => {
                for part in ["<", name, ">"] {
                    self.write(part, out);
                }
            }
        }
    }

    /// Returns the value bound to a name, and records the use of a card's text.
    fn binding(&self, name: &str) -> Option<Binding<'a>> {
        let meaning = self.bindings.get(name)?;
        if self.bindings.is_card_text(name) {
            self.environment.record_card_use(CardUse::Entered);
        }
        Some(meaning)
    }

    fn can_step(&self, depth: usize) -> bool {
        self.steps_left > 0 && depth < MAX_NESTING
    }

    fn expand_call(&mut self, call: &MacroCall<'_>, out: &mut ExpansionOutput, depth: usize) {
        let effect = match self.can_step(depth) {
            true => self.evaluate(call, depth),
            false => None,
        };
        match effect {
            Some(effect) => self.apply(effect, out, depth),
            None => self.write_verbatim(call, out, depth),
        }
    }

    fn apply(&mut self, effect: MacroEffect<'_>, out: &mut ExpansionOutput, depth: usize) {
        match effect {
            MacroEffect::Plain(text) => self.write(&text, out),
            MacroEffect::Text(text) => self.expand_text(text, out, depth + 1),
            MacroEffect::Trim => {
                let kept = out.text.trim_end_matches(['\n', '\r']).len();
                out.text.truncate(kept);
                out.trims_newlines = true;
            }
        }
    }

    /// Writes a macro that is unknown or beyond a limit as it is in the text, with the macros inside
    /// it expanded.
    fn write_verbatim(&mut self, call: &MacroCall<'_>, out: &mut ExpansionOutput, depth: usize) {
        self.write("{{", out);
        for (n, part) in call.parts.iter().enumerate() {
            if n > 0 {
                self.write("::", out);
            }
            self.write_all(part, out, depth);
        }
        self.write("}}", out);
    }

    fn expand_if(&mut self, choice: &IfBlock<'_>, out: &mut ExpansionOutput, depth: usize) {
        if !self.can_step(depth) {
            return self.write_if_verbatim(choice, out, depth);
        }
        self.steps_left -= 1;
        let condition = self.expand_args(&choice.call, depth).join("::");
        let nodes = match self.is_condition_true(&condition, depth) {
            true => &choice.then,
            false => &choice.otherwise,
        };
        let mut inner = ExpansionOutput::default();
        self.write_all(nodes, &mut inner, depth + 1);
        self.write(inner.text.trim(), out);
    }

    /// Writes a block beyond a limit as it is in the text.
    fn write_if_verbatim(&mut self, choice: &IfBlock<'_>, out: &mut ExpansionOutput, depth: usize) {
        self.write_verbatim(&choice.call, out, depth);
        self.write_all(&choice.then, out, depth);
        if !choice.otherwise.is_empty() {
            self.write("{{else}}", out);
            self.write_all(&choice.otherwise, out, depth);
        }
        self.write("{{/if}}", out);
    }

    /// Returns whether a condition is true: neither empty nor `0`, `false`, `off` or `no`. The bare
    /// name of a macro is replaced by its value; each leading `!` negates.
    fn is_condition_true(&mut self, condition: &str, depth: usize) -> bool {
        let bare = condition.trim().trim_start_matches('!');
        let is_turned = (condition.trim().len() - bare.len()) % 2 == 1;
        let bare = bare.trim();
        let mut value = ExpansionOutput::default();
        match self.binding(&bare.to_lowercase()) {
            Some(meaning) => self.apply(MacroEffect::from_binding(meaning), &mut value, depth),
            None => value.text = bare.to_owned(),
        }
        let no = ["", "0", "false", "off", "no"];
        is_turned == no.contains(&value.text.trim().to_lowercase().as_str())
    }

    /// Returns the arguments: the text after the name and the parts between `::`, expanded.
    fn expand_args(&mut self, call: &MacroCall<'_>, depth: usize) -> Vec<String> {
        let mut args = Vec::new();
        for (n, part) in call.parts.iter().enumerate() {
            let mut arg = ExpansionOutput::default();
            match call.head() {
                Some((_, rest)) if n == 0 => {
                    self.write(rest, &mut arg);
                    self.write_all(&part[1..], &mut arg, depth + 1);
                    arg.text = arg.text.trim().to_owned();
                    if arg.text.is_empty() {
                        continue; // `{{name::part}}`
                    }
                }
                _ => self.write_all(part, &mut arg, depth + 1),
            }
            args.push(arg.text);
        }
        args
    }

    /// Evaluates a macro; `None` if it is unknown.
    fn evaluate(&mut self, call: &MacroCall<'_>, depth: usize) -> Option<MacroEffect<'a>> {
        let (name, rest) = call.head()?;
        let name = name.to_lowercase();
        let is_bare = call.parts.len() == 1 && call.parts[0].len() == 1 && rest.trim().is_empty();
        let effect = match is_bare {
            true => self.evaluate_bare(&name),
            false => None,
        };
        let effect = match effect {
            Some(effect) => Some(effect),
            None => self
                .evaluate_with_args(&name, call, depth)
                .map(MacroEffect::Plain),
        };
        // The macros in its arguments may have used the last step.
        let n_steps = usize::from(effect.is_some());
        self.steps_left = self.steps_left.saturating_sub(n_steps);
        effect
    }

    /// Evaluates a macro without arguments.
    fn evaluate_bare(&mut self, name: &str) -> Option<MacroEffect<'a>> {
        let (meanings, world) = (self.bindings, self.environment);
        if let Some(meaning) = self.binding(name) {
            return Some(MacroEffect::from_binding(meaning));
        }
        let last_messages = &world.last_messages;
        let plain = match name {
            "original" if meanings.original.is_some() => {
                return Some(MacroEffect::Text(self.original.take().unwrap_or_default()));
            }
            "trim" => return Some(MacroEffect::Trim),
            "newline" => "\n".to_owned(),
            "noop" => String::new(),
            "lastmessage" => last_messages.message.clone(),
            "lastusermessage" => last_messages.user_message.clone(),
            "lastcharmessage" => last_messages.character_message.clone(),
            "lastmessageid" => last_messages
                .message_id
                .map_or(String::new(), |it| it.to_string()),
            "input" => last_messages.input.clone(),
            "summary" => world.use_summary(),
            "maxprompt" | "maxprompttokens" => world.max_prompt_tokens.to_string(),
            "model" => world.model.clone(),
            "idle_duration" | "idleduration" => {
                let silence = last_messages.user_spoke_at.zip(world.now);
                silence.map_or("a few seconds".to_owned(), |(then, now)| {
                    date_time::humanize_duration(now.ms_since(then))
                })
            }
            "roll" => return None,
            _ => date_time::expand(name, world.now?.to_utc())?,
        };
        Some(MacroEffect::Plain(plain))
    }

    /// Evaluates a macro with arguments.
    fn evaluate_with_args(
        &mut self,
        name: &str,
        call: &MacroCall<'_>,
        depth: usize,
    ) -> Option<String> {
        if let Some(reach) = scope_of(name) {
            let args = self.expand_args(call, depth);
            let output = self
                .environment
                .variables
                .borrow_mut()
                .execute(name, reach, &args)?;
            if !output.is_empty() {
                self.environment.record_card_use(CardUse::Unknown);
            }
            return Some(output);
        }
        let value = match name {
            "comment" | "hidden_key" | "banned" => String::new(),
            "reverse" => self
                .expand_args(call, depth)
                .join("::")
                .chars()
                .rev()
                .collect(),
            "outlet" => {
                let args = self.expand_args(call, depth);
                let found = self.environment.outlets.get(args.first()?.trim());
                if found.is_some() {
                    self.environment.record_card_use(CardUse::Unknown);
                }
                found.cloned().unwrap_or_default()
            }
            "random" | "pick" => {
                let choices = random::split_choices(self.expand_args(call, depth));
                let mut dice = self.next_random(name == "pick");
                dice.choose(&choices).map(|it| it.trim().to_owned())?
            }
            "roll" => {
                let formula = self.expand_args(call, depth).join("");
                if formula.is_empty() {
                    return None;
                }
                let thrown = random::roll(&mut self.next_random(false), &formula);
                thrown.map_or_else(|| format!("{{{{roll:{formula}}}}}"), |it| it.to_string())
            }
            "datetimeformat" => {
                let pattern = self.expand_args(call, depth).join("::");
                date_time::format_in(&pattern, self.environment.now?.to_utc())
            }
            "time" => date_time::expand_with_offset(
                self.expand_args(call, depth).first()?,
                self.environment.now?.to_utc(),
            )?,
            _ => {
                let offset = name.strip_prefix("time_")?;
                let minutes = self.expand_args(call, depth);
                let minutes = minutes.first().map(|it| format!(":{it}"));
                let place = offset.to_owned() + &minutes.unwrap_or_default();
                date_time::expand_with_offset(&place, self.environment.now?.to_utc())?
            }
        };
        Some(value)
    }

    fn next_random(&mut self, is_pick: bool) -> SeededRandom {
        self.n_draws += 1;
        let print = *self
            .fingerprint
            .get_or_insert_with(|| random::TextFingerprint::new(self.text));
        random::draw_source(self.environment.seed, is_pick, print, self.n_draws)
    }

    fn write(&mut self, text: &str, out: &mut ExpansionOutput) {
        let text = match out.trims_newlines {
            true => text.trim_start_matches(['\n', '\r']),
            false => text,
        };
        self.spend_work(text.len());
        if text.is_empty() || self.is_full {
            return;
        }
        out.trims_newlines = false;
        let room = text.floor_char_boundary(MAX_OUTPUT.saturating_sub(out.text.len()));
        self.is_full = room < text.len();
        out.text.push_str(&text[..room]);
    }
}

#[cfg(test)]
#[path = "expansion_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "expansion_cost_tests.rs"]
mod cost_tests;
#[cfg(test)]
#[path = "expansion_property_tests.rs"]
mod property_tests;
