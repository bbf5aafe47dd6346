//! A stream on the wire: server-sent events, each in one write.

use crate::responses::fold::Event;
use crate::responses::pipe::Reader;
use actix_web::HttpResponse;
use actix_web::http::header;
use actix_web::web::Bytes;
use futures::stream;
use std::io;
use std::time::Duration;
use tokio::time::timeout;

/// A line that means nothing keeps proxies from closing a silent connection, so often.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What comes next on the wire.
enum Next {
    Event(Reader),
    Done,
    Nothing,
}

/// The answer that tells these events.
pub fn answer(reader: Reader) -> HttpResponse {
    let frames = stream::unfold(Next::Event(reader), |next| async {
        match next {
            Next::Event(reader) => Some(frame(reader).await),
            Next::Done => Some((Ok(Bytes::from_static(b"data: [DONE]\n\n")), Next::Nothing)),
            Next::Nothing => None,
        }
    });
    HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header((header::CACHE_CONTROL, "no-cache, no-transform"))
        .insert_header(("x-accel-buffering", "no"))
        .streaming(frames)
}

async fn frame(mut reader: Reader) -> (io::Result<Bytes>, Next) {
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
