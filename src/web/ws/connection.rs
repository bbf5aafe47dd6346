//! Opens a WebSocket connection as a receiving and a sending half, and defines why and how it
//! closes.

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

use crate::web::ws::frame_limit::FrameLimit;

type BoxedPayloadStream = Pin<Box<dyn Stream<Item = Result<Bytes, PayloadError>>>>;

/// How long a peer may take to answer our close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Why a connection ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DisconnectReason {
    /// The peer is gone; no close frame is sent.
    ConnectionLost,
    /// The peer closes; its close reason is sent back.
    ClosedByPeer(Option<CloseReason>),
    /// The server closes, with a code and a reason.
    ClosedByServer(u16, &'static str),
}

/// A received message.
#[derive(Debug)]
pub enum Incoming {
    Text(ByteString),
    /// No valid client sends binary frames.
    Binary,
    Ping(Bytes),
    Pong,
    Closed(DisconnectReason),
}

/// The receiving half.
pub struct WsReceiver {
    stream: AggregatedMessageStream,
    source: ByteSource,
}

/// The peer's bytes: read by the decoder, and by [`WsReceiver::drain`] when decoding has ended.
#[derive(Clone)]
struct ByteSource(Rc<RefCell<Payload>>);

impl Stream for ByteSource {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_next(context)
    }
}

/// The sending half.
pub struct WsSender {
    session: Session,
    /// A peer that accepts no frame for this long is disconnected.
    write_timeout: Duration,
}

/// Answers the upgrade. `max_frame_bytes` limits a frame, and a fragmented message; a peer that
/// accepts no frame within `write_timeout` is disconnected.
///
/// # Errors
/// Returns an error if the request is not a WebSocket upgrade.
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
    /// Waits for the next message. Cancel-safe: nothing is lost when the future is dropped.
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

    /// Reads the remaining bytes until the peer has gone: a connection that is closed with unread
    /// bytes is reset, and our close frame is lost with it. Bypasses the decoder, which repeats its
    /// error forever for bytes that break the protocol.
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
        // The frame limit and the aggregation of fragments have no error variants of their own.
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
    /// Returns `ConnectionLost` if the peer has gone or accepts nothing.
    pub async fn send(&mut self, frame: ByteString) -> Result<(), DisconnectReason> {
        send_result(timeout(self.write_timeout, self.session.text(frame)).await)
    }

    /// Sends a ping.
    ///
    /// # Errors
    /// As [`WsSender::send`].
    pub async fn ping(&mut self) -> Result<(), DisconnectReason> {
        send_result(timeout(self.write_timeout, self.session.ping(b"")).await)
    }

    /// Sends a pong.
    ///
    /// # Errors
    /// As [`WsSender::send`].
    pub async fn pong(&mut self, payload: &[u8]) -> Result<(), DisconnectReason> {
        send_result(timeout(self.write_timeout, self.session.pong(payload)).await)
    }

    /// Sends a close frame, if the peer is still connected.
    pub async fn close(self, disconnect: DisconnectReason, mut receiver: WsReceiver) {
        let reason = match disconnect {
            DisconnectReason::ConnectionLost => return,
            DisconnectReason::ClosedByPeer(reason) => reason,
            DisconnectReason::ClosedByServer(code, text) => Some(CloseReason {
                code: CloseCode::from(code),
                description: Some(text.to_owned()),
            }),
        };
        // If the peer no longer reads, the missing close frame does not matter.
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
