//! Builds the form with one file that a browser sends, and reads files in responses.

use reqwest::Method;
use serde_json::Value;

use crate::support::http_client::{HttpClient, http_client};
use crate::support::http_response::Answer;

/// The multipart boundary; no test file contains it.
const BOUNDARY: &str = "----a-boundary-of-the-tests";

/// Returns the content type and the body of a form with a file in this field.
pub fn multipart_body(field: &str, name: &str, bytes: &[u8]) -> (String, Vec<u8>) {
    let mut body = format!(
        "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{field}\"; filename=\"{name}\"\r\n\
         content-type: application/octet-stream\r\n\r\n"
    )
    .into_bytes();
    body.extend(bytes);
    body.extend(format!("\r\n--{BOUNDARY}--\r\n").bytes());
    (format!("multipart/form-data; boundary={BOUNDARY}"), body)
}

/// Uploads a file to an endpoint.
pub async fn upload(person: &HttpClient, path: &str, name: &str, bytes: &[u8]) -> (u16, Value) {
    send(
        person,
        Method::POST,
        path,
        multipart_body("file", name, bytes),
    )
    .await
}

/// Sends a form to an endpoint.
pub async fn send(
    person: &HttpClient,
    method: Method,
    path: &str,
    (kind, body): (String, Vec<u8>),
) -> (u16, Value) {
    let request = http_client()
        .request(method, format!("{}{path}", person.base()))
        .header("cookie", person.cookie())
        .header("content-type", kind)
        .body(body);
    let answer = Answer::to(request).await;
    (answer.status, answer.json())
}
