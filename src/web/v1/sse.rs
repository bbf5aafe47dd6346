//! Builds the HTTP response that streams the events of a `/v1` response as server-sent events, with
//! keep-alive comments and optional padding.

use std::io;
use std::time::Duration;

use actix_web::http::header;
use actix_web::web::Bytes;
use actix_web::{HttpResponse, HttpResponseBuilder};
use futures::stream;
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

/// The next frame to send.
enum NextFrame {
    Event(EventReceiver),
    Done,
    End,
}

/// Builds the streaming HTTP response for these events.
pub fn stream_response(reader: EventReceiver, padding: Obfuscation) -> HttpResponse {
    let frames = stream::unfold(NextFrame::Event(reader), move |next| async move {
        match next {
            NextFrame::Event(reader) => Some(next_frame(reader, padding).await),
            NextFrame::Done => Some((Ok(Bytes::from_static(DONE)), NextFrame::End)),
            NextFrame::End => None,
        }
    });
    answer().streaming(frames)
}

/// Returns the beginning of an HTTP response with server-sent events.
pub fn answer() -> HttpResponseBuilder {
    let mut answer = HttpResponse::Ok();
    answer
        .content_type("text/event-stream")
        .insert_header((header::CACHE_CONTROL, "no-store, no-transform"))
        .insert_header(("x-accel-buffering", "no"));
    answer
}

async fn next_frame(
    mut reader: EventReceiver,
    padding: Obfuscation,
) -> (io::Result<Bytes>, NextFrame) {
    match timeout(KEEP_ALIVE_INTERVAL, reader.next()).await {
        Err(_) => {
            let nothing = Bytes::from_static(KEEP_ALIVE);
            (Ok(nothing), NextFrame::Event(reader))
        }
        Ok(Some(event)) => {
            let next = match event.is_terminal() {
                true => NextFrame::Done,
                false => NextFrame::Event(reader),
            };
            let event = match padding {
                Obfuscation::Deltas if event.is_delta() => with_padding(event),
                _ => event,
            };
            (Ok(encode(&event)), next)
        }
        Ok(None) if reader.is_complete() => {
            let nothing = Bytes::from_static(b": nothing more\n\n");
            (Ok(nothing), NextFrame::Done)
        }
        // The stream lost events. Break the connection, so that the client cannot treat it as
        // complete.
        Ok(None) => (Err(io::Error::other("the stream was cut")), NextFrame::End),
    }
}

fn encode(event: &EncodedEvent) -> Bytes {
    format!("event: {}\ndata: {}\n\n", event.kind, event.json).into()
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
