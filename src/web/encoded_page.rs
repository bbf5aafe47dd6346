//! Builds the response of one page of a list from entries that are already JSON, without copying
//! them into one buffer.

use std::convert::Infallible;

use actix_web::HttpResponse;
use actix_web::body::SizedStream;
use actix_web::http::header::ContentType;
use actix_web::web::Bytes;
use futures::stream;
use serde_json::Value;

/// Returns a list of entries that are already JSON; `cursor` leads to the next page, if there is
/// one.
pub fn json_page(entries: Vec<String>, has_more: bool, cursor: Option<i64>) -> HttpResponse {
    let cursor = cursor.filter(|_| has_more).map_or(Value::Null, Value::from);
    let mut pieces = Vec::with_capacity(2 * entries.len() + 2);
    pieces.push(Bytes::from_static(b"{\"data\":["));
    for (at, entry) in entries.into_iter().enumerate() {
        if at > 0 {
            pieces.push(Bytes::from_static(b","));
        }
        pieces.push(Bytes::from(entry));
    }
    let end = format!("],\"has_more\":{has_more},\"cursor\":{cursor}}}");
    pieces.push(Bytes::from(end));
    let n_bytes: usize = pieces.iter().map(Bytes::len).sum();
    let pieces = stream::iter(pieces.into_iter().map(Ok::<_, Infallible>));
    HttpResponse::Ok()
        .content_type(ContentType::json())
        .body(SizedStream::new(n_bytes as u64, pieces))
}

#[cfg(test)]
mod tests {
    use actix_web::body::to_bytes;
    use serde_json::{Value, json};

    use super::json_page;

    #[actix_web::test]
    async fn chunks_form_one_document() {
        let texts = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        for (entries, has_more, cursor, expected) in [
            (
                texts(&[]),
                false,
                None,
                json!({"data": [], "has_more": false, "cursor": null}),
            ),
            (
                texts(&["1", "{}"]),
                true,
                Some(7),
                json!({"data": [1, {}], "has_more": true, "cursor": 7}),
            ),
            (
                texts(&["1"]),
                false,
                Some(7),
                json!({"data": [1], "has_more": false, "cursor": null}),
            ),
        ] {
            let body = to_bytes(json_page(entries, has_more, cursor).into_body()).await;

            let document: Value = serde_json::from_slice(&body.unwrap()).unwrap();
            assert_eq!(document, expected);
        }
    }
}
