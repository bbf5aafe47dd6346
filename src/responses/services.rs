//! Defines `ResponseServices`, which all responses of a node share: the database, providers, tools
//! and leases, and the limits of running responses, readers of event logs and long bodies. Also
//! defines `ResponseSettings`, which is read from the configuration.

use std::sync::Arc;
use std::time::Duration;

use agent::call_limits::CallLimits;
use agent::tools::mcp::tool_cache::McpToolCache;
use agent::tools::tool_runtime::ToolRuntime;
use base::clock::Clock;
use base::ids::UserId;
use base::shutdown::Shutdown;
use leased_jobs::claim_loop::WakeupSignal;
use leased_jobs::concurrency_limit::ConcurrencyLimit;
use leased_jobs::lease::{ActiveLeases, CancelHandle, Lease, LeaseGuard};
use tokio::sync::{Semaphore, watch};

use crate::config::Config;
use crate::db::connect::Db;
use crate::prompt::loading::loader::PromptCaches;
use crate::providers::provider_factory::ProviderFactory;
use crate::responses::provider_calls::ProviderQueues;
use crate::responses::telemetry::call_metrics::CallMetrics;

/// The longest answer in bytes; it is buffered in memory until it is read.
const MAX_TEXT_BYTES: usize = 8 * 1024 * 1024;

/// The most responses that are prepared and inserted at the same time.
const MAX_CONCURRENT_CREATIONS: usize = 8;

/// The most long bodies that are received at the same time: 32 MiB each, 512 MiB in total.
const MAX_BODIES: usize = 16;

/// Notifies the readers of the event log of a response or a run that it has grown.
pub type LogSignal = watch::Sender<()>;

/// The shared services. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct ResponseServices {
    pub db: Db,
    pub clock: Clock,
    pub shutdown: Shutdown,
    pub models: ProviderFactory,
    /// Identifies this process among all that ever used this database.
    pub node: Arc<str>,
    pub settings: ResponseSettings,
    pub foreground_permits: ConcurrencyLimit<UserId>,
    pub background_permits: ConcurrencyLimit<UserId>,
    /// Limits clients that follow background responses; each polls the database.
    pub follower_permits: ConcurrencyLimit<UserId>,
    /// Limits long bodies that are being received.
    pub body_permits: ConcurrencyLimit<UserId>,
    /// The responses that this node runs.
    pub response_leases: ActiveLeases<String, LogSignal>,
    /// Notifies the worker that a response was queued or a permit was released.
    pub queue_signal: WakeupSignal,
    /// The runs of threads that this node executes.
    pub run_leases: ActiveLeases<String, LogSignal>,
    /// Notifies the worker that a run was queued or a permit was released.
    pub run_queue_signal: WakeupSignal,
    /// Limits concurrent creations, so that a burst of requests does not take all database
    /// connections from the spaces.
    pub creation_permits: Arc<Semaphore>,
    /// The cards and memories of spaces, for the prompts of persona models.
    pub prompt_caches: PromptCaches,
    /// The tool lists of MCP servers.
    pub mcp_tools: McpToolCache,
    /// The server-side tools.
    pub tool_runtime: ToolRuntime,
    /// Limits the calls of each provider.
    pub provider_queues: ProviderQueues,
    /// The calls that have ended.
    pub call_metrics: CallMetrics,
}

/// The settings of this module.
#[derive(Clone, Copy, Debug)]
pub struct ResponseSettings {
    /// Whether this node runs background responses.
    pub has_worker: bool,
    pub call_limits: CallLimits,
    pub heartbeat: Duration,
    pub stale_after: Duration,
    pub recovery_interval: Duration,
    /// How long an ended response is kept; `None` keeps it forever.
    pub retention: Option<Duration>,
}

impl ResponseSettings {
    /// Reads the settings from the configuration.
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
    /// Creates the services.
    pub fn new(
        (db, clock, shutdown): (Db, Clock, Shutdown),
        models: ProviderFactory,
        (tool_runtime, mcp_tools): (ToolRuntime, McpToolCache),
        prompt_caches: PromptCaches,
        node: Arc<str>,
        config: &Config,
    ) -> Self {
        Self {
            call_metrics: CallMetrics::default(),
            prompt_caches,
            mcp_tools,
            db,
            clock,
            shutdown,
            models,
            node,
            settings: ResponseSettings::new(config),
            foreground_permits: limit_of_users(config.responses_max_running),
            background_permits: limit_of_users(config.responses_max_background),
            follower_permits: limit_of_users(config.responses_max_running),
            body_permits: limit_of_users(MAX_BODIES),
            response_leases: ActiveLeases::default(),
            queue_signal: WakeupSignal::default(),
            run_leases: ActiveLeases::default(),
            run_queue_signal: WakeupSignal::default(),
            creation_permits: Arc::new(Semaphore::new(MAX_CONCURRENT_CREATIONS)),
            tool_runtime,
            provider_queues: ProviderQueues::new(config),
        }
    }

    /// Registers a response that this node runs until the guard is dropped. `number` is 0 if the
    /// response has no row.
    pub fn hold_lease(
        &self,
        id: &str,
        number: i64,
        cancel: &CancelHandle,
    ) -> (LeaseGuard<String, LogSignal>, LogSignal) {
        let log_written = LogSignal::default();
        let lease = Lease::new(id.to_owned(), number, cancel.clone(), log_written.clone());
        (self.response_leases.hold(lease), log_written)
    }

    /// Registers a run of a thread that this node executes until the guard is dropped.
    pub fn hold_run_lease(
        &self,
        id: &str,
        number: i64,
        cancel: &CancelHandle,
    ) -> (LeaseGuard<String, LogSignal>, LogSignal) {
        let log_written = LogSignal::default();
        let lease = Lease::new(id.to_owned(), number, cancel.clone(), log_written.clone());
        (self.run_leases.hold(lease), log_written)
    }

    /// Notifies the readers of the event log of a run that it has grown, if this node executes it.
    pub fn notify_run_readers(&self, id: &str) {
        if let Some(lease) = self.run_leases.find(&id.to_owned()) {
            lease.data.send_replace(());
        }
    }
}

/// Creates a limit of which one user gets three quarters, as long as the last quarter is free for
/// other users.
fn limit_of_users(limit: usize) -> ConcurrencyLimit<UserId> {
    ConcurrencyLimit::new(limit).with_unshared(limit - limit.div_ceil(4))
}
