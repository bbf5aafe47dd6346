//! Fetches pictures and documents that a request names by URL, before the response begins. The
//! bytes replace the URL, so that a later response that continues this one uses what its model saw.

use std::time::Duration;

use agent::tools::fetch;
use agent::tools::fetch::WebFetcher;
use base::ids::UserId;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::{StreamExt, stream};
use serde_json::Value;
use tokio::time::timeout;

use crate::app::App;
use crate::web::v1::error::{V1Error, V1Result};
use crate::web::v1::parsing::attachments;
use crate::web::v1::parsing::attachments::MAX_BYTES;

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
    is_picture: bool,
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
    if !items
        .iter()
        .any(|it| parts(it).any(|it| address(it).is_some()))
    {
        return Ok(());
    }
    let _permit = app.responses.permit_to_receive(user)?;
    inline_all(&app.web, name, items).await
}

async fn inline_all(web: &WebFetcher, name: &str, items: &mut [Value]) -> V1Result<()> {
    let each = items.iter().enumerate();
    let found: Vec<RemoteFile> = each
        .flat_map(|(at, item)| find_remote_files(&format!("{name}[{at}]"), item))
        .collect();
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
    let mut fetched = fetched.into_iter();
    for part in items.iter_mut().flat_map(parts_mut) {
        if address(part).is_some()
            && let Some(url) = fetched.next()
        {
            inline_bytes(part, url);
        }
    }
    Ok(())
}

/// Makes the part look as if its bytes had been in the request.
fn inline_bytes(part: &mut Value, url: String) {
    match part["type"] == "input_image" {
        true => part["image_url"] = Value::String(url),
        false => {
            part["file_data"] = Value::String(url);
            if let Some(part) = part.as_object_mut() {
                part.shift_remove("file_url");
            }
        }
    }
}

/// Returns the files of an item that must be fetched.
fn find_remote_files(at: &str, item: &Value) -> Vec<RemoteFile> {
    let found = parts(item).enumerate().filter_map(|(n, part)| {
        let (field, url) = address(part)?;
        Some(RemoteFile {
            is_picture: field == "image_url",
            param: format!("{at}.content[{n}].{field}"),
            url: url.to_owned(),
        })
    });
    found.collect()
}

fn parts(item: &Value) -> impl Iterator<Item = &Value> {
    item["content"].as_array().into_iter().flatten()
}

fn parts_mut(item: &mut Value) -> impl Iterator<Item = &mut Value> {
    let parts = item.get_mut("content").and_then(Value::as_array_mut);
    parts.into_iter().flatten()
}

/// Returns the field with the URL and the URL, if the file must be fetched.
fn address(part: &Value) -> Option<(&'static str, &str)> {
    let field = match part["type"].as_str()? {
        "input_image" => "image_url",
        "input_file" => "file_url",
        _ => return None,
    };
    let url = part[field]
        .as_str()
        .filter(|it| attachments::is_remote(it))?;
    Some((field, url))
}

/// Fetches a file and returns it as a data URL.
async fn fetch_one(web: &WebFetcher, file: &RemoteFile) -> V1Result<String> {
    let accept = match file.is_picture {
        true => "image/*",
        false => attachments::PDF,
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
        let bytes = fetch::read_body(answer, MAX_BYTES).await;
        let (bytes, is_whole) = bytes.map_err(|it| it.to_string())?;
        let kind = attachments::detect_media_type(&bytes).filter(|_| is_whole);
        match kind.filter(|it| file.is_picture != (*it == attachments::PDF)) {
            Some(kind) => Ok(format!("data:{kind};base64,{}", STANDARD.encode(bytes))),
            None if file.is_picture => {
                Err("The file is not a PNG, JPEG, WebP or GIF of at most 20 MiB.".to_owned())
            }
            None => Err("The file is not a PDF of at most 20 MiB.".to_owned()),
        }
    };
    let late = |_| Err("Fetching the file timed out.".to_owned());
    let read = timeout(FETCH_TIMEOUT, reading).await.unwrap_or_else(late);
    read.map_err(|message| file.error(&message))
}

impl RemoteFile {
    fn error(&self, message: &str) -> V1Error {
        let code = match self.is_picture {
            true => "invalid_image",
            false => "invalid_value",
        };
        V1Error::invalid(code, &self.param, message)
    }
}

#[cfg(test)]
#[path = "remote_files_tests.rs"]
mod tests;
