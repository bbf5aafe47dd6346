//! The two ends of the connection itself: what comes in, what goes out, how it closes.

use crate::http::gauge::Gauge;
use actix_web::FromRequest;
use actix_web::HttpRequest;
use actix_web::HttpResponse;
use actix_web::dev;
use actix_web::error::PayloadError;
use actix_web::web::Bytes;
use actix_web::web::Payload;
use actix_ws::AggregatedMessage;
use actix_ws::AggregatedMessageStream;
use actix_ws::CloseCode;
use actix_ws::CloseReason;
use actix_ws::Closed;
use actix_ws::ProtocolError;
use actix_ws::Session;
use bytestring::ByteString;
use futures::Stream;
use futures::StreamExt;
use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Context;
use std::task::Poll;
use std::time::Duration;
use tokio::time::timeout;

type BoxedPayloadStream = Pin<Box<dyn Stream<Item = Result<Bytes, PayloadError>>>>;

/// How long a peer may take to answer our closing.
const GOODBYE: Duration = Duration::from_secs(2);

/// How a connection ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// There is nobody any more to say goodbye to.
    Gone,
    /// The peer closes; it gets its own words back.
    Theirs(Option<CloseReason>),
    /// We close, with a code and a word.
    Ours(u16, &'static str),
}

/// What came in.
#[derive(Debug)]
pub enum Heard {
    Text(ByteString),
    /// Something that no client of ours sends.
    Binary,
    Ping(Bytes),
    Pong,
    End(End),
}

/// The way in.
pub struct Inlet {
    stream: AggregatedMessageStream,
    source: Source,
}

/// The bytes of the peer: the decoder reads them, and we, when there is nothing more to decode.
#[derive(Clone)]
struct Source(Rc<RefCell<Payload>>);

impl Stream for Source {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_next(context)
    }
}

/// The way out.
pub struct Outlet {
    session: Session,
    /// A peer that takes no frame for so long is gone.
    within: Duration,
}

/// Answers the upgrade. `most`: the longest frame, and the longest message in pieces, in bytes; a peer
/// that takes no frame `within` this time is gone.
///
/// # Errors
/// When it is none.
pub async fn open(
    request: &HttpRequest,
    payload: Payload,
    most: usize,
    within: Duration,
) -> Result<(HttpResponse, Inlet, Outlet), actix_web::Error> {
    let source = Source(Rc::new(RefCell::new(payload)));
    let payload: BoxedPayloadStream = Box::pin(Gauge::new(source.clone(), most));
    let mut measured = dev::Payload::Stream { payload };
    let payload = Payload::from_request(request, &mut measured).await?;
    let (answer, session, stream) = actix_ws::handle(request, payload)?;
    let stream = stream
        .max_frame_size(most)
        .aggregate_continuations()
        .max_continuation_size(most);
    Ok((answer, Inlet { stream, source }, Outlet { session, within }))
}

impl Inlet {
    /// What comes next. Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Heard {
        match self.stream.recv().await {
            Some(Ok(AggregatedMessage::Text(text))) => Heard::Text(text),
            Some(Ok(AggregatedMessage::Binary(_))) => Heard::Binary,
            Some(Ok(AggregatedMessage::Ping(payload))) => Heard::Ping(payload),
            Some(Ok(AggregatedMessage::Pong(_))) => Heard::Pong,
            Some(Ok(AggregatedMessage::Close(reason))) => Heard::End(End::Theirs(reason)),
            Some(Err(error)) => Heard::End(end_of(&error)),
            None => Heard::End(End::Gone),
        }
    }

    /// Takes what still comes, until the peer has gone: a connection that is closed upon unread
    /// bytes is reset, and our last words with it. Past the decoder, which says the same of the
    /// same bytes for ever when they break the protocol.
    async fn run_dry(&mut self) {
        while let Some(Ok(_)) = self.source.next().await {}
    }
}

fn end_of(error: &ProtocolError) -> End {
    match error {
        ProtocolError::Overflow => End::Ours(1009, "too large"),
        ProtocolError::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
            End::Ours(1007, "not UTF-8")
        }
        // The gauge and the gathering of pieces have no error of their own.
        ProtocolError::Io(error) if error.kind() == io::ErrorKind::Other => {
            let flaw = error.get_ref().and_then(|it| it.downcast_ref());
            match flaw {
                None | Some(PayloadError::Overflow) => End::Ours(1009, "too large"),
                Some(_) => End::Ours(1002, "not the protocol"),
            }
        }
        _ => End::Ours(1002, "not the protocol"),
    }
}

impl Outlet {
    /// Sends a frame.
    ///
    /// # Errors
    /// When the peer has gone, or takes nothing.
    pub async fn send(&mut self, frame: ByteString) -> Result<(), End> {
        kept(timeout(self.within, self.session.text(frame)).await)
    }

    /// Asks for a sign of life.
    ///
    /// # Errors
    /// As [`Outlet::send`].
    pub async fn ping(&mut self) -> Result<(), End> {
        kept(timeout(self.within, self.session.ping(b"")).await)
    }

    /// Gives one.
    ///
    /// # Errors
    /// As [`Outlet::send`].
    pub async fn pong(&mut self, payload: &[u8]) -> Result<(), End> {
        kept(timeout(self.within, self.session.pong(payload)).await)
    }

    /// Says goodbye, if there is somebody to say it to.
    pub async fn close(self, end: End, mut inlet: Inlet) {
        let reason = match end {
            End::Gone => return,
            End::Theirs(reason) => reason,
            End::Ours(code, word) => Some(CloseReason {
                code: CloseCode::from(code),
                description: Some(word.to_owned()),
            }),
        };
        // A peer that does not listen any more misses nothing by not being told.
        let goodbye = async {
            if self.session.close(reason).await.is_ok() {
                inlet.run_dry().await;
            }
        };
        let _ = timeout(GOODBYE, goodbye).await;
    }
}

fn kept<E>(sent: Result<Result<(), Closed>, E>) -> Result<(), End> {
    match sent {
        Ok(Ok(())) => Ok(()),
        _ => Err(End::Gone),
    }
}
