//! Parses the story string of a context template, a subset of Handlebars, and renders it with the
//! texts of a prompt.
//!
//! **Invariant:** a value is inserted as it is: what looks like a tag in it is text.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The maximum number of conditions within each other.
const MAX_DEPTH: usize = 16;

/// A part of a prompt that a story string arranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StoryField {
    System,
    WiBefore,
    WiAfter,
    Description,
    Personality,
    Scenario,
    Persona,
    MesExamples,
    AnchorBefore,
    AnchorAfter,
    Char,
    User,
}

/// The texts of a story string. Missing ones are empty.
pub type StoryValues = BTreeMap<StoryField, String>;

/// A parsed story string.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StoryString(Vec<StoryNode>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoryNode {
    Text(String),
    Value(StoryField),
    /// Removes the line breaks around itself.
    Trim,
    Condition(Condition),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Condition {
    /// `None`: an unknown name, which has no value.
    field: Option<StoryField>,
    /// The first branch applies if there is no value.
    is_negated: bool,
    then: Vec<StoryNode>,
    otherwise: Vec<StoryNode>,
}

/// Why a story string is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoryStringError {
    #[error("`{{{{#if}}}}` or `{{{{#unless}}}}` without its closing tag.")]
    Unclosed,
    #[error("`{{{{else}}}}` outside of a condition, or twice in one.")]
    UnexpectedElse,
    #[error("A closing tag does not belong to the condition that is open.")]
    WrongClosing,
    #[error("Only `#if` and `#unless` with one name are supported.")]
    UnknownBlock,
    #[error("More than 16 conditions within each other.")]
    TooDeep,
}

/// A condition that is being read.
struct OpenCondition {
    condition: Condition,
    is_in_else: bool,
}

/// A piece of a story string: text, or the inside of a tag.
enum Token<'a> {
    Text(&'a str),
    Tag(&'a str),
}

impl StoryString {
    /// Parses a story string. A tag that is neither a field nor a condition is text, because it may be a
    /// macro.
    ///
    /// # Errors
    /// Returns what is wrong with a condition.
    pub fn parse(text: &str) -> Result<Self, StoryStringError> {
        let mut root = Vec::new();
        let mut open: Vec<OpenCondition> = Vec::new();
        for token in tokens(text) {
            let (tag, whole) = match token {
                Token::Text(text) => {
                    push(&mut root, &mut open, StoryNode::Text(text.to_owned()));
                    continue;
                }
                Token::Tag(whole) => (inside_of(whole), whole),
            };
            if tag.starts_with('!') {
                continue;
            }
            match tag {
                "else" => {
                    let last = open.last_mut().filter(|it| !it.is_in_else);
                    last.ok_or(StoryStringError::UnexpectedElse)?.is_in_else = true;
                }
                "/if" | "/unless" => {
                    let last = open.pop().ok_or(StoryStringError::WrongClosing)?;
                    if last.condition.is_negated != (tag == "/unless") {
                        return Err(StoryStringError::WrongClosing);
                    }
                    let node = StoryNode::Condition(last.condition);
                    push(&mut root, &mut open, node);
                }
                _ if tag.starts_with('#') => {
                    if open.len() == MAX_DEPTH {
                        return Err(StoryStringError::TooDeep);
                    }
                    open.push(parse_opening(tag)?);
                }
                "trim" => push(&mut root, &mut open, StoryNode::Trim),
                _ => {
                    let node = match find_field(tag) {
                        Some(field) => StoryNode::Value(field),
                        None => StoryNode::Text(whole.to_owned()),
                    };
                    push(&mut root, &mut open, node);
                }
            }
        }
        match open.is_empty() {
            true => Ok(Self(root)),
            false => Err(StoryStringError::Unclosed),
        }
    }

    /// Returns the story string with changed texts; values and conditions stay.
    pub fn map_texts(&self, change: &dyn Fn(&str) -> String) -> Self {
        Self(map_nodes(&self.0, change))
    }

    /// Returns whether it inserts the value of this field.
    pub fn inserts(&self, field: StoryField) -> bool {
        contains(&self.0, field)
    }

    /// Returns the text with these values.
    pub fn render(&self, values: &StoryValues) -> String {
        let mut out = Output::default();
        out.push_nodes(&self.0, values);
        out.text
    }
}

/// The rendered text so far.
#[derive(Default)]
struct Output {
    text: String,
    /// Line breaks at this place are removed.
    is_trimming: bool,
}

impl Output {
    fn push_nodes(&mut self, nodes: &[StoryNode], values: &StoryValues) {
        for node in nodes {
            match node {
                StoryNode::Text(text) => self.push(text),
                StoryNode::Value(field) => self.push(value(values, *field)),
                StoryNode::Trim => {
                    let kept = self.text.trim_end_matches(is_line_break).len();
                    self.text.truncate(kept);
                    self.is_trimming = true;
                }
                StoryNode::Condition(condition) => {
                    let field = condition.field;
                    let is_set = field.is_some_and(|it| !value(values, it).is_empty());
                    let branch = match is_set != condition.is_negated {
                        true => &condition.then,
                        false => &condition.otherwise,
                    };
                    self.push_nodes(branch, values);
                }
            }
        }
    }

    fn push(&mut self, text: &str) {
        let text = match self.is_trimming {
            true => text.trim_start_matches(is_line_break),
            false => text,
        };
        self.is_trimming &= text.is_empty();
        self.text.push_str(text);
    }
}

fn value(values: &StoryValues, field: StoryField) -> &str {
    values.get(&field).map_or("", String::as_str)
}

fn is_line_break(it: char) -> bool {
    matches!(it, '\n' | '\r')
}

fn push(root: &mut Vec<StoryNode>, open: &mut [OpenCondition], node: StoryNode) {
    let nodes = match open.last_mut() {
        Some(last) if last.is_in_else => &mut last.condition.otherwise,
        Some(last) => &mut last.condition.then,
        None => root,
    };
    match (nodes.last_mut(), node) {
        (Some(StoryNode::Text(last)), StoryNode::Text(text)) => last.push_str(&text),
        (_, node) => nodes.push(node),
    }
}

/// Parses `#if name` or `#unless name`.
fn parse_opening(tag: &str) -> Result<OpenCondition, StoryStringError> {
    let mut words = tag[1..].split_whitespace();
    let is_negated = match words.next() {
        Some("if") => false,
        Some("unless") => true,
        _ => return Err(StoryStringError::UnknownBlock),
    };
    let name = words.next().ok_or(StoryStringError::UnknownBlock)?;
    let is_name = |it: char| it.is_alphanumeric() || it == '_';
    if words.next().is_some() || !name.chars().all(is_name) {
        return Err(StoryStringError::UnknownBlock);
    }
    Ok(OpenCondition {
        condition: Condition {
            field: find_field(name),
            is_negated,
            then: Vec::new(),
            otherwise: Vec::new(),
        },
        is_in_else: false,
    })
}

/// Returns the field of a name. Names of values are spelled exactly so in SillyTavern.
fn find_field(name: &str) -> Option<StoryField> {
    Some(match name {
        "system" => StoryField::System,
        "wiBefore" | "loreBefore" => StoryField::WiBefore,
        "wiAfter" | "loreAfter" => StoryField::WiAfter,
        "description" => StoryField::Description,
        "personality" => StoryField::Personality,
        "scenario" => StoryField::Scenario,
        "persona" => StoryField::Persona,
        "mesExamples" | "mesExamplesRaw" => StoryField::MesExamples,
        "anchorBefore" => StoryField::AnchorBefore,
        "anchorAfter" => StoryField::AnchorAfter,
        "char" => StoryField::Char,
        "user" => StoryField::User,
        _ => return None,
    })
}

/// Returns what a tag contains, without its braces and the white space around it.
fn inside_of(whole: &str) -> &str {
    let inside = &whole[2..whole.len() - 2];
    let inside = inside.strip_prefix('{').unwrap_or(inside);
    inside.strip_suffix('}').unwrap_or(inside).trim()
}

/// Splits a story string into text and tags. A tag that contains another one, as macros may, is one tag;
/// braces without their counterpart are text.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find("{{").map(|it| from + it) {
        let Some(end) = tag_end(text, at) else {
            break;
        };
        if at > from {
            found.push(Token::Text(&text[from..at]));
        }
        found.push(Token::Tag(&text[at..end]));
        from = end;
    }
    if from < text.len() {
        found.push(Token::Text(&text[from..]));
    }
    found
}

/// Returns the end of the tag that begins at `start`.
fn tag_end(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut at = start;
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"{{" => {
                depth += 1;
                at += 2;
            }
            b"}}" => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    // Three braces at both ends.
                    let is_triple =
                        bytes.get(start + 2) == Some(&b'{') && bytes.get(at) == Some(&b'}');
                    return Some(at + usize::from(is_triple));
                }
            }
            _ => at += 1,
        }
    }
    None
}

fn map_nodes(nodes: &[StoryNode], change: &dyn Fn(&str) -> String) -> Vec<StoryNode> {
    let changed = nodes.iter().map(|node| match node {
        StoryNode::Text(text) => StoryNode::Text(change(text)),
        StoryNode::Condition(it) => StoryNode::Condition(Condition {
            then: map_nodes(&it.then, change),
            otherwise: map_nodes(&it.otherwise, change),
            ..*it
        }),
        other => other.clone(),
    });
    changed.collect()
}

fn contains(nodes: &[StoryNode], field: StoryField) -> bool {
    nodes.iter().any(|it| match it {
        StoryNode::Value(found) => *found == field,
        StoryNode::Condition(it) => contains(&it.then, field) || contains(&it.otherwise, field),
        StoryNode::Text(_) | StoryNode::Trim => false,
    })
}

#[cfg(test)]
#[path = "story_string_tests.rs"]
mod tests;
