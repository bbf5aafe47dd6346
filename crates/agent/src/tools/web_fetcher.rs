//! Defines `WebFetcher`, which requests URLs that members and models name, follows redirects and
//! returns the response, and reads a body up to a size that the caller gives. No time limit.
//!
//! **Invariant:** the outbound policy for members checks every requested URL, including redirect
//! targets: in private networks only the hosts that an admin lists are reachable.

use std::fmt;

use futures::StreamExt;
use outbound_http::client::OutboundClient;
use reqwest::header::LOCATION;
use reqwest::{Response, Url};

/// Maximum number of redirects.
const MAX_REDIRECTS: usize = 3;

/// HTTP client for URLs from members and models. Cheap to clone.
#[derive(Clone)]
pub struct WebFetcher {
    /// Client with the outbound policy for members.
    pub client: OutboundClient,
}

/// Why a fetch failed. It omits the cause of a failed connection, because that could reveal which
/// hosts exist in blocked networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchError {
    InvalidUrl,
    UnsupportedUrl,
    Forbidden,
    Unreachable,
    MissingRedirect,
    TooManyRedirects,
    Disconnected,
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvalidUrl => "`url` is not a valid URL.",
            Self::UnsupportedUrl => "Only http and https URLs without credentials are supported.",
            Self::Forbidden => "This address is not allowed.",
            Self::Unreachable => "The page could not be reached.",
            Self::MissingRedirect => "The redirect is invalid.",
            Self::TooManyRedirects => "The page redirects too often.",
            Self::Disconnected => "The connection broke while the page was loading.",
        })
    }
}

impl WebFetcher {
    /// Requests a URL and follows redirects.
    ///
    /// # Errors
    /// Returns `InvalidUrl`, `UnsupportedUrl` or `Forbidden` when the URL or a redirect target must
    /// not be requested, `Unreachable` when the request fails, and `MissingRedirect` or
    /// `TooManyRedirects` for bad redirects.
    pub async fn fetch(&self, url: &str, accept: &str) -> Result<Response, FetchError> {
        let mut url = Url::parse(url).map_err(|_| FetchError::InvalidUrl)?;
        for _ in 0..=MAX_REDIRECTS {
            let answer = self.send(url.clone(), accept).await?;
            if !answer.status().is_redirection() {
                return Ok(answer);
            }
            let next = answer.headers().get(LOCATION);
            let next = next.and_then(|it| it.to_str().ok());
            let next = next.and_then(|it| url.join(it).ok());
            url = next.ok_or(FetchError::MissingRedirect)?;
        }
        Err(FetchError::TooManyRedirects)
    }

    async fn send(&self, url: Url, accept: &str) -> Result<Response, FetchError> {
        let is_plain = matches!(url.scheme(), "http" | "https")
            && url.username().is_empty()
            && url.password().is_none();
        if !is_plain {
            return Err(FetchError::UnsupportedUrl);
        }
        let request = self.client.get(url).map_err(|_| FetchError::Forbidden)?;
        let answer = request.header("accept", accept).send().await;
        answer.map_err(|_| FetchError::Unreachable)
    }
}

/// Returns the first `max_bytes` of a response body, and whether that is the whole body.
///
/// # Errors
/// Returns `Disconnected` when the connection breaks.
pub async fn read_body(
    response: Response,
    max_bytes: usize,
) -> Result<(Vec<u8>, bool), FetchError> {
    let mut bytes = Vec::new();
    let mut pieces = response.bytes_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| FetchError::Disconnected)?;
        let remaining = max_bytes - bytes.len();
        bytes.extend_from_slice(&piece[..piece.len().min(remaining)]);
        if piece.len() > remaining {
            return Ok((bytes, false));
        }
    }
    Ok((bytes, true))
}
