//! What the room shares: built once, cloned freely.

use crate::clock::Clock;
use crate::config::Config;
use crate::db::connect::Db;
use crate::generation::call_limits::CallLimits;
use crate::ids::ProviderId;
use crate::providers::provider_factory::ProviderFactory;
use crate::responses::places::Places;
use crate::responses::stop::Held;
use crate::shutdown::Shutdown;
use crate::tools::mcp::tool_cache::McpToolCache;
use crate::tools::tool_runtime::ToolRuntime;
use dashmap::DashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::Semaphore;

/// The longest answer, in bytes; it waits in memory until it is read.
const MAX_TEXT_BYTES: usize = 8 * 1024 * 1024;

/// Responses that are looked up and written down at the same time.
const MAX_BEGINNINGS: usize = 8;

/// Long bodies that are received at the same time: with 32 MiB each, half a GiB.
const MAX_BODIES: usize = 16;

/// Calls that one provider gets from this room at once; the others wait.
const MAX_CALLS_PER_PROVIDER: usize = 64;

/// Cloning gives another handle on the same parts.
#[derive(Clone)]
pub struct Parts {
    pub db: Db,
    pub clock: Clock,
    pub shutdown: Shutdown,
    pub models: ProviderFactory,
    /// This process, among all that ever ran on this database.
    pub node: Arc<str>,
    pub settings: Settings,
    pub foreground: Places,
    pub background: Places,
    /// Who read along background responses; each asks the database now and then.
    pub followers: Places,
    /// Long bodies that are on their way.
    pub bodies: Places,
    pub held: Held,
    /// Rung when a response is queued, or a place is free again.
    pub bell: Arc<Notify>,
    /// Begun at once: who comes in a crowd waits here, and not for the database's connections, of
    /// which the rooms want some, too.
    pub beginnings: Arc<Semaphore>,
    /// What servers of tools elsewhere have.
    pub lists: McpToolCache,
    /// The tools that run here.
    pub workshop: ToolRuntime,
    calls: Arc<DashMap<ProviderId, Arc<Semaphore>>>,
}

/// How the room is run.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Whether this node takes background responses.
    pub works: bool,
    pub watches: CallLimits,
    pub heartbeat: Duration,
    pub stale_after: Duration,
    pub sweep_every: Duration,
    /// For how long an ended response is kept; `None`: for ever.
    pub retention: Option<Duration>,
}

impl Settings {
    /// From what the environment says.
    pub fn new(config: &Config) -> Self {
        let days = config.responses_retention_days;
        Self {
            works: config.workers > 0,
            watches: CallLimits {
                first_chunk: config.llm_first_chunk_timeout,
                idle: config.llm_idle_timeout,
                total: config.run_timeout,
                max_text_bytes: MAX_TEXT_BYTES,
                ..CallLimits::default()
            },
            heartbeat: config.run_heartbeat,
            stale_after: config.run_stale_after,
            sweep_every: config.reaper_interval,
            retention: (days > 0).then(|| Duration::from_secs(days * 24 * 60 * 60)),
        }
    }
}

impl Parts {
    /// Puts the parts together.
    pub fn new(
        (db, clock, shutdown): (Db, Clock, Shutdown),
        models: ProviderFactory,
        (workshop, lists): (ToolRuntime, McpToolCache),
        node: Arc<str>,
        config: &Config,
    ) -> Self {
        Self {
            lists,
            db,
            clock,
            shutdown,
            models,
            node,
            settings: Settings::new(config),
            foreground: Places::new(config.responses_max_running),
            background: Places::new(config.responses_max_background),
            followers: Places::new(config.responses_max_running),
            bodies: Places::new(MAX_BODIES),
            held: Held::default(),
            bell: Arc::default(),
            beginnings: Arc::new(Semaphore::new(MAX_BEGINNINGS)),
            workshop,
            calls: Arc::default(),
        }
    }

    /// The calls that a provider may be asked for at once.
    pub fn calls(&self, provider: ProviderId) -> Arc<Semaphore> {
        let fresh = || Arc::new(Semaphore::new(MAX_CALLS_PER_PROVIDER));
        self.calls.entry(provider).or_insert_with(fresh).clone()
    }
}
