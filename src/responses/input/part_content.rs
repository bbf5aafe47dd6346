//! Converts the parts of a message, or of the output of a tool, to the text and the attachments of a
//! prompt message. A text file becomes text, so that every model can read it. No I/O.

use std::borrow::Cow;

use llm::tool::Attachment;
use responses_api::request::items::attachment::AttachedFile;
use responses_api::request::items::content::InputPart;

/// Returns the text of all parts, with the contents of text files.
pub fn text(parts: &[InputPart]) -> String {
    let texts: Vec<Cow<str>> = parts.iter().filter_map(part_text).collect();
    texts.join("\n")
}

/// Returns the images and documents.
pub fn attachments(parts: &[InputPart]) -> Vec<Attachment> {
    parts.iter().filter_map(attachment).collect()
}

fn part_text<'a>(part: &InputPart<'a>) -> Option<Cow<'a, str>> {
    match part {
        InputPart::File(file) => Some(Cow::Owned(file_text(file)?)),
        part => part.text().map(Cow::Borrowed),
    }
}

/// Returns the contents of a text file below its name, as the model reads it.
fn file_text(file: &AttachedFile) -> Option<String> {
    let content = file.text_content()?;
    Some(match file.name {
        Some(name) => format!("[File: {name}]\n{content}"),
        None => format!("[File]\n{content}"),
    })
}

fn attachment(part: &InputPart) -> Option<Attachment> {
    let InputPart::File(file) = part else {
        return None;
    };
    if file.is_text() {
        return None;
    }
    let (media_type, data) = file.inline_data()?;
    Some(Attachment {
        media_type: media_type.to_owned(),
        data: data.to_owned(),
        name: file.name.map(str::to_owned),
        instead: None,
    })
}
