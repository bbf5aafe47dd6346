//! A stream on the wire: server-sent events, each in one write.

use crate::responses::fold::Event;
use crate::responses::pipe::Reader;
use actix_web::HttpResponse;
use actix_web::http::header;
use actix_web::web::Bytes;
use futures::stream;
use rand::RngExt;
use rand::distr::Alphanumeric;
use std::io;
use std::time::Duration;
use tokio::time::timeout;

/// A line that means nothing keeps proxies from closing a silent connection, so often.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Padded pieces are of a length that this divides: how long a word is, is then not to be seen by
/// who can only watch the wire.
const PADDED_TO: usize = 64;

/// Whether what is said piece by piece is padded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    None,
    Pieces,
}

impl Padding {
    /// It was asked for, or not.
    pub fn asked(is_asked: bool) -> Self {
        match is_asked {
            true => Self::Pieces,
            false => Self::None,
        }
    }
}

/// What comes next on the wire.
enum Next {
    Event(Reader),
    Done,
    Nothing,
}

/// The answer that tells these events.
pub fn answer(reader: Reader, padding: Padding) -> HttpResponse {
    let frames = stream::unfold(Next::Event(reader), move |next| async move {
        match next {
            Next::Event(reader) => Some(frame(reader, padding).await),
            Next::Done => Some((Ok(Bytes::from_static(b"data: [DONE]\n\n")), Next::Nothing)),
            Next::Nothing => None,
        }
    });
    HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header((header::CACHE_CONTROL, "no-store, no-transform"))
        .insert_header(("x-accel-buffering", "no"))
        .streaming(frames)
}

async fn frame(mut reader: Reader, padding: Padding) -> (io::Result<Bytes>, Next) {
    match timeout(KEEP_ALIVE, reader.next()).await {
        Err(_) => {
            let nothing = Bytes::from_static(b": keepalive\n\n");
            (Ok(nothing), Next::Event(reader))
        }
        Ok(Some(event)) => {
            let next = match event.is_terminal() {
                true => Next::Done,
                false => Next::Event(reader),
            };
            let event = match padding {
                Padding::Pieces if event.kind.ends_with(".delta") => padded(event),
                _ => event,
            };
            (Ok(written(&event)), next)
        }
        Ok(None) if reader.is_whole() => {
            let nothing = Bytes::from_static(b": nothing more\n\n");
            (Ok(nothing), Next::Done)
        }
        // Without its end nobody must take it for whole: the connection breaks.
        Ok(None) => (Err(io::Error::other("the stream was cut")), Next::Nothing),
    }
}

fn written(event: &Event) -> Bytes {
    format!("event: {}\ndata: {}\n\n", event.kind, event.json).into()
}

/// The event with noise in it, as the API documents it: in a field of its own.
fn padded(mut event: Event) -> Event {
    // The last brace: every event is an object.
    event.json.pop();
    event.json.push_str(",\"obfuscation\":\"");
    let n_closing = "\"}".len();
    let length = event.json.len() + n_closing;
    let noise = rand::rng().sample_iter(Alphanumeric).map(char::from);
    let n_noise = length.next_multiple_of(PADDED_TO) - length;
    event.json.extend(noise.take(n_noise));
    event.json.push_str("\"}");
    event
}

#[cfg(test)]
mod tests {
    use super::PADDED_TO;
    use super::padded;
    use crate::responses::fold::Event;
    use serde_json::Value;
    use serde_json::json;

    #[test]
    fn noise_hides_the_length_and_changes_nothing_else() {
        for n_letters in 0..200 {
            let told = json!({ "type": "x.delta", "delta": "}".repeat(n_letters), "n": 7 });
            let event = Event {
                seq: 0,
                kind: "x.delta".to_owned(),
                json: told.to_string(),
            };

            let padded = padded(event);

            assert_eq!(padded.json.len() % PADDED_TO, 0);
            let mut read: Value = serde_json::from_str(&padded.json).unwrap();
            let noise = read.as_object_mut().unwrap().shift_remove("obfuscation");
            assert!(noise.unwrap().is_string());
            assert_eq!(read, told);
        }
    }
}
