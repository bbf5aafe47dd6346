//! `troupe:web_fetch`: reads a page of the web, as text. Off unless the settings say otherwise.
//!
//! **Invariant:** every address that it calls, those that it is sent on to included, is judged by the
//! outbound guard; private networks are out of its reach whatever models may reach.

use crate::llm::egress::Egress;
use crate::llm::tool::Tool;
use crate::tools::tool::Arguments;
use crate::tools::tool::Outcome;
use crate::tools::tool::ServerTool;
use async_trait::async_trait;
use futures::StreamExt;
use reqwest::Response;
use reqwest::Url;
use reqwest::header::CONTENT_TYPE;
use reqwest::header::LOCATION;
use serde_json::json;
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::timeout;

/// Of one page, as it comes.
const MAX_BYTES: usize = 1024 * 1024;

/// For all of it together.
const MAX_TIME: Duration = Duration::from_secs(15);

/// How often it is sent on.
const MAX_REDIRECTS: usize = 3;

/// The tool.
pub struct WebFetch {
    /// Of its own, closed to private networks.
    pub egress: Egress,
}

/// As a model is told of it.
pub fn declaration() -> Tool {
    Tool {
        name: "troupe_web_fetch".to_owned(),
        description: Some("Reads a public page of the web and gives its text.".to_owned()),
        parameters: json!({
            "type": "object",
            "properties": {
                "url": { "type": "string", "description": "Begins with https:// or http://." },
            },
            "required": ["url"],
            "additionalProperties": false,
        }),
        strict: None,
    }
}

#[async_trait]
impl ServerTool for WebFetch {
    fn declaration(&self) -> Tool {
        declaration()
    }

    async fn run(&self, arguments: &Arguments, _: &(dyn Fn(&str) + Sync)) -> Outcome {
        let url = arguments.get("url").and_then(|it| it.as_str());
        let url = url.ok_or("`url` must be a text.")?;
        let reading = timeout(MAX_TIME, self.read(url));
        let late = |_| Err("The page took too long to come.".to_owned());
        reading.await.unwrap_or_else(late)
    }
}

impl WebFetch {
    async fn read(&self, url: &str) -> Outcome {
        let mut url = Url::parse(url).map_err(|_| "`url` is no address.".to_owned())?;
        for _ in 0..=MAX_REDIRECTS {
            let answer = self.ask(url.clone()).await?;
            if !answer.status().is_redirection() {
                return text(answer).await;
            }
            let next = answer.headers().get(LOCATION);
            let next = next.and_then(|it| it.to_str().ok());
            let next = next.and_then(|it| url.join(it).ok());
            url = next.ok_or("The page leads nowhere.")?;
        }
        Err("The page leads on and on.".to_owned())
    }

    async fn ask(&self, url: Url) -> Result<Response, String> {
        let is_plain = matches!(url.scheme(), "http" | "https")
            && url.username().is_empty()
            && url.password().is_none();
        if !is_plain {
            return Err("Only plain http and https addresses can be read.".to_owned());
        }
        let asking = self.egress.get(url);
        let asking = asking.map_err(|_| "This address may not be called.".to_owned())?;
        // Nothing of the reason: it could tell what there is in networks that are closed to it.
        let answer = asking.header("accept", "text/*, application/json").send();
        answer
            .await
            .map_err(|_| "The page could not be reached.".to_owned())
    }
}

async fn text(answer: Response) -> Outcome {
    let status = answer.status();
    if !status.is_success() {
        return Err(format!("The page answered {}.", status.as_u16()));
    }
    let kind = answer.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|it| it.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    let is_html = matches!(kind.as_str(), "text/html" | "application/xhtml+xml");
    let is_text =
        is_html || kind.starts_with("text/") || kind.ends_with("json") || kind.ends_with("xml");
    if !is_text {
        return Err("The page is no text.".to_owned());
    }
    let mut bytes = Vec::new();
    let mut pieces = answer.bytes_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| "The page broke off.".to_owned())?;
        let room = MAX_BYTES - bytes.len();
        bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() >= room {
            break;
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(match is_html {
        true => plain(&text),
        false => text.into_owned(),
    })
}

/// The words of a page, without its tags and scripts.
fn plain(html: &str) -> String {
    // What scripts and styles hold is dropped with them.
    let bare = ammonia::Builder::new().tags(HashSet::new()).clean(html);
    let bare = bare.to_string();
    let bare = bare
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&nbsp;", " ");
    let bare = bare.replace("&quot;", "\"").replace("&amp;", "&");
    let lines = bare.lines().map(str::trim).filter(|it| !it.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
#[path = "web_fetch_tests.rs"]
mod tests;
