//! Configures the engine of a test (settings, members, model) and starts it.

use std::time::Duration;

use agent::call_limits::CallLimits;
use agent::tools::mcp::tool_cache::McpToolCache;
use agent::tools::tool_runtime::ToolRuntime;
use base::clock::Clock;
use base::shutdown::Shutdown;
use realtime::hub::Hub;
use realtime::topic::Topic;
use troupe::db::connect::{Db, DbOptions};
use troupe::providers::encryption::SecretCipher;
use troupe::providers::provider_factory::ProviderFactory;
use troupe::runs::engine::RunEngine;
use troupe::runs::services::{RunServices, RunSettings};
use troupe::spaces::space;

use crate::support::backends::{TestBackend, migrated_database};
use crate::support::engine_test::{EngineTest, TestUser};
use crate::support::event_recorder::EventRecorder;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::postgres_proxy::PostgresProxy;
use crate::support::{fake_postgres_clock, fixtures, model_call};

/// The settings of an engine test before it starts.
pub struct EngineTestBuilder {
    backend: TestBackend,
    cast: Vec<String>,
    rules: Box<dyn FnOnce(&mut space::Model) + Send>,
    settings: RunSettings,
    is_started: bool,
    has_postgres_proxy: bool,
    has_own_clock: bool,
}

impl EngineTest {
    pub fn builder(backend: TestBackend) -> EngineTestBuilder {
        EngineTestBuilder {
            backend,
            cast: vec!["Ada".to_owned()],
            rules: Box::new(|it| it.reply_order = space::ReplyOrder::List),
            settings: settings(),
            is_started: true,
            has_postgres_proxy: false,
            has_own_clock: false,
        }
    }
}

/// Only the dispatcher acts by itself: heartbeats and recovery are longer apart than a test runs.
fn settings() -> RunSettings {
    const NEVER: Duration = Duration::from_secs(3_600);
    RunSettings {
        workers: 1,
        max_running: 64,
        max_per_provider: 64,
        heartbeat: NEVER,
        stale_after: Duration::from_secs(30),
        reaper_interval: NEVER,
        stream_slice: Duration::ZERO,
        call_limits: CallLimits {
            backoff: Duration::from_millis(1),
            ..CallLimits::default()
        },
        stored_bytes: 0,
    }
}

impl EngineTestBuilder {
    /// Sets the characters; the default is Ada.
    pub fn cast(mut self, names: &[&str]) -> Self {
        self.cast = names.iter().map(|it| (*it).to_owned()).collect();
        self
    }

    /// Changes the space; the default reply order is `list`.
    pub fn rules(mut self, change: impl FnOnce(&mut space::Model) + Send + 'static) -> Self {
        let before = self.rules;
        self.rules = Box::new(|it| {
            before(it);
            change(it);
        });
        self
    }

    /// Changes the settings of the node.
    pub fn settings(mut self, change: impl FnOnce(&mut RunSettings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Starts no workers, heartbeats or recovery.
    pub fn not_started(mut self) -> Self {
        self.is_started = false;
        self
    }

    /// On PostgreSQL every statement passes a proxy that records it.
    pub fn with_postgres_proxy(mut self) -> Self {
        self.has_postgres_proxy = self.backend == TestBackend::Postgres;
        self
    }

    /// On PostgreSQL the database gets a clock that the test sets.
    pub fn with_settable_clock(mut self) -> Self {
        self.has_own_clock = self.backend == TestBackend::Postgres;
        self
    }

    pub async fn open(self) -> EngineTest {
        let database = migrated_database(&self.backend).await;
        if self.has_own_clock {
            fake_postgres_clock::install(&database).await;
        }
        let proxy = match self.has_postgres_proxy {
            true => Some(PostgresProxy::start(database.url()).await),
            false => None,
        };
        let db = connect(proxy.as_ref().map_or(database.url(), PostgresProxy::url)).await;
        let upstream = FakeProvider::start().await;
        let clock = Clock::manual();
        let models = models();
        let placed = fixtures::insert_fixtures(
            &db,
            &models.cipher,
            clock.now(),
            &upstream.base_url(),
            &self.cast,
            self.rules,
        )
        .await;
        let hub = Hub::new();
        let events = EventRecorder::subscribe(&hub, Topic::Conversation(placed.conversation));
        let engine = start_node(&db, &hub, &clock, models, self.settings);
        if self.is_started {
            engine.start().await.expect("the engine starts");
        }
        EngineTest {
            user: TestUser {
                membership: placed.human,
                engine: engine.clone(),
                conversation: placed.conversation,
            },
            engine,
            upstream,
            clock,
            db,
            events,
            space: placed.space,
            conversation: placed.conversation,
            postgres_proxy: proxy,
            database,
        }
    }
}

/// Opens a connection pool, like a separate process.
pub async fn connect(url: &str) -> Db {
    let options = DbOptions {
        url: url.to_owned(),
        synchronous_full: false,
    };
    let db = Db::connect(&options).await;
    db.expect("the database of a test can be opened")
}

fn models() -> ProviderFactory {
    ProviderFactory::new(
        model_call::registry(),
        SecretCipher::new("a secret of tests"),
    )
}

/// Builds a node on these connections, with an engine that is not started.
pub fn start_node(
    db: &Db,
    hub: &Hub,
    clock: &Clock,
    models: ProviderFactory,
    settings: RunSettings,
) -> RunEngine {
    RunEngine::new(RunServices::new(
        db.clone(),
        hub.clone(),
        clock.clone(),
        Shutdown::new(),
        models,
        (
            ToolRuntime::default(),
            McpToolCache::new(model_call::egress()),
        ),
        settings,
    ))
}
