//! Defines the services that all code of `runs` shares (database, hub, clock, leases, permits and
//! others), and their settings.

use std::sync::Arc;
use std::time::Duration;

use agent::call_limits::CallLimits;
use agent::tools::mcp::tool_cache::McpToolCache;
use agent::tools::tool_runtime::ToolRuntime;
use base::clock::Clock;
use base::shutdown::Shutdown;
use leased_jobs::claim_loop::WakeupSignal;
use realtime::hub::Hub;
use tokio::sync::Notify;

use crate::config::Config;
use crate::conversations::display::markdown::Markdown;
use crate::conversations::text_quota::TextQuota;
use crate::conversations::translations::translation_model::TranslationModel;
use crate::conversations::translations::translation_tasks::{
    TranslationServices, TranslationTasks,
};
use crate::db::backend::Backend;
use crate::db::connect::Db;
use crate::memories::embedding::query_embedding::QueryEmbedder;
use crate::memories::events::memory_announcer::MemoryAnnouncer;
use crate::prompt::loading::loader::PromptCaches;
use crate::providers::provider_factory::ProviderFactory;
use crate::runs::active_jobs::ActiveJobs;
use crate::runs::execution::lease::ActiveRuns;
use crate::runs::execution::live_streams::LiveStreams;
use crate::runs::execution::metrics::RunMetrics;
use crate::runs::execution::permits::Permits;
use crate::runs::scheduling::state::state_cache::StateCache;
use crate::runs::store::step_locks::StepLocks;

/// The shared services of runs. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct RunServices {
    pub db: Db,
    pub hub: Hub,
    pub clock: Clock,
    pub shutdown: Shutdown,
    pub markdown: Arc<Markdown>,
    pub models: ProviderFactory,
    pub wakeup: WakeupSignal,
    pub live_streams: LiveStreams,
    pub leases: ActiveRuns,
    pub permits: Permits,
    pub metrics: RunMetrics,
    /// Built-in tools and their executor.
    pub tool_runtime: ToolRuntime,
    /// Cached tool lists of MCP servers.
    pub mcp_tools: McpToolCache,
    /// Notified when a tool approval was decided.
    pub approval_decided: Arc<Notify>,
    /// Notified when the turn of a person with a deadline began on this node.
    pub turn_began: Arc<Notify>,
    /// Notified when events of other nodes were, or may have been, missed.
    pub check_missed_events: Arc<Notify>,
    /// Id of this process, unique among all that ever used this database.
    pub node: Arc<str>,
    pub settings: RunSettings,
    /// Ensure that the steps of one conversation are announced in the order of their commits.
    pub(super) step_locks: StepLocks,
    /// What this node knows of the states of conversations.
    pub(super) states: StateCache,
    /// What this node knows for the next prompts.
    pub prompt_caches: PromptCaches,
    /// Announces changes of memories and summaries.
    pub memory_events: MemoryAnnouncer,
    /// The background jobs that this node executes.
    pub(super) jobs: ActiveJobs,
    /// Limits how much text a user's spaces may store.
    pub quota: TextQuota,
    /// Translates messages.
    pub translations: TranslationTasks,
}

/// Settings of the runs module.
#[derive(Clone, Copy, Debug)]
pub struct RunSettings {
    /// 0: this node claims no runs and only serves requests.
    pub workers: usize,
    pub max_running: usize,
    /// Maximum number of running runs at one provider.
    pub max_per_provider: usize,
    pub heartbeat: Duration,
    pub stale_after: Duration,
    pub reaper_interval: Duration,
    pub stream_slice: Duration,
    pub call_limits: CallLimits,
    /// Bytes that one user may store; 0 means no limit.
    pub stored_bytes: u64,
}

impl RunSettings {
    /// Reads the settings from the configuration.
    pub fn new(config: &Config) -> Self {
        Self {
            workers: config.workers,
            max_running: config.max_running_runs,
            max_per_provider: config.max_running_per_provider,
            heartbeat: config.run_heartbeat,
            stale_after: config.run_stale_after,
            reaper_interval: config.reaper_interval,
            stream_slice: config.stream_slice,
            call_limits: CallLimits {
                first_chunk: config.llm_first_chunk_timeout,
                idle: config.llm_idle_timeout,
                total: config.run_timeout,
                ..CallLimits::default()
            },
            stored_bytes: config.limits.stored_bytes,
        }
    }
}

impl RunServices {
    /// Builds the services.
    pub fn new(
        db: Db,
        hub: Hub,
        clock: Clock,
        shutdown: Shutdown,
        models: ProviderFactory,
        (tool_runtime, mcp_tools): (ToolRuntime, McpToolCache),
        settings: RunSettings,
    ) -> Self {
        let queries = QueryEmbedder {
            models: models.clone(),
            shutdown: shutdown.clone(),
        };
        let memory_events = MemoryAnnouncer::new(
            db.clone(),
            hub.clone(),
            (clock.clone(), shutdown.clone()),
            models.clone(),
        );
        let markdown = Arc::new(Markdown::new());
        let translations = TranslationTasks::new(TranslationServices {
            db: db.clone(),
            hub: hub.clone(),
            clock: clock.clone(),
            shutdown: shutdown.clone(),
            markdown: markdown.clone(),
            model: TranslationModel::new(db.clone(), models.clone(), settings.call_limits),
            heartbeat: settings.heartbeat,
            stale_after: settings.stale_after,
        });
        Self {
            translations,
            memory_events,
            live_streams: LiveStreams::new(hub.clone()),
            db,
            hub,
            clock,
            shutdown,
            markdown,
            mcp_tools,
            tool_runtime,
            approval_decided: Arc::default(),
            turn_began: Arc::default(),
            models,
            wakeup: WakeupSignal::default(),
            leases: ActiveRuns::default(),
            permits: Permits::default(),
            metrics: RunMetrics::default(),
            check_missed_events: Arc::default(),
            node: format!("node-{}", uuid::Uuid::now_v7().simple()).into(),
            settings,
            step_locks: StepLocks::default(),
            states: StateCache::default(),
            prompt_caches: PromptCaches::new(queries),
            jobs: ActiveJobs::default(),
            quota: TextQuota::new(settings.stored_bytes),
        }
    }

    /// Returns whether this node's clock is usable: on PostgreSQL it has measured its offset to the
    /// database's clock within the stale time. If not, it claims nothing and is not ready.
    pub fn is_clock_synchronized(&self) -> bool {
        let is_alone = self.db.backend() == Backend::Sqlite;
        is_alone || self.clock.is_measured_within(self.settings.stale_after)
    }

    /// Returns how many conversations have a step that runs or waits.
    pub fn n_step_locks(&self) -> usize {
        self.step_locks.count()
    }
}
