//! Middleware that compresses the JSON answers under `/v1` with gzip, if the client accepts it. Streams are
//! never compressed, because their events must be delivered at once.

use std::io::Write;

use actix_web::body::{BodySize, BoxBody, MessageBody, to_bytes};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{
    ACCEPT_ENCODING, AcceptEncoding, CONTENT_ENCODING, CONTENT_TYPE, Encoding, Header, HeaderMap,
    HeaderValue, VARY,
};
use actix_web::middleware::Next;
use actix_web::web::Bytes;
use actix_web::{Error, HttpMessage};
use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::task::spawn_blocking;

use crate::web::error::ApiError;

/// The minimum size, in bytes: a shorter answer fits into one packet without compression.
const MIN_BYTES: u64 = 1024;

/// The maximum size, in bytes: compressing a longer answer would delay the other requests of this web worker.
const MAX_BYTES_ON_WORKER: usize = 64 * 1024;

/// Compresses the answer if it is JSON, long enough, and the client accepts gzip.
///
/// # Errors
/// Returns only errors that the inner services did not convert to a response.
pub async fn compress(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let is_accepted = accepts_gzip(&request);
    let mut answer = next.call(request).await?.map_into_boxed_body();
    if !is_json(answer.headers()) || answer.headers().contains_key(CONTENT_ENCODING) {
        return Ok(answer);
    }
    let encoding = HeaderValue::from_name(ACCEPT_ENCODING);
    answer.headers_mut().append(VARY, encoding);
    let is_long = match answer.response().body().size() {
        BodySize::Sized(n_bytes) => n_bytes >= MIN_BYTES,
        BodySize::None | BodySize::Stream => false,
    };
    match is_accepted && is_long {
        true => compress_body(answer).await,
        false => Ok(answer),
    }
}

async fn compress_body(answer: ServiceResponse) -> Result<ServiceResponse, Error> {
    let (request, answer) = answer.into_parts();
    let (mut head, body) = answer.into_parts();
    let body = to_bytes(body).await.map_err(ApiError::internal)?;
    let compressed = match body.len() > MAX_BYTES_ON_WORKER {
        true => {
            let kept = body.clone();
            let compressing = spawn_blocking(move || gzip(&kept));
            compressing.await.unwrap_or_default()
        }
        false => gzip(&body),
    };
    let body = match compressed {
        Some(compressed) => {
            let gzip = HeaderValue::from_static("gzip");
            head.headers_mut().insert(CONTENT_ENCODING, gzip);
            compressed
        }
        None => body,
    };
    Ok(ServiceResponse::new(
        request,
        head.set_body(BoxBody::new(body)),
    ))
}

/// Returns the compressed text; `None` if it could not be compressed.
fn gzip(text: &Bytes) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE);
    kind.is_some_and(|it| it.as_bytes().starts_with(b"application/json"))
}

/// Returns whether `Accept-Encoding` allows gzip.
fn accepts_gzip(request: &impl HttpMessage) -> bool {
    let gzip = Encoding::gzip();
    let accepted = AcceptEncoding::parse(request).ok();
    accepted.is_some_and(|it| it.negotiate([&gzip].into_iter()) == Some(gzip.clone()))
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::ACCEPT_ENCODING;
    use actix_web::test::TestRequest;

    use super::accepts_gzip;

    #[test]
    fn gzip_is_used_only_if_the_client_accepts_it() {
        for (value, expected) in [
            ("gzip, deflate, br", true),
            ("br;q=1.0, GZIP;q=0.5", true),
            ("gzip;q=0, *", false),
            ("deflate", false),
            ("", false),
        ] {
            let request = TestRequest::default().insert_header((ACCEPT_ENCODING, value));

            assert_eq!(
                accepts_gzip(&request.to_http_request()),
                expected,
                "{value}"
            );
        }
        let request = TestRequest::default().to_http_request();
        assert!(!accepts_gzip(&request));
    }
}
