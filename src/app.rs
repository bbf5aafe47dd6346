//! The parts of the house, built once from the settings and handed to every door.

use crate::accounts::body_pace::BodyPace;
use crate::accounts::connections::Connections;
use crate::accounts::limits::Limits;
use crate::accounts::password::Passwords;
use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::config::Config;
use crate::conversations::import_job;
use crate::db::clock_offset;
use crate::db::connect::Db;
use crate::db::connect::Options;
use crate::db::lock;
use crate::db::modes;
use crate::db::ownership;
use crate::db::ownership::Ownership;
use crate::llm::discovery;
use crate::llm::discovery::Place;
use crate::llm::egress::Egress;
use crate::llm::egress::Names;
use crate::llm::egress::SystemNames;
use crate::llm::registry::Registry;
use crate::llm::scripted::HUMAN_PACE;
use crate::nodes;
use crate::providers::meter::Meter;
use crate::providers::models::Models;
use crate::providers::seal;
use crate::providers::seal::Sealer;
use crate::providers::stock;
use crate::realtime::hub::Hub;
use crate::realtime::pace::Pace;
use crate::realtime::presence::Presence;
use crate::realtime::typing::Typing;
use crate::responses::desk::Desk;
use crate::responses::parts::Parts;
use crate::runs::context::Context;
use crate::runs::context::Settings;
use crate::runs::engine::Engine;
use crate::runs::relay::Relay;
use crate::shutdown::Shutdown;
use crate::telemetry::metrics::Looked;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::process;
use crate::tools;
use crate::tools::builtin::web_fetch::WebFetch;
use crate::tools::mcp::lists::Lists;
use crate::tools::web::Web;
use crate::tools::workshop::Workshop;
use anyhow::Context as _;
use prometheus_client::collector::Collector;
use std::sync::Arc;

/// Everything that a door may need. Cloning gives other handles on the same parts.
#[derive(Clone)]
pub struct App {
    pub config: Arc<Config>,
    pub clock: Clock,
    /// When this process was built.
    pub started_at: Timestamp,
    pub shutdown: Shutdown,
    pub db: Db,
    pub hub: Hub,
    pub presence: Presence,
    /// How patient sockets are.
    pub pace: Pace,
    /// How slowly bodies of requests may arrive.
    pub body_pace: BodyPace,
    /// Open HTTP connections.
    pub connections: Arc<Connections>,
    pub typing: Typing,
    pub engine: Engine,
    /// Calls to addresses that members name.
    pub web: Web,
    /// What programs ask for under `/v1`.
    pub responses: Desk,
    pub limits: Arc<Limits>,
    pub passwords: Passwords,
    /// From a row of a provider to somebody who answers; seals its key.
    pub models: Models,
    /// Where servers of models may be found on this machine.
    pub places: Arc<Vec<Place>>,
    /// What all of them counted.
    pub metrics: Arc<Metrics>,
    /// Held as long as any part lives: nobody else opens our SQLite file.
    _ours: Option<Arc<Ownership>>,
}

impl App {
    /// Opens the database, brings it up to date, and stocks the shelf of providers. Must be called
    /// on the main runtime.
    ///
    /// # Errors
    /// What keeps the server from starting, as a sentence for its operator.
    pub async fn build(config: Config, clock: Clock) -> anyhow::Result<Self> {
        Self::build_with(config, clock, Arc::new(SystemNames)).await
    }

    /// The same, with somebody else who knows the addresses behind names.
    ///
    /// # Errors
    /// What keeps the server from starting, as a sentence for its operator.
    pub async fn build_with(
        config: Config,
        clock: Clock,
        names: Arc<dyn Names>,
    ) -> anyhow::Result<Self> {
        nodes::check_settings(&config)?;
        let egress = Egress::new(names.clone(), config.allow_private_providers)?;
        check_environment(&config, &egress)?;
        let ours = own_database(&config, &clock).await?;
        let db = Db::connect(&database_options(&config))
            .await
            .context("the database cannot be opened")?;
        db.begin_use()
            .await
            .context("the database cannot be written")?;
        db.migrate()
            .await
            .context("the database cannot be brought up to date")?;
        // After the database: a secret without one would make its empty file look like a loss.
        let sealer = sealer(&config)?;
        modes::narrow_folder(&config.data_dir);
        clock_offset::measure(&db, &clock).await;
        stock_shelf(&config, &db, &sealer, &clock).await?;
        import_job::sweep(&db, clock.now()).await?;

        let models = Models {
            registry: Registry::new(egress, HUMAN_PACE),
            sealer,
            meter: Meter::default(),
        };
        let hub = Hub::among(nodes::bus(&config));
        let shutdown = Shutdown::new();
        if let Some(row) = ours.as_ref().and_then(|it| it.row.clone()) {
            shutdown.spawn(row.keep(db.clone(), clock.clone(), shutdown.clone()));
        }
        let web = Web {
            egress: Egress::for_members(names, &config.allowed_private_hosts)?,
        };
        let lists = Lists::new(web.egress.clone());
        let workshop = workshop(&config, &web, &clock);
        let engine = Engine::new(Context::new(
            db.clone(),
            hub.clone(),
            clock.clone(),
            shutdown.clone(),
            models.clone(),
            (workshop.clone(), lists),
            Settings::new(&config),
        ));
        let presence = Presence::start(hub.clone(), &shutdown);
        let typing = Typing::start(hub.clone(), clock.clone(), &shutdown);
        let relay = Relay {
            context: engine.context().clone(),
            presence: presence.clone(),
            typing: typing.clone(),
        };
        let tally = nodes::connect(&config, relay).await?;
        let limits = Arc::new(Limits::new(&config.limits, &clock, &tally));
        nodes::watch(&limits, engine.context());
        let connections = Arc::new(Connections::new(&config, process::max_open_files()));
        let started_at = clock.now();
        let base = (db.clone(), clock.clone(), shutdown.clone());
        let node = engine.context().node.clone();
        let tools = (workshop, engine.context().lists.clone());
        let responses = Desk::new(Parts::new(base, models.clone(), tools, node, &config));
        let metrics = Metrics::gather(started_at.0, |registry| {
            hub.meter().register(registry);
            nodes::register(hub.bus(), registry);
            db.register(registry);
            models.meter.register(registry);
            engine.context().meter.register(registry);
            registry.register_collector(sockets(&limits));
            registry.register_collector(held(&engine));
        });
        Ok(Self {
            metrics: Arc::new(metrics),
            limits,
            pace: Pace::default(),
            body_pace: BodyPace::default(),
            connections,
            places: Arc::new(discovery::places_beside(config.bind.port())),
            presence,
            typing,
            passwords: Passwords::new(),
            config: Arc::new(config),
            started_at,
            clock,
            shutdown,
            db,
            hub,
            engine,
            responses,
            web,
            models,
            _ours: ours,
        })
    }
}

fn sockets(limits: &Arc<Limits>) -> Box<dyn Collector> {
    let limits = limits.clone();
    let look = move || limits.sockets.count();
    Looked::up("sockets_open", "Open sockets of this node.", look)
}

fn held(engine: &Engine) -> Box<dyn Collector> {
    let leases = engine.context().leases.clone();
    let look = move || leases.count();
    Looked::up("runs_held", "Runs that this node executes.", look)
}

/// Takes the SQLite file for this process; PostgreSQL may be shared.
///
/// # Errors
/// When another process has it, or it must not be used.
pub async fn own_database(
    config: &Config,
    clock: &Clock,
) -> anyhow::Result<Option<Arc<Ownership>>> {
    let Some(file) = lock::sqlite_file(&config.database_url) else {
        return Ok(None);
    };
    let secret = config.data_dir.join(seal::SECRET_FILE);
    let ours = ownership::take(&file, &secret, clock.now()).await?;
    Ok(Some(Arc::new(ours)))
}

/// How the database of these settings is opened.
pub fn database_options(config: &Config) -> Options {
    Options {
        url: config.database_url.to_string(),
        synchronous_full: config.sqlite_synchronous_full,
    }
}

/// Seals with the secret of these settings; without one, with that of the data directory.
///
/// # Errors
/// When that cannot be read or made.
pub fn sealer(config: &Config) -> anyhow::Result<Sealer> {
    if let Some(secret) = &config.secret_key {
        return Ok(Sealer::new(&secret.0));
    }
    let dir = &config.data_dir;
    lock::private_folder(dir)
        .with_context(|| format!("TROUPE_DATA_DIR {} cannot be made", dir.display()))?;
    Sealer::from_data_dir(dir)
}

/// The tools that run here. Models read pages of the web only where the settings say so.
fn workshop(config: &Config, web: &Web, clock: &Clock) -> Workshop {
    let mut registry = tools::registry::Registry::of_the_house(clock.clone());
    if config.web_fetch {
        let fetch = WebFetch { web: web.clone() };
        registry = registry.with("web_fetch", Arc::new(fetch));
    }
    Workshop {
        registry,
        ..Workshop::default()
    }
}

/// Looks at the provider that the environment describes, if it does.
///
/// # Errors
/// When calls must not go to its address.
pub fn check_environment(config: &Config, egress: &Egress) -> anyhow::Result<()> {
    let Some(from) = &config.llm else {
        return Ok(());
    };
    let Err(error) = egress.base_url(&from.base_url) else {
        return Ok(());
    };
    // What stands before an @ is a password.
    match from.base_url.contains('@') {
        true => anyhow::bail!("TROUPE_LLM_BASE_URL cannot be used: {error}"),
        false => anyhow::bail!("TROUPE_LLM_BASE_URL is {:?}: {error}", from.base_url),
    }
}

async fn stock_shelf(
    config: &Config,
    db: &Db,
    sealer: &Sealer,
    clock: &Clock,
) -> anyhow::Result<()> {
    stock::check_seals(db.reader(), sealer).await?;
    stock::stock_demo(db, sealer, clock.now()).await?;
    if let Some(from) = &config.llm {
        stock::stock_environment(db, sealer, from, clock.now()).await?;
    }
    Ok(())
}
