//! Draws pictures and uploads them as attachments of messages.

use std::io::Cursor;

use image::{DynamicImage, ImageFormat, Rgb, RgbImage, RgbaImage};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::http_client::{HttpClient, expect, http_client};
use crate::support::http_response::Answer;
use crate::support::multipart;

/// The path of uploads.
pub const UPLOAD: &str = "/api/attachments";

/// Returns an opaque PNG; pictures with other seeds differ.
pub fn png(width: u32, height: u32, seed: u8) -> Vec<u8> {
    let picture = RgbImage::from_fn(width, height, |x, y| {
        Rgb([seed, (x % 251) as u8, (y % 241) as u8])
    });
    file(picture.into())
}

/// Returns a PNG that is transparent.
pub fn clear_png(width: u32, height: u32) -> Vec<u8> {
    file(RgbaImage::new(width, height).into())
}

fn file(picture: DynamicImage) -> Vec<u8> {
    let mut bytes = Vec::new();
    let written = picture.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png);
    written.expect("a PNG can be written");
    bytes
}

/// Returns the beginning of a PNG whose header states this size.
pub fn png_header(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = png(1, 1, 0);
    bytes[16..24].copy_from_slice(&[width.to_be_bytes(), height.to_be_bytes()].concat());
    let checksum = crc32(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32| (sum >> 1) ^ (0xEDB8_8320 * (sum & 1));
    let sum = bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| step(sum))
    });
    !sum
}

/// Returns the size of a picture in pixels.
pub fn size_of(bytes: &[u8]) -> (u32, u32) {
    let picture = image::load_from_memory(bytes).expect("a picture");
    (picture.width(), picture.height())
}

/// Uploads a picture with a description.
pub async fn upload(person: &HttpClient, name: &str, bytes: &[u8], alt: &str) -> (u16, Value) {
    let (kind, file) = multipart::multipart_body("file", name, bytes);
    let boundary = kind.split("boundary=").nth(1).expect("a boundary");
    let text =
        format!("--{boundary}\r\ncontent-disposition: form-data; name=\"alt\"\r\n\r\n{alt}\r\n");
    let body = [text.as_bytes(), &file].concat();
    multipart::send(person, Method::POST, UPLOAD, (kind, body)).await
}

/// Uploads a small picture, which differs from those with other seeds.
pub async fn uploaded(person: &HttpClient, seed: u8, alt: &str) -> Value {
    let answer = upload(person, "cat.png", &png(64, 48, seed), alt).await;
    expect(201, answer)
}

/// Posts a message with these attachments.
pub async fn post(
    person: &HttpClient,
    conversation: i64,
    content: &str,
    attachments: &[&Value],
) -> (u16, Value) {
    let ids: Vec<&Value> = attachments.iter().map(|it| &it["id"]).collect();
    let body = json!({"content": content, "attachment_ids": ids});
    let path = format!("/api/conversations/{conversation}/messages");
    person.post(&path, body).await
}

/// Requests a picture by its address.
pub async fn request(person: &HttpClient, url: &str) -> Answer {
    let request = http_client().get(format!("{}{url}", person.base()));
    Answer::to(request.header("cookie", person.cookie())).await
}
