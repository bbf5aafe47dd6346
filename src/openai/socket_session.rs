//! One connection: a task with one loop. Frames in, one turn at a time, its events out.
//!
//! **Invariant:** a turn belongs to its socket. When the loop ends, however, the turn is cancelled,
//! and what the socket remembered is gone.

use crate::app::App;
use crate::http::connection::DisconnectReason;
use crate::http::connection::Incoming;
use crate::http::connection::WsReceiver;
use crate::http::connection::WsSender;
use crate::http::error::ApiResult;
use crate::http::keepalive::FrameRateLimit;
use crate::http::keepalive::Keepalive;
use crate::http::keepalive::KeepaliveAction;
use crate::http::socket_caller;
use crate::http::socket_caller::SocketCaller;
use crate::ids::UserId;
use crate::openai::body::MAX_BODY_BYTES;
use crate::openai::error::Problem;
use crate::openai::socket_frames;
use crate::openai::socket_turn;
use crate::openai::socket_turn::Step;
use crate::openai::socket_turn::Turn;
use crate::realtime::hub::Hub;
use crate::realtime::outbox::NextItem;
use crate::realtime::outbox::Outbox;
use crate::realtime::topic::Topic;
use crate::responses::fold::Event;
use crate::responses::remembered::Remembered;
use actix_web::web::Data;
use bytestring::ByteString;
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::time::Instant;

/// So many frames wait for the turns before them, of which together no more than one frame may have.
const MOST_WAITING: usize = 8;

/// A connection, from its upgrade to its end.
struct Session {
    app: Data<App>,
    caller: SocketCaller,
    outlet: WsSender,
    orders: Orders,
    /// Whether the key still opens the door: between the look at it and the first order there is a gap.
    review: Option<LocalBoxFuture<'static, ApiResult<bool>>>,
    pulse: Keepalive,
    pings: FrameRateLimit,
    waiting: VecDeque<ByteString>,
    turn: Turn,
    remembered: Remembered,
    /// Its time is over; the turn that runs is the last.
    is_late: bool,
}

/// Hears what is for the person alone, until it goes.
struct Orders {
    hub: Hub,
    user: UserId,
    outbox: Arc<Outbox>,
}

impl Orders {
    fn of(hub: &Hub, user: UserId) -> Self {
        let (hub, outbox) = (hub.clone(), Outbox::new());
        hub.subscribe(Topic::User(user), &outbox);
        Self { hub, user, outbox }
    }
}

impl Drop for Orders {
    fn drop(&mut self) {
        self.hub.unsubscribe(Topic::User(self.user), &self.outbox);
    }
}

/// Serves a connection until it ends.
pub async fn serve(app: Data<App>, caller: SocketCaller, mut inlet: WsReceiver, outlet: WsSender) {
    let review = socket_caller::has_access(app.clone(), caller);
    let mut session = Session {
        orders: Orders::of(&app.hub, caller.user),
        review: Some(review.boxed_local()),
        pulse: Keepalive::new(app.socket_timeouts, Instant::now()),
        pings: FrameRateLimit::new(app.socket_timeouts),
        app,
        caller,
        outlet,
        waiting: VecDeque::new(),
        turn: Turn::None,
        remembered: Remembered::default(),
        is_late: false,
    };
    let end = session.run(&mut inlet).await;
    let Session { outlet, turn, .. } = session;
    // The model stops before the last words are exchanged.
    drop(turn);
    outlet.close(end, inlet).await;
}

impl Session {
    async fn run(&mut self, inlet: &mut WsReceiver) -> DisconnectReason {
        let outbox = self.orders.outbox.clone();
        let draining = self.app.shutdown.draining.clone();
        let stopping = self.app.shutdown.stopping.clone().cancelled_owned();
        let alarm = tokio::time::sleep_until(self.pulse.next_timeout());
        let hour = tokio::time::sleep(self.app.socket_timeouts.v1_session_limit);
        tokio::pin!(stopping, alarm, hour);
        loop {
            if let Err(end) = self.go_on().await {
                return end;
            }
            let (is_idle, is_late) = (self.turn.is_none(), self.is_late);
            let step = tokio::select! {
                heard = inlet.receive() => self.hear(heard).await,
                next = outbox.next() => self.obey(next),
                step = self.turn.next() => self.take(step).await,
                found = reviewed(&mut self.review) => judge(found),
                () = alarm.as_mut() => self.alarm().await,
                () = hour.as_mut(), if !is_late => {
                    self.is_late = true;
                    Ok(())
                }
                () = draining.cancelled(), if is_idle => Err(DisconnectReason::ClosedByServer(1012, "restart")),
                () = stopping.as_mut() => self.put_down().await,
            };
            if let Err(end) = step {
                return end;
            }
            if alarm.is_elapsed() {
                alarm.as_mut().reset(self.pulse.next_timeout());
            }
        }
    }

    /// Begins the next turn if none is under way.
    async fn go_on(&mut self) -> Result<(), DisconnectReason> {
        while self.turn.is_none() {
            if self.is_late {
                self.refuse(&too_late()).await?;
                return Err(DisconnectReason::ClosedByServer(1000, "time is over"));
            }
            let Some(text) = self.waiting.pop_front() else {
                return Ok(());
            };
            let frame = socket_frames::read(&text);
            match frame.spec {
                Ok(spec) => {
                    let known = frame.previous.as_deref();
                    let known = known.and_then(|it| self.remembered.items_of(it));
                    let begin = socket_turn::begin(self.app.clone(), self.caller, spec, known);
                    self.turn = Turn::Beginning {
                        previous: frame.previous,
                        begin: begin.boxed_local(),
                    };
                }
                Err(problem) => self.fail(frame.previous, &problem).await?,
            }
        }
        Ok(())
    }

    async fn hear(&mut self, heard: Incoming) -> Result<(), DisconnectReason> {
        let now = Instant::now();
        self.pulse.on_frame(now);
        match heard {
            Incoming::Text(text) => self.queue(text).await,
            Incoming::Binary => {
                let message = "Frames are texts, not bytes.";
                self.refuse(&Problem::new(400, "invalid_event", message))
                    .await
            }
            // Of a flood of pings only some need an answer.
            Incoming::Ping(payload) => match self.pings.acquire(now) {
                Ok(()) => self.outlet.pong(&payload).await,
                Err(_) => Ok(()),
            },
            Incoming::Pong => Ok(()),
            Incoming::Closed(end) => Err(end),
        }
    }

    async fn queue(&mut self, text: ByteString) -> Result<(), DisconnectReason> {
        let n_bytes: usize = self.waiting.iter().map(|it| it.len()).sum();
        let is_full = self.waiting.len() == MOST_WAITING || n_bytes + text.len() > MAX_BODY_BYTES;
        if is_full {
            let message = "Too much waits already for the turns before it.";
            return self
                .refuse(&Problem::new(429, "rate_limited", message))
                .await;
        }
        self.waiting.push_back(text);
        Ok(())
    }

    fn obey(&mut self, next: NextItem) -> Result<(), DisconnectReason> {
        let end = match next {
            NextItem::Control(order) => socket_caller::disconnect_reason(self.caller, order),
            // An order may be among what was lost.
            NextItem::Overflow => Some(DisconnectReason::ClosedByServer(1013, "try again")),
            _ => None,
        };
        end.map_or(Ok(()), Err)
    }

    /// Takes the next step of the turn.
    async fn take(&mut self, step: Step) -> Result<(), DisconnectReason> {
        match step {
            Step::Begun(speaking) => {
                self.turn = Turn::Speaking(speaking);
                Ok(())
            }
            Step::Refused(previous, problem) => {
                self.turn = Turn::None;
                self.fail(previous, &problem).await
            }
            Step::Said(event) => {
                if event.is_terminal() {
                    self.end_turn(&event);
                }
                self.outlet.send(event.json.into()).await
            }
            // Whoever reads so slowly gets no end, and must not take what came for all.
            Step::Cut => Err(DisconnectReason::ClosedByServer(4008, "slow")),
        }
    }

    /// The house is closed: what the turn has said by now is told, its end with it, and no more.
    async fn put_down(&mut self) -> Result<(), DisconnectReason> {
        while let Some(step) = self.turn.next().now_or_never() {
            self.take(step).await?;
        }
        Err(DisconnectReason::ClosedByServer(1012, "restart"))
    }

    /// Remembers what a response said that is stored nowhere.
    fn end_turn(&mut self, event: &Event) {
        let Turn::Speaking(ended) = std::mem::replace(&mut self.turn, Turn::None) else {
            return;
        };
        if event.kind == "response.failed" {
            return self.forget(ended.previous.as_deref());
        }
        let Some(mut items) = ended.before else {
            return;
        };
        let mut event: Value = serde_json::from_str(&event.json).unwrap_or_default();
        let mut response = event["response"].take();
        if let Value::Array(output) = response["output"].take() {
            items.extend(output);
        }
        if let Some(id) = response["id"].as_str() {
            self.remembered.keep(id, items);
        }
    }

    /// A turn that could not be taken. What it went on from goes with it.
    async fn fail(
        &mut self,
        previous: Option<String>,
        problem: &Problem,
    ) -> Result<(), DisconnectReason> {
        self.forget(previous.as_deref());
        self.refuse(problem).await
    }

    fn forget(&mut self, previous: Option<&str>) {
        if let Some(previous) = previous {
            self.remembered.forget(previous);
        }
    }

    async fn refuse(&mut self, problem: &Problem) -> Result<(), DisconnectReason> {
        self.outlet.send(socket_frames::error(problem)).await
    }

    async fn alarm(&mut self) -> Result<(), DisconnectReason> {
        match self.pulse.on_timeout(Instant::now()) {
            KeepaliveAction::Ping => self.outlet.ping().await,
            KeepaliveAction::Silent => Err(DisconnectReason::ClosedByServer(4000, "silent")),
            KeepaliveAction::Nothing => Ok(()),
        }
    }
}

/// What a review found, once there is one.
async fn reviewed(
    review: &mut Option<LocalBoxFuture<'static, ApiResult<bool>>>,
) -> ApiResult<bool> {
    let found = match review {
        Some(review) => review.await,
        None => std::future::pending().await,
    };
    *review = None;
    found
}

fn judge(found: ApiResult<bool>) -> Result<(), DisconnectReason> {
    match found {
        Ok(true) => Ok(()),
        Ok(false) => Err(DisconnectReason::ClosedByServer(4001, "key revoked")),
        Err(_) => Err(DisconnectReason::ClosedByServer(1013, "try again")),
    }
}

fn too_late() -> Problem {
    let message = "This connection has been open for as long as one may be. Open another.";
    Problem::new(400, "websocket_connection_limit_reached", message)
}
