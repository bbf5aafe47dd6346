//! Connects this node to the others over Redis (settings check, event bus, shared counters, ping),
//! and starts the periodic checks for missed events and lost access, and the renewal of socket
//! permits.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use base::clock::Clock;
use base::shutdown::Shutdown;
use prometheus_client::registry::Registry;
use realtime::cluster::bus::ClusterBus;
use realtime::cluster::redis_link;
use realtime::cluster::redis_link::ClusterSettings;
use realtime::cluster::shared_counter::SharedCounter;

use crate::config::Config;
use crate::db::backend::Backend;
use crate::rate_limit::server_limits::RateLimits;
use crate::rate_limit::socket_limit::RENEW_INTERVAL;
use crate::runs::cluster_receiver::RunClusterReceiver;
use crate::runs::reading::missed_events;
use crate::runs::services::RunServices;
use crate::spaces::maintenance::access_review;
use crate::spaces::maintenance::access_review::AccessReviewer;

/// An event that arrives before its predecessor waits this long for it.
const REORDER_TIMEOUT: Duration = Duration::from_millis(250);

/// How long Redis may take to answer `troupe check`.
const PING_TIMEOUT: Duration = Duration::from_secs(3);

/// Checks that the settings for several nodes are consistent.
///
/// # Errors
/// Returns the inconsistency, as a sentence for the operator.
pub fn check_settings(config: &Config) -> anyhow::Result<()> {
    let Some(url) = &config.redis_url else {
        return Ok(());
    };
    anyhow::ensure!(
        !config.database_url.starts_with("sqlite"),
        "REDIS_URL is set, but DATABASE_URL is SQLite, which only one process can use: several \
         nodes need PostgreSQL, and one node needs no Redis"
    );
    redis_link::create_client(url)
        .map(drop)
        // Without the value: it may contain a password.
        .map_err(|error| anyhow::anyhow!("REDIS_URL cannot be used: {}", error.category()))
}

/// Returns the bus to the other nodes; a bus that sends nothing if Redis is not configured.
pub fn create_bus(config: &Config) -> ClusterBus {
    match config.redis_url {
        Some(_) => ClusterBus::new(),
        None => ClusterBus::none(),
    }
}

/// Starts the connection to Redis: while Redis is reachable, this node receives the events of the
/// others and shares their rate-limit counters.
///
/// # Errors
/// Returns an error if the database cannot be identified or `REDIS_URL` cannot be used.
pub async fn connect(config: &Config, relay: RunClusterReceiver) -> anyhow::Result<SharedCounter> {
    let RunClusterReceiver {
        context, presence, ..
    } = &relay;
    let (Some(url), Some(bus_state)) = (&config.redis_url, context.hub.bus().state()) else {
        return Ok(SharedCounter::none());
    };
    let identity = context.db.database_id().await;
    let identity = identity.context("the database could not be identified")?;
    let secret = config.secret_key.as_ref().map(|it| it.0.clone());
    let secret = secret.context("TROUPE_SECRET_KEY is required with REDIS_URL")?;
    let key_prefix = format!("troupe:{identity}");
    let settings = ClusterSettings {
        url: url.0.clone(),
        channel: format!("{key_prefix}:events"),
        secret: secret.clone(),
    };
    let (hub, presence) = (context.hub.clone(), presence.clone());
    let (line, shutdown) = (bus_state.clone(), context.shutdown.clone());
    spawn_until_stopping(&shutdown, async move {
        hub.run_reorder_timeout(REORDER_TIMEOUT).await;
    });
    spawn_until_stopping(&shutdown, async move { presence.run().await });
    let shared_counter = SharedCounter::with_redis(url, key_prefix, &secret, &shutdown);
    let relay = Arc::new(relay);
    let started = redis_link::start(settings, &line, relay, &shutdown);
    started
        .and(shared_counter)
        .context("REDIS_URL cannot be used")
}

/// Starts the tasks that find events missed from other nodes and subscriptions that lost access,
/// with Redis and without, until shutdown. Not on SQLite, where only one node exists.
pub fn run_access_review(limits: &Arc<RateLimits>, context: &RunServices) {
    if context.db.backend() == Backend::Sqlite {
        return;
    }
    let position_check = missed_events::run_checks(context.clone());
    context.shutdown.spawn(position_check);
    let shutdown = &context.shutdown;
    let (db, hub, clock) = (&context.db, &context.hub, &context.clock);
    let mut watch = AccessReviewer::new(db.clone(), hub.clone(), clock.clone());
    let reviewed_limits = limits.clone();
    spawn_until_stopping(shutdown, async move {
        loop {
            tokio::time::sleep(access_review::INTERVAL).await;
            if let Err(error) = watch.review_once(&reviewed_limits.sockets).await {
                tracing::warn!(%error, "failed to review the access of open subscriptions: {error}");
            }
        }
    });
    let renewed_limits = limits.clone();
    spawn_until_stopping(shutdown, async move {
        loop {
            tokio::time::sleep(RENEW_INTERVAL).await;
            renewed_limits.sockets.renew();
        }
    });
}

fn spawn_until_stopping(shutdown: &Shutdown, work: impl Future<Output = ()> + Send + 'static) {
    let stopping = shutdown.stopping.clone();
    shutdown.spawn(async move { stopping.run_until_cancelled(work).await });
}

/// Registers the metrics of the bus, if there is one.
pub fn register_metrics(bus: &ClusterBus, registry: &mut Registry) {
    if let Some(bus_state) = bus.state() {
        bus_state.metrics.register(registry);
    }
}

/// Pings Redis and returns how fast it answered.
///
/// # Errors
/// Returns an error if Redis does not answer within [`PING_TIMEOUT`].
pub async fn ping_redis(url: &str) -> anyhow::Result<String> {
    let clock = Clock::system();
    let began = clock.now();
    let ping = async {
        let client = redis_link::create_client(url)?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        redis::cmd("PING").exec_async(&mut connection).await
    };
    let pinged = tokio::time::timeout(PING_TIMEOUT, ping).await;
    pinged.context("it does not answer")??;
    let ms = clock.now().ms_since(began);
    Ok(format!("answers within {ms} ms"))
}
