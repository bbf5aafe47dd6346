//! Puts in what macros stand for. One may stand for text with macros in it (`{{description}}`), so
//! depth, number and size are bounded: what is past a limit stays as it is written, or is cut.

use crate::prompt::card_use::CardUse;
use crate::prompt::macros::calendar;
use crate::prompt::macros::chance;
use crate::prompt::macros::meanings::Field;
use crate::prompt::macros::meanings::Meaning;
use crate::prompt::macros::meanings::Meanings;
use crate::prompt::macros::syntax::Call;
use crate::prompt::macros::syntax::Choice;
use crate::prompt::macros::syntax::MAX_NESTING;
use crate::prompt::macros::syntax::Node;
use crate::prompt::macros::syntax::parse;
use crate::prompt::macros::variables::Reach;
use crate::prompt::macros::variables::reach_of;
use crate::prompt::macros::variables::verb;
use crate::prompt::macros::world::World;

/// How many macros one text may run.
const MAX_STEPS: usize = 20_000;
/// How long a text may become, in bytes. What is longer is cut.
pub const MAX_OUTPUT: usize = 256 * 1024;
/// How many beginnings, ends and parts of macros are read; what is behind them stays as it is.
const MAX_MARKS: usize = 200_000;
/// How many bytes are read and written on the way there.
const MAX_WORK: usize = 4 * 1024 * 1024;

/// `text` with its macros expanded.
pub fn expand(text: &str, meanings: &Meanings, world: &World) -> String {
    expand_counted(text, meanings, world).0
}

/// The same, and how much work it was: macros run, and bytes read and written.
pub fn expand_counted(text: &str, meanings: &Meanings, world: &World) -> (String, usize, usize) {
    let text = &text[..text.floor_char_boundary(MAX_WORK)];
    let mut expansion = Expansion {
        meanings,
        world,
        text,
        original: meanings.original.as_deref(),
        is_full: false,
        steps_left: MAX_STEPS,
        work_left: MAX_WORK * 2,
        marks_left: MAX_MARKS,
        n_draws: 0,
        print: None,
    };
    let mut out = Out::default();
    expansion.read(text, &mut out, 0);
    let steps = MAX_STEPS - expansion.steps_left;
    (out.text, steps, MAX_WORK * 2 - expansion.work_left)
}

struct Expansion<'a> {
    meanings: &'a Meanings,
    world: &'a World,
    /// All of it: draws depend on the text they stand in.
    text: &'a str,
    /// Used up by the first `{{original}}`.
    original: Option<&'a str>,
    /// Something was cut; nothing is written any more.
    is_full: bool,
    steps_left: usize,
    work_left: usize,
    marks_left: usize,
    n_draws: usize,
    /// Of the text, once something was drawn.
    print: Option<chance::Print>,
}

/// What has been written.
#[derive(Default)]
struct Out {
    text: String,
    /// A `{{trim}}` was the last thing written.
    swallows_newlines: bool,
}

/// What a macro does.
enum Effect<'a> {
    /// Stands for this: nothing in it is run.
    Plain(String),
    /// Stands for text that may have macros in it.
    Text(&'a str),
    /// Takes away the line breaks around it.
    Trim,
}

impl<'a> Expansion<'a> {
    /// Expands a text to the end of `out`.
    fn read(&mut self, text: &str, out: &mut Out, depth: usize) {
        self.work(text.len());
        if !self.is_full {
            let nodes = parse(text, &mut self.marks_left);
            self.write_all(&nodes, out, depth);
        }
    }

    fn work(&mut self, n_bytes: usize) {
        self.is_full |= n_bytes > self.work_left;
        self.work_left = self.work_left.saturating_sub(n_bytes);
    }

    fn write_all(&mut self, nodes: &[Node<'_>], out: &mut Out, depth: usize) {
        for node in nodes {
            if self.is_full {
                return;
            }
            match node {
                Node::Text(text) => self.write(text, out),
                Node::Angle(name) => self.angle(name, out, depth),
                Node::Macro(call) => self.call(call, out, depth),
                Node::If(choice) => self.choose(choice, out, depth),
            }
        }
    }

    fn angle(&mut self, name: &str, out: &mut Out, depth: usize) {
        let known = self.meaning(&name.to_lowercase());
        match known.filter(|_| self.may_step(depth)) {
            Some(meaning) => {
                self.steps_left -= 1;
                self.carry_out(effect_of(meaning), out, depth);
            }
            None => {
                for part in ["<", name, ">"] {
                    self.write(part, out);
                }
            }
        }
    }

    /// What a name stands for; text of a card is noted.
    fn meaning(&self, name: &str) -> Option<Meaning<'a>> {
        let meaning = self.meanings.of(name)?;
        if self.meanings.is_of_card(name) {
            self.world.note_card_use(CardUse::Entered);
        }
        Some(meaning)
    }

    fn may_step(&self, depth: usize) -> bool {
        self.steps_left > 0 && depth < MAX_NESTING
    }

    fn call(&mut self, call: &Call<'_>, out: &mut Out, depth: usize) {
        let effect = match self.may_step(depth) {
            true => self.effect(call, depth),
            false => None,
        };
        match effect {
            Some(effect) => self.carry_out(effect, out, depth),
            None => self.verbatim(call, out, depth),
        }
    }

    fn carry_out(&mut self, effect: Effect<'_>, out: &mut Out, depth: usize) {
        match effect {
            Effect::Plain(text) => self.write(&text, out),
            Effect::Text(text) => self.read(text, out, depth + 1),
            Effect::Trim => {
                let kept = out.text.trim_end_matches(['\n', '\r']).len();
                out.text.truncate(kept);
                out.swallows_newlines = true;
            }
        }
    }

    /// As it is written, with what is known in it put in.
    fn verbatim(&mut self, call: &Call<'_>, out: &mut Out, depth: usize) {
        self.write("{{", out);
        for (n, part) in call.parts.iter().enumerate() {
            if n > 0 {
                self.write("::", out);
            }
            self.write_all(part, out, depth);
        }
        self.write("}}", out);
    }

    fn choose(&mut self, choice: &Choice<'_>, out: &mut Out, depth: usize) {
        if !self.may_step(depth) {
            return;
        }
        self.steps_left -= 1;
        let condition = self.args(&choice.call, depth).join("::");
        let nodes = match self.holds(&condition, depth) {
            true => &choice.then,
            false => &choice.otherwise,
        };
        let mut inner = Out::default();
        self.write_all(nodes, &mut inner, depth + 1);
        self.write(inner.text.trim(), out);
    }

    /// Whether a condition holds: it says something, and not no. A bare name of a macro is asked.
    fn holds(&mut self, condition: &str, depth: usize) -> bool {
        let bare = condition.trim().trim_start_matches('!');
        let is_turned = (condition.trim().len() - bare.len()) % 2 == 1;
        let bare = bare.trim();
        let mut told = Out::default();
        match self.meaning(&bare.to_lowercase()) {
            Some(meaning) => self.carry_out(effect_of(meaning), &mut told, depth),
            None => told.text = bare.to_owned(),
        }
        let no = ["", "0", "false", "off", "no"];
        is_turned == no.contains(&told.text.trim().to_lowercase().as_str())
    }

    /// What stands behind the name, and between the `::`, with the macros in it run.
    fn args(&mut self, call: &Call<'_>, depth: usize) -> Vec<String> {
        let mut args = Vec::new();
        for (n, part) in call.parts.iter().enumerate() {
            let mut arg = Out::default();
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

    /// What a macro does; `None`: it is not known.
    fn effect(&mut self, call: &Call<'_>, depth: usize) -> Option<Effect<'a>> {
        let (name, rest) = call.head()?;
        let name = name.to_lowercase();
        let is_bare = call.parts.len() == 1 && call.parts[0].len() == 1 && rest.trim().is_empty();
        let effect = match is_bare {
            true => self.bare(&name),
            false => None,
        };
        let effect = match effect {
            Some(effect) => Some(effect),
            None => self.with_args(&name, call, depth).map(Effect::Plain),
        };
        // What stands in it may have taken the last step.
        let n_steps = usize::from(effect.is_some());
        self.steps_left = self.steps_left.saturating_sub(n_steps);
        effect
    }

    /// A macro that is nothing but its name.
    fn bare(&mut self, name: &str) -> Option<Effect<'a>> {
        let (meanings, world) = (self.meanings, self.world);
        if let Some(meaning) = self.meaning(name) {
            return Some(effect_of(meaning));
        }
        let said = &world.said;
        let plain = match name {
            "original" if meanings.original.is_some() => {
                return Some(Effect::Text(self.original.take().unwrap_or_default()));
            }
            "trim" => return Some(Effect::Trim),
            "newline" => "\n".to_owned(),
            "noop" => String::new(),
            "lastmessage" => said.message.clone(),
            "lastusermessage" => said.by_user.clone(),
            "lastcharmessage" => said.by_character.clone(),
            "lastmessageid" => said.id.map_or(String::new(), |it| it.to_string()),
            "input" => said.input.clone(),
            "maxprompt" | "maxprompttokens" => world.max_prompt.to_string(),
            "model" => world.model.clone(),
            "idle_duration" | "idleduration" => {
                let silence = said.user_spoke_at.zip(world.now);
                silence.map_or("a few seconds".to_owned(), |(then, now)| {
                    calendar::duration(now.ms_since(then))
                })
            }
            "roll" => return None,
            _ => calendar::tell(name, world.now?.to_utc())?,
        };
        Some(Effect::Plain(plain))
    }

    /// A macro that takes something, and what it stands for.
    fn with_args(&mut self, name: &str, call: &Call<'_>, depth: usize) -> Option<String> {
        if let Some(reach) = reach_of(name) {
            let args = self.args(call, depth);
            return self.remember(name, reach, &args);
        }
        let told = match name {
            "comment" | "hidden_key" | "banned" => String::new(),
            "reverse" => self.args(call, depth).join("::").chars().rev().collect(),
            "outlet" => {
                let args = self.args(call, depth);
                let found = self.world.outlets.get(args.first()?.trim());
                if found.is_some() {
                    self.world.note_card_use(CardUse::Unknown);
                }
                found.cloned().unwrap_or_default()
            }
            "random" | "pick" => {
                let choices = chance::choices(self.args(call, depth));
                let mut dice = self.dice(name == "pick");
                dice.one_of(&choices).map(|it| it.trim().to_owned())?
            }
            "roll" => {
                let formula = self.args(call, depth).join("");
                if formula.is_empty() {
                    return None;
                }
                let thrown = chance::roll(&mut self.dice(false), &formula);
                thrown.map_or_else(|| format!("{{{{roll:{formula}}}}}"), |it| it.to_string())
            }
            "datetimeformat" => {
                let pattern = self.args(call, depth).join("::");
                calendar::tell_in(&pattern, self.world.now?.to_utc())
            }
            "time" => {
                calendar::tell_elsewhere(self.args(call, depth).first()?, self.world.now?.to_utc())?
            }
            _ => {
                let offset = name.strip_prefix("time_")?;
                let minutes = self.args(call, depth);
                let minutes = minutes.first().map(|it| format!(":{it}"));
                let place = offset.to_owned() + &minutes.unwrap_or_default();
                calendar::tell_elsewhere(&place, self.world.now?.to_utc())?
            }
        };
        Some(told)
    }

    fn remember(&mut self, name: &str, reach: Reach, args: &[String]) -> Option<String> {
        let key = args.first()?.trim();
        let value = args.get(1).map(String::as_str);
        let mut variables = self.world.variables.borrow_mut();
        let told = match verb(name) {
            "get" => variables.get(reach, key).to_owned(),
            "set" => {
                variables.set(reach, key, value?);
                String::new()
            }
            "add" => {
                variables.add(reach, key, value?);
                String::new()
            }
            step => {
                let one = if step == "inc" { "1" } else { "-1" };
                variables.add(reach, key, one);
                variables.get(reach, key).to_owned()
            }
        };
        if !told.is_empty() {
            self.world.note_card_use(CardUse::Unknown);
        }
        Some(told)
    }

    fn dice(&mut self, is_pick: bool) -> crate::speakers::dice::Dice {
        self.n_draws += 1;
        let print = *self
            .print
            .get_or_insert_with(|| chance::Print::of(self.text));
        chance::dice(self.world.seed, is_pick, print, self.n_draws)
    }

    fn write(&mut self, text: &str, out: &mut Out) {
        let text = match out.swallows_newlines {
            true => text.trim_start_matches(['\n', '\r']),
            false => text,
        };
        self.work(text.len());
        if text.is_empty() || self.is_full {
            return;
        }
        out.swallows_newlines = false;
        let room = text.floor_char_boundary(MAX_OUTPUT.saturating_sub(out.text.len()));
        self.is_full = room < text.len();
        out.text.push_str(&text[..room]);
    }
}

fn effect_of(meaning: Meaning<'_>) -> Effect<'_> {
    match meaning {
        Meaning::Name(name) => Effect::Plain(name.to_owned()),
        Meaning::Field(Field::Expanded(text)) => Effect::Plain(text.clone()),
        Meaning::Field(Field::Written(text)) => Effect::Text(text),
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
