//! Runs one socket of `/ws` as a task with one loop: executes the client's commands, sends events
//! and pings, and closes the connection.
//!
//! **Invariant:** a client's frames are answered one after the other; the next is not read before
//! the last is answered. So at most one answer waits, and a client that sends faster must wait.

use std::sync::Arc;
use std::time::Duration;

use actix_web::web::Data;
use base::ids::{MembershipId, SpaceId};
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use realtime::envelope;
use realtime::envelope::{Event, Protocol};
use realtime::outbox::Outbox;
use serde_json::Number;
use tokio::time::{Instant, timeout};

use crate::app::App;
use crate::web::error::{ApiError, ApiResult};
use crate::web::live::authorization::AccessGuard;
use crate::web::live::command::{ClientCommand, ClientFrame, InvalidFrame, Subscribe};
use crate::web::live::pending_subscription::PendingSubscription;
use crate::web::live::queries::OpenedSubscription;
use crate::web::live::subscriptions::Subscriptions;
use crate::web::live::{command, queries, server_frames};
use crate::web::ws::connection::{DisconnectReason, Incoming, WsReceiver};
use crate::web::ws::keepalive::FrameRateLimit;
use crate::web::ws::socket_caller::SocketCaller;
use crate::web::ws::socket_link;
use crate::web::ws::socket_link::{ClientMessage, SocketLink};

/// Subscriptions of one socket.
const MAX_SUBSCRIPTIONS: usize = 200;

/// How long a peer may take to receive the events that wait when the connection closes.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Who opened a connection, and what it speaks.
#[derive(Clone, Copy, Debug)]
pub struct LiveClient {
    pub caller: SocketCaller,
    pub protocol: Protocol,
}

/// A connection, from its upgrade to its end.
pub struct LiveSession {
    pub(super) app: Data<App>,
    pub(super) caller: SocketCaller,
    pub(super) protocol: Protocol,
    pub(super) outbox: Arc<Outbox>,
    pub(super) link: SocketLink,
    pub(super) subscriptions: Subscriptions,
    /// The subscription whose snapshot is being read.
    pub(super) pending: Option<Box<PendingSubscription>>,
    /// The query whose result a command waits for.
    query: Option<LocalBoxFuture<'static, QueryResult>>,
    pub(super) access_guard: AccessGuard,
    frame_rate: FrameRateLimit,
}

/// The result of a query that a command waited for.
enum QueryResult {
    Opened(ApiResult<Box<OpenedSubscription>>),
    Space(Number, SpaceId, ApiResult<Option<MembershipId>>),
    Typing(Number, command::TypingCommand, ApiResult<MembershipId>),
}

/// Serves a connection until it ends.
pub async fn serve(app: Data<App>, client: LiveClient, mut receiver: WsReceiver, link: SocketLink) {
    let LiveClient { caller, protocol } = client;
    let outbox = Outbox::new();
    let mut session = LiveSession {
        subscriptions: Subscriptions::new(app.clone(), caller.user, outbox.clone()),
        access_guard: AccessGuard::start(app.clone(), caller),
        frame_rate: FrameRateLimit::new(app.socket_timeouts),
        app,
        caller,
        protocol,
        outbox,
        link,
        pending: None,
        query: None,
    };
    let disconnect = session.run(&mut receiver).await;
    let LiveSession {
        link,
        subscriptions,
        ..
    } = session;
    // Ends presence and typing before the closing handshake, which may need a while.
    drop(subscriptions);
    link.close(disconnect, receiver).await;
}

impl LiveSession {
    async fn run(&mut self, receiver: &mut WsReceiver) -> DisconnectReason {
        let outbox = self.outbox.clone();
        let stopping = self.app.shutdown.stopping.clone().cancelled_owned();
        let alarm = tokio::time::sleep_until(self.link.next_check());
        tokio::pin!(stopping, alarm);
        loop {
            let is_free = self.is_idle();
            let step = tokio::select! {
                next = outbox.next() => self.deliver_batch(next).await,
                incoming = receiver.receive(), if is_free => self.handle_frame(incoming).await,
                found = socket_link::take_result(&mut self.query) => self.apply_query_result(found).await,
                reviewed = self.access_guard.next_result() => self.apply_review(reviewed).await,
                () = alarm.as_mut() => self.link.check_peer().await,
                () = stopping.as_mut() => self.flush_before_close().await,
            };
            if let Err(end) = step {
                return end;
            }
            if alarm.is_elapsed() {
                alarm.as_mut().reset(self.link.next_check());
            }
            if self.is_idle() {
                self.access_guard
                    .recheck_pending(&self.app, self.caller, &self.subscriptions);
            }
        }
    }

    /// Sends the events that wait in the outbox, for a limited time, because the server is shutting
    /// down.
    async fn flush_before_close(&mut self) -> Result<(), DisconnectReason> {
        let flush = async {
            while let Some(next) = self.outbox.try_next() {
                self.deliver(next).await?;
            }
            Ok(())
        };
        match timeout(FLUSH_TIMEOUT, flush).await {
            Ok(Err(end)) => Err(end),
            _ => Err(DisconnectReason::ClosedByServer(1012, "restart")),
        }
    }

    async fn handle_frame(&mut self, incoming: Incoming) -> Result<(), DisconnectReason> {
        let now = Instant::now();
        match self.link.accept(incoming, now).await? {
            Some(ClientMessage::Text(text)) => {
                self.handle_command(command::parse(&text), now).await
            }
            Some(ClientMessage::Binary) => {
                let error = ApiError::new(400, "invalid_type", "Frames must be text, not binary.");
                self.handle_command(Err(InvalidFrame { id: None, error }), now)
                    .await
            }
            None => Ok(()),
        }
    }

    /// Executes the command of a frame, or answers with an error. A frame over the rate limit is
    /// refused.
    async fn handle_command(
        &mut self,
        frame: Result<ClientFrame, InvalidFrame>,
        now: Instant,
    ) -> Result<(), DisconnectReason> {
        match (frame, self.frame_rate.acquire(now)) {
            (Ok(frame), Ok(())) => self.apply_command(frame).await,
            (Err(InvalidFrame { id, error }), Ok(())) => self.send_error(id, error).await,
            (frame, Err(wait)) => {
                let id = frame.map_or_else(|it| it.id, |it| Some(it.id));
                let error = "Too many frames. At most 60 in 10 seconds are allowed.";
                let error = ApiError::rate_limited(wait.as_secs() + 1, error);
                self.send_error(id, error).await
            }
        }
    }

    async fn apply_command(
        &mut self,
        ClientFrame { id, command }: ClientFrame,
    ) -> Result<(), DisconnectReason> {
        match command {
            ClientCommand::Subscribe(it) => return self.subscribe(id, it).await,
            ClientCommand::SubscribeSpace(it) => {
                if self.is_full() && !self.subscriptions.contains_space(it.space_id) {
                    return self.send_error(Some(id), too_many()).await;
                }
                let check = queries::check_space_access(self.app.clone(), self.caller, it.space_id);
                let found = check.map(move |found| QueryResult::Space(id, it.space_id, found));
                self.query = Some(found.boxed_local());
                return Ok(());
            }
            ClientCommand::Typing(it) => {
                let check =
                    queries::require_typing(self.app.clone(), self.caller, it.conversation_id);
                let found = check.map(move |found| QueryResult::Typing(id, it, found));
                self.query = Some(found.boxed_local());
                return Ok(());
            }
            ClientCommand::Unsubscribe(it) => self.subscriptions.remove(it.conversation_id),
            ClientCommand::Away(it) => self.subscriptions.set_away(it.away),
            ClientCommand::Ping => {
                let answer = server_frames::time(&id, self.app.clock.now());
                return self.link.send(answer).await;
            }
        }
        self.link.send(server_frames::ok(&id)).await
    }

    async fn subscribe(&mut self, frame_id: Number, it: Subscribe) -> Result<(), DisconnectReason> {
        let conversation = it.conversation_id;
        if self.is_full() && !self.subscriptions.contains(conversation) {
            return self.send_error(Some(frame_id), too_many()).await;
        }
        self.subscriptions.start(conversation);
        self.pending = Some(Box::new(PendingSubscription::new(frame_id, conversation)));
        let (app, caller) = (self.app.clone(), self.caller);
        let open = queries::open(app, caller, conversation, it.after_rev);
        self.query = Some(
            open.map(|it| QueryResult::Opened(it.map(Box::new)))
                .boxed_local(),
        );
        Ok(())
    }

    async fn apply_query_result(&mut self, found: QueryResult) -> Result<(), DisconnectReason> {
        match found {
            QueryResult::Opened(opened) => self.apply_opened(opened).await,
            QueryResult::Space(re, space, Ok(membership)) => {
                self.subscriptions.add_space(space, membership);
                self.link.send(server_frames::ok(&re)).await
            }
            QueryResult::Typing(re, it, Ok(membership)) => {
                self.subscriptions
                    .set_typing(it.conversation_id, membership, it.active);
                self.link.send(server_frames::ok(&re)).await
            }
            QueryResult::Space(re, _, Err(error)) | QueryResult::Typing(re, _, Err(error)) => {
                self.send_error(Some(re), error).await
            }
        }
    }

    /// Handles a finished or failed snapshot. The answer waits for the barrier, see
    /// [`PendingSubscription`].
    async fn apply_opened(
        &mut self,
        opened: ApiResult<Box<OpenedSubscription>>,
    ) -> Result<(), DisconnectReason> {
        match (opened, self.pending.as_mut()) {
            (Ok(opened), Some(opening)) => {
                // The barrier before the text: what was published before the barrier is in the text.
                self.outbox.push_barrier(opening.conversation);
                let live = self.app.engine.live_text(opening.conversation);
                opening.set_result(*opened, live, self.protocol);
                Ok(())
            }
            (Err(error), Some(_)) => self.reject_subscribe(error).await,
            // The access ended meanwhile, and the client was informed of that.
            (_, None) => Ok(()),
        }
    }

    /// Answers a failed `subscribe` with its error. After a temporary error, an existing subscription
    /// continues; any other error ends it.
    pub(super) async fn reject_subscribe(
        &mut self,
        error: ApiError,
    ) -> Result<(), DisconnectReason> {
        let Some(pending) = self.pending.take() else {
            return Ok(());
        };
        let conversation = pending.conversation;
        let continues = error.status.is_server_error() && self.subscriptions.contains(conversation);
        match continues {
            true => self.subscriptions.abort(conversation),
            false => self.subscriptions.remove(conversation),
        }
        self.send_error(Some(pending.frame_id.clone()), error)
            .await?;
        match (continues, pending.has_gap) {
            (false, _) => Ok(()),
            (true, true) => self.send_resync(conversation).await,
            (true, false) => self.filter_all(conversation, pending.into_buffered()).await,
        }
    }

    /// Returns whether no command is being executed.
    pub(super) fn is_idle(&self) -> bool {
        self.query.is_none() && self.pending.is_none()
    }

    fn is_full(&self) -> bool {
        self.subscriptions.count() >= MAX_SUBSCRIPTIONS
    }

    pub(super) async fn send_error(
        &mut self,
        re: Option<Number>,
        error: ApiError,
    ) -> Result<(), DisconnectReason> {
        self.link
            .send(server_frames::error(re.as_ref(), &error))
            .await
    }

    pub(super) async fn send(&mut self, event: &impl Event) -> Result<(), DisconnectReason> {
        self.link.send(envelope::encode(event)).await
    }
}

fn too_many() -> ApiError {
    let message =
        format!("A socket can subscribe to at most {MAX_SUBSCRIPTIONS} conversations and spaces.");
    ApiError::new(429, "rate_limited", message)
}
