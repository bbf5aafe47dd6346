//! Builds [`App`], the components that all handlers share, from the settings: locks, opens and
//! migrates the database, adds the built-in providers, and creates engines, limits and metrics.

use std::sync::Arc;

use agent::tools;
use agent::tools::builtin::web_fetch::WebFetchTool;
use agent::tools::builtin::web_search;
use agent::tools::builtin::web_search::WebSearchTool;
use agent::tools::executor::ToolExecutor;
use agent::tools::mcp::tool_cache::McpToolCache;
use agent::tools::tool_runtime::ToolRuntime;
use agent::tools::web_fetcher::WebFetcher;
use anyhow::Context as _;
use base::clock::{Clock, Timestamp};
use base::shutdown::Shutdown;
use llm::demo::model::TYPING_SPEED;
use llm::discovery;
use llm::discovery::ServerAddress;
use llm::registry::ProviderRegistry;
use outbound_http::client::{OutboundClient, Resolver, SystemResolver};
use prometheus_client::collector::Collector;
use realtime::hub::Hub;
use realtime::presence::Presence;
use realtime::socket_timeouts::SocketTimeouts;
use realtime::typing::Typing;
use reqwest::Url;

use crate::accounts::password::Passwords;
use crate::cluster;
use crate::config::Config;
use crate::conversations::chats::import_leases::ImportServices;
use crate::db::clock_offset;
use crate::db::connect::{Db, DbOptions};
use crate::db::sqlite::ownership::Ownership;
use crate::db::sqlite::{file_lock, file_permissions, ownership};
use crate::memories::embedding::embedding_job::EmbeddingJob;
use crate::memories::embedding::memory_embedding::MemoryEmbedder;
use crate::memories::embedding::refused_texts::RefusedTexts;
use crate::memories::learning::learning_job::LearningJob;
use crate::memories::learning::message_learning::LearningServices;
use crate::memories::metrics::embedding_metrics::EmbeddingMetrics;
use crate::memories::models::memory_models::MemoryModels;
use crate::providers::encryption::SecretCipher;
use crate::providers::provider_factory::ProviderFactory;
use crate::providers::{builtin_providers, encryption};
use crate::rate_limit::body_timeouts::BodyTimeouts;
use crate::rate_limit::connections::Connections;
use crate::rate_limit::server_limits::RateLimits;
use crate::responses::embeddings::embedding_relay::EmbeddingRelay;
use crate::responses::engine::ResponseEngine;
use crate::responses::services::ResponseServices;
use crate::runs::cluster_receiver::RunClusterReceiver;
use crate::runs::engine::RunEngine;
use crate::runs::services::{RunServices, RunSettings};
use crate::telemetry::metrics::{GaugeFn, MetricsRegistry};
use crate::telemetry::process_metrics;

/// Everything a handler may need. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct App {
    pub config: Arc<Config>,
    pub clock: Clock,
    /// When this process started.
    pub started_at: Timestamp,
    pub shutdown: Shutdown,
    pub db: Db,
    pub hub: Hub,
    pub presence: Presence,
    /// Ping intervals and timeouts of sockets.
    pub socket_timeouts: SocketTimeouts,
    /// Timeouts for reading request bodies.
    pub body_timeouts: BodyTimeouts,
    /// Open HTTP connections.
    pub connections: Arc<Connections>,
    pub typing: Typing,
    pub engine: RunEngine,
    /// Imports of chats and spaces.
    pub imports: ImportServices,
    /// Learning from messages.
    pub learning: LearningJob,
    /// Model calls for memories and summaries.
    pub memory_models: MemoryModels,
    /// Embeds memories.
    pub embedding: EmbeddingJob,
    /// HTTP client for addresses that members give.
    pub web: WebFetcher,
    /// Operations behind `/v1/responses`.
    pub responses: ResponseEngine,
    /// Executes `/v1/embeddings`.
    pub embedding_relay: EmbeddingRelay,
    pub limits: Arc<RateLimits>,
    pub passwords: Passwords,
    /// Creates model clients from provider rows and encrypts their API keys.
    pub models: ProviderFactory,
    /// Usual addresses of model servers on this machine.
    pub server_addresses: Arc<Vec<ServerAddress>>,
    /// Metrics of all components.
    pub metrics: Arc<MetricsRegistry>,
    /// Holds the lock on the SQLite file until the last clone is dropped.
    _ownership: Option<Arc<Ownership>>,
}

impl App {
    /// Opens the database, migrates it and adds the built-in providers. Must be called on the main
    /// runtime.
    ///
    /// # Errors
    /// Returns what keeps the server from starting, as a sentence for the operator.
    pub async fn build(config: Config, clock: Clock) -> anyhow::Result<Self> {
        Self::build_with_resolver(config, clock, Arc::new(SystemResolver)).await
    }

    /// Like [`App::build`], with another DNS resolver.
    ///
    /// # Errors
    /// Returns what keeps the server from starting, as a sentence for the operator.
    pub async fn build_with_resolver(
        config: Config,
        clock: Clock,
        resolver: Arc<dyn Resolver>,
    ) -> anyhow::Result<Self> {
        cluster::check_settings(&config)?;
        let egress = OutboundClient::new(resolver.clone(), config.allow_private_providers)?;
        check_environment_provider(&config, &egress)?;
        let ownership = acquire_database_file(&config, &clock).await?;
        let db = Db::connect(&database_options(&config))
            .await
            .context("the database cannot be opened")?;
        db.mark_in_use()
            .await
            .context("the database cannot be written")?;
        db.migrate()
            .await
            .context("the database cannot be migrated")?;
        // After the database: if the secret existed first, an empty database file would look like a
        // loss.
        let sealer = build_sealer(&config)?;
        file_permissions::restrict_folder(&config.data_dir);
        clock_offset::measure(&db, &clock).await;
        seed_providers(&config, &db, &sealer, &clock).await?;

        let registry = ProviderRegistry::new(egress, TYPING_SPEED, config.public_url.clone());
        let models = ProviderFactory::new(registry, sealer);
        let hub = Hub::with_bus(cluster::create_bus(&config));
        let shutdown = Shutdown::new();
        let heartbeat = config.run_heartbeat;
        let imports = ImportServices::new(db.clone(), clock.clone(), shutdown.clone(), heartbeat);
        imports.recover_at_start().await?;
        if let Some(row) = ownership.as_ref().and_then(|it| it.instance_lock.clone()) {
            shutdown.spawn(row.run_heartbeat(db.clone(), clock.clone(), shutdown.clone()));
        }
        let web = WebFetcher {
            client: OutboundClient::for_members(resolver.clone(), &config.allowed_private_hosts)?,
        };
        let mcp_tool_cache = McpToolCache::new(web.client.clone());
        let tool_runtime = build_tool_runtime(&config, &web, resolver, &clock)?;
        let engine = RunEngine::new(RunServices::new(
            db.clone(),
            hub.clone(),
            clock.clone(),
            shutdown.clone(),
            models.clone(),
            (tool_runtime.clone(), mcp_tool_cache),
            RunSettings::new(&config),
        ));
        let memory_models = MemoryModels::new(
            db.clone(),
            models.clone(),
            engine.context().settings.call_limits,
        );
        let learning = LearningJob::new(
            LearningServices {
                db: db.clone(),
                clock: clock.clone(),
                models: memory_models.clone(),
                indexes: engine.context().prompt_caches.memories.clone(),
                events: engine.context().memory_events.clone(),
                node: engine.context().node.clone(),
                heartbeat: config.run_heartbeat,
                stale_after: config.run_stale_after,
            },
            shutdown.clone(),
        );
        let embedding = EmbeddingJob::new(
            MemoryEmbedder {
                db: db.clone(),
                clock: clock.clone(),
                models: models.clone(),
                shutdown: shutdown.clone(),
                events: engine.context().memory_events.clone(),
                refused: RefusedTexts::default(),
            },
            engine.context().node.clone(),
            (config.run_heartbeat, config.run_stale_after),
        );
        let presence = Presence::start(hub.clone(), &shutdown);
        let typing = Typing::start(hub.clone(), clock.clone(), &shutdown);
        let relay = RunClusterReceiver {
            context: engine.context().clone(),
            presence: presence.clone(),
            typing: typing.clone(),
        };
        let shared_counter = cluster::connect(&config, relay).await?;
        let limits = Arc::new(RateLimits::new(&config.limits, &clock, &shared_counter));
        cluster::run_access_review(&limits, engine.context());
        let connections = Arc::new(Connections::new(&config, process_metrics::max_open_files()));
        let started_at = clock.now();
        let base = (db.clone(), clock.clone(), shutdown.clone());
        let node = engine.context().node.clone();
        // Tool calls of programs must not delay those of spaces.
        let own_runtime = ToolRuntime {
            executor: ToolExecutor::default(),
            ..tool_runtime
        };
        let tools = (own_runtime, engine.context().mcp_tools.clone());
        let responses = ResponseEngine::new(ResponseServices::new(
            base,
            models.clone(),
            tools,
            engine.context().prompt_caches.clone(),
            node,
            &config,
        ));
        let embedding_relay = EmbeddingRelay::new(
            (db.clone(), clock.clone(), shutdown.clone()),
            models.clone(),
            responses.services().call_metrics.clone(),
        );
        let metrics = MetricsRegistry::gather(started_at.0, |registry| {
            hub.metrics().register(registry);
            cluster::register_metrics(hub.bus(), registry);
            db.register_metrics(registry);
            models.metrics.register(registry);
            engine.context().metrics.register(registry);
            engine
                .context()
                .prompt_caches
                .memories
                .metrics
                .register(registry);
            memory_models.register_metrics(registry);
            registry.register_collector(embedding_metrics(&models));
            registry.register_collector(Box::new(responses.services().provider_queues.clone()));
            responses.services().call_metrics.register(registry);
            registry.register_collector(open_sockets_gauge(&limits));
            registry.register_collector(held_runs_gauge(&engine));
        });
        Ok(Self {
            metrics: Arc::new(metrics),
            limits,
            socket_timeouts: SocketTimeouts::default(),
            body_timeouts: BodyTimeouts::default(),
            connections,
            server_addresses: Arc::new(discovery::candidate_addresses(config.bind.port())),
            presence,
            typing,
            passwords: Passwords::new(config.password_hash_kib)?,
            config: Arc::new(config),
            started_at,
            clock,
            shutdown,
            db,
            hub,
            engine,
            imports,
            learning,
            memory_models,
            embedding,
            responses,
            embedding_relay,
            web,
            models,
            _ownership: ownership,
        })
    }
}

fn embedding_metrics(models: &ProviderFactory) -> Box<dyn Collector> {
    let clients = models.embeddings.clone();
    Box::new(EmbeddingMetrics { clients })
}

fn open_sockets_gauge(limits: &Arc<RateLimits>) -> Box<dyn Collector> {
    let limits = limits.clone();
    let read_value = move || limits.sockets.n_open();
    GaugeFn::new("sockets_open", "Open sockets on this node.", read_value)
}

fn held_runs_gauge(engine: &RunEngine) -> Box<dyn Collector> {
    let leases = engine.context().leases.clone();
    let read_value = move || leases.count();
    GaugeFn::new("runs_held", "Runs that this node executes.", read_value)
}

/// Locks the SQLite file for this process; PostgreSQL may be shared.
///
/// # Errors
/// Returns an error if another process holds the file or the file must not be used.
pub async fn acquire_database_file(
    config: &Config,
    clock: &Clock,
) -> anyhow::Result<Option<Arc<Ownership>>> {
    let Some(file) = file_lock::sqlite_file(&config.database_url) else {
        return Ok(None);
    };
    let secret = config.data_dir.join(encryption::SECRET_FILE);
    let ownership = ownership::acquire(&file, &secret, clock.now()).await?;
    Ok(Some(Arc::new(ownership)))
}

/// Returns the database options of these settings.
pub fn database_options(config: &Config) -> DbOptions {
    DbOptions {
        url: config.database_url.to_string(),
        synchronous_full: config.sqlite_synchronous_full,
    }
}

/// Returns a cipher with the configured secret, or with the secret of the data directory.
///
/// # Errors
/// Returns an error if the data directory or its secret cannot be read or created.
pub fn build_sealer(config: &Config) -> anyhow::Result<SecretCipher> {
    if let Some(secret) = &config.secret_key {
        return Ok(SecretCipher::new(&secret.0));
    }
    let dir = &config.data_dir;
    file_lock::create_private_dir(dir)
        .with_context(|| format!("TROUPE_DATA_DIR {} cannot be created", dir.display()))?;
    SecretCipher::from_data_dir(dir)
}

/// Builds the tools that run in this process. Models may read web pages and search the web only if the
/// settings allow.
fn build_tool_runtime(
    config: &Config,
    web: &WebFetcher,
    resolver: Arc<dyn Resolver>,
    clock: &Clock,
) -> anyhow::Result<ToolRuntime> {
    let mut registry = tools::registry::ToolRegistry::builtin(clock.clone());
    if config.web_fetch {
        let fetch = WebFetchTool {
            fetcher: web.clone(),
        };
        registry = registry.with("web_fetch", Arc::new(fetch));
    }
    if let Some(address) = &config.search_url {
        let search = build_web_search(address, resolver)?;
        registry = registry.with(web_search::NAME, Arc::new(search));
    }
    Ok(ToolRuntime {
        registry,
        ..ToolRuntime::default()
    })
}

/// Builds the tool for web searches. In private networks, it reaches only the host of its endpoint.
fn build_web_search(address: &str, resolver: Arc<dyn Resolver>) -> anyhow::Result<WebSearchTool> {
    let context = || format!("TROUPE_SEARCH_URL {address} is not a URL");
    let endpoint = Url::parse(&format!("{address}/search")).with_context(context)?;
    let host = endpoint.host_str().with_context(context)?.to_owned();
    Ok(WebSearchTool {
        client: OutboundClient::for_members(resolver, &[host])?,
        endpoint,
    })
}

/// Checks the provider of the environment, if one is configured.
///
/// # Errors
/// Returns an error if requests to its address are not allowed.
pub fn check_environment_provider(config: &Config, egress: &OutboundClient) -> anyhow::Result<()> {
    let Some(provider) = &config.llm else {
        return Ok(());
    };
    let Err(error) = egress.parse_base_url(&provider.base_url) else {
        return Ok(());
    };
    // The part before an @ may be a password.
    match provider.base_url.contains('@') {
        true => anyhow::bail!("TROUPE_LLM_BASE_URL cannot be used: {error}"),
        false => anyhow::bail!("TROUPE_LLM_BASE_URL is {:?}: {error}", provider.base_url),
    }
}

async fn seed_providers(
    config: &Config,
    db: &Db,
    sealer: &SecretCipher,
    clock: &Clock,
) -> anyhow::Result<()> {
    builtin_providers::verify_encrypted_keys(db.reader(), sealer).await?;
    builtin_providers::insert_demo(db, sealer, clock.now()).await?;
    if let Some(provider) = &config.llm {
        builtin_providers::insert_from_environment(db, sealer, provider, clock.now()).await?;
    }
    Ok(())
}
