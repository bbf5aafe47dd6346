//! The verbs of the room: what doors call.

use crate::clock::Timestamp;
use crate::generation::usage;
use crate::ids::UserId;
use crate::responses::compaction;
use crate::responses::document::Header;
use crate::responses::event;
use crate::responses::fold::Fold;
use crate::responses::happening::Happening;
use crate::responses::history;
use crate::responses::item;
use crate::responses::item::Side;
use crate::responses::names;
use crate::responses::open_calls;
use crate::responses::parts::Parts;
use crate::responses::pipe;
use crate::responses::pipe::Reader;
use crate::responses::places::Full;
use crate::responses::places::Place;
use crate::responses::preparation;
use crate::responses::preparation::Prepared;
use crate::responses::queue;
use crate::responses::recorder::Recorder;
use crate::responses::refusal::Refusal;
use crate::responses::remote;
use crate::responses::response;
use crate::responses::response::Status;
use crate::responses::spec::Spec;
use crate::responses::stop::Stop;
use crate::responses::turn;
use crate::responses::turn::Left;
use crate::responses::turn::Stage;
use sea_orm::DbErr;
use sea_orm::SqlErr;
use serde_json::Value;
use std::collections::HashSet;
use tokio::sync::oneshot;
use tokio_util::sync::DropGuard;

/// The room behind its doors. Cloning gives another handle on the same one.
#[derive(Clone)]
pub struct Desk {
    pub(super) parts: Parts,
}

/// A response that was begun.
pub enum Begun {
    /// It is being written; its reader leaves by dropping this.
    Streamed(Reader),
    /// It is being written; see [`Whole::wait`].
    Whole(Whole),
    /// It waits for its turn.
    Queued(Value),
}

/// A response that is waited for. Dropping it cancels the response.
pub struct Whole {
    done: oneshot::Receiver<Value>,
    _leaves: DropGuard,
}

impl Whole {
    /// The whole response; `None`: its task has ended without one.
    pub async fn wait(self) -> Option<Value> {
        self.done.await.ok()
    }
}

impl Desk {
    /// Over its parts; nothing runs until [`Desk::start`].
    pub fn new(parts: Parts) -> Self {
        Self { parts }
    }

    /// The parts, for those who read beside the verbs.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Begins a response.
    ///
    /// # Errors
    /// Why not; then nothing was written, and no model was asked.
    pub async fn create(&self, user: UserId, spec: Spec) -> Result<Begun, Refusal> {
        // In a task of its own: whoever leaves while it is being written down must not leave a row
        // behind that nobody works on. What is begun for nobody is cancelled by being dropped.
        let desk = self.clone();
        let creating = async move { desk.create_here(user, spec).await };
        let created = self.parts.shutdown.spawn(creating).await;
        created.unwrap_or_else(|_| Err(DbErr::Custom("its task ended".to_owned()).into()))
    }

    async fn create_here(&self, user: UserId, mut spec: Spec) -> Result<Begun, Refusal> {
        let place = match spec.background {
            true => None,
            false => Some(self.place(user)?),
        };
        let following = match spec.background && spec.stream {
            true => Some(self.place_to_follow(user)?),
            false => None,
        };
        // Never closed: an error would only let one more in.
        let _turn = self.parts.beginnings.acquire().await.ok();
        let prepared = self.prepare(user, &mut spec).await?;
        let now = self.parts.clock.now();
        let id = names::mint(names::RESPONSE);
        match place {
            // What its conversation holds is read when it is claimed.
            None => self.enqueue(user, &id, spec, following, now).await,
            Some(place) => self.start_turn(user, &id, spec, prepared, place, now).await,
        }
    }

    /// How many tokens a request has; no model is asked.
    ///
    /// # Errors
    /// As [`Desk::create`].
    pub async fn count(&self, user: UserId, mut spec: Spec) -> Result<i64, Refusal> {
        let _place = self.place(user)?;
        let prepared = self.prepare(user, &mut spec).await?;
        let request = prepared.request().clone();
        let count = move || usage::prompt_tokens(&request);
        let counted = self.parts.shutdown.main().spawn_blocking(count).await;
        Ok(counted.map_err(|_| DbErr::Custom("tokens could not be counted".to_owned()))?)
    }

    /// A place to receive a long body.
    ///
    /// # Errors
    /// There is none.
    pub fn place_to_receive(&self, user: UserId) -> Result<Place, Refusal> {
        self.parts.bodies.take(user).map_err(refused_by)
    }

    pub(super) fn place(&self, user: UserId) -> Result<Place, Refusal> {
        if self.parts.shutdown.draining.is_cancelled() {
            return Err(Refusal::Full);
        }
        self.parts.foreground.take(user).map_err(refused_by)
    }

    /// A place to read along what another task writes.
    pub(super) fn place_to_follow(&self, user: UserId) -> Result<Place, Refusal> {
        self.parts.followers.take(user).map_err(refused_by)
    }

    async fn prepare(&self, user: UserId, spec: &mut Spec) -> Result<Prepared, Refusal> {
        let db = self.parts.db.reader();
        let answers = preparation::find(&self.parts, user, &spec.model).await?;
        self.parts.workshop.must_have(&spec.kept.tools)?;
        if let Some(previous) = spec.previous.as_ref().filter(|_| spec.prior.is_none()) {
            history::check_previous(db, user, previous).await?;
        }
        let seen = match &spec.conversation {
            Some(conversation) => Some(history::length(db, user, conversation).await?),
            None => None,
        };
        history::resolve(db, user, &mut spec.input).await?;
        item::distinguish(&mut spec.input, HashSet::new());
        let (previous, conversation) = (spec.previous.as_deref(), spec.conversation.as_deref());
        let prior = match &spec.prior {
            Some(prior) => prior.to_vec(),
            None => history::items(db, previous, conversation).await?,
        };
        open_calls::check(&prior, &spec.input)?;
        let sealer = &self.parts.models.cipher;
        let (prior, input) = compaction::opened(sealer, user, prior, spec.input.clone())?;
        let errand = remote::plan(&self.parts, user, &spec.kept.tools, &prior, &input)?;
        let mut prepared =
            preparation::prepare(&self.parts, answers, &spec.kept, prior, input).await?;
        prepared.seen = seen;
        prepared.errand = errand;
        Ok(prepared)
    }

    async fn start_turn(
        &self,
        user: UserId,
        id: &str,
        spec: Spec,
        prepared: Prepared,
        place: Place,
        now: Timestamp,
    ) -> Result<Begun, Refusal> {
        let header = header(id, &spec, now);
        let (stream, store) = (spec.stream, spec.store);
        let recorder = match store {
            true => Some(
                self.insert_begun(user, id, spec, prepared.seen, now)
                    .await?,
            ),
            false => None,
        };
        let stop = Stop::default();
        let hold = self.parts.held.hold(id, &stop, i64::from(store));
        let (writer, reader) = match stream {
            true => Some(pipe::pipe(stop.token.clone())).unzip(),
            false => (None, None),
        };
        let stage = Stage {
            fold: Fold::new(header, Status::InProgress),
            recorder,
            reader: writer,
            was_let_go: false,
            is_background: false,
            was_told: false,
        };
        let turn = prepared.turn(&self.parts, stop.clone(), stage);
        let (tell, done) = oneshot::channel();
        self.parts.shutdown.spawn(async move {
            if let Left::Ended(document) = turn::take(turn).await {
                // Nobody waits for it when it was streamed.
                let _ = tell.send(document);
            }
            drop((place, hold));
        });
        Ok(match reader {
            Some(reader) => Begun::Streamed(reader),
            None => Begun::Whole(Whole {
                done,
                _leaves: stop.token.drop_guard(),
            }),
        })
    }

    /// Writes a response down as begun by this node.
    async fn insert_begun(
        &self,
        user: UserId,
        id: &str,
        spec: Spec,
        seen: Option<i64>,
        now: Timestamp,
    ) -> Result<Recorder, Refusal> {
        let (node, database) = (self.parts.node.clone(), self.parts.db.backend());
        let (input, conversation) = (spec.input.clone(), spec.conversation.clone());
        let (row, id) = (row(user, id, spec, None, now), id.to_owned());
        let begun: Result<Option<response::Model>, Refusal> = self
            .parts
            .db
            .write(move |tx| {
                Box::pin(async move {
                    queue::insert(tx, row).await.map_err(refused)?;
                    // From here on nobody else goes on in it; somebody may have, since it was read.
                    if let (Some(it), Some(seen)) = (conversation, seen)
                        && history::length(tx, user, &it).await? != seen
                    {
                        return Err(Refusal::ConversationLocked);
                    }
                    item::insert(tx, &id, Side::Input, 0, &input).await?;
                    Ok(queue::claim(tx, &id, &node, now, database).await?)
                })
            })
            .await;
        let begun = begun?.ok_or_else(|| DbErr::Custom("a new row is not there".to_owned()))?;
        Ok(Recorder::new(self.parts.db.clone(), &begun))
    }

    async fn enqueue(
        &self,
        user: UserId,
        id: &str,
        spec: Spec,
        following: Option<Place>,
        now: Timestamp,
    ) -> Result<Begun, Refusal> {
        let mut fold = Fold::new(header(id, &spec, now), Status::Queued);
        let events = fold.apply(Happening::Created);
        let input = spec.input.clone();
        let sealed = remote::seal(&self.parts.models.cipher, id, &spec.kept.tools.secrets);
        let (row, own_id) = (row(user, id, spec, sealed, now), id.to_owned());
        let written: Result<(), DbErr> = self
            .parts
            .db
            .write(move |tx| {
                Box::pin(async move {
                    queue::insert(tx, row).await?;
                    item::insert(tx, &own_id, Side::Input, 0, &input).await?;
                    event::append(tx, &own_id, &events).await
                })
            })
            .await;
        written.map_err(refused)?;
        self.parts.bell.notify_one();
        match following {
            Some(place) => Ok(Begun::Streamed(self.follow(id, -1, place))),
            None => Ok(Begun::Queued(fold.document())),
        }
    }
}

fn refused_by(full: Full) -> Refusal {
    match full {
        Full::House => Refusal::Full,
        Full::Share => Refusal::ShareTaken,
    }
}

fn header(id: &str, spec: &Spec, now: Timestamp) -> Header {
    Header {
        id: id.to_owned(),
        created_at: now,
        echo: spec.kept.echo.clone(),
    }
}

fn row(
    user: UserId,
    id: &str,
    spec: Spec,
    sealed: Option<String>,
    now: Timestamp,
) -> response::Model {
    response::Model {
        id: id.to_owned(),
        user_id: user,
        previous_response_id: spec.previous,
        api_conversation_id: spec.conversation,
        status: Status::Queued,
        background: spec.background,
        model: spec.model,
        request: spec.kept,
        error: None,
        incomplete_reason: None,
        usage: None,
        worker_id: None,
        lease: 0,
        attempt: 0,
        heartbeat_at: None,
        cancel_requested_at: None,
        sealed_secrets: sealed,
        created_at: now,
        started_at: None,
        completed_at: None,
        deleted_at: None,
    }
}

/// What a broken rule of the table means to whoever asked.
fn refused(error: DbErr) -> Refusal {
    match error.sql_err() {
        Some(SqlErr::UniqueConstraintViolation(_)) => Refusal::ConversationLocked,
        // It was taken away since it was looked at.
        Some(SqlErr::ForeignKeyConstraintViolation(_)) => Refusal::PreviousNotFound(String::new()),
        _ => Refusal::Database(error),
    }
}
