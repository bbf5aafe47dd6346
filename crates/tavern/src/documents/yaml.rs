//! Parses a YAML 1.2 document into a JSON value. Anchors, aliases and tags are refused, so that a
//! small file cannot expand to a large value, and depth and number of values are counted while
//! parsing.

use saphyr_parser::{Event, Parser};
use serde_json::{Map, Value};

use crate::documents::document_error::DocumentError;
use crate::documents::limits::{MAX_DEPTH, MAX_VALUES, VALUES_PER_OBJECT};
use crate::documents::yaml_scalars;

/// A list or an object that is not complete yet.
enum OpenNode {
    List(Vec<Value>),
    /// The object, and the key whose value comes next.
    Object(Map<String, Value>, Option<String>),
}

/// Parses a text with one document.
///
/// # Errors
/// Returns `Invalid` for a text that is not YAML, has several documents, or uses anchors, aliases
/// or tags, and `TooLarge` when it is nested too deep or has too many values.
pub fn parse(text: &str) -> Result<Value, DocumentError> {
    let mut builder = ValueBuilder::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let at = error.marker();
            let (line, reason) = (at.line(), error.info());
            DocumentError::reason(format!(
                "The file is neither JSON nor valid YAML: line {line}: {reason}."
            ))
        })?;
        builder.add(event, span.start.line())?;
    }
    Ok(builder.document.unwrap_or(Value::Null))
}

#[derive(Default)]
struct ValueBuilder {
    open: Vec<OpenNode>,
    n_values: usize,
    document: Option<Value>,
}

impl ValueBuilder {
    fn add(&mut self, event: Event<'_>, line: usize) -> Result<(), DocumentError> {
        match event {
            Event::Alias(_) => Err(refuse("an alias", line)),
            Event::Scalar(_, _, anchor, tag) if anchor != 0 || tag.is_some() => {
                Err(refuse_property(anchor, line))
            }
            Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag)
                if anchor != 0 || tag.is_some() =>
            {
                Err(refuse_property(anchor, line))
            }
            Event::Scalar(text, style, ..) => {
                self.count(1)?;
                match self.awaits_key() {
                    true => self.set_key(text.into_owned(), line),
                    false => self.push(yaml_scalars::resolve(&text, style)),
                }
            }
            Event::SequenceStart(..) => self.open(OpenNode::List(Vec::new()), 1, line),
            Event::MappingStart(..) => {
                let object = OpenNode::Object(Map::new(), None);
                self.open(object, VALUES_PER_OBJECT, line)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let complete = match self.open.pop() {
                    Some(OpenNode::List(items)) => Value::Array(items),
                    Some(OpenNode::Object(fields, _)) => Value::Object(fields),
                    None => return Ok(()),
                };
                self.push(complete)
            }
            _ => Ok(()),
        }
    }

    fn open(&mut self, node: OpenNode, n_values: usize, line: usize) -> Result<(), DocumentError> {
        if self.awaits_key() {
            return Err(refuse("a key that is not a text", line));
        }
        self.count(n_values)?;
        self.open.push(node);
        match self.open.len() >= MAX_DEPTH {
            true => Err(DocumentError::too_deep()),
            false => Ok(()),
        }
    }

    fn count(&mut self, n_values: usize) -> Result<(), DocumentError> {
        self.n_values += n_values;
        match self.n_values > MAX_VALUES {
            true => Err(DocumentError::too_many_values()),
            false => Ok(()),
        }
    }

    fn awaits_key(&self) -> bool {
        matches!(self.open.last(), Some(OpenNode::Object(_, None)))
    }

    fn set_key(&mut self, name: String, line: usize) -> Result<(), DocumentError> {
        let Some(OpenNode::Object(fields, key)) = self.open.last_mut() else {
            return Ok(());
        };
        if fields.contains_key(&name) {
            return Err(refuse("a key that occurs twice", line));
        }
        *key = Some(name);
        Ok(())
    }

    fn push(&mut self, value: Value) -> Result<(), DocumentError> {
        match self.open.last_mut() {
            Some(OpenNode::List(items)) => items.push(value),
            Some(OpenNode::Object(fields, key)) => {
                fields.insert(key.take().unwrap_or_default(), value);
            }
            None if self.document.is_some() => {
                let reason = "The file contains more than one YAML document.";
                return Err(DocumentError::reason(reason));
            }
            None => self.document = Some(value),
        }
        Ok(())
    }
}

fn refuse_property(anchor: usize, line: usize) -> DocumentError {
    match anchor {
        0 => refuse("a tag", line),
        _ => refuse("an anchor", line),
    }
}

fn refuse(what: &str, line: usize) -> DocumentError {
    DocumentError::reason(format!(
        "The YAML of the file has {what} in line {line}, which is not accepted."
    ))
}

#[cfg(test)]
#[path = "yaml_tests.rs"]
mod tests;
