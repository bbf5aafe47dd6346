//! `input_image` and `input_file`: pictures and documents of a message, as data URLs or web URLs.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::web::v1::error::{V1Error, V1Result};
use crate::web::v1::parsing::fields::{Fields, nested_in, unsupported, wrong_type, wrong_value};

/// The maximum size of a picture or document, in bytes.
pub const MAX_BYTES: usize = 20 * 1024 * 1024;

const MAX_NAME_CHARS: usize = 255;

/// The permitted values of `detail`.
const DETAILS: [&str; 4] = ["low", "high", "auto", "original"];

/// The only type of document that models accept.
pub const PDF: &str = "application/pdf";

/// Validates a part with a picture, so that a request that cannot be processed is rejected before
/// anything is written.
///
/// # Errors
/// Returns 400 `invalid_image`, or `unsupported_parameter` when the part names an uploaded file
/// (`file_id`).
pub fn check_picture(at: &str, part: &Map<String, Value>) -> V1Result<()> {
    require_no_file_id(at, part)?;
    let detail = Fields(part).one_of("detail", &DETAILS);
    detail.map_err(|it| nested_in(at, it))?;
    let param = format!("{at}.image_url");
    let url = part.get("image_url").and_then(Value::as_str);
    let url = url.ok_or_else(|| wrong_type(&param, "a URL"))?;
    match is_remote(url) || data_url_media_type(url).is_some_and(|it| it != PDF) {
        true => Ok(()),
        false => {
            let message = "Must be a PNG, JPEG, WebP or GIF of at most 20 MiB in a data URL, or \
                an http or https URL.";
            Err(V1Error::invalid("invalid_image", &param, message))
        }
    }
}

/// Validates a part with a document.
///
/// # Errors
/// Returns 400 for anything but a PDF, and `unsupported_parameter` when the part names an uploaded
/// file (`file_id`).
pub fn check_document(at: &str, part: &Map<String, Value>) -> V1Result<()> {
    require_no_file_id(at, part)?;
    let fields = Fields(part);
    let judged = fields.text("filename").and_then(|name| {
        if name.is_some_and(|it| it.chars().count() > MAX_NAME_CHARS || it.contains('\0')) {
            return Err(wrong_value("filename", "at most 255 characters"));
        }
        match (fields.text("file_data")?, fields.text("file_url")?) {
            (Some(url), None) if data_url_media_type(url) == Some(PDF) => Ok(()),
            (None, Some(url)) if is_remote(url) => Ok(()),
            (Some(_), None) => Err(wrong_value("file_data", ONLY_PDF)),
            (None, Some(_)) => Err(wrong_value("file_url", "an http or https URL")),
            _ => Err(wrong_value("file_data", "given unless `file_url` is given")),
        }
    });
    judged.map_err(|it| nested_in(at, it))
}

/// The requirement for documents, as error messages state it.
const ONLY_PDF: &str = "a PDF of at most 20 MiB in a data URL";

fn require_no_file_id(at: &str, part: &Map<String, Value>) -> V1Result<()> {
    match part.get("file_id").is_some_and(|it| !it.is_null()) {
        true => Err(unsupported(&format!("{at}.file_id"))),
        false => Ok(()),
    }
}

/// Returns whether the file must be fetched from the web.
pub fn is_remote(url: &str) -> bool {
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

/// Returns the media type of a data URL if its bytes match the declared type.
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
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::{Value, json};

    use super::{check_document, check_picture};

    fn check_result(part: Value) -> Result<(), (String, Option<String>)> {
        let judged = check_picture("input[0].content[0]", part.as_object().unwrap());
        judged.map_err(|it| (it.code.to_owned(), it.param))
    }

    fn url(kind: &str, bytes: &[u8]) -> Value {
        json!({ "image_url": format!("data:{kind};base64,{}", STANDARD.encode(bytes)) })
    }

    #[test]
    fn a_picture_type_is_detected_from_its_first_bytes() {
        for (kind, bytes) in [
            ("image/png", &b"\x89PNG\r\n\x1a\n.."[..]),
            ("image/jpeg", b"\xff\xd8\xff\xe0.."),
            ("image/gif", b"GIF89a.."),
            ("image/webp", b"RIFF\0\0\0\0WEBPVP8 "),
        ] {
            assert_eq!(check_result(url(kind, bytes)), Ok(()), "{kind}");
            assert!(check_result(url(kind, b"<svg>")).is_err(), "{kind}");
        }
    }

    #[test]
    fn an_invalid_picture_is_rejected_with_its_code() {
        for (part, code) in [
            (
                json!({ "image_url": "data:image/png;base64,????" }),
                "invalid_image",
            ),
            (
                json!({ "image_url": "data:image/png,raw" }),
                "invalid_image",
            ),
            (url("image/svg+xml", b"<svg>"), "invalid_image"),
            (url("application/pdf", b"%PDF-1.7"), "invalid_image"),
            (json!({ "image_url": 7 }), "invalid_type"),
            (json!({ "detail": 7 }), "invalid_type"),
            (json!({ "detail": "tiny" }), "invalid_value"),
            (
                json!({ "image_url": "ftp://example.org/a.png" }),
                "invalid_image",
            ),
            (json!({ "file_id": "file_1" }), "unsupported_parameter"),
        ] {
            assert_eq!(check_result(part.clone()).unwrap_err().0, code, "{part}");
        }
    }

    #[test]
    fn a_document_is_an_inline_or_remote_pdf() {
        let judged = |part: Value| {
            let judged = check_document("input[0].content[0]", part.as_object().unwrap());
            judged.map_err(|it| it.param.unwrap_or_default())
        };
        let pdf = format!(
            "data:application/pdf;base64,{}",
            STANDARD.encode(b"%PDF-1.7 ..")
        );
        let text = format!("data:application/pdf;base64,{}", STANDARD.encode(b"Hello."));
        let there = "https://example.org/a.pdf";

        assert_eq!(
            judged(json!({ "file_data": pdf, "filename": "a.pdf" })),
            Ok(())
        );
        assert_eq!(
            judged(json!({ "file_url": there, "file_data": null })),
            Ok(())
        );
        for (part, field) in [
            (json!({ "file_data": text }), "file_data"),
            (json!({ "file_data": pdf, "file_url": there }), "file_data"),
            (json!({}), "file_data"),
            (json!({ "file_data": 7 }), "file_data"),
            (json!({ "file_url": "file:///etc/passwd" }), "file_url"),
            (
                json!({ "file_data": pdf, "filename": "x".repeat(256) }),
                "filename",
            ),
            (json!({ "file_id": "file_1" }), "file_id"),
        ] {
            let param = format!("input[0].content[0].{field}");
            assert_eq!(judged(part.clone()), Err(param), "{part}");
        }
    }
}
