//! Streams the chunks of a chat completion as server-sent events without names, the chunks of several
//! choices as they arrive. The HTTP response begins with the first chunk, so that an earlier failure is
//! an HTTP error; if there is none for a while, it begins with a comment, so that proxies do not time out.

use std::io;

use actix_web::HttpResponse;
use actix_web::web::Bytes;
use futures::future::join_all;
use futures::stream::select_all;
use futures::{Stream, StreamExt, stream};
use responses_api::fold::chat_choices;
use responses_api::fold::chat_fold::ChatFold;
use responses_api::fold::chat_objects::CompletionHeader;
use responses_api::response::ResponseError;
use tokio::time::timeout;

use crate::responses::execution::event_stream::EventReceiver;
use crate::responses::foreground::chat_choices::StreamedChat;
use crate::responses::foreground::foreground_task::PendingResponse;
use crate::web::v1::chat::chat_errors;
use crate::web::v1::error::{V1Error, V1Result};
use crate::web::v1::sse;

/// A part of the stream.
enum ChatFrame {
    /// The JSON of a chunk.
    Chunk(String),
    /// Everything was sent.
    Done,
    /// The request failed; nothing follows.
    Failed(ResponseError),
    /// A task ended without a result.
    NoResult,
    /// The client was too slow, and chunks were lost.
    Cut,
}

/// Waits for the first chunk and returns the HTTP response that streams it and the rest. After
/// [`sse::KEEP_ALIVE_INTERVAL`] without a chunk, the response begins with a comment, and a later
/// failure is sent in the stream.
///
/// # Errors
/// Returns why there is no first chunk.
pub async fn start(chat: StreamedChat) -> V1Result<HttpResponse> {
    let mut frames = Box::pin(frames(chat));
    let first = match timeout(sse::KEEP_ALIVE_INTERVAL, frames.next()).await {
        Err(_) => Ok(Bytes::from_static(sse::KEEP_ALIVE)),
        Ok(Some(ChatFrame::Failed(error))) => return Err(V1Error::from_failure(&error)),
        Ok(Some(ChatFrame::NoResult) | None) => return Err(chat_errors::no_result()),
        Ok(Some(frame)) => encode(frame),
    };
    let first = stream::iter([first]);
    Ok(sse::stream_frames(first.chain(frames.map(encode))))
}

/// Returns the chunks of all choices as they arrive, and then the end of the stream.
fn frames(chat: StreamedChat) -> impl Stream<Item = ChatFrame> {
    let StreamedChat { header, choices } = chat;
    let (readers, results): (Vec<EventReceiver>, Vec<PendingResponse>) =
        choices.into_iter().unzip();
    let chunks = select_all(readers.into_iter().map(|it| Box::pin(chunks(it))));
    let end = stream::once(async move {
        let folds = join_all(results.into_iter().map(PendingResponse::wait_for_chat)).await;
        stream::iter(end(&header, folds.into_iter().collect()))
    });
    chunks.chain(end.flatten())
}

/// Returns the chunks of one choice.
fn chunks(reader: EventReceiver) -> impl Stream<Item = ChatFrame> {
    stream::unfold(Some(reader), |reader| async move {
        let mut reader = reader?;
        match reader.next().await {
            Some(chunk) => Some((ChatFrame::Chunk(chunk.json), Some(reader))),
            None => reader.lost_events().then_some((ChatFrame::Cut, None)),
        }
    })
}

/// Returns what follows the chunks of all choices; `folds` is `None` if a task ended without a result.
fn end(header: &CompletionHeader, folds: Option<Vec<ChatFold>>) -> Vec<ChatFrame> {
    let Some(folds) = folds else {
        return vec![ChatFrame::NoResult];
    };
    match chat_choices::usage_chunk(header, &folds) {
        Ok(usage) => {
            let usage = usage.map(ChatFrame::Chunk).into_iter();
            usage.chain([ChatFrame::Done]).collect()
        }
        Err(error) => vec![ChatFrame::Failed(error)],
    }
}

fn encode(frame: ChatFrame) -> io::Result<Bytes> {
    let data = match frame {
        ChatFrame::Chunk(json) => json,
        ChatFrame::Failed(error) => chat_choices::error_chunk(&error),
        ChatFrame::Done => return Ok(Bytes::from_static(sse::DONE)),
        // Break the connection, so that the client cannot treat the answer as complete.
        ChatFrame::NoResult | ChatFrame::Cut => {
            return Err(io::Error::other("the stream was cut"));
        }
    };
    Ok(format!("data: {data}\n\n").into())
}

#[cfg(test)]
#[path = "chat_stream_tests.rs"]
mod tests;
