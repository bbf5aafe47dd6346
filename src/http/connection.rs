//! The two ends of the connection itself: what comes in, what goes out, how it closes.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::error::PayloadError;
use actix_web::web::{Bytes, Payload};
use actix_web::{FromRequest, HttpRequest, HttpResponse, dev};
use actix_ws::{
    AggregatedMessage, AggregatedMessageStream, CloseCode, CloseReason, Closed, ProtocolError,
    Session,
};
use bytestring::ByteString;
use futures::{Stream, StreamExt};
use tokio::time::timeout;

use crate::http::frame_limit::FrameLimit;

type BoxedPayloadStream = Pin<Box<dyn Stream<Item = Result<Bytes, PayloadError>>>>;

/// How long a peer may take to answer our closing.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// How a connection ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DisconnectReason {
    /// There is nobody any more to say goodbye to.
    ConnectionLost,
    /// The peer closes; it gets its own words back.
    ClosedByPeer(Option<CloseReason>),
    /// We close, with a code and a word.
    ClosedByServer(u16, &'static str),
}

/// What came in.
#[derive(Debug)]
pub enum Incoming {
    Text(ByteString),
    /// Something that no client of ours sends.
    Binary,
    Ping(Bytes),
    Pong,
    Closed(DisconnectReason),
}

/// The way in.
pub struct WsReceiver {
    stream: AggregatedMessageStream,
    source: ByteSource,
}

/// The bytes of the peer: the decoder reads them, and we, when there is nothing more to decode.
#[derive(Clone)]
struct ByteSource(Rc<RefCell<Payload>>);

impl Stream for ByteSource {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_next(context)
    }
}

/// The way out.
pub struct WsSender {
    session: Session,
    /// A peer that takes no frame for so long is gone.
    write_timeout: Duration,
}

/// Answers the upgrade. `most`: the longest frame, and the longest message in pieces, in bytes; a peer
/// that takes no frame `within` this time is gone.
///
/// # Errors
/// When it is none.
pub async fn open(
    request: &HttpRequest,
    payload: Payload,
    max_frame_bytes: usize,
    write_timeout: Duration,
) -> Result<(HttpResponse, WsReceiver, WsSender), actix_web::Error> {
    let source = ByteSource(Rc::new(RefCell::new(payload)));
    let payload: BoxedPayloadStream = Box::pin(FrameLimit::new(source.clone(), max_frame_bytes));
    let mut limited = dev::Payload::Stream { payload };
    let payload = Payload::from_request(request, &mut limited).await?;
    let (answer, session, stream) = actix_ws::handle(request, payload)?;
    let stream = stream
        .max_frame_size(max_frame_bytes)
        .aggregate_continuations()
        .max_continuation_size(max_frame_bytes);
    Ok((
        answer,
        WsReceiver { stream, source },
        WsSender {
            session,
            write_timeout,
        },
    ))
}

impl WsReceiver {
    /// What comes next. Nothing is lost when the future is dropped.
    pub async fn receive(&mut self) -> Incoming {
        match self.stream.recv().await {
            Some(Ok(AggregatedMessage::Text(text))) => Incoming::Text(text),
            Some(Ok(AggregatedMessage::Binary(_))) => Incoming::Binary,
            Some(Ok(AggregatedMessage::Ping(payload))) => Incoming::Ping(payload),
            Some(Ok(AggregatedMessage::Pong(_))) => Incoming::Pong,
            Some(Ok(AggregatedMessage::Close(reason))) => {
                Incoming::Closed(DisconnectReason::ClosedByPeer(reason))
            }
            Some(Err(error)) => Incoming::Closed(disconnect_reason(&error)),
            None => Incoming::Closed(DisconnectReason::ConnectionLost),
        }
    }

    /// Takes what still comes, until the peer has gone: a connection that is closed upon unread
    /// bytes is reset, and our last words with it. Past the decoder, which says the same of the
    /// same bytes for ever when they break the protocol.
    async fn drain(&mut self) {
        while let Some(Ok(_)) = self.source.next().await {}
    }
}

fn disconnect_reason(error: &ProtocolError) -> DisconnectReason {
    match error {
        ProtocolError::Overflow => DisconnectReason::ClosedByServer(1009, "too large"),
        ProtocolError::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
            DisconnectReason::ClosedByServer(1007, "not UTF-8")
        }
        // The gauge and the gathering of pieces have no error of their own.
        ProtocolError::Io(error) if error.kind() == io::ErrorKind::Other => {
            let cause = error.get_ref().and_then(|it| it.downcast_ref());
            match cause {
                None | Some(PayloadError::Overflow) => {
                    DisconnectReason::ClosedByServer(1009, "too large")
                }
                Some(_) => DisconnectReason::ClosedByServer(1002, "not the protocol"),
            }
        }
        _ => DisconnectReason::ClosedByServer(1002, "not the protocol"),
    }
}

impl WsSender {
    /// Sends a frame.
    ///
    /// # Errors
    /// When the peer has gone, or takes nothing.
    pub async fn send(&mut self, frame: ByteString) -> Result<(), DisconnectReason> {
        send_result(timeout(self.write_timeout, self.session.text(frame)).await)
    }

    /// Asks for a sign of life.
    ///
    /// # Errors
    /// As [`Outlet::send`].
    pub async fn ping(&mut self) -> Result<(), DisconnectReason> {
        send_result(timeout(self.write_timeout, self.session.ping(b"")).await)
    }

    /// Gives one.
    ///
    /// # Errors
    /// As [`Outlet::send`].
    pub async fn pong(&mut self, payload: &[u8]) -> Result<(), DisconnectReason> {
        send_result(timeout(self.write_timeout, self.session.pong(payload)).await)
    }

    /// Says goodbye, if there is somebody to say it to.
    pub async fn close(self, disconnect: DisconnectReason, mut receiver: WsReceiver) {
        let reason = match disconnect {
            DisconnectReason::ConnectionLost => return,
            DisconnectReason::ClosedByPeer(reason) => reason,
            DisconnectReason::ClosedByServer(code, text) => Some(CloseReason {
                code: CloseCode::from(code),
                description: Some(text.to_owned()),
            }),
        };
        // A peer that does not listen any more misses nothing by not being told.
        let closing = async {
            if self.session.close(reason).await.is_ok() {
                receiver.drain().await;
            }
        };
        let _ = timeout(CLOSE_TIMEOUT, closing).await;
    }
}

fn send_result<E>(sent: Result<Result<(), Closed>, E>) -> Result<(), DisconnectReason> {
    match sent {
        Ok(Ok(())) => Ok(()),
        _ => Err(DisconnectReason::ConnectionLost),
    }
}
