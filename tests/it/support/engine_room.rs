//! The engine room without its doors: an engine over a fresh database and a scripted model, a
//! clock that the test advances, and an ear at the loudspeaker.
//!
//! ```text
//! let room = EngineRoom::on(backend).cast(&["Ada"]).rules(|it| it.user_turn_debounce_ms = 500).open().await;
//! room.human.says("Hello.").await;
//! room.clock.advance_ms(500);
//! room.settle().await;
//! assert_eq!(room.answers().await, ["Hello."]);
//! room.close().await;
//! ```

use std::time::Duration;

use sea_orm::ColumnTrait;
use sea_orm::EntityTrait;
use sea_orm::QueryFilter;
use sea_orm::QueryOrder;
use serde_json::Value;
use tokio::time::timeout;
use troupe::clock::Clock;
use troupe::conversations::conversation;
use troupe::conversations::message;
use troupe::db::connect::Db;
use troupe::db::connect::Options;
use troupe::generation::watches::Watches;
use troupe::ids::ConversationId;
use troupe::ids::MembershipId;
use troupe::ids::SpaceId;
use troupe::providers::models::Models;
use troupe::providers::seal::Sealer;
use troupe::realtime::hub::Hub;
use troupe::realtime::topic::Topic;
use troupe::runs::context::Context;
use troupe::runs::context::Settings;
use troupe::runs::engine::Engine;
use troupe::runs::engine::Posted;
use troupe::runs::error::EngineError;
use troupe::runs::run;
use troupe::runs::views::Runtime;
use troupe::shutdown::Shutdown;
use troupe::spaces::membership;
use troupe::spaces::space;

use crate::support::backends::Backend;
use crate::support::backends::TestDatabase;
use crate::support::backends::fresh_database;
use crate::support::eavesdropper::Eavesdropper;
use crate::support::facts::Facts;
use crate::support::furniture;
use crate::support::hearing;
use crate::support::invariants;
use crate::support::model_call;
use crate::support::upstream::server::Upstream;
use crate::support::wait::DEADLINE;

/// What a room is like before anybody enters.
pub struct Blueprint {
    backend: Backend,
    cast: Vec<String>,
    rules: Box<dyn FnOnce(&mut space::Model) + Send>,
    settings: Settings,
    is_started: bool,
}

/// A conversation, and all it stands on.
pub struct EngineRoom {
    pub engine: Engine,
    pub human: Human,
    pub upstream: Upstream,
    pub clock: Clock,
    pub db: Db,
    pub ear: Eavesdropper,
    pub space: SpaceId,
    pub conversation: ConversationId,
    /// Dropped last.
    database: TestDatabase,
}

/// Eve, who sits in the room.
pub struct Human {
    pub seat: MembershipId,
    engine: Engine,
    conversation: ConversationId,
}

impl EngineRoom {
    pub fn on(backend: Backend) -> Blueprint {
        Blueprint {
            backend,
            cast: vec!["Ada".to_owned()],
            rules: Box::new(|it| it.reply_order = space::ReplyOrder::List),
            settings: settings(),
            is_started: true,
        }
    }
}

/// Nothing happens by itself in the span of a test but what the dispatcher does.
fn settings() -> Settings {
    const NEVER: Duration = Duration::from_secs(3_600);
    Settings {
        workers: 1,
        max_running: 64,
        heartbeat: NEVER,
        stale_after: Duration::from_secs(30),
        reaper_interval: NEVER,
        stream_slice: Duration::ZERO,
        watches: Watches {
            backoff: Duration::from_millis(1),
            ..Watches::default()
        },
    }
}

impl Blueprint {
    /// The characters in place of Ada alone.
    pub fn cast(mut self, names: &[&str]) -> Self {
        self.cast = names.iter().map(|it| (*it).to_owned()).collect();
        self
    }

    /// Changes the space; without it the order is `list`.
    pub fn rules(mut self, change: impl FnOnce(&mut space::Model) + Send + 'static) -> Self {
        let before = self.rules;
        self.rules = Box::new(|it| {
            before(it);
            change(it);
        });
        self
    }

    /// Changes how the node is run.
    pub fn settings(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Nothing works, beats or reaps by itself.
    pub fn not_started(mut self) -> Self {
        self.is_started = false;
        self
    }

    pub async fn open(self) -> EngineRoom {
        let database = fresh_database(&self.backend).await;
        let db = Db::connect(&Options {
            url: database.url().to_owned(),
            synchronous_full: false,
        })
        .await
        .expect("a fresh database can be opened");
        db.migrate().await.expect("an empty database takes tables");
        let upstream = Upstream::start().await;
        let clock = Clock::manual();
        let models = models();
        let placed = furniture::place(
            &db,
            &models.sealer,
            clock.now(),
            &upstream.base_url(),
            &self.cast,
            self.rules,
        )
        .await;
        let hub = Hub::new();
        let ear = Eavesdropper::at(&hub, Topic::Conversation(placed.conversation));
        let engine = node(&db, &hub, &clock, models, self.settings);
        if self.is_started {
            engine.start().await.expect("there is nothing to heal");
        }
        EngineRoom {
            human: Human {
                seat: placed.human,
                engine: engine.clone(),
                conversation: placed.conversation,
            },
            engine,
            upstream,
            clock,
            db,
            ear,
            space: placed.space,
            conversation: placed.conversation,
            database,
        }
    }
}

fn models() -> Models {
    Models {
        registry: model_call::registry(),
        sealer: Sealer::new("a secret of tests"),
    }
}

fn node(db: &Db, hub: &Hub, clock: &Clock, models: Models, settings: Settings) -> Engine {
    Engine::new(Context::new(
        db.clone(),
        hub.clone(),
        clock.clone(),
        Shutdown::new(),
        models,
        settings,
    ))
}

impl Human {
    /// Posts; it must be taken.
    pub async fn says(&self, text: &str) -> Posted {
        self.tries_to_say(text).await.expect("the post is taken")
    }

    pub async fn tries_to_say(&self, text: &str) -> Result<Posted, EngineError> {
        self.says_once(text, None).await
    }

    /// Posts under a `client_id`.
    pub async fn says_once(
        &self,
        text: &str,
        client_id: Option<&str>,
    ) -> Result<Posted, EngineError> {
        let client_id = client_id.map(str::to_owned);
        self.engine
            .post_message(
                self.conversation,
                self.seat,
                text.to_owned(),
                client_id,
                Vec::new(),
            )
            .await
    }
}

impl EngineRoom {
    /// Another node on the same database and the same models, not started, nobody listens to it.
    pub fn another_node(&self) -> Engine {
        self.another_node_with(|_| {})
    }

    pub fn another_node_with(&self, change: impl FnOnce(&mut Settings)) -> Engine {
        let context = self.engine.context();
        let mut settings = context.settings;
        change(&mut settings);
        node(
            &self.db,
            &Hub::new(),
            &self.clock,
            context.models.clone(),
            settings,
        )
    }

    /// The seat of a character.
    pub async fn seat(&self, name: &str) -> membership::Model {
        let found = membership::Entity::find()
            .filter(membership::Column::SpaceId.eq(self.space))
            .filter(membership::Column::CachedDisplayName.eq(name))
            .one(self.db.reader())
            .await
            .expect("the database answers");
        found.expect("a seat of the cast")
    }

    /// Another conversation of the space, of the same cast.
    pub async fn another_conversation(&self) -> ConversationId {
        furniture::conversation(&self.db, self.space, self.clock.now()).await
    }

    /// The same human in another conversation.
    pub fn human_in(&self, conversation: ConversationId) -> Human {
        Human {
            seat: self.human.seat,
            engine: self.engine.clone(),
            conversation,
        }
    }

    /// Changes the rules of the space past the doors; the schedule is not told.
    pub async fn change_rules(&self, change: impl FnOnce(&mut space::Model)) {
        furniture::change_space(&self.db, self.space, change).await;
    }

    /// Changes a seat past the doors; the schedule is not told.
    pub async fn change_seat(&self, name: &str, change: impl FnOnce(&mut membership::Model)) {
        let seat = self.seat(name).await;
        furniture::change_seat(&self.db, seat, change).await;
    }

    /// All runs, in the order in which they were planned.
    pub async fn runs(&self) -> Vec<run::Model> {
        let all = run::Entity::find()
            .filter(run::Column::ConversationId.eq(self.conversation))
            .order_by_asc(run::Column::Id)
            .all(self.db.reader())
            .await;
        all.expect("the database answers")
    }

    /// The one run there is.
    pub async fn only_run(&self) -> run::Model {
        let mut runs = self.runs().await;
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs.remove(0)
    }

    /// The timeline, hidden messages too.
    pub async fn messages(&self) -> Vec<message::Model> {
        let all = message::Entity::find()
            .filter(message::Column::ConversationId.eq(self.conversation))
            .order_by_asc(message::Column::Seq)
            .all(self.db.reader())
            .await;
        all.expect("the database answers")
    }

    /// What the characters said.
    pub async fn answers(&self) -> Vec<String> {
        let all = self.messages().await.into_iter();
        all.filter(|it| it.role == message::Role::Assistant)
            .map(|it| it.content)
            .collect()
    }

    /// The conversation's row.
    pub async fn row(&self) -> conversation::Model {
        let row = conversation::Entity::find_by_id(self.conversation)
            .one(self.db.reader())
            .await;
        row.expect("the database answers")
            .expect("the conversation")
    }

    pub async fn runtime(&self) -> Runtime {
        let runtime = self.engine.runtime(self.conversation).await;
        runtime.expect("the database answers")
    }

    /// The database, read past the engine.
    pub async fn facts(&self) -> Facts {
        Facts::open(&self.database).await
    }

    /// Waits until nothing runs and nothing is due, and everything was told.
    pub async fn settle(&self) {
        let settled = timeout(DEADLINE, async {
            while !self.is_settled().await {
                self.ear.next_frame_or_a_moment().await;
            }
        });
        if settled.await.is_err() {
            let runtime = self.runtime().await;
            panic!("it never settles: {runtime:?}\n{:#?}", self.ear.told());
        }
    }

    async fn is_settled(&self) -> bool {
        let rev = self.row().await.rev;
        let runtime = self.runtime().await;
        let now = self.clock.now();
        let is_due = |it: &run::Model| it.run_after.is_none_or(|at| at <= now);
        runtime.running.is_none()
            && !runtime.queued.as_ref().is_some_and(is_due)
            && self.engine.context().leases.count() == 0
            && self.ear.heard_up_to(rev)
    }

    /// Stops the node and holds everything that happened to the laws.
    pub async fn close(self) {
        self.ends().await;
    }

    /// The same; gives all that was heard.
    pub async fn ends(self) -> Vec<Value> {
        let mut facts = self.facts().await;
        let shutdown = &self.engine.context().shutdown;
        shutdown.draining.cancel();
        shutdown.stopping.cancel();
        let ended = timeout(DEADLINE, shutdown.wait()).await;
        ended.expect("every task ends with its node");
        let log = self.ear.log();
        let mut broken = invariants::at_any_instant(&mut facts).await;
        broken.extend(hearing::breaches(&log));
        broken.extend(self.ear.breaches());
        assert!(broken.is_empty(), "{}\n{log:#?}", broken.join("\n"));
        self.db.close().await;
        log
    }
}
