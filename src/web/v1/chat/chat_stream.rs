//! Streams the chunks of a chat completion as server-sent events without names. The HTTP response
//! begins with the first chunk, so that an earlier failure is an HTTP error.

use std::io;

use actix_web::HttpResponse;
use actix_web::web::Bytes;
use futures::stream;
use responses_api::event::EncodedEvent;
use responses_api::fold::chat_fold::{ERROR, LAST_CHUNK};
use responses_api::response::ResponseError;
use serde::Deserialize;
use tokio::time::timeout;

use crate::responses::execution::event_stream::EventReceiver;
use crate::web::v1::chat::chat_errors;
use crate::web::v1::error::{V1Error, V1Result};
use crate::web::v1::sse;

/// The next frame to send.
enum NextChunk {
    First(EncodedEvent, EventReceiver),
    Later(EventReceiver),
    Done,
    End,
}

/// The body of an error chunk.
#[derive(Deserialize)]
struct ErrorChunk {
    error: ResponseError,
}

/// Waits for the first chunk and returns the HTTP response that streams it and the rest.
///
/// # Errors
/// Returns why there is no first chunk.
pub async fn start(mut reader: EventReceiver) -> V1Result<HttpResponse> {
    let first = reader.next().await.ok_or_else(chat_errors::no_result)?;
    if first.kind == ERROR {
        let chunk: Result<ErrorChunk, _> = serde_json::from_str(&first.json);
        let chunk = chunk.map_err(|_| chat_errors::no_result())?;
        return Err(V1Error::from_failure(&chunk.error));
    }
    let frames = stream::unfold(NextChunk::First(first, reader), |next| async move {
        match next {
            NextChunk::First(chunk, reader) => Some(encode(&chunk, reader)),
            NextChunk::Later(reader) => Some(next_frame(reader).await),
            NextChunk::Done => Some((Ok(Bytes::from_static(sse::DONE)), NextChunk::End)),
            NextChunk::End => None,
        }
    });
    Ok(sse::answer().streaming(frames))
}

async fn next_frame(mut reader: EventReceiver) -> (io::Result<Bytes>, NextChunk) {
    match timeout(sse::KEEP_ALIVE_INTERVAL, reader.next()).await {
        Err(_) => {
            let nothing = Bytes::from_static(sse::KEEP_ALIVE);
            (Ok(nothing), NextChunk::Later(reader))
        }
        Ok(Some(chunk)) => encode(&chunk, reader),
        // The reader was too slow. Break the connection, so that the client cannot treat the answer
        // as complete.
        Ok(None) => (Err(io::Error::other("the stream was cut")), NextChunk::End),
    }
}

fn encode(chunk: &EncodedEvent, reader: EventReceiver) -> (io::Result<Bytes>, NextChunk) {
    let next = match chunk.kind.as_str() {
        LAST_CHUNK => NextChunk::Done,
        ERROR => NextChunk::End,
        _ => NextChunk::Later(reader),
    };
    (Ok(format!("data: {}\n\n", chunk.json).into()), next)
}
