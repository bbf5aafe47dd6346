//! What makes a process one node of several: the settings for it, and the wire to the others.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use prometheus_client::registry::Registry;

use crate::accounts::limits::RateLimits;
use crate::accounts::socket_limit::RENEW_INTERVAL;
use crate::clock::Clock;
use crate::config::Config;
use crate::db::connect::Backend;
use crate::realtime::cluster::bus::ClusterBus;
use crate::realtime::cluster::redis_link;
use crate::realtime::cluster::redis_link::ClusterSettings;
use crate::realtime::cluster::shared_counter::SharedCounter;
use crate::runs::cluster_receiver::RunClusterReceiver;
use crate::runs::missed_events;
use crate::runs::services::RunServices;
use crate::shutdown::Shutdown;
use crate::spaces::access_review;
use crate::spaces::access_review::AccessReviewer;

/// An event that came before the one it follows waits so long for it.
const REORDER_TIMEOUT: Duration = Duration::from_millis(250);

/// How long a Redis may take to answer `troupe check`.
const PING_TIMEOUT: Duration = Duration::from_secs(3);

/// Looks whether the settings for several nodes make sense together.
///
/// # Errors
/// What does not, as a sentence for the operator.
pub fn check_settings(config: &Config) -> anyhow::Result<()> {
    let Some(url) = &config.redis_url else {
        return Ok(());
    };
    anyhow::ensure!(
        !config.database_url.starts_with("sqlite"),
        "REDIS_URL is set, but DATABASE_URL is SQLite, which one process has for itself: several \
         nodes need PostgreSQL, and one node needs no Redis"
    );
    redis_link::create_client(url)
        .map(drop)
        // Not with what was given: it may hold a password.
        .map_err(|error| anyhow::anyhow!("REDIS_URL cannot be used: {}", error.category()))
}

/// The rope to other nodes, if these settings speak of any.
pub fn create_bus(config: &Config) -> ClusterBus {
    match config.redis_url {
        Some(_) => ClusterBus::new(),
        None => ClusterBus::none(),
    }
}

/// Ties the rope: from now on this node hears the others, and counts with them, whenever Redis is
/// there.
///
/// # Errors
/// When the database does not tell which one it is.
pub async fn connect(config: &Config, relay: RunClusterReceiver) -> anyhow::Result<SharedCounter> {
    let RunClusterReceiver {
        context, presence, ..
    } = &relay;
    let (Some(url), Some(bus_state)) = (&config.redis_url, context.hub.bus().state()) else {
        return Ok(SharedCounter::none());
    };
    let identity = context.db.database_id().await;
    let identity = identity.context("the database does not tell which one it is")?;
    let secret = config.secret_key.as_ref().map(|it| it.0.clone());
    let secret = secret.context("TROUPE_SECRET_KEY is needed beside REDIS_URL")?;
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

/// Looks after what may have happened on other nodes, with Redis and without, until the house
/// closes: what listeners missed, and who may still listen. Not on SQLite, where there are none.
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
                tracing::warn!(%error, "who may still listen could not be looked up: {error}");
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

/// Makes the figures of the wire known, where there is one.
pub fn register_metrics(bus: &ClusterBus, registry: &mut Registry) {
    if let Some(bus_state) = bus.state() {
        bus_state.metrics.register(registry);
    }
}

/// Asks a Redis for a sign of life.
///
/// # Errors
/// When it gives none.
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
