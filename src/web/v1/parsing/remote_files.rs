//! Fetches the pictures and documents that a request names by URL and replaces each URL with the
//! bytes, so that later responses that continue this one use the same bytes.

use std::time::Duration;

use agent::tools::web_fetcher;
use agent::tools::web_fetcher::WebFetcher;
use base::ids::UserId;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::{StreamExt, stream};
use responses_api::request::items::attachment;
use responses_api::request::items::attachment::{FileKind, MAX_BYTES};
use responses_api::request::items::content::InputPart;
use responses_api::request::items::item_view::{ItemContent, ItemView};
use serde_json::Value;
use tokio::time::timeout;

use crate::app::App;
use crate::web::v1::error::{V1Error, V1Result};

/// The number of files of one request that are fetched concurrently.
const MAX_CONCURRENT_FETCHES: usize = 2;
/// The maximum number of remote files in one request.
const MAX_FILES: usize = 32;
/// The maximum size of all remote files of one request, in bytes.
const MAX_TOTAL_BYTES: usize = 32 * 1024 * 1024;
/// The time limit for one file.
const FETCH_TIMEOUT: Duration = Duration::from_secs(15);

/// A file that must be fetched.
struct RemoteFile {
    kind: FileKind,
    /// The position of its item.
    item: usize,
    /// The list of parts in the item: `content` or `output`.
    list: &'static str,
    /// The position of its part.
    part: usize,
    /// The path of the field with the URL.
    param: String,
    url: String,
}

/// Replaces the URLs of files with their bytes. `name` is the field that contains the items.
///
/// # Errors
/// Returns 400 (`invalid_image` for a picture) when the format is not supported, the file is too
/// large, or it may not be fetched; 503 or 429 when too many long transfers are in progress.
pub async fn fetch(app: &App, user: UserId, name: &str, items: &mut [Value]) -> V1Result<()> {
    let found = find_remote_files(name, items);
    if found.is_empty() {
        return Ok(());
    }
    let _permit = app.responses.permit_to_receive(user)?;
    inline_all(&app.web, &found, items).await
}

async fn inline_all(web: &WebFetcher, found: &[RemoteFile], items: &mut [Value]) -> V1Result<()> {
    if let Some(far) = found.get(MAX_FILES) {
        return Err(far.error("A request must not name more than 32 remote files."));
    }
    let fetching = found.iter().map(|far| fetch_one(web, far));
    let mut fetching = stream::iter(fetching).buffered(MAX_CONCURRENT_FETCHES);
    let (mut fetched, mut n_bytes) = (Vec::new(), 0);
    while let Some(url) = fetching.next().await {
        let url = url?;
        n_bytes += url.len() / 4 * 3;
        if n_bytes > MAX_TOTAL_BYTES {
            let message = "The remote files of a request must not exceed 32 MiB in total.";
            return Err(found[fetched.len()].error(message));
        }
        fetched.push(url);
    }
    for (file, url) in found.iter().zip(fetched) {
        let part = &mut items[file.item][file.list][file.part];
        attachment::inline_bytes(part, file.kind, url);
    }
    Ok(())
}

/// Returns the files of all messages and tool outputs that must be fetched.
fn find_remote_files(name: &str, items: &[Value]) -> Vec<RemoteFile> {
    let mut found = Vec::new();
    for (item, document) in items.iter().enumerate() {
        let (list, parts) = match ItemView::of(document).content {
            ItemContent::Message(message) => ("content", message.content),
            ItemContent::Output(output) => ("output", output.parts),
            _ => continue,
        };
        for (part, content) in parts.iter().enumerate() {
            if let InputPart::File(file) = content
                && let Some((field, url)) = file.remote_url()
            {
                found.push(RemoteFile {
                    kind: file.kind,
                    item,
                    list,
                    part,
                    param: format!("{name}[{item}].{list}[{part}].{field}"),
                    url: url.to_owned(),
                });
            }
        }
    }
    found
}

/// Fetches a file and returns it as a data URL.
async fn fetch_one(web: &WebFetcher, file: &RemoteFile) -> V1Result<String> {
    let accept = match file.kind {
        FileKind::Picture => "image/*",
        FileKind::Document => {
            "application/pdf, text/*, application/json, application/xml, application/yaml"
        }
    };
    let reading = async {
        let answer = web.fetch(&file.url, accept).await;
        let answer = answer.map_err(|it| it.to_string())?;
        if !answer.status().is_success() {
            return Err(format!(
                "Fetching the file failed with status {}.",
                answer.status().as_u16()
            ));
        }
        let content_type = answer.headers().get("content-type");
        let content_type = content_type.and_then(|it| it.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_owned();
        let bytes = web_fetcher::read_body(answer, MAX_BYTES).await;
        let (bytes, is_whole) = bytes.map_err(|it| it.to_string())?;
        let media_type = attachment::detect_media_type(&bytes).filter(|_| is_whole);
        if file.kind == FileKind::Document
            && is_whole
            && media_type.is_none()
            && let Some(it) = attachment::detect_text_type(&content_type, &bytes)
        {
            return Ok(format!("data:{it};base64,{}", STANDARD.encode(bytes)));
        }
        match (media_type, file.kind) {
            (Some(it), kind) if (it == attachment::PDF) == (kind == FileKind::Document) => {
                Ok(format!("data:{it};base64,{}", STANDARD.encode(bytes)))
            }
            (_, FileKind::Picture) => {
                Err("The file is not a PNG, JPEG, WebP or GIF of at most 20 MiB.".to_owned())
            }
            (_, FileKind::Document) => Err(
                "The file is neither a PDF of at most 20 MiB nor a text file of at most 1 MiB in UTF-8."
                    .to_owned(),
            ),
        }
    };
    let late = |_| Err("Fetching the file timed out.".to_owned());
    let read = timeout(FETCH_TIMEOUT, reading).await.unwrap_or_else(late);
    read.map_err(|message| file.error(&message))
}

impl RemoteFile {
    fn error(&self, message: &str) -> V1Error {
        let code = match self.kind {
            FileKind::Picture => "invalid_image",
            FileKind::Document => "invalid_value",
        };
        V1Error::invalid(code, &self.param, message)
    }
}

#[cfg(test)]
#[path = "remote_files_tests.rs"]
mod tests;
