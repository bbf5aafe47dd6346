//! Implements `Provider` over HTTP: an endpoint (base URL, key and dialect) sends a request and
//! returns the response as a stream of deltas. It also makes calls with a short response, such as
//! the model list.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use outbound_http::client;
use outbound_http::client::OutboundClient;
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
};
use reqwest::{RequestBuilder, Response, Url};
use serde::Serialize;
use tokio::time::timeout;

use crate::compatibility::extra_body;
use crate::dialect::{Dialect, DialectRequest, Framing};
use crate::error::LlmError;
use crate::openai_chat::error;
use crate::provider::{Capability, DeltaStream, Provider};
use crate::request::Request;
use crate::secret::Secret;
use crate::stream::decoder::{BodyFormat, StreamDecoder};

/// Enough for any error description; the rest of a longer body is not read.
const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;
const MAX_HEADER_BYTES: usize = 64 * 1024;
/// Shorter values are not removed from errors, because they may occur in any text.
const MIN_SECRET_BYTES: usize = 6;
/// Enough for the ids of all tokens of the longest prompt, which llama.cpp lists.
const MAX_TOKEN_COUNT_BYTES: usize = 16 * 1024 * 1024;
/// Counting is fast, because it does not run the model; a reply waits for it.
const TOKEN_COUNT_TIMEOUT: Duration = Duration::from_secs(2);
/// How often a request is repeated without what the endpoint has refused.
const MAX_LEARNED: usize = 2;

/// A provider endpoint with its key.
///
/// **Invariant:** the key is sent only to this base URL, in a header and never in the URL.
#[derive(Debug, Clone)]
pub struct Endpoint {
    client: OutboundClient,
    base_url: Url,
    key: Option<Secret>,
    dialect: Arc<dyn Dialect>,
    extra_headers: HeaderMap,
}

impl Endpoint {
    /// Creates an endpoint for a base URL as entered by a user.
    ///
    /// # Errors
    /// Returns `Unusable` when the URL is invalid or must not be called.
    pub fn new(
        client: OutboundClient,
        base_url: &str,
        key: Option<Secret>,
        dialect: Arc<dyn Dialect>,
    ) -> Result<Self, LlmError> {
        let mut base_url = client.parse_base_url(base_url)?;
        base_url.set_path(&dialect.root_path(base_url.path()));
        Ok(Self {
            client,
            base_url,
            key: key.filter(|key| !key.expose().is_empty()),
            dialect,
            extra_headers: HeaderMap::new(),
        })
    }

    /// Returns the endpoint with headers that are added to each request.
    pub fn with_headers(self, extra_headers: HeaderMap) -> Self {
        Self {
            extra_headers,
            ..self
        }
    }

    /// Returns the API of the endpoint.
    pub fn dialect(&self) -> &dyn Dialect {
        self.dialect.as_ref()
    }

    /// Requests a document below the base URL, such as `/models`.
    pub async fn get(
        &self,
        path: &str,
        query: Option<&str>,
        max_bytes: usize,
    ) -> Result<Vec<u8>, LlmError> {
        let mut url = client::endpoint_url(&self.base_url, path);
        url.set_query(query);
        let request = self.client.get(url)?.headers(self.headers()?);
        self.send(request, max_bytes).await
    }

    /// Requests a document at a path of the server itself, beside its API: the base URL without `/v1`.
    pub async fn get_from_origin(&self, path: &str, max_bytes: usize) -> Result<Vec<u8>, LlmError> {
        let mut url = self.base_url.clone();
        let before = url.path().trim_end_matches('/');
        let before = before.strip_suffix("/v1").unwrap_or(before);
        url.set_path(&format!("{before}{path}"));
        let request = self.client.get(url)?.headers(self.headers()?);
        self.send(request, max_bytes).await
    }

    /// Sends a JSON document to a path below the base URL, such as `/embeddings`, and returns the
    /// response.
    pub async fn post(
        &self,
        path: &str,
        body: &(impl Serialize + Sync),
        max_bytes: usize,
    ) -> Result<Vec<u8>, LlmError> {
        let url = client::endpoint_url(&self.base_url, path);
        let request = self.client.post(url)?.headers(self.headers()?);
        self.send(request.json(body), max_bytes).await
    }

    async fn send(&self, request: RequestBuilder, max_bytes: usize) -> Result<Vec<u8>, LlmError> {
        let response = request.send().await;
        let response = self.check_response(response).await?;
        let (bytes, is_whole) = read_body(response, max_bytes).await?;
        if !is_whole {
            return Err(upstream_error("The provider's response is too long."));
        }
        Ok(bytes)
    }

    fn headers(&self) -> Result<HeaderMap, LlmError> {
        // The headers of the API replace additional ones with the same name.
        let mut headers = self.extra_headers.clone();
        headers.insert(
            ACCEPT,
            HeaderValue::from_static("text/event-stream, application/x-ndjson, application/json"),
        );
        // Compression would buffer the stream and delay it.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        for (name, value) in self.dialect.headers() {
            headers.insert(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        if let Some(key) = &self.key {
            let (name, value) = self.dialect.auth_header(key);
            let mut value = HeaderValue::from_str(&value).map_err(|_| LlmError::Unusable {
                message: "The API key contains characters that cannot be sent.".to_owned(),
            })?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(headers)
    }

    async fn check_response(&self, sent: reqwest::Result<Response>) -> Result<Response, LlmError> {
        let response = sent.map_err(|error| error::from_transport(&error))?;
        let headers = response.headers();
        if headers
            .iter()
            .map(|(name, it)| name.as_str().len() + it.len())
            .sum::<usize>()
            > MAX_HEADER_BYTES
        {
            return Err(upstream_error(
                "The provider's response headers are too long.",
            ));
        }
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        let headers = headers.clone();
        // If the error description cannot be read, the status is enough.
        let (body, _) = read_body(response, MAX_ERROR_BODY_BYTES)
            .await
            .unwrap_or_default();
        let error = error::from_status(status, &headers, &body, self.key.as_ref());
        Err(error.without_secrets(&self.secret_header_values()))
    }

    /// Returns the values of the additional headers, which an error may quote.
    fn secret_header_values(&self) -> Vec<String> {
        let values = self.extra_headers.values();
        let texts = values
            .filter(|it| it.is_sensitive())
            .filter_map(|it| it.to_str().ok());
        let secrets = texts.filter(|it| it.len() >= MIN_SECRET_BYTES);
        secrets.map(str::to_owned).collect()
    }
}

#[async_trait]
impl Provider for Endpoint {
    async fn stream(&self, request: &Request) -> Result<DeltaStream, LlmError> {
        // The effort is only a hint, and many models do not reason. Some APIs also reject reasoning that is
        // sent back.
        let mut request = Cow::Borrowed(request);
        let mut refused = self.dialect.options().known_refusals(&request.model);
        refused.extend(&request.found_refusals.get());
        if refused.pictures && request.has_replaceable_pictures() {
            request.to_mut().replace_pictures();
        }
        if !refused.is_empty() {
            request.to_mut().refused = refused;
        }
        let (mut n_learned, mut is_without_pictures) = (0, false);
        loop {
            let built = self.build(&request)?;
            let error = match self.start_stream(&built, &request).await {
                Ok(stream) => {
                    if is_without_pictures || n_learned > 0 {
                        request.found_refusals.add(&request.refused);
                    }
                    return Ok(stream);
                }
                Err(error) => error,
            };
            let request = request.to_mut();
            if error.rejects_reasoning() && request.has_reasoning() {
                request.drop_reasoning();
            } else if n_learned < MAX_LEARNED && request.refused.learn(&error, &built.body) {
                n_learned += 1;
            } else if error.may_reject_images() && request.has_replaceable_pictures() {
                // At most once: afterwards there is nothing left to replace.
                request.replace_pictures();
                request.refused.pictures = true;
                is_without_pictures = true;
            } else {
                return Err(error);
            }
        }
    }

    fn kind(&self) -> &'static str {
        self.dialect.kind()
    }

    fn has_capability(&self, capability: Capability) -> bool {
        self.dialect.has_capability(capability)
    }

    fn min_output_tokens(&self, request: &Request) -> u32 {
        self.dialect.min_output_tokens(request)
    }

    fn max_stops(&self) -> usize {
        self.dialect.max_stops()
    }

    fn completes_text(&self) -> bool {
        self.dialect.completes_text()
    }

    async fn count_tokens(&self, text: &str) -> Option<i64> {
        let request = self.dialect.token_count_request(text)?;
        let counting = self.post(&request.path, &request.body, MAX_TOKEN_COUNT_BYTES);
        let response = match timeout(TOKEN_COUNT_TIMEOUT, counting).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                tracing::debug!(%error, "the server counted no tokens: {error}");
                return None;
            }
            Err(_) => {
                tracing::debug!("timed out counting tokens");
                return None;
            }
        };
        self.dialect
            .parse_token_count(&serde_json::from_slice(&response).ok()?)
    }

    fn can_prefill(&self, request: &Request) -> bool {
        self.dialect.can_prefill(request)
    }
}

impl Endpoint {
    /// Builds a request without what the endpoint refuses, and with what an admin adds.
    fn build(&self, request: &Request) -> Result<DialectRequest, LlmError> {
        let mut built = self.dialect.build_request(request)?;
        request.refused.remove_fields(&mut built.body);
        extra_body::merge(&mut built.body, &self.dialect.options().extra_body);
        Ok(built)
    }

    async fn start_stream(
        &self,
        dialect_request: &DialectRequest,
        request: &Request,
    ) -> Result<DeltaStream, LlmError> {
        let mut url = client::endpoint_url(&self.base_url, &dialect_request.path);
        url.set_query(dialect_request.query);
        let call = self.client.post(url)?.headers(self.headers()?);
        let sent = call.json(&dialect_request.body).send().await;
        let response = self.check_response(sent).await?;
        let format = body_format(response.headers(), self.dialect.framing())?;
        let bytes = response.bytes_stream().boxed();
        let decoder =
            StreamDecoder::new(bytes, format, self.dialect.chunk_parser(), self.key.clone())
                .with_reasoning_tags(request.reasoning_tags.as_ref());
        let state = (decoder, self.secret_header_values());
        let deltas = stream::unfold(state, async |(mut answer, secrets)| {
            let delta = answer.next().await?;
            let delta = delta.map_err(|error| error.without_secrets(&secrets));
            Some((delta, (answer, secrets)))
        });
        Ok(deltas.boxed())
    }
}

/// Returns the body format by the headers. Some servers ignore `stream`, and some send no type.
fn body_format(headers: &HeaderMap, framing: Framing) -> Result<BodyFormat, LlmError> {
    let word = |name| {
        headers
            .get(name)
            .and_then(|it| it.to_str().ok())
            .unwrap_or_default()
    };
    let encoding = word(CONTENT_ENCODING).trim().to_ascii_lowercase();
    if !matches!(encoding.as_str(), "" | "identity") {
        return Err(upstream_error(
            "The provider's response is compressed, although compression was not requested.",
        ));
    }
    let media_type = word(CONTENT_TYPE)
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    match (media_type.as_str(), framing) {
        // With line framing, a whole JSON document is one line as well.
        ("application/json", Framing::Events) => Ok(BodyFormat::Whole),
        ("text/html" | "application/xhtml+xml", _) => Err(upstream_error(
            "The provider returned a web page instead of an event stream. Check the base URL.",
        )),
        (_, framing) => Ok(BodyFormat::Stream(framing)),
    }
}

fn upstream_error(message: &str) -> LlmError {
    LlmError::Upstream {
        message: message.to_owned(),
    }
}

/// Returns the beginning of a body, and whether that is the whole body.
async fn read_body(mut response: Response, max_bytes: usize) -> Result<(Vec<u8>, bool), LlmError> {
    let mut body = Vec::new();
    loop {
        let chunk = response
            .chunk()
            .await
            .map_err(|error| error::from_transport(&error))?;
        let Some(chunk) = chunk else {
            return Ok((body, true));
        };
        let remaining = max_bytes - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(remaining)]);
        if chunk.len() > remaining {
            return Ok((body, false));
        }
    }
}
