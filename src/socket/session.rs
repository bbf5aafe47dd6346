//! One connection: a task with one loop. Commands in, envelopes out, pings, orders, the end.
//!
//! **Invariant:** a client's frames are answered one after the other; the next is not read before
//! the last is answered. So one answer at most waits, and a client that floods us waits itself.

use crate::app::App;
use crate::http::error::ApiError;
use crate::http::error::ApiResult;
use crate::http::holder::Caller;
use crate::http::pulse::Alarm;
use crate::http::pulse::Pulse;
use crate::http::pulse::Rate;
use crate::http::wire::End;
use crate::http::wire::Heard;
use crate::http::wire::Inlet;
use crate::http::wire::Outlet;
use crate::ids::MembershipId;
use crate::ids::SpaceId;
use crate::realtime::event;
use crate::realtime::event::Event;
use crate::realtime::outbox::Outbox;
use crate::socket::command;
use crate::socket::command::Command;
use crate::socket::command::Frame;
use crate::socket::command::Subscribe;
use crate::socket::command::Unreadable;
use crate::socket::ears::Ears;
use crate::socket::errand;
use crate::socket::errand::Opened;
use crate::socket::frames;
use crate::socket::guard::Guard;
use crate::socket::opening::Opening;
use actix_web::web::Data;
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use serde_json::Number;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio::time::timeout;

/// Subscriptions of one socket.
const MOST_SUBSCRIPTIONS: usize = 200;

/// How long a peer may take over what it is told at the end.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A connection, from its upgrade to its end.
pub struct Session {
    pub(super) app: Data<App>,
    pub(super) caller: Caller,
    pub(super) outbox: Arc<Outbox>,
    pub(super) outlet: Outlet,
    pub(super) ears: Ears,
    /// The subscription that is under way.
    pub(super) opening: Option<Box<Opening>>,
    /// What a command waits for.
    errand: Option<LocalBoxFuture<'static, Found>>,
    pub(super) guard: Guard,
    pulse: Pulse,
    frames: Rate,
    pings: Rate,
}

/// What a command waited for.
enum Found {
    Opened(ApiResult<Box<Opened>>),
    Space(Number, SpaceId, ApiResult<()>),
    Typing(Number, command::Typing, ApiResult<MembershipId>),
}

/// Serves a connection until it ends.
pub async fn serve(app: Data<App>, caller: Caller, mut inlet: Inlet, outlet: Outlet) {
    let outbox = Outbox::new();
    let mut session = Session {
        ears: Ears::new(app.clone(), caller.user, outbox.clone()),
        guard: Guard::begin(app.clone(), caller),
        pulse: Pulse::new(app.socket_timeouts, Instant::now()),
        frames: Rate::new(app.socket_timeouts),
        pings: Rate::new(app.socket_timeouts),
        app,
        caller,
        outbox,
        outlet,
        opening: None,
        errand: None,
    };
    let end = session.run(&mut inlet).await;
    let Session { outlet, ears, .. } = session;
    // Others learn that we are gone before the last words are exchanged.
    drop(ears);
    outlet.close(end, inlet).await;
}

impl Session {
    async fn run(&mut self, inlet: &mut Inlet) -> End {
        let outbox = self.outbox.clone();
        let stopping = self.app.shutdown.stopping.clone().cancelled_owned();
        let alarm = tokio::time::sleep_until(self.pulse.alarm_at());
        tokio::pin!(stopping, alarm);
        loop {
            let is_free = self.is_free();
            let step = tokio::select! {
                next = outbox.next() => self.take(next).await,
                heard = inlet.next(), if is_free => self.hear(heard).await,
                found = outcome(&mut self.errand) => self.found(found).await,
                reviewed = self.guard.outcome() => self.reviewed(reviewed).await,
                () = alarm.as_mut() => self.alarm().await,
                () = stopping.as_mut() => self.last_words().await,
            };
            if let Err(end) = step {
                return end;
            }
            if alarm.is_elapsed() {
                alarm.as_mut().reset(self.pulse.alarm_at());
            }
            if self.is_free() {
                self.guard.settle(&self.app, self.caller, &self.ears);
            }
        }
    }

    /// The house closes. What was told until now is still handed out, to whoever takes it.
    async fn last_words(&mut self) -> Result<(), End> {
        let rest = async {
            while let Some(next) = self.outbox.try_next() {
                self.hand_out(next).await?;
            }
            Ok(())
        };
        match timeout(LAST_WORDS, rest).await {
            Ok(Err(end)) => Err(end),
            _ => Err(End::Ours(1012, "restart")),
        }
    }

    async fn alarm(&mut self) -> Result<(), End> {
        match self.pulse.ring(Instant::now()) {
            Alarm::Ping => self.outlet.ping().await,
            Alarm::Silent => Err(End::Ours(4000, "silent")),
            Alarm::Nothing => Ok(()),
        }
    }

    async fn hear(&mut self, heard: Heard) -> Result<(), End> {
        let now = Instant::now();
        self.pulse.heard(now);
        match heard {
            Heard::Text(text) => self.read(command::parse(&text), now).await,
            Heard::Binary => {
                let error = ApiError::new(400, "invalid_type", "Frames are texts, not bytes.");
                self.read(Err(Unreadable { id: None, error }), now).await
            }
            // Of a flood of pings only some need an answer.
            Heard::Ping(payload) => match self.pings.take(now) {
                Ok(()) => self.outlet.pong(&payload).await,
                Err(_) => Ok(()),
            },
            Heard::Pong => Ok(()),
            Heard::End(end) => Err(end),
        }
    }

    /// Obeys a frame, or says why not; too many are not looked at.
    async fn read(&mut self, frame: Result<Frame, Unreadable>, now: Instant) -> Result<(), End> {
        match (frame, self.frames.take(now)) {
            (Ok(frame), Ok(())) => self.obey(frame).await,
            (Err(Unreadable { id, error }), Ok(())) => self.refuse(id, error).await,
            (frame, Err(wait)) => {
                let id = frame.map_or_else(|it| it.id, |it| Some(it.id));
                let error = "More than 60 frames in 10 seconds are too many.";
                let error = ApiError::rate_limited(wait.as_secs() + 1, error);
                self.refuse(id, error).await
            }
        }
    }

    async fn obey(&mut self, Frame { id, command }: Frame) -> Result<(), End> {
        match command {
            Command::Subscribe(it) => return self.subscribe(id, it).await,
            Command::SubscribeSpace(it) => {
                if self.is_full() && !self.ears.hears_space(it.space_id) {
                    return self.refuse(Some(id), too_many()).await;
                }
                let look = errand::look_into(self.app.clone(), self.caller, it.space_id);
                let found = look.map(move |found| Found::Space(id, it.space_id, found));
                self.errand = Some(found.boxed_local());
                return Ok(());
            }
            Command::Typing(it) => {
                let ask = errand::may_type(self.app.clone(), self.caller, it.conversation_id);
                let found = ask.map(move |found| Found::Typing(id, it, found));
                self.errand = Some(found.boxed_local());
                return Ok(());
            }
            Command::Unsubscribe(it) => self.ears.close(it.conversation_id),
            Command::Away(it) => self.ears.turn(it.away),
            Command::Ping => {
                let answer = frames::time(&id, self.app.clock.now());
                return self.outlet.send(answer).await;
            }
        }
        self.outlet.send(frames::ok(&id)).await
    }

    async fn subscribe(&mut self, re: Number, it: Subscribe) -> Result<(), End> {
        let conversation = it.conversation_id;
        if self.is_full() && !self.ears.hears(conversation) {
            return self.refuse(Some(re), too_many()).await;
        }
        self.ears.prick(conversation);
        self.opening = Some(Box::new(Opening::new(re, conversation)));
        let (app, caller) = (self.app.clone(), self.caller);
        let open = errand::open(app, caller, conversation, it.after_rev);
        self.errand = Some(open.map(|it| Found::Opened(it.map(Box::new))).boxed_local());
        Ok(())
    }

    async fn found(&mut self, found: Found) -> Result<(), End> {
        match found {
            Found::Opened(opened) => self.opened(opened).await,
            Found::Space(re, space, Ok(())) => {
                self.ears.open_space(space);
                self.outlet.send(frames::ok(&re)).await
            }
            Found::Typing(re, it, Ok(seat)) => {
                self.ears.type_in(it.conversation_id, seat, it.active);
                self.outlet.send(frames::ok(&re)).await
            }
            Found::Space(re, _, Err(error)) | Found::Typing(re, _, Err(error)) => {
                self.refuse(Some(re), error).await
            }
        }
    }

    /// The snapshot is there, or refused. The answer waits for the mark: see [`Opening`].
    async fn opened(&mut self, opened: ApiResult<Box<Opened>>) -> Result<(), End> {
        match (opened, self.opening.as_mut()) {
            (Ok(opened), Some(opening)) => {
                // First the mark, then the text: whatever came before the mark is in the text.
                self.outbox.mark(opening.conversation);
                let live = self.app.engine.live_text(opening.conversation);
                opening.found(*opened, live);
                Ok(())
            }
            (Err(error), Some(_)) => self.refuse_opening(error).await,
            // The rights to it were taken away meanwhile, and that is told.
            (_, None) => Ok(()),
        }
    }

    /// Whoever heard the conversation before goes on hearing it, unless there is nothing to be
    /// heard any more: of a trouble that passes nobody has lost a right.
    async fn refuse_opening(&mut self, error: ApiError) -> Result<(), End> {
        let Some(opening) = self.opening.take() else {
            return Ok(());
        };
        let conversation = opening.conversation;
        let goes_on = error.status.is_server_error() && self.ears.hears(conversation);
        match goes_on {
            true => self.ears.relax(conversation),
            false => self.ears.close(conversation),
        }
        self.refuse(Some(opening.re.clone()), error).await?;
        match (goes_on, opening.lost) {
            (false, _) => Ok(()),
            (true, true) => self.resync(conversation).await,
            (true, false) => self.judge_all(conversation, opening.give_back()).await,
        }
    }

    /// No command is under way.
    pub(super) fn is_free(&self) -> bool {
        self.errand.is_none() && self.opening.is_none()
    }

    fn is_full(&self) -> bool {
        self.ears.count() >= MOST_SUBSCRIPTIONS
    }

    pub(super) async fn refuse(&mut self, re: Option<Number>, error: ApiError) -> Result<(), End> {
        self.outlet.send(frames::error(re.as_ref(), &error)).await
    }

    pub(super) async fn tell(&mut self, event: &impl Event) -> Result<(), End> {
        self.outlet.send(event::encode(event)).await
    }
}

/// The result of a task, once there is one.
pub(super) async fn outcome<T>(task: &mut Option<LocalBoxFuture<'static, T>>) -> T {
    let found = match task {
        Some(task) => task.await,
        None => std::future::pending().await,
    };
    *task = None;
    found
}

fn too_many() -> ApiError {
    let most = format!("One socket hears at most {MOST_SUBSCRIPTIONS} conversations and spaces.");
    ApiError::new(429, "rate_limited", most)
}
