//! The sending half of a socket with its keep-alive: sends frames and pings, answers pings of the
//! peer, and reports a silent peer.

use bytestring::ByteString;
use futures::future::LocalBoxFuture;
use realtime::socket_timeouts::SocketTimeouts;
use tokio::time::Instant;

use crate::web::ws::connection::{DisconnectReason, Incoming, WsReceiver, WsSender};
use crate::web::ws::keepalive::{FrameRateLimit, Keepalive, KeepaliveAction};

/// A message for the session.
#[derive(Debug)]
pub enum ClientMessage {
    Text(ByteString),
    /// No valid client sends binary frames.
    Binary,
}

/// The sending half of a socket, and whether its peer is alive.
pub struct SocketLink {
    sender: WsSender,
    keepalive: Keepalive,
    pings: FrameRateLimit,
}

impl SocketLink {
    /// Starts with a peer that has just connected.
    pub fn new(sender: WsSender, timeouts: SocketTimeouts) -> Self {
        Self {
            sender,
            keepalive: Keepalive::new(timeouts, Instant::now()),
            pings: FrameRateLimit::new(timeouts),
        }
    }

    /// Records a received frame, and answers it if it is a control frame. Returns the others.
    ///
    /// # Errors
    /// Returns the reason when the connection has ended.
    pub async fn accept(
        &mut self,
        incoming: Incoming,
        now: Instant,
    ) -> Result<Option<ClientMessage>, DisconnectReason> {
        self.keepalive.on_frame(now);
        match incoming {
            Incoming::Text(text) => Ok(Some(ClientMessage::Text(text))),
            Incoming::Binary => Ok(Some(ClientMessage::Binary)),
            Incoming::Ping(payload) => {
                // Pings are rate limited: a flood gets only some pongs.
                if self.pings.acquire(now).is_ok() {
                    self.sender.pong(&payload).await?;
                }
                Ok(None)
            }
            Incoming::Pong => Ok(None),
            Incoming::Closed(end) => Err(end),
        }
    }

    /// Returns when [`SocketLink::check_peer`] should be called next.
    pub fn next_check(&self) -> Instant {
        self.keepalive.next_timeout()
    }

    /// Sends a ping if one is due.
    ///
    /// # Errors
    /// Returns the reason when the peer is silent or has gone.
    pub async fn check_peer(&mut self) -> Result<(), DisconnectReason> {
        match self.keepalive.on_timeout(Instant::now()) {
            KeepaliveAction::Ping => self.sender.ping().await,
            KeepaliveAction::Silent => Err(DisconnectReason::ClosedByServer(4000, "silent")),
            KeepaliveAction::Nothing => Ok(()),
        }
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// Returns `ConnectionLost` if the peer has gone or accepts nothing.
    pub async fn send(&mut self, frame: ByteString) -> Result<(), DisconnectReason> {
        self.sender.send(frame).await
    }

    /// Sends a close frame, if the peer is still connected.
    pub async fn close(self, disconnect: DisconnectReason, receiver: WsReceiver) {
        self.sender.close(disconnect, receiver).await;
    }
}

/// Waits for the result of a task and removes the task; never completes if there is none.
pub async fn take_result<T>(task: &mut Option<LocalBoxFuture<'static, T>>) -> T {
    let found = match task {
        Some(task) => task.await,
        None => std::future::pending().await,
    };
    *task = None;
    found
}
