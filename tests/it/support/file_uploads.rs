//! Uploads and downloads files as a browser does, and follows an import to its end.

use reqwest::header::CONTENT_TYPE;
use serde_json::Value;

use crate::support::http_client::{HttpClient, expect, http_client, id};
use crate::support::http_response::Answer;
use crate::support::poll;

/// The multipart boundary; no test file contains it.
const BOUNDARY: &str = "----a-line-that-no-chat-holds";

/// Uploads a file to an endpoint.
pub async fn bring(person: &HttpClient, path: &str, name: &str, bytes: &[u8]) -> (u16, Value) {
    let head = format!(
        "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n"
    );
    let tail = format!("\r\n--{BOUNDARY}--\r\n");
    let body = [head.as_bytes(), bytes, tail.as_bytes()].concat();
    let request = http_client()
        .post(format!("{}{path}", person.base()))
        .header("cookie", person.cookie())
        .header(
            CONTENT_TYPE,
            format!("multipart/form-data; boundary={BOUNDARY}"),
        )
        .body(body);
    let answer = Answer::to(request).await;
    (answer.status, answer.json())
}

/// Imports a file and waits for the end; returns the import.
pub async fn import(person: &HttpClient, path: &str, name: &str, bytes: &[u8]) -> Value {
    let begun = expect(202, bring(person, path, name, bytes).await);
    ended(person, id(&begun)).await
}

/// Imports a chat as [`import`] does. Fails unless its preview has the messages and the report of the import.
pub async fn import_as_previewed(
    person: &HttpClient,
    path: &str,
    name: &str,
    bytes: &[u8],
) -> Value {
    let preview = format!("{path}/preview");
    let preview = expect(200, bring(person, &preview, name, bytes).await);
    let done = import(person, path, name, bytes).await;
    for field in ["n_messages", "report"] {
        assert_eq!(preview[field], done[field], "{name}: {field}");
    }
    done
}

/// Waits for the end of an import and returns it.
pub async fn ended(person: &HttpClient, import: i64) -> Value {
    let path = format!("/api/imports/{import}");
    poll::until("the end of the import", async || {
        let now = expect(200, person.get(&path).await);
        (now["status"] != "running").then_some(now)
    })
    .await
}

/// Downloads a file.
pub async fn fetch(person: &HttpClient, path: &str) -> Vec<u8> {
    let request = http_client().get(format!("{}{path}", person.base()));
    let request = request.header("cookie", person.cookie());
    let answer = request.send().await.expect("the server answers");
    assert_eq!(answer.status(), 200, "{path}");
    answer
        .bytes()
        .await
        .expect("the download is complete")
        .to_vec()
}
