//! Parses the content of messages and the outputs of tool calls (a text or a list of parts), and
//! validates the parts of reasoning items.

use serde_json::Value;

use crate::request::items::attachment::AttachedFile;
use crate::request::object_reader::ObjectReader;

/// A part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputPart<'a> {
    Text(&'a str),
    Refusal(&'a str),
    File(AttachedFile<'a>),
}

impl<'a> InputPart<'a> {
    fn read(part: &ObjectReader<'a>) -> Self {
        match part.fields.get("type").and_then(Value::as_str) {
            Some("output_text") => {
                part.objects("annotations");
                part.objects("logprobs");
                Self::Text(part_text(part, "text"))
            }
            Some("input_text" | "text") => Self::Text(part_text(part, "text")),
            Some("refusal") => Self::Refusal(part_text(part, "refusal")),
            Some("input_image") => Self::File(AttachedFile::picture(part)),
            Some("input_file") => Self::File(AttachedFile::document(part)),
            Some("input_video" | "input_audio") => {
                part.unsupported("type");
                Self::Text("")
            }
            _ => {
                part.wrong_value("type", "the type of a part");
                Self::Text(part_text(part, "text"))
            }
        }
    }

    /// Returns the text; a file has none.
    pub fn text(&self) -> Option<&'a str> {
        match self {
            Self::Text(text) | Self::Refusal(text) => Some(text),
            Self::File(_) => None,
        }
    }
}

/// Reads the content of a message: a text, or a list of parts.
pub(in crate::request) fn message_content<'a>(message: &ObjectReader<'a>) -> Vec<InputPart<'a>> {
    match message.fields.get("content") {
        Some(Value::String(text)) => {
            message.require_text_limit("content", text);
            vec![InputPart::Text(text)]
        }
        Some(Value::Array(parts)) => {
            let parts = message.elements("content", parts);
            parts.map(|it| InputPart::read(&it)).collect()
        }
        Some(_) => {
            message.wrong_type("content", "a string or a list of parts");
            Vec::new()
        }
        None => {
            message.missing("content", "A message requires `content`.");
            Vec::new()
        }
    }
}

/// Reads the output of a call: a text, or a list of texts, pictures and files.
pub(in crate::request) fn output_parts<'a>(item: &ObjectReader<'a>) -> Vec<InputPart<'a>> {
    let expected = "a string or a list of parts";
    let is_output = |it: &&Value| it.is_string() || it.is_array();
    let output = item.item_field("output", expected, |it| Some(it).filter(is_output));
    match output {
        Some(Value::String(text)) => {
            item.require_text_limit("output", text);
            vec![InputPart::Text(text)]
        }
        Some(Value::Array(parts)) => {
            let parts = parts.iter().enumerate();
            let read = |(at, part)| output_part(item, &format!("output[{at}]"), part);
            parts.map(read).collect()
        }
        _ => Vec::new(),
    }
}

/// A part that is not an object is treated as an object without a type, unlike in other lists.
fn output_part<'a>(item: &ObjectReader<'a>, at: &str, part: &'a Value) -> InputPart<'a> {
    let (kind, text) = (format!("{at}.type"), format!("{at}.text"));
    match part["type"].as_str().unwrap_or_default() {
        "input_text" | "output_text" | "text" => {}
        "input_image" | "input_file" => {
            let read = item.element(at, part).map(|it| InputPart::read(&it));
            return read.unwrap_or(InputPart::Text(""));
        }
        "input_video" | "input_audio" => item.unsupported(&kind),
        _ => item.wrong_value(&kind, "the type of a part"),
    }
    let Some(content) = part["text"].as_str() else {
        item.wrong_type(&text, "a string");
        return InputPart::Text("");
    };
    item.require_text_limit(&text, content);
    InputPart::Text(content)
}

/// The reasoning before an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputReasoning<'a> {
    /// The readable text: the whole reasoning if the item has it, otherwise its summary.
    pub texts: Vec<&'a str>,
    pub encrypted_content: Option<&'a str>,
}

impl<'a> InputReasoning<'a> {
    pub(in crate::request) fn read(item: &ObjectReader<'a>) -> Self {
        let summary = reasoning_texts(item, "summary", "summary_text");
        let content = reasoning_texts(item, "content", "reasoning_text");
        Self {
            texts: if content.is_empty() { summary } else { content },
            encrypted_content: item.text("encrypted_content"),
        }
    }
}

fn reasoning_texts<'a>(item: &ObjectReader<'a>, list: &str, kind: &str) -> Vec<&'a str> {
    let parts = item.objects(list).into_iter();
    let texts = parts.map(|part| {
        let given = part.fields.get("type").and_then(Value::as_str);
        part.require(given == Some(kind), "type", kind);
        part_text(&part, "text")
    });
    texts.collect()
}

pub(in crate::request) fn part_text<'a>(part: &ObjectReader<'a>, name: &str) -> &'a str {
    let Some(text) = part.fields.get(name).and_then(Value::as_str) else {
        part.wrong_type(name, "a string");
        return "";
    };
    part.require_text_limit(name, text);
    text
}
