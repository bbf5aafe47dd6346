//! Addresses that people and models name, and that are read from here.
//!
//! **Invariant:** every address that it calls, those that it is sent on to included, is judged by the
//! outbound guard of members: in private networks it reaches only the hosts that an admin lists.

use std::fmt;

use futures::StreamExt;
use reqwest::header::LOCATION;
use reqwest::{Response, Url};

use crate::llm::outbound_client::OutboundClient;

/// How often it is sent on.
const MAX_REDIRECTS: usize = 3;

/// The way to the web. Cloning gives another handle.
#[derive(Clone)]
pub struct WebFetcher {
    /// For addresses that members name.
    pub client: OutboundClient,
}

/// Why nothing was read. Nothing of the reason of a failed call: it could tell what there is in
/// networks that are closed to it.
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
            Self::InvalidUrl => "`url` is no address.",
            Self::UnsupportedUrl => "Only plain http and https addresses can be read.",
            Self::Forbidden => "This address may not be called.",
            Self::Unreachable => "The page could not be reached.",
            Self::MissingRedirect => "The page leads nowhere.",
            Self::TooManyRedirects => "The page leads on and on.",
            Self::Disconnected => "The page broke off.",
        })
    }
}

impl WebFetcher {
    /// Asks for what is at an address, and goes where it leads.
    ///
    /// # Errors
    /// Nothing answers there, or it may not be asked.
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

/// The beginning of an answer's body, at most so many bytes; and whether that is all of it.
///
/// # Errors
/// It broke off.
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
