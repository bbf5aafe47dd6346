//! What makes a process one node of several: the settings for it, and the wire to the others.

use crate::accounts::limits::Limits;
use crate::accounts::sockets::KEEP_UP_EVERY;
use crate::clock::Clock;
use crate::config::Config;
use crate::db::connect::Dialect;
use crate::realtime::bus::handle::Bus;
use crate::realtime::bus::link;
use crate::realtime::bus::link::Settings;
use crate::realtime::bus::tally::Tally;
use crate::runs::context::Context;
use crate::runs::positions;
use crate::runs::relay::Relay;
use crate::shutdown::Shutdown;
use crate::spaces::watch;
use crate::spaces::watch::Watch;
use anyhow::Context as _;
use prometheus_client::registry::Registry;
use std::sync::Arc;
use std::time::Duration;

/// An event that came before the one it follows waits so long for it.
const OUT_OF_ORDER: Duration = Duration::from_millis(250);

/// How long a Redis may take to answer `troupe check`.
const PATIENCE: Duration = Duration::from_secs(3);

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
    link::client(url)
        .map(drop)
        // Not with what was given: it may hold a password.
        .map_err(|error| anyhow::anyhow!("REDIS_URL cannot be used: {}", error.category()))
}

/// The rope to other nodes, if these settings speak of any.
pub fn bus(config: &Config) -> Bus {
    match config.redis_url {
        Some(_) => Bus::new(),
        None => Bus::none(),
    }
}

/// Ties the rope: from now on this node hears the others, and counts with them, whenever Redis is
/// there.
///
/// # Errors
/// When the database does not tell which one it is.
pub async fn connect(config: &Config, relay: Relay) -> anyhow::Result<Tally> {
    let Relay {
        context, presence, ..
    } = &relay;
    let (Some(url), Some(line)) = (&config.redis_url, context.hub.bus().line()) else {
        return Ok(Tally::none());
    };
    let identity = context.db.identity().await;
    let identity = identity.context("the database does not tell which one it is")?;
    let secret = config.secret_key.as_ref().map(|it| it.0.clone());
    let secret = secret.context("TROUPE_SECRET_KEY is needed beside REDIS_URL")?;
    let house = format!("troupe:{identity}");
    let settings = Settings {
        url: url.0.clone(),
        channel: format!("{house}:events"),
        secret: secret.clone(),
    };
    let (hub, presence) = (context.hub.clone(), presence.clone());
    let (line, shutdown) = (line.clone(), context.shutdown.clone());
    until_closing(&shutdown, async move {
        hub.keep_giving_up_after(OUT_OF_ORDER).await;
    });
    until_closing(&shutdown, async move { presence.keep_up().await });
    let tally = Tally::over(url, house, &secret, &shutdown);
    let relay = Arc::new(relay);
    let linked = link::start(settings, &line, relay, &shutdown);
    linked.and(tally).context("REDIS_URL cannot be used")
}

/// Looks after what may have happened on other nodes, with Redis and without, until the house
/// closes: what listeners missed, and who may still listen. Not on SQLite, where there are none.
pub fn watch(limits: &Arc<Limits>, context: &Context) {
    if context.db.dialect() == Dialect::Sqlite {
        return;
    }
    let looking = positions::keep_looking(context.clone());
    context.shutdown.spawn(looking);
    let shutdown = &context.shutdown;
    let (db, hub, clock) = (&context.db, &context.hub, &context.clock);
    let mut watch = Watch::new(db.clone(), hub.clone(), clock.clone());
    let watched = limits.clone();
    until_closing(shutdown, async move {
        loop {
            tokio::time::sleep(watch::EVERY).await;
            if let Err(error) = watch.look(&watched.sockets).await {
                tracing::warn!(%error, "who may still listen could not be looked up: {error}");
            }
        }
    });
    let kept = limits.clone();
    until_closing(shutdown, async move {
        loop {
            tokio::time::sleep(KEEP_UP_EVERY).await;
            kept.sockets.keep_up();
        }
    });
}

fn until_closing(shutdown: &Shutdown, work: impl Future<Output = ()> + Send + 'static) {
    let stopping = shutdown.stopping.clone();
    shutdown.spawn(async move { stopping.run_until_cancelled(work).await });
}

/// Makes the figures of the wire known, where there is one.
pub fn register(bus: &Bus, registry: &mut Registry) {
    if let Some(line) = bus.line() {
        line.meter.register(registry);
    }
}

/// Asks a Redis for a sign of life.
///
/// # Errors
/// When it gives none.
pub async fn try_redis(url: &str) -> anyhow::Result<String> {
    let clock = Clock::system();
    let began = clock.now();
    let asking = async {
        let client = link::client(url)?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        redis::cmd("PING").exec_async(&mut connection).await
    };
    let asked = tokio::time::timeout(PATIENCE, asking).await;
    asked.context("it does not answer")??;
    let ms = clock.now().ms_since(began);
    Ok(format!("answers within {ms} ms"))
}
