//! Renders a prompt to the one text that a text completion API continues: the story string, the
//! example messages, the chat with its sequences, and the beginning of the reply.

use base::prompt_role::PromptRole;
use serde::{Deserialize, Serialize};

use crate::instruct::context_template::ContextTemplate;
use crate::instruct::control_sequences::ControlSequences;
use crate::instruct::instruct_template::{InstructNames, InstructTemplate, SequencePosition};
use crate::instruct::story_string::{StoryField, StoryString, StoryValues};

/// How the texts of a prompt become one text. Macros in its texts are expanded, except `{{name}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TextLayout {
    pub instruct: InstructTemplate,
    pub context: ContextTemplate,
    /// `context.story_string`, parsed.
    pub story: StoryString,
    /// What is removed from the texts.
    pub control_sequences: ControlSequences,
    /// Whether there are several characters or several users.
    pub is_group: bool,
    /// The name of the speaker.
    pub speaker: String,
    /// Whether the speaker is a user, for whom the model writes.
    pub is_user: bool,
    /// The values of `{{user}}` and `{{char}}` in the story string.
    pub user: String,
    pub character: String,
    /// The names of users and of characters, to recognize the lines of example messages.
    pub users: Vec<String>,
    pub characters: Vec<String>,
}

/// The texts of a prompt in the order in which they are sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextParts {
    pub story: StoryValues,
    pub examples: Vec<ExamplePart>,
    /// The chat, oldest first.
    pub lines: Vec<TextLine>,
    /// The beginning of the reply.
    pub prefill: Option<String>,
}

/// A block of example messages, or a text between such blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExamplePart {
    Block(String),
    Other(String),
}

/// A message of the chat, or a line that has no sequences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextLine {
    Message {
        role: PromptRole,
        /// The name of its author.
        name: Option<String>,
        text: String,
    },
    Plain(String),
}

/// The name for `{{name}}` in the sequence of a message without an author.
const SYSTEM_NAME: &str = "System";

impl TextLayout {
    /// Returns the text that the model continues.
    pub fn render(&self, parts: &TextParts) -> String {
        let mut out = self.story(&parts.story);
        let has_examples_inside = self.story.inserts(StoryField::MesExamples);
        if !has_examples_inside {
            for part in &parts.examples {
                self.push_example(&mut out, part);
            }
        }
        self.push_lines(&mut out, &parts.lines);
        self.push_end(&mut out, parts.prefill.as_deref());
        out
    }

    /// Returns the fields that have a value which the story string does not insert, except those that are
    /// sent elsewhere.
    pub fn omitted_fields(&self, values: &StoryValues) -> Vec<StoryField> {
        let elsewhere = [
            StoryField::MesExamples,
            StoryField::AnchorBefore,
            StoryField::AnchorAfter,
            StoryField::Char,
            StoryField::User,
        ];
        let fields = values.iter().filter(|(_, text)| !text.is_empty());
        let fields = fields.map(|(field, _)| *field);
        let fields = fields.filter(|it| !elsewhere.contains(it) && !self.story.inserts(*it));
        fields.collect()
    }

    fn story(&self, values: &StoryValues) -> String {
        let instruct = &self.instruct;
        let mut story = self.story.render(values);
        let missing = |field: StoryField| {
            let value = values.get(&field).filter(|it| !it.is_empty());
            value.filter(|_| !self.story.inserts(field))
        };
        if let Some(before) = missing(StoryField::AnchorBefore) {
            story = format!("{before}\n{story}");
        }
        if let Some(after) = missing(StoryField::AnchorAfter) {
            story = format!("{}\n{after}", story.trim_end_matches('\n'));
        }
        let story = story.trim_start_matches('\n');
        if story.trim().is_empty() {
            return String::new();
        }
        let mut out = self.named(&instruct.story_string_prefix, None);
        if !out.is_empty() {
            out.push_str(instruct.separator());
        }
        if instruct.story_string_suffix.is_empty() {
            out.push_str(story);
            self.end_line(&mut out);
        } else {
            out.push_str(story.trim_end_matches('\n'));
            out.push_str(&self.named(&instruct.story_string_suffix, None));
        }
        out
    }

    fn push_example(&self, out: &mut String, part: &ExamplePart) {
        let block = match part {
            ExamplePart::Block(block) => block,
            ExamplePart::Other(text) => {
                return self.push_message(
                    out,
                    PromptRole::System,
                    None,
                    text,
                    SequencePosition::Middle,
                );
            }
        };
        let separator = self.context.example_separator.trim();
        let block = block.strip_prefix(separator).unwrap_or(block).trim();
        if !separator.is_empty() {
            push_plain(out, separator);
        }
        let lines = match self.instruct.skip_examples {
            true => Vec::new(),
            false => self.example_lines(block),
        };
        if lines.is_empty() {
            push_plain(out, block);
        }
        for (role, name, text) in lines {
            self.push_message(out, role, Some(name), &text, SequencePosition::Middle);
        }
    }

    /// Splits a block of example messages at the lines that begin with a known name. Empty if the block
    /// does not begin with such a line.
    fn example_lines<'a>(&'a self, block: &str) -> Vec<(PromptRole, &'a str, String)> {
        let mut lines: Vec<(PromptRole, &str, String)> = Vec::new();
        for line in block.lines() {
            match self.find_speaker(line) {
                Some((role, name, text)) => lines.push((role, name, text.trim_start().to_owned())),
                None => match lines.last_mut() {
                    Some((_, _, text)) => {
                        text.push('\n');
                        text.push_str(line);
                    }
                    None => return Vec::new(),
                },
            }
        }
        lines
    }

    fn find_speaker<'a, 'b>(&'a self, line: &'b str) -> Option<(PromptRole, &'a str, &'b str)> {
        let users = self.users.iter().map(|it| (PromptRole::User, it));
        let characters = self.characters.iter();
        let characters = characters.map(|it| (PromptRole::Assistant, it));
        users.chain(characters).find_map(|(role, name)| {
            let text = line.strip_prefix(name.as_str())?.strip_prefix(':')?;
            Some((role, name.as_str(), text))
        })
    }

    fn push_lines(&self, out: &mut String, lines: &[TextLine]) {
        let role_of = |it: &TextLine| match it {
            TextLine::Message { role, .. } => Some(*role),
            TextLine::Plain(_) => None,
        };
        let is_turn = |it: &TextLine| role_of(it).is_some_and(|it| it != PromptRole::System);
        let mut first = lines.iter().position(is_turn);
        let alignment = self.instruct.user_alignment_message.trim();
        let begins_with_user =
            first.is_some_and(|at| role_of(&lines[at]) == Some(PromptRole::User));
        let last_user = lines
            .iter()
            .rposition(|it| role_of(it) == Some(PromptRole::User));
        let mut is_aligned = begins_with_user || alignment.is_empty();
        for (at, line) in lines.iter().enumerate() {
            let TextLine::Message { role, name, text } = line else {
                if let TextLine::Plain(text) = line {
                    push_plain(out, text);
                }
                continue;
            };
            if !is_aligned {
                is_aligned = true;
                first = None;
                self.push_message(
                    out,
                    PromptRole::User,
                    None,
                    alignment,
                    SequencePosition::First,
                );
            }
            let position = match at {
                _ if Some(at) == first => SequencePosition::First,
                _ if Some(at) == last_user => SequencePosition::Last,
                _ => SequencePosition::Middle,
            };
            self.push_message(out, *role, name.as_deref(), text, position);
        }
        if !is_aligned {
            self.push_message(
                out,
                PromptRole::User,
                None,
                alignment,
                SequencePosition::First,
            );
        }
    }

    fn push_message(
        &self,
        out: &mut String,
        role: PromptRole,
        name: Option<&str>,
        text: &str,
        position: SequencePosition,
    ) {
        let prefix = self.named(self.instruct.prefix(role, position), name);
        if self.instruct.wrap {
            end_line(out);
        }
        out.push_str(&prefix);
        if !prefix.is_empty() {
            out.push_str(self.instruct.separator());
        }
        if let Some(name) = name.filter(|it| self.shows_names() && !begins_with_name(text, it)) {
            out.push_str(name);
            out.push_str(": ");
        }
        out.push_str(text);
        out.push_str(&self.named(self.instruct.suffix(role), name));
        if self.instruct.suffix(role).is_empty() {
            self.end_line(out);
        }
    }

    /// Adds the beginning of the reply.
    fn push_end(&self, out: &mut String, prefill: Option<&str>) {
        let role = match self.is_user {
            true => PromptRole::User,
            false => PromptRole::Assistant,
        };
        let sequence = self.instruct.prefix(role, SequencePosition::Last);
        let sequence = self.named(sequence, Some(&self.speaker));
        if self.instruct.wrap {
            end_line(out);
        }
        out.push_str(&sequence);
        if !sequence.is_empty() {
            out.push_str(self.instruct.separator());
        }
        let prefill = prefill.unwrap_or_default();
        if self.ends_with_name() && !begins_with_name(prefill, &self.speaker) {
            out.push_str(&self.speaker);
            out.push(':');
            if !prefill.is_empty() {
                out.push(' ');
            }
        }
        out.push_str(prefill);
        if prefill.is_empty() {
            // Models were trained with the space as a part of the next token.
            out.truncate(out.trim_end_matches(' ').len());
        }
    }

    fn shows_names(&self) -> bool {
        match self.instruct.names_behavior {
            InstructNames::None => false,
            InstructNames::Force => self.is_group,
            InstructNames::Always => true,
        }
    }

    fn ends_with_name(&self) -> bool {
        let is_forced = self.context.always_force_name2 && !self.is_user;
        !self.speaker.is_empty() && (self.shows_names() || is_forced)
    }

    /// Returns a sequence with the name of the author.
    fn named(&self, sequence: &str, name: Option<&str>) -> String {
        match self.instruct.expands_macros {
            true => sequence.replace("{{name}}", name.unwrap_or(SYSTEM_NAME)),
            false => sequence.to_owned(),
        }
    }

    fn end_line(&self, out: &mut String) {
        if self.instruct.wrap {
            end_line(out);
        }
    }
}

fn push_plain(out: &mut String, text: &str) {
    end_line(out);
    out.push_str(text);
    end_line(out);
}

fn end_line(out: &mut String) {
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
}

/// Returns whether a text already begins with `Name:`.
fn begins_with_name(text: &str, name: &str) -> bool {
    let rest = text.trim_start().strip_prefix(name);
    rest.is_some_and(|it| it.starts_with(':'))
}

#[cfg(test)]
#[path = "rendering_tests.rs"]
mod tests;
