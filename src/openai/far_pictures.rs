//! Pictures that come by their address: fetched before anything is begun, and from then on the bytes
//! themselves, so that whoever goes on from a response goes on from what its model saw.

use crate::app::App;
use crate::ids::UserId;
use crate::openai::error::Answer;
use crate::openai::error::Problem;
use crate::openai::pictures;
use crate::openai::pictures::MAX_BYTES;
use crate::tools::web;
use crate::tools::web::Web;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use futures::stream;
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

/// Pictures of one request that are fetched at the same time.
const AT_ONCE: usize = 2;
/// The most of one request.
const MOST: usize = 32;
/// Of all of one request together, in bytes.
const MAX_BYTES_TOGETHER: usize = 32 * 1024 * 1024;
/// For one of them.
const MAX_TIME: Duration = Duration::from_secs(15);

/// Puts the bytes of pictures in the place of their addresses. `name`: what the list is called.
///
/// # Errors
/// 400 `invalid_image`: nothing of these formats is there, it is too large, or it may not be fetched.
/// 503: too many receive something long already.
pub async fn fetch(app: &App, user: UserId, name: &str, items: &mut [Value]) -> Answer<()> {
    if !items
        .iter()
        .any(|it| parts(it).any(|it| address(it).is_some()))
    {
        return Ok(());
    }
    let _place = app.responses.place_to_receive(user)?;
    fill(&app.web, name, items).await
}

async fn fill(web: &Web, name: &str, items: &mut [Value]) -> Answer<()> {
    let each = items.iter().enumerate();
    let found: Vec<(String, String)> = each
        .flat_map(|(at, item)| far(&format!("{name}[{at}]"), item))
        .collect();
    if let Some((param, _)) = found.get(MOST) {
        return Err(refused(param, "A request names at most 32 pictures."));
    }
    let fetching = found.iter().map(|(param, url)| one(web, param, url));
    let mut fetching = stream::iter(fetching).buffered(AT_ONCE);
    let (mut fetched, mut n_bytes) = (Vec::new(), 0);
    while let Some(url) = fetching.next().await {
        let url = url?;
        n_bytes += url.len() / 4 * 3;
        if n_bytes > MAX_BYTES_TOGETHER {
            let message = "The pictures of a request are at most 32 MiB together.";
            return Err(refused(&found[fetched.len()].0, message));
        }
        fetched.push(url);
    }
    let mut fetched = fetched.into_iter();
    for part in items.iter_mut().flat_map(parts_mut) {
        if address(part).is_some()
            && let Some(url) = fetched.next()
        {
            part["image_url"] = Value::String(url);
        }
    }
    Ok(())
}

/// The addresses in an item, each with where it stands.
fn far(at: &str, item: &Value) -> Vec<(String, String)> {
    let found = parts(item).enumerate().filter_map(|(n, part)| {
        let url = address(part)?.to_owned();
        Some((format!("{at}.content[{n}].image_url"), url))
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

fn address(part: &Value) -> Option<&str> {
    let url = part["image_url"].as_str().filter(|it| pictures::is_far(it));
    url.filter(|_| part["type"] == "input_image")
}

/// The data URL of what is at an address.
async fn one(web: &Web, param: &str, url: &str) -> Answer<String> {
    let reading = async {
        let answer = web
            .open(url, "image/*")
            .await
            .map_err(|it| it.to_string())?;
        if !answer.status().is_success() {
            return Err(format!("The page answered {}.", answer.status().as_u16()));
        }
        let bytes = web::bytes(answer, MAX_BYTES).await;
        let (bytes, is_whole) = bytes.map_err(|it| it.to_string())?;
        match pictures::kind_of(&bytes).filter(|_| is_whole) {
            Some(kind) => Ok(format!("data:{kind};base64,{}", STANDARD.encode(bytes))),
            None => Err("This is no PNG, JPEG, WebP or GIF of at most 20 MiB.".to_owned()),
        }
    };
    let late = |_| Err("The picture took too long to come.".to_owned());
    let read = timeout(MAX_TIME, reading).await.unwrap_or_else(late);
    read.map_err(|message| refused(param, &message))
}

fn refused(param: &str, message: &str) -> Problem {
    Problem::invalid("invalid_image", param, message)
}

#[cfg(test)]
#[path = "far_pictures_tests.rs"]
mod tests;
