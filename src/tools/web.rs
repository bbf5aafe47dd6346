//! Addresses that people and models name, and that are read from here.
//!
//! **Invariant:** every address that it calls, those that it is sent on to included, is judged by the
//! outbound guard of members: in private networks it reaches only the hosts that an admin lists.

use crate::llm::egress::Egress;
use futures::StreamExt;
use reqwest::Response;
use reqwest::Url;
use reqwest::header::LOCATION;
use std::fmt;

/// How often it is sent on.
const MAX_REDIRECTS: usize = 3;

/// The way to the web. Cloning gives another handle.
#[derive(Clone)]
pub struct Web {
    /// For addresses that members name.
    pub egress: Egress,
}

/// Why nothing was read. Nothing of the reason of a failed call: it could tell what there is in
/// networks that are closed to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    NoAddress,
    NotPlain,
    NotAllowed,
    Unreachable,
    Nowhere,
    Endless,
    BrokeOff,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoAddress => "`url` is no address.",
            Self::NotPlain => "Only plain http and https addresses can be read.",
            Self::NotAllowed => "This address may not be called.",
            Self::Unreachable => "The page could not be reached.",
            Self::Nowhere => "The page leads nowhere.",
            Self::Endless => "The page leads on and on.",
            Self::BrokeOff => "The page broke off.",
        })
    }
}

impl Web {
    /// Asks for what is at an address, and goes where it leads.
    ///
    /// # Errors
    /// Nothing answers there, or it may not be asked.
    pub async fn open(&self, url: &str, accept: &str) -> Result<Response, Unread> {
        let mut url = Url::parse(url).map_err(|_| Unread::NoAddress)?;
        for _ in 0..=MAX_REDIRECTS {
            let answer = self.ask(url.clone(), accept).await?;
            if !answer.status().is_redirection() {
                return Ok(answer);
            }
            let next = answer.headers().get(LOCATION);
            let next = next.and_then(|it| it.to_str().ok());
            let next = next.and_then(|it| url.join(it).ok());
            url = next.ok_or(Unread::Nowhere)?;
        }
        Err(Unread::Endless)
    }

    async fn ask(&self, url: Url, accept: &str) -> Result<Response, Unread> {
        let is_plain = matches!(url.scheme(), "http" | "https")
            && url.username().is_empty()
            && url.password().is_none();
        if !is_plain {
            return Err(Unread::NotPlain);
        }
        let asking = self.egress.get(url).map_err(|_| Unread::NotAllowed)?;
        let answer = asking.header("accept", accept).send().await;
        answer.map_err(|_| Unread::Unreachable)
    }
}

/// The beginning of an answer's body, at most so many bytes; and whether that is all of it.
///
/// # Errors
/// It broke off.
pub async fn bytes(answer: Response, most: usize) -> Result<(Vec<u8>, bool), Unread> {
    let mut bytes = Vec::new();
    let mut pieces = answer.bytes_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| Unread::BrokeOff)?;
        let room = most - bytes.len();
        bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() > room {
            return Ok((bytes, false));
        }
    }
    Ok((bytes, true))
}
