//! The built-in tool `troupe:web_fetch`: requests a web page with `WebFetcher`, within limits of
//! size and time, and returns its text without tags and scripts. The application adds the tool only
//! if its settings enable it.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;
use llm::tool::Tool;
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use serde_json::json;
use tokio::time::timeout;

use crate::tools::tool::{ServerTool, ToolArguments, ToolResult};
use crate::tools::web_fetcher;
use crate::tools::web_fetcher::WebFetcher;

/// Maximum size of a page before conversion, in bytes.
const MAX_BYTES: usize = 1024 * 1024;

/// Time limit of a whole fetch, including redirects and the body.
const MAX_TIME: Duration = Duration::from_secs(15);

/// Fetches web pages.
pub struct WebFetchTool {
    pub fetcher: WebFetcher,
}

/// Returns the declaration for models.
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
impl ServerTool for WebFetchTool {
    fn declaration(&self) -> Tool {
        declaration()
    }

    async fn run(&self, arguments: &ToolArguments, _: &(dyn Fn(&str) + Sync)) -> ToolResult {
        let url = arguments.get("url").and_then(|it| it.as_str());
        let url = url.ok_or("`url` must be a string.")?;
        let reading = timeout(MAX_TIME, self.fetch_text(url));
        let late = |_| Err("The page took too long to load.".to_owned());
        reading.await.unwrap_or_else(late)
    }
}

impl WebFetchTool {
    async fn fetch_text(&self, url: &str) -> ToolResult {
        let answer = self.fetcher.fetch(url, "text/*, application/json").await;
        response_text(answer.map_err(|it| it.to_string())?).await
    }
}

async fn response_text(answer: Response) -> ToolResult {
    let status = answer.status();
    if !status.is_success() {
        return Err(format!("The page returned {}.", status.as_u16()));
    }
    let kind = answer.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|it| it.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    let is_html = matches!(kind.as_str(), "text/html" | "application/xhtml+xml");
    let is_text =
        is_html || kind.starts_with("text/") || kind.ends_with("json") || kind.ends_with("xml");
    if !is_text {
        return Err("The page is not text.".to_owned());
    }
    let (bytes, _) = web_fetcher::read_body(answer, MAX_BYTES)
        .await
        .map_err(|it| it.to_string())?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(match is_html {
        true => html_to_text(&text),
        false => text.into_owned(),
    })
}

/// Returns the text of a page, without tags and scripts.
fn html_to_text(html: &str) -> String {
    // This also drops the content of scripts and styles.
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
