//! Fetches the pictures that messages of threads name by URL, and replaces each URL with the bytes.

use std::mem;

use base::ids::UserId;
use responses_api::request::threads::thread_messages::NewThreadMessage;
use serde_json::{Value, json};

use crate::app::App;
use crate::web::v1::error::{V1Error, V1Result};
use crate::web::v1::parsing::remote_files;

/// The field under which a single message is fetched. [`in_body`] removes it from the path of an error.
const SINGLE_MESSAGE_FIELD: &str = "message";

/// Fetches the pictures of messages. `name` is the field that contains them.
///
/// # Errors
/// As [`remote_files::fetch`].
pub async fn fetch(
    app: &App,
    user: UserId,
    name: &str,
    messages: &mut [NewThreadMessage],
) -> V1Result<()> {
    let item = |message: &mut NewThreadMessage| {
        let content = mem::take(&mut message.content);
        json!({ "type": "message", "role": message.role, "content": content })
    };
    let mut items: Vec<Value> = messages.iter_mut().map(item).collect();
    let fetched = remote_files::fetch(app, user, name, &mut items).await;
    fetched.map_err(in_messages)?;
    for (message, mut item) in messages.iter_mut().zip(items) {
        if let Value::Array(content) = item["content"].take() {
            message.content = content;
        }
    }
    Ok(())
}

/// Fetches the pictures of the message that is the body of a request.
///
/// # Errors
/// As [`remote_files::fetch`].
pub async fn fetch_one(app: &App, user: UserId, message: &mut NewThreadMessage) -> V1Result<()> {
    let fetched = fetch(
        app,
        user,
        SINGLE_MESSAGE_FIELD,
        std::slice::from_mut(message),
    )
    .await;
    fetched.map_err(in_body)
}

/// Converts the path in an error from the field of an item to the field of a message.
fn in_messages(error: V1Error) -> V1Error {
    match error.param.clone() {
        Some(param) if param.ends_with(".image_url") => error.for_param(format!("{param}.url")),
        _ => error,
    }
}

/// Removes the message from the path in an error, because the body of the request is the message.
fn in_body(error: V1Error) -> V1Error {
    let param = error.param.clone().unwrap_or_default();
    match param.strip_prefix(&format!("{SINGLE_MESSAGE_FIELD}[0].")) {
        Some(field) => error.for_param(field),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::{in_body, in_messages};
    use crate::web::v1::error::V1Error;

    #[test]
    fn a_path_of_an_item_becomes_the_path_in_the_request() {
        let error = |param: &str| V1Error::wrong_value(param, "x");

        let listed = in_messages(error("messages[2].content[1].image_url"));
        let single = in_body(in_messages(error("message[0].content[1].image_url")));
        let other = in_body(in_messages(V1Error::not_found()));

        let param = "messages[2].content[1].image_url.url";
        assert_eq!(listed.param.as_deref(), Some(param));
        assert_eq!(single.param.as_deref(), Some("content[1].image_url.url"));
        assert_eq!(other.param, None);
    }
}
