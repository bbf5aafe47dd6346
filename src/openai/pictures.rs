//! `input_image`: pictures that come with a message, as data URLs, or by their address on the web.

use crate::openai::error::Answer;
use crate::openai::error::Problem;
use crate::openai::fields::Fields;
use crate::openai::fields::inside;
use crate::openai::fields::unsupported;
use crate::openai::fields::wrong_type;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Map;
use serde_json::Value;

/// The longest picture, in bytes.
pub const MAX_BYTES: usize = 20 * 1024 * 1024;

/// How closely a model may be asked to look.
const DETAILS: [&str; 4] = ["low", "high", "auto", "original"];

/// Judges a part with a picture: whoever cannot read it must say so before anything is written.
///
/// # Errors
/// 400 `invalid_image`; `unsupported_parameter` for a file that was uploaded elsewhere.
pub fn check(at: &str, part: &Map<String, Value>) -> Answer<()> {
    if part.get("file_id").is_some_and(|it| !it.is_null()) {
        return Err(unsupported(&format!("{at}.file_id")));
    }
    let detail = Fields(part).word("detail", &DETAILS);
    detail.map_err(|it| inside(at, it))?;
    let param = format!("{at}.image_url");
    let url = part.get("image_url").and_then(Value::as_str);
    let url = url.ok_or_else(|| wrong_type(&param, "a URL"))?;
    if is_far(url) {
        return Ok(());
    }
    match is_picture(url) {
        true => Ok(()),
        false => {
            let message = "This is no PNG, JPEG, WebP or GIF of at most 20 MiB in a data URL, nor \
                an address of the web.";
            Err(Problem::invalid("invalid_image", &param, message))
        }
    }
}

/// Whether it must be fetched.
pub fn is_far(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

/// What kind of picture these bytes are, as a media type.
pub fn kind_of(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        _ if bytes.starts_with(b"\x89PNG\r\n\x1a\n") => Some("image/png"),
        _ if bytes.starts_with(b"\xff\xd8\xff") => Some("image/jpeg"),
        _ if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") => Some("image/gif"),
        _ if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") => Some("image/webp"),
        _ => None,
    }
}

/// Whether the bytes are what the URL says they are.
fn is_picture(url: &str) -> bool {
    let Some((kind, data)) = url
        .strip_prefix("data:")
        .and_then(|it| it.split_once(";base64,"))
    else {
        return false;
    };
    if data.len() > MAX_BYTES.div_ceil(3) * 4 {
        return false;
    }
    let Ok(bytes) = STANDARD.decode(data) else {
        return false;
    };
    let kind = match kind {
        "image/jpg" => "image/jpeg",
        kind => kind,
    };
    kind_of(&bytes) == Some(kind)
}

#[cfg(test)]
mod tests {
    use super::check;
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::Value;
    use serde_json::json;

    fn judged(part: Value) -> Result<(), (String, Option<String>)> {
        let judged = check("input[0].content[0]", part.as_object().unwrap());
        judged.map_err(|it| (it.code.to_owned(), it.param))
    }

    fn url(kind: &str, bytes: &[u8]) -> Value {
        json!({ "image_url": format!("data:{kind};base64,{}", STANDARD.encode(bytes)) })
    }

    #[test]
    fn the_four_kinds_are_known_by_how_they_begin() {
        for (kind, bytes) in [
            ("image/png", &b"\x89PNG\r\n\x1a\n.."[..]),
            ("image/jpeg", b"\xff\xd8\xff\xe0.."),
            ("image/gif", b"GIF89a.."),
            ("image/webp", b"RIFF\0\0\0\0WEBPVP8 "),
        ] {
            assert_eq!(judged(url(kind, bytes)), Ok(()), "{kind}");
            assert!(judged(url(kind, b"<svg>")).is_err(), "{kind}");
        }
    }

    #[test]
    fn what_is_no_picture_is_refused_by_its_name() {
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
            (json!({ "image_url": 7 }), "invalid_type"),
            (json!({ "detail": 7 }), "invalid_type"),
            (json!({ "detail": "tiny" }), "invalid_value"),
            (
                json!({ "image_url": "ftp://example.org/a.png" }),
                "invalid_image",
            ),
            (json!({ "file_id": "file_1" }), "unsupported_parameter"),
        ] {
            assert_eq!(judged(part.clone()).unwrap_err().0, code, "{part}");
        }
    }
}
