//! Parses and validates the parts `input_image` and `input_file` of a message or of the output of a
//! tool (pictures, PDF documents and text files, as data URLs or web URLs), and replaces a web URL by
//! the bytes that the caller fetched.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

use crate::request::error::must_be;
use crate::request::object_reader::ObjectReader;

/// The maximum size of a picture or document, in bytes.
pub const MAX_BYTES: usize = 20 * 1024 * 1024;

/// The maximum size of a text file, in bytes. It becomes a part of the prompt's text.
pub const MAX_TEXT_BYTES: usize = 1024 * 1024;

/// The media types of text files, besides `text/…`, `application/…+json` and
/// `application/…+xml`.
const TEXT_TYPES: [&str; 6] = [
    "application/json",
    "application/xml",
    "application/yaml",
    "application/x-yaml",
    "application/csv",
    "application/x-ndjson",
];

/// The only type of document that models read in its own format.
pub const PDF: &str = "application/pdf";

/// What a document in a data URL must be.
pub(in crate::request) const DOCUMENT_RULE: &str = "a PDF of at most 20 MiB, or a text file \
    (text/*, JSON, XML, YAML, CSV) in UTF-8 of at most 1 MiB, in a data URL";

const MAX_NAME_CHARS: usize = 255;

/// A picture or a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttachedFile<'a> {
    pub kind: FileKind,
    /// Either a data URL or, until it is fetched, a web URL.
    pub url: &'a str,
    pub name: Option<&'a str>,
}

/// What a part with a file contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    Picture,
    Document,
}

/// The resolution in which a picture is read; has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PictureDetail {
    Low,
    High,
    Auto,
    Original,
}

impl<'a> AttachedFile<'a> {
    /// Reads a part with a picture.
    pub(in crate::request) fn picture(part: &ObjectReader<'a>) -> Self {
        reject_file_id(part);
        part.word::<PictureDetail>("detail");
        let url = part.fields.get("image_url").and_then(Value::as_str);
        match url {
            None => part.wrong_type("image_url", "a URL"),
            Some(url) if is_remote(url) => {}
            Some(url) if part.is_stored() || is_inline(url, FileKind::Picture) => {}
            Some(_) => {
                let expected = "a PNG, JPEG, WebP or GIF of at most 20 MiB in a data URL, or an \
                    http or https URL";
                part.fail("invalid_image", "image_url", must_be(expected));
            }
        }
        Self {
            kind: FileKind::Picture,
            url: url.unwrap_or_default(),
            name: part.fields.get("filename").and_then(Value::as_str),
        }
    }

    /// Reads a part with a document, which must be a PDF or a text file.
    pub(in crate::request) fn document(part: &ObjectReader<'a>) -> Self {
        reject_file_id(part);
        let name = part.text("filename");
        let is_name = |it: &str| it.chars().count() <= MAX_NAME_CHARS && !it.contains('\0');
        part.require(
            name.is_none_or(is_name),
            "filename",
            "at most 255 characters",
        );
        let (data, url) = (part.text("file_data"), part.text("file_url"));
        match (data, url) {
            (Some(data), None) => {
                let is_valid = part.is_stored() || is_inline(data, FileKind::Document);
                part.require(is_valid, "file_data", DOCUMENT_RULE);
            }
            (None, Some(url)) => {
                part.require(is_remote(url), "file_url", "an http or https URL");
            }
            _ => part.wrong_value("file_data", "given unless `file_url` is given"),
        }
        Self {
            kind: FileKind::Document,
            url: data.or(url).unwrap_or_default(),
            name,
        }
    }

    /// Returns the media type and the Base64 text of a file in a data URL.
    pub fn inline_data(&self) -> Option<(&'a str, &'a str)> {
        self.url.strip_prefix("data:")?.split_once(";base64,")
    }

    /// Returns whether it is a text file, by its media type.
    pub fn is_text(&self) -> bool {
        self.kind == FileKind::Document && self.inline_data().is_some_and(|it| is_text_type(it.0))
    }

    /// Returns the content of a text file in a data URL.
    pub fn text_content(&self) -> Option<String> {
        match self.is_text() {
            true => decode_text(self.inline_data()?.1),
            false => None,
        }
    }

    /// If the file must be fetched, returns the name of the field with its URL, and the URL.
    pub fn remote_url(&self) -> Option<(&'static str, &'a str)> {
        let field = match self.kind {
            FileKind::Picture => "image_url",
            FileKind::Document => "file_url",
        };
        is_remote(self.url).then_some((field, self.url))
    }
}

/// Replaces the web URL of a part by the data URL of the fetched file.
pub fn inline_bytes(part: &mut Value, kind: FileKind, data_url: String) {
    match kind {
        FileKind::Picture => part["image_url"] = Value::String(data_url),
        FileKind::Document => {
            part["file_data"] = Value::String(data_url);
            if let Some(part) = part.as_object_mut() {
                part.shift_remove("file_url");
            }
        }
    }
}

fn reject_file_id(part: &ObjectReader) {
    if part.get("file_id").is_some() {
        part.unsupported("file_id");
    }
}

/// Returns whether this is an http or https URL.
pub(in crate::request) fn is_remote(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

/// Detects the media type of a supported picture or of a PDF from its first bytes.
pub fn detect_media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        _ if bytes.starts_with(b"\x89PNG\r\n\x1a\n") => Some("image/png"),
        _ if bytes.starts_with(b"\xff\xd8\xff") => Some("image/jpeg"),
        _ if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") => Some("image/gif"),
        _ if bytes.starts_with(b"%PDF-") => Some(PDF),
        _ if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") => Some("image/webp"),
        _ => None,
    }
}

/// Returns whether a data URL contains a file of this kind: its bytes match the declared type.
pub(in crate::request) fn is_inline(url: &str, kind: FileKind) -> bool {
    let file = AttachedFile {
        kind,
        url,
        name: None,
    };
    if file.is_text() {
        return file.text_content().is_some();
    }
    let media_type = data_url_media_type(url);
    media_type.is_some_and(|it| (it == PDF) == (kind == FileKind::Document))
}

/// Returns the media type of a fetched file that is a text file: its declared type says so, and its
/// bytes are text.
pub fn detect_text_type(content_type: &str, bytes: &[u8]) -> Option<String> {
    let media_type = media_type_without_parameters(content_type);
    let is_text = is_text_type(&media_type) && as_text(bytes).is_some();
    is_text.then_some(media_type)
}

/// Returns a media type without its parameters, in lower case.
fn media_type_without_parameters(media_type: &str) -> String {
    let name = media_type.split(';').next().unwrap_or_default();
    name.trim().to_ascii_lowercase()
}

fn is_text_type(media_type: &str) -> bool {
    let media_type = media_type_without_parameters(media_type);
    let suffix = media_type.strip_prefix("application/").unwrap_or_default();
    media_type.starts_with("text/")
        || TEXT_TYPES.contains(&media_type.as_str())
        || suffix.ends_with("+json")
        || suffix.ends_with("+xml")
}

fn decode_text(data: &str) -> Option<String> {
    if data.len() > MAX_TEXT_BYTES.div_ceil(3) * 4 {
        return None;
    }
    as_text(&STANDARD.decode(data).ok()?).map(str::to_owned)
}

/// Returns the text of these bytes, if they are UTF-8 without U+0000 and not too long.
fn as_text(bytes: &[u8]) -> Option<&str> {
    if bytes.len() > MAX_TEXT_BYTES || bytes.contains(&0) {
        return None;
    }
    str::from_utf8(bytes).ok()
}

fn data_url_media_type(url: &str) -> Option<&'static str> {
    let (kind, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    if data.len() > MAX_BYTES.div_ceil(3) * 4 {
        return None;
    }
    let bytes = STANDARD.decode(data).ok()?;
    let kind = match kind {
        "image/jpg" => "image/jpeg",
        kind => kind,
    };
    detect_media_type(&bytes).filter(|it| *it == kind)
}

#[cfg(test)]
#[path = "attachment_tests.rs"]
mod tests;
