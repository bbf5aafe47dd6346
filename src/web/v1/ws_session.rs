//! Runs one `/v1` WebSocket connection as a task with one loop: queues client frames, runs one
//! response at a time, sends its events, and closes the connection.
//!
//! **Invariant:** a response belongs to its socket. When the loop ends for any reason, the response
//! is canceled and the remembered history is dropped.

use std::collections::VecDeque;
use std::sync::Arc;

use actix_web::web::Data;
use base::ids::UserId;
use bytestring::ByteString;
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use realtime::hub::Hub;
use realtime::outbox::{NextItem, Outbox};
use realtime::topic::Topic;
use responses_api::event::{EncodedEvent, StreamEvent};
use responses_api::item::OutputItem;
use tokio::time::Instant;

use crate::app::App;
use crate::responses::input::session_history::SessionHistory;
use crate::responses::telemetry::call_origin::CallOrigin;
use crate::web::error::ApiResult;
use crate::web::v1::error::V1Error;
use crate::web::v1::parsing::body::MAX_BODY_BYTES;
use crate::web::v1::ws_response::{CurrentResponse, ResponseProgress};
use crate::web::v1::{ws_frames, ws_response};
use crate::web::ws::connection::{DisconnectReason, Incoming, WsReceiver};
use crate::web::ws::socket_caller::SocketCaller;
use crate::web::ws::socket_link::{ClientMessage, SocketLink};
use crate::web::ws::{socket_caller, socket_link};

/// The maximum number of queued frames. Together they may not exceed the size of one frame.
const MAX_QUEUED_FRAMES: usize = 8;

/// A connection, from its upgrade to its end.
struct V1WsSession {
    app: Data<App>,
    caller: SocketCaller,
    /// The request that opened the socket.
    origin: CallOrigin,
    link: SocketLink,
    controls: ControlReceiver,
    /// Checks the key again, because it may be revoked between authentication and the subscription
    /// to control messages.
    review: Option<LocalBoxFuture<'static, ApiResult<bool>>>,
    queued_frames: VecDeque<ByteString>,
    current: CurrentResponse,
    history: SessionHistory,
    /// The connection reached its maximum age; the response in progress is the last.
    is_expired: bool,
}

/// Receives the control messages of the user; unsubscribes on drop.
struct ControlReceiver {
    hub: Hub,
    user: UserId,
    outbox: Arc<Outbox>,
}

impl ControlReceiver {
    fn subscribe(hub: &Hub, user: UserId) -> Self {
        let (hub, outbox) = (hub.clone(), Outbox::new());
        hub.subscribe(Topic::User(user), &outbox);
        Self { hub, user, outbox }
    }
}

impl Drop for ControlReceiver {
    fn drop(&mut self) {
        self.hub.unsubscribe(Topic::User(self.user), &self.outbox);
    }
}

/// Serves a connection until it ends.
pub async fn serve(
    app: Data<App>,
    (caller, origin): (SocketCaller, CallOrigin),
    mut inlet: WsReceiver,
    link: SocketLink,
) {
    let review = socket_caller::has_access(app.clone(), caller);
    let mut session = V1WsSession {
        controls: ControlReceiver::subscribe(&app.hub, caller.user),
        review: Some(review.boxed_local()),
        app,
        caller,
        origin,
        link,
        queued_frames: VecDeque::new(),
        current: CurrentResponse::None,
        history: SessionHistory::default(),
        is_expired: false,
    };
    let end = session.run(&mut inlet).await;
    let V1WsSession {
        link,
        current: turn,
        ..
    } = session;
    // Stop the model before the close handshake.
    drop(turn);
    link.close(end, inlet).await;
}

impl V1WsSession {
    async fn run(&mut self, inlet: &mut WsReceiver) -> DisconnectReason {
        let outbox = self.controls.outbox.clone();
        let draining = self.app.shutdown.draining.clone();
        let stopping = self.app.shutdown.stopping.clone().cancelled_owned();
        let alarm = tokio::time::sleep_until(self.link.next_check());
        let hour = tokio::time::sleep(self.app.socket_timeouts.v1_session_limit);
        tokio::pin!(stopping, alarm, hour);
        loop {
            if let Err(end) = self.start_next().await {
                return end;
            }
            let (is_idle, is_late) = (self.current.is_none(), self.is_expired);
            let result = tokio::select! {
                frame = inlet.receive() => self.handle_frame(frame).await,
                next = outbox.next() => self.apply_control(next),
                step = self.current.next_progress() => self.apply_progress(step).await,
                found = socket_link::take_result(&mut self.review) => require_access(found),
                () = alarm.as_mut() => self.link.check_peer().await,
                () = hour.as_mut(), if !is_late => {
                    self.is_expired = true;
                    Ok(())
                }
                () = draining.cancelled(), if is_idle => Err(DisconnectReason::ClosedByServer(1012, "restart")),
                () = stopping.as_mut() => self.send_rest_and_close().await,
            };
            if let Err(end) = result {
                return end;
            }
            if alarm.is_elapsed() {
                alarm.as_mut().reset(self.link.next_check());
            }
        }
    }

    /// Starts the next queued request if no response is in progress.
    async fn start_next(&mut self) -> Result<(), DisconnectReason> {
        while self.current.is_none() {
            if self.is_expired {
                self.send_error(&connection_limit_error()).await?;
                return Err(DisconnectReason::ClosedByServer(1000, "time is over"));
            }
            let Some(text) = self.queued_frames.pop_front() else {
                return Ok(());
            };
            let frame = ws_frames::parse(&text, &self.app.responses.server_rules());
            match frame.request {
                Ok(mut spec) => {
                    spec.origin = self.origin.clone();
                    let prior_items = frame.previous_response_id.as_deref();
                    let known = prior_items.and_then(|it| self.history.items_of(it));
                    let begin = ws_response::start(self.app.clone(), self.caller, spec, known);
                    self.current = CurrentResponse::Starting {
                        previous: frame.previous_response_id,
                        begin: begin.boxed_local(),
                    };
                }
                Err(problem) => self.reject(frame.previous_response_id, &problem).await?,
            }
        }
        Ok(())
    }

    async fn handle_frame(&mut self, frame: Incoming) -> Result<(), DisconnectReason> {
        match self.link.accept(frame, Instant::now()).await? {
            Some(ClientMessage::Text(text)) => self.queue_frame(text).await,
            Some(ClientMessage::Binary) => {
                let message = "Frames must be text, not binary.";
                self.send_error(&V1Error::new(400, "invalid_event", message))
                    .await
            }
            None => Ok(()),
        }
    }

    async fn queue_frame(&mut self, text: ByteString) -> Result<(), DisconnectReason> {
        let n_bytes: usize = self.queued_frames.iter().map(|it| it.len()).sum();
        let is_full =
            self.queued_frames.len() == MAX_QUEUED_FRAMES || n_bytes + text.len() > MAX_BODY_BYTES;
        if is_full {
            let message = "Too many requests are queued on this connection.";
            return self
                .send_error(&V1Error::new(429, "rate_limited", message))
                .await;
        }
        self.queued_frames.push_back(text);
        Ok(())
    }

    fn apply_control(&mut self, next: NextItem) -> Result<(), DisconnectReason> {
        let end = match next {
            NextItem::Control(order) => socket_caller::disconnect_reason(self.caller, order),
            // A control message may be among those that were dropped.
            NextItem::Overflow => Some(DisconnectReason::ClosedByServer(1013, "try again")),
            _ => None,
        };
        end.map_or(Ok(()), Err)
    }

    /// Applies a change of the current response.
    async fn apply_progress(&mut self, progress: ResponseProgress) -> Result<(), DisconnectReason> {
        match progress {
            ResponseProgress::Started(speaking) => {
                self.current = CurrentResponse::Active(speaking);
                Ok(())
            }
            ResponseProgress::Rejected(previous, problem) => {
                self.current = CurrentResponse::None;
                self.reject(previous, &problem).await
            }
            ResponseProgress::Event(event) => {
                if event.is_terminal() {
                    self.finish_response(&event);
                }
                self.link.send(event.json.into()).await
            }
            // The client reads too slowly: disconnect without a terminal event, so that it cannot
            // treat the stream as complete.
            ResponseProgress::StreamLost => Err(DisconnectReason::ClosedByServer(4008, "slow")),
        }
    }

    /// Shutdown: sends the events that are available now, including a terminal one, then closes.
    async fn send_rest_and_close(&mut self) -> Result<(), DisconnectReason> {
        while let Some(progress) = self.current.next_progress().now_or_never() {
            self.apply_progress(progress).await?;
        }
        Err(DisconnectReason::ClosedByServer(1012, "restart"))
    }

    /// Remembers the items of a response that is not stored.
    fn finish_response(&mut self, event: &EncodedEvent) {
        let CurrentResponse::Active(ended) =
            std::mem::replace(&mut self.current, CurrentResponse::None)
        else {
            return;
        };
        let response = match event.decode() {
            Some(StreamEvent::Completed(it) | StreamEvent::Incomplete(it)) => it.response,
            _ => return self.forget_response(ended.previous_response_id.as_deref()),
        };
        if let Some(mut items) = ended.prior_items {
            items.extend(response.output.iter().map(OutputItem::to_value));
            self.history.insert(&response.id, items);
        }
    }

    /// Reports a rejected request and forgets the response that it would have continued.
    async fn reject(
        &mut self,
        previous: Option<String>,
        problem: &V1Error,
    ) -> Result<(), DisconnectReason> {
        self.forget_response(previous.as_deref());
        self.send_error(problem).await
    }

    fn forget_response(&mut self, previous: Option<&str>) {
        if let Some(previous) = previous {
            self.history.remove(previous);
        }
    }

    async fn send_error(&mut self, problem: &V1Error) -> Result<(), DisconnectReason> {
        self.link.send(ws_frames::error_frame(problem)).await
    }
}

fn require_access(found: ApiResult<bool>) -> Result<(), DisconnectReason> {
    match found {
        Ok(true) => Ok(()),
        Ok(false) => Err(DisconnectReason::ClosedByServer(4001, "key revoked")),
        Err(_) => Err(DisconnectReason::ClosedByServer(1013, "try again")),
    }
}

fn connection_limit_error() -> V1Error {
    let message = "This connection has reached its maximum age. Open a new one.";
    V1Error::new(400, "websocket_connection_limit_reached", message)
}
