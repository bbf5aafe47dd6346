//! Replaces the macros of a text by their values, from the inside out and from left to right. A value
//! may contain macros (`{{description}}`), so depth, number and size are limited for each prompt: a
//! text that exceeds a limit is not expanded at all, and the environment names it.
//!
//! **Invariant:** what is not sent is not evaluated: comments, the branch of an `if` that is not
//! chosen, and the operand of a short form that is not needed.

use crate::macros::bindings::Bindings;
use crate::macros::environment::MacroEnvironment;
use crate::macros::evaluation::Evaluation;
use crate::macros::limits::{MAX_LEVELS, MacroLimit};
use crate::macros::output::{ExpansionOutput, MacroEffect};
use crate::macros::position::MacroPosition;
use crate::macros::syntax::names::{COMMENT, IF, MacroSpec};
use crate::macros::syntax::parser::parse;
use crate::macros::syntax::short_form::ShortForm;
use crate::macros::syntax::tree::{MacroBlock, MacroCall, MacroHead, MacroNode};
use crate::macros::syntax::{blocks, names};
use crate::macros::{random, short_form_value, values};

/// Returns `text` with its macros expanded. If it or an earlier text of the same prompt exceeds a
/// limit, it is returned as it is, and [`MacroEnvironment::failure`] names the field.
pub fn expand(text: &str, bindings: &Bindings, environment: &MacroEnvironment) -> String {
    if environment.failure.borrow().is_some() {
        return text.to_owned(); // the prompt is refused
    }
    let mut expansion = Expansion {
        bindings,
        environment,
        text,
        original: bindings.original.as_deref(),
        fingerprint: None,
    };
    let mut out = ExpansionOutput::default();
    match expansion.expand_text(text, &mut out, MacroPosition::default()) {
        Ok(()) => out.text,
        Err(limit) => {
            environment.record_failure(limit);
            text.to_owned()
        }
    }
}

struct Expansion<'a> {
    bindings: &'a Bindings,
    environment: &'a MacroEnvironment,
    /// The whole text: random draws depend on it.
    text: &'a str,
    /// The value of `{{original}}`, which only the first one receives.
    original: Option<&'a str>,
    /// The fingerprint of the text, computed for the first draw.
    fingerprint: Option<random::TextFingerprint>,
}

type Expanded<T = ()> = Result<T, MacroLimit>;

impl<'a> Expansion<'a> {
    fn expand_text(
        &mut self,
        text: &str,
        out: &mut ExpansionOutput,
        position: MacroPosition,
    ) -> Expanded {
        self.write_all(&parse(text)?, out, position)
    }

    fn write_all(
        &mut self,
        nodes: &[MacroNode<'_>],
        out: &mut ExpansionOutput,
        position: MacroPosition,
    ) -> Expanded {
        for node in nodes {
            match node {
                MacroNode::Text(text) => out.write(text),
                MacroNode::Angle(name, at) => self.expand_angle(name, *at, out, position)?,
                MacroNode::Macro(call) => self.expand_call(call, out, position)?,
            }
        }
        Ok(())
    }

    fn expand_angle(
        &mut self,
        name: &str,
        at: usize,
        out: &mut ExpansionOutput,
        position: MacroPosition,
    ) -> Expanded {
        let effect = names::find(name)
            .and_then(|spec| self.evaluation(at, position).evaluate(spec.name, name, &[]));
        // Each of these names has a value.
        effect.map_or(Ok(()), |it| self.apply(it, at, out, position))
    }

    fn expand_call(
        &mut self,
        call: &MacroCall<'_>,
        out: &mut ExpansionOutput,
        position: MacroPosition,
    ) -> Expanded {
        if position.depth >= MAX_LEVELS {
            return Err(MacroLimit::Levels);
        }
        match self.evaluate(call, position)? {
            Some(effect) => self.apply(effect, call.at, out, position),
            None => self.write_verbatim(call, out, position),
        }
    }

    fn apply(
        &mut self,
        effect: MacroEffect<'_>,
        at: usize,
        out: &mut ExpansionOutput,
        position: MacroPosition,
    ) -> Expanded {
        self.environment.count_expansion()?;
        match effect {
            MacroEffect::Plain(text) => {
                self.environment.count_output(text.len())?;
                out.write(&text);
            }
            MacroEffect::Text(text) => {
                self.environment.count_output(text.len())?;
                return self.expand_text(text, out, position.in_text_at(at));
            }
            MacroEffect::TextOfPerson(text) => {
                let environment = self.environment;
                environment.count_output(text.len())?;
                let position = position.in_text_at(at);
                return environment.without_variables(|| self.expand_text(text, out, position));
            }
            MacroEffect::Trim => out.trim(),
            MacroEffect::KeepLineBreaks => out.keep_line_breaks(),
        }
        Ok(())
    }

    /// Writes a macro without a meaning as it is in the text, with the macros in it expanded.
    fn write_verbatim(
        &mut self,
        call: &MacroCall<'_>,
        out: &mut ExpansionOutput,
        position: MacroPosition,
    ) -> Expanded {
        let inner = position.in_argument();
        for (n, part) in call.parts.iter().enumerate() {
            out.write(if n == 0 { "{{" } else { "::" });
            self.write_all(part, out, inner)?;
        }
        out.write("}}");
        if let Some(block) = &call.block {
            self.write_all(&block.nodes, out, inner)?;
            if let Some(otherwise) = &block.otherwise {
                out.write("{{else}}");
                self.write_all(otherwise, out, inner)?;
            }
            ["{{", block.end, "}}"]
                .into_iter()
                .for_each(|it| out.write(it));
        }
        Ok(())
    }

    /// Evaluates a macro; `None` if it has no meaning.
    fn evaluate(
        &mut self,
        call: &MacroCall<'_>,
        position: MacroPosition,
    ) -> Expanded<Option<MacroEffect<'a>>> {
        if let Some(form) = call.short_form() {
            return self.evaluate_short_form(&form, call, position);
        }
        let Some((head, spec)) = known_head(call) else {
            return Ok(None);
        };
        match spec.name {
            COMMENT | "comment" => Ok(Some(MacroEffect::Plain(String::new()))),
            IF => self.evaluate_if(head, call, position).map(Some),
            "original" => {
                let is_bound = self.bindings.original.is_some();
                let text = self.original.take().unwrap_or_default();
                Ok(is_bound.then_some(MacroEffect::Text(text)))
            }
            name => {
                let args = self.expand_arguments(head, call, position)?;
                let evaluation = self.evaluation(call.at, position);
                Ok(evaluation.evaluate(name, head.name, &args))
            }
        }
    }

    fn evaluation(&mut self, at: usize, position: MacroPosition) -> Evaluation<'_, 'a> {
        Evaluation {
            bindings: self.bindings,
            environment: self.environment,
            text: self.text,
            fingerprint: &mut self.fingerprint,
            position: position.hash_at(at),
        }
    }

    /// Returns the arguments, expanded: those between `::`, and the text of the block.
    fn expand_arguments(
        &mut self,
        head: MacroHead<'_>,
        call: &MacroCall<'_>,
        position: MacroPosition,
    ) -> Expanded<Vec<String>> {
        let mut args = Vec::new();
        for (start, nodes) in call.arguments() {
            args.push(self.expand_argument(start, nodes, position)?);
        }
        if let Some(block) = &call.block {
            args.push(self.expand_block(head, &block.nodes, position)?);
        }
        Ok(args)
    }

    /// Expands an argument. The white space around it is ignored, but not that of a macro's value.
    fn expand_argument(
        &mut self,
        start: &str,
        nodes: &[MacroNode<'_>],
        position: MacroPosition,
    ) -> Expanded<String> {
        let mut out = ExpansionOutput::default();
        let mut nodes = nodes;
        let mut start = start;
        if let ("", Some((MacroNode::Text(text), rest))) = (start, nodes.split_first()) {
            (start, nodes) = (text, rest);
        }
        let mut end = "";
        if let Some((MacroNode::Text(text), rest)) = nodes.split_last() {
            (end, nodes) = (text.trim_end(), rest);
        } else if nodes.is_empty() {
            start = start.trim_end();
        }
        out.write(start.trim_start());
        self.write_all(nodes, &mut out, position.in_argument())?;
        out.write(end);
        Ok(out.text)
    }

    /// Expands the text of a block.
    fn expand_block(
        &mut self,
        head: MacroHead<'_>,
        nodes: &[MacroNode<'_>],
        position: MacroPosition,
    ) -> Expanded<String> {
        let mut out = ExpansionOutput::default();
        self.write_all(nodes, &mut out, position.in_argument())?;
        Ok(match head.keeps_space {
            true => out.text,
            false => values::trim_block(&out.text),
        })
    }

    fn evaluate_if(
        &mut self,
        head: MacroHead<'_>,
        call: &MacroCall<'_>,
        position: MacroPosition,
    ) -> Expanded<MacroEffect<'a>> {
        let mut arguments = call.arguments();
        let (start, condition) = arguments.next().unwrap_or_default();
        let is_true = self.is_condition_true(start, condition, position)?;
        let text = match (call.block.as_deref(), arguments.next()) {
            (Some(block), _) => {
                let MacroBlock {
                    nodes, otherwise, ..
                } = block;
                let otherwise = otherwise.as_deref().unwrap_or_default();
                let chosen = if is_true { nodes } else { otherwise };
                self.expand_block(head, chosen, position)?
            }
            (None, Some((start, nodes))) => {
                let at = nodes.iter().position(blocks::is_else);
                let (then, otherwise) = nodes.split_at(at.unwrap_or(nodes.len()));
                match is_true {
                    true => self.expand_argument(start, then, position)?,
                    false => {
                        let otherwise = otherwise.get(1..).unwrap_or_default();
                        self.expand_argument("", otherwise, position)?
                    }
                }
            }
            (None, None) => String::new(),
        };
        Ok(MacroEffect::Plain(text))
    }

    /// Returns whether a condition is true. The name of a macro without required arguments, and that
    /// of a variable, is replaced by its value; each leading `!` inverts.
    fn is_condition_true(
        &mut self,
        start: &str,
        nodes: &[MacroNode<'_>],
        position: MacroPosition,
    ) -> Expanded<bool> {
        let (start, nodes) = match (start, nodes.split_first()) {
            ("", Some((MacroNode::Text(text), rest))) => (*text, rest),
            (start, _) => (start, nodes),
        };
        let start = start.trim_start();
        let bare = start.trim_start_matches(|it: char| it == '!' || it.is_whitespace());
        let is_inverted = start[..start.len() - bare.len()].matches('!').count() % 2 == 1;
        let value = match nodes.is_empty() {
            true => self.value_of_name(bare.trim_end(), position)?,
            false => self.expand_argument(bare, nodes, position)?,
        };
        Ok(values::is_true(&value) != is_inverted)
    }

    /// Returns the value of the macro or variable with this name, or else the text itself.
    fn value_of_name(&mut self, name: &str, position: MacroPosition) -> Expanded<String> {
        if let Some(form) = ShortForm::parse(name).filter(|it| it.operator.is_none())
            && form.rest.trim().is_empty()
        {
            return Ok(short_form_value::read(&form, self.environment));
        }
        let Some(spec) = names::find(name).filter(|it| it.min_args == 0) else {
            return Ok(name.to_owned());
        };
        if spec.name == "original" {
            return Ok(self.original.unwrap_or_default().to_owned());
        }
        let effect = self.evaluation(0, position).evaluate(spec.name, name, &[]);
        let mut out = ExpansionOutput::default();
        if let Some(effect) = effect {
            self.apply(effect, 0, &mut out, position)?;
        }
        Ok(out.text)
    }

    fn evaluate_short_form(
        &mut self,
        form: &ShortForm<'_>,
        call: &MacroCall<'_>,
        position: MacroPosition,
    ) -> Expanded<Option<MacroEffect<'a>>> {
        if !form.needs_value() && call.has_value_after(form) {
            return Ok(None);
        }
        let text = match short_form_value::without_operand(form, self.environment) {
            Some(text) => text,
            None => {
                let operand = self.expand_operand(form, call, position)?;
                short_form_value::with_operand(form, operand, self.environment)
            }
        };
        Ok(Some(MacroEffect::Plain(text)))
    }

    /// Expands the operand of a short form; a `::` in it is text.
    fn expand_operand(
        &mut self,
        form: &ShortForm<'_>,
        call: &MacroCall<'_>,
        position: MacroPosition,
    ) -> Expanded<String> {
        let mut value = String::new();
        for (n, part) in call.parts.iter().enumerate() {
            match n {
                0 => value += &self.expand_argument(form.rest, &part[1..], position)?,
                _ => {
                    value += "::";
                    value += &self.expand_argument("", part, position)?;
                }
            }
        }
        Ok(value)
    }
}

/// Returns the beginning of a macro with a meaning and a possible number of arguments.
fn known_head<'a>(call: &MacroCall<'a>) -> Option<(MacroHead<'a>, MacroSpec)> {
    let head = call.head().filter(|it| !it.is_closing)?;
    let spec = names::find(head.name)?;
    let is_possible = (spec.min_args..=spec.max_args).contains(&call.n_args());
    is_possible.then_some((head, spec))
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
