//! What the room shares: built once, cloned freely.

use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use tokio::sync::{Notify, Semaphore};

use crate::clock::Clock;
use crate::config::Config;
use crate::db::connect::Db;
use crate::generation::call_limits::CallLimits;
use crate::ids::ProviderId;
use crate::providers::provider_factory::ProviderFactory;
use crate::responses::active_tasks::ActiveTasks;
use crate::responses::concurrency_limit::ConcurrencyLimit;
use crate::shutdown::Shutdown;
use crate::tools::mcp::tool_cache::McpToolCache;
use crate::tools::tool_runtime::ToolRuntime;

/// The longest answer, in bytes; it waits in memory until it is read.
const MAX_TEXT_BYTES: usize = 8 * 1024 * 1024;

/// Responses that are looked up and written down at the same time.
const MAX_CONCURRENT_CREATIONS: usize = 8;

/// Long bodies that are received at the same time: with 32 MiB each, half a GiB.
const MAX_BODIES: usize = 16;

/// Calls that one provider gets from this room at once; the others wait.
const MAX_CALLS_PER_PROVIDER: usize = 64;

/// Cloning gives another handle on the same parts.
#[derive(Clone)]
pub struct ResponseServices {
    pub db: Db,
    pub clock: Clock,
    pub shutdown: Shutdown,
    pub models: ProviderFactory,
    /// This process, among all that ever ran on this database.
    pub node: Arc<str>,
    pub settings: ResponseSettings,
    pub foreground_permits: ConcurrencyLimit,
    pub background_permits: ConcurrencyLimit,
    /// Who read along background responses; each asks the database now and then.
    pub follower_permits: ConcurrencyLimit,
    /// Long bodies that are on their way.
    pub body_permits: ConcurrencyLimit,
    pub active_tasks: ActiveTasks,
    /// Rung when a response is queued, or a place is free again.
    pub queue_signal: Arc<Notify>,
    /// Begun at once: who comes in a crowd waits here, and not for the database's connections, of
    /// which the rooms want some, too.
    pub creation_permits: Arc<Semaphore>,
    /// What servers of tools elsewhere have.
    pub mcp_tools: McpToolCache,
    /// The tools that run here.
    pub tool_runtime: ToolRuntime,
    provider_permits: Arc<DashMap<ProviderId, Arc<Semaphore>>>,
}

/// How the room is run.
#[derive(Clone, Copy, Debug)]
pub struct ResponseSettings {
    /// Whether this node takes background responses.
    pub has_worker: bool,
    pub call_limits: CallLimits,
    pub heartbeat: Duration,
    pub stale_after: Duration,
    pub recovery_interval: Duration,
    /// For how long an ended response is kept; `None`: for ever.
    pub retention: Option<Duration>,
}

impl ResponseSettings {
    /// From what the environment says.
    pub fn new(config: &Config) -> Self {
        let days = config.responses_retention_days;
        Self {
            has_worker: config.workers > 0,
            call_limits: CallLimits {
                first_chunk: config.llm_first_chunk_timeout,
                idle: config.llm_idle_timeout,
                total: config.run_timeout,
                max_text_bytes: MAX_TEXT_BYTES,
                ..CallLimits::default()
            },
            heartbeat: config.run_heartbeat,
            stale_after: config.run_stale_after,
            recovery_interval: config.reaper_interval,
            retention: (days > 0).then(|| Duration::from_secs(days * 24 * 60 * 60)),
        }
    }
}

impl ResponseServices {
    /// Puts the parts together.
    pub fn new(
        (db, clock, shutdown): (Db, Clock, Shutdown),
        models: ProviderFactory,
        (tool_runtime, mcp_tools): (ToolRuntime, McpToolCache),
        node: Arc<str>,
        config: &Config,
    ) -> Self {
        Self {
            mcp_tools: mcp_tools,
            db,
            clock,
            shutdown,
            models,
            node,
            settings: ResponseSettings::new(config),
            foreground_permits: ConcurrencyLimit::new(config.responses_max_running),
            background_permits: ConcurrencyLimit::new(config.responses_max_background),
            follower_permits: ConcurrencyLimit::new(config.responses_max_running),
            body_permits: ConcurrencyLimit::new(MAX_BODIES),
            active_tasks: ActiveTasks::default(),
            queue_signal: Arc::default(),
            creation_permits: Arc::new(Semaphore::new(MAX_CONCURRENT_CREATIONS)),
            tool_runtime: tool_runtime,
            provider_permits: Arc::default(),
        }
    }

    /// The calls that a provider may be asked for at once.
    pub fn provider_permits(&self, provider: ProviderId) -> Arc<Semaphore> {
        let fresh = || Arc::new(Semaphore::new(MAX_CALLS_PER_PROVIDER));
        self.provider_permits
            .entry(provider)
            .or_insert_with(fresh)
            .clone()
    }
}
