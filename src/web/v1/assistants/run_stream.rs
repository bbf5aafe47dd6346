//! Streams the events of a run as server-sent events: `event:` names the event, the data is its object.
//! The last event is `done`.

use std::io;

use actix_web::HttpResponse;
use actix_web::web::Bytes;
use futures::{StreamExt, stream};
use responses_api::threads::run_fold;
use serde::Serialize;

use crate::responses::execution::event_stream::EventReceiver;
use crate::web::v1::sse;

/// The last frame of a complete stream.
const DONE: &[u8] = b"event: done\ndata: [DONE]\n\n";

/// Builds the HTTP response that streams these events. `first` is the name and the object of an event
/// before them.
pub fn answer(reader: EventReceiver, first: Option<(&str, &impl Serialize)>) -> HttpResponse {
    let first = first.and_then(|(kind, object)| {
        let json = serde_json::to_string(object).ok()?;
        Some(Bytes::from(frame(kind, &json)))
    });
    let events = stream::unfold(Some(reader), next_frame);
    sse::stream_frames(stream::iter(first.map(Ok)).chain(events))
}

/// Returns the frame of the next event, and the reader of those after it.
async fn next_frame(
    reader: Option<EventReceiver>,
) -> Option<(io::Result<Bytes>, Option<EventReceiver>)> {
    let mut reader = reader?;
    let Some(event) = reader.next().await else {
        // The stream lost events. Break the connection, so that the client cannot treat it as
        // complete.
        return Some((Err(io::Error::other("the stream was cut")), None));
    };
    let mut frame = frame(&event.kind, &event.json);
    let is_last = run_fold::ends_stream(&event.kind);
    if is_last {
        frame.extend_from_slice(DONE);
    }
    Some((Ok(frame.into()), (!is_last).then_some(reader)))
}

fn frame(kind: &str, json: &str) -> Vec<u8> {
    format!("event: {kind}\ndata: {json}\n\n").into_bytes()
}
