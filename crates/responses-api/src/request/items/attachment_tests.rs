//! Tests of pictures and documents: what is accepted, and the error for anything else.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{AttachedFile, MAX_TEXT_BYTES};
use crate::request::object_reader::parse;

fn check_result(part: Value) -> Result<(), (String, String)> {
    let parsed = parse(part.as_object().unwrap(), |it| {
        AttachedFile::picture(it);
    });
    parsed.map_err(|it| (it.code.to_owned(), it.param))
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
fn a_document_is_an_inline_or_remote_pdf_or_text_file() {
    let data = |kind: &str, bytes: &[u8]| format!("data:{kind};base64,{}", STANDARD.encode(bytes));
    let check_document = |part: Value| {
        let parsed = parse(part.as_object().unwrap(), |it| {
            AttachedFile::document(it);
        });
        parsed.map_err(|it| it.param)
    };
    let pdf = format!(
        "data:application/pdf;base64,{}",
        STANDARD.encode(b"%PDF-1.7 ..")
    );
    let text = format!("data:application/pdf;base64,{}", STANDARD.encode(b"Hello."));
    let (xml, binary) = (data("application/xml", b"<a/>"), data("text/plain", b"a\0"));
    let long = data("text/plain", &vec![b'a'; MAX_TEXT_BYTES + 1]);
    let url = "https://example.org/a.pdf";

    assert_eq!(
        check_document(json!({ "file_data": pdf, "filename": "a.pdf" })),
        Ok(())
    );
    assert_eq!(check_document(json!({ "file_data": xml })), Ok(()));
    assert_eq!(
        check_document(json!({ "file_url": url, "file_data": null })),
        Ok(())
    );
    for (part, field) in [
        (json!({ "file_data": text }), "file_data"),
        (json!({ "file_data": binary }), "file_data"),
        (json!({ "file_data": long }), "file_data"),
        (json!({ "file_data": pdf, "file_url": url }), "file_data"),
        (json!({}), "file_data"),
        (json!({ "file_data": 7 }), "file_data"),
        (json!({ "file_url": "file:///etc/passwd" }), "file_url"),
        (
            json!({ "file_data": pdf, "filename": "x".repeat(256) }),
            "filename",
        ),
        (json!({ "file_id": "file_1" }), "file_id"),
    ] {
        assert_eq!(
            check_document(part.clone()),
            Err(field.to_owned()),
            "{part}"
        );
    }
}
