//! Builds the HTTP responses of `/v1` with server-sent events, with keep-alive comments, and encodes the
//! events of a response, with optional padding.

use std::io;
use std::time::Duration;

use actix_web::http::header;
use actix_web::web::Bytes;
use actix_web::{HttpResponse, HttpResponseBuilder};
use futures::{Stream, StreamExt, stream};
use rand::RngExt;
use rand::distr::Alphanumeric;
use responses_api::event::EncodedEvent;
use tokio::time::timeout;

use crate::responses::execution::event_stream::EventReceiver;

/// How often a comment line is sent on an idle stream, so that proxies do not close it.
pub const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// The comment line of an idle stream.
pub const KEEP_ALIVE: &[u8] = b": keepalive\n\n";

/// The last frame of a complete stream.
pub const DONE: &[u8] = b"data: [DONE]\n\n";

/// The end of a stream whose reader already has the last event.
const END_WITHOUT_EVENTS: &[u8] = b": nothing more\n\ndata: [DONE]\n\n";

/// Padded events have a length that is a multiple of this (in bytes), so that an observer of the
/// encrypted traffic cannot infer word lengths.
const PADDING_MULTIPLE: usize = 64;

/// Whether delta events are padded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obfuscation {
    None,
    Deltas,
}

impl Obfuscation {
    /// Converts the request's flag.
    pub fn from_request(is_asked: bool) -> Self {
        match is_asked {
            true => Self::Deltas,
            false => Self::None,
        }
    }
}

/// Builds the streaming HTTP response for the events of a response.
pub fn stream_response(reader: EventReceiver, padding: Obfuscation) -> HttpResponse {
    stream_frames(stream::unfold(Some(reader), move |reader| {
        next_frame(reader, padding)
    }))
}

/// Builds the HTTP response that sends these frames, and a comment whenever none follows for
/// [`KEEP_ALIVE_INTERVAL`].
pub fn stream_frames(frames: impl Stream<Item = io::Result<Bytes>> + 'static) -> HttpResponse {
    let frames = stream::unfold(Box::pin(frames), |mut frames| async move {
        match timeout(KEEP_ALIVE_INTERVAL, frames.next()).await {
            Err(_) => Some((Ok(Bytes::from_static(KEEP_ALIVE)), frames)),
            Ok(next) => next.map(|it| (it, frames)),
        }
    });
    answer().streaming(frames)
}

/// Builds the HTTP response with these events, which are all events of a stream.
pub fn whole_stream(events: Vec<EncodedEvent>) -> HttpResponse {
    let frames = events.iter().map(|it| Bytes::from(encode(it)));
    let frames = frames.chain([Bytes::from_static(DONE)]);
    let frames: Vec<io::Result<Bytes>> = frames.map(Ok).collect();
    answer().streaming(stream::iter(frames))
}

/// Returns the beginning of an HTTP response with server-sent events.
fn answer() -> HttpResponseBuilder {
    let mut answer = HttpResponse::Ok();
    answer
        .content_type("text/event-stream")
        .insert_header((header::CACHE_CONTROL, "no-store, no-transform"))
        .insert_header(("x-accel-buffering", "no"));
    answer
}

/// Returns the frame of the next event, and the reader of those after it.
async fn next_frame(
    reader: Option<EventReceiver>,
    padding: Obfuscation,
) -> Option<(io::Result<Bytes>, Option<EventReceiver>)> {
    let mut reader = reader?;
    let Some(event) = reader.next().await else {
        let end = match reader.is_complete() {
            true => Ok(Bytes::from_static(END_WITHOUT_EVENTS)),
            // The stream lost events. Break the connection, so that the client cannot treat it as
            // complete.
            false => Err(io::Error::other("the stream was cut")),
        };
        return Some((end, None));
    };
    let is_last = event.is_terminal();
    let event = match padding {
        Obfuscation::Deltas if event.is_delta() => with_padding(event),
        _ => event,
    };
    let mut frame = encode(&event);
    if is_last {
        frame.extend_from_slice(DONE);
    }
    Some((Ok(frame.into()), (!is_last).then_some(reader)))
}

fn encode(event: &EncodedEvent) -> Vec<u8> {
    format!("event: {}\ndata: {}\n\n", event.kind, event.json).into_bytes()
}

/// Pads the event with random characters in the field `obfuscation`, as the API documents it.
fn with_padding(mut event: EncodedEvent) -> EncodedEvent {
    // Every event is an object, so this removes its closing brace.
    event.json.pop();
    event.json.push_str(",\"obfuscation\":\"");
    let n_closing = "\"}".len();
    let length = event.json.len() + n_closing;
    let noise = rand::rng().sample_iter(Alphanumeric).map(char::from);
    let n_noise = length.next_multiple_of(PADDING_MULTIPLE) - length;
    event.json.extend(noise.take(n_noise));
    event.json.push_str("\"}");
    event
}

#[cfg(test)]
mod tests {
    use responses_api::event::EncodedEvent;
    use serde_json::{Value, json};

    use super::{PADDING_MULTIPLE, with_padding};

    #[test]
    fn obfuscation_hides_the_length_and_changes_nothing_else() {
        for n_letters in 0..200 {
            let original = json!({ "type": "x.delta", "delta": "}".repeat(n_letters), "n": 7 });
            let event = EncodedEvent {
                seq: 0,
                kind: "x.delta".to_owned(),
                json: original.to_string(),
            };

            let padded = with_padding(event);

            assert_eq!(padded.json.len() % PADDING_MULTIPLE, 0);
            let mut read: Value = serde_json::from_str(&padded.json).unwrap();
            let noise = read.as_object_mut().unwrap().shift_remove("obfuscation");
            assert!(noise.unwrap().is_string());
            assert_eq!(read, original);
        }
    }
}
