//! The phases of one chaos run: create spaces, inject faults, repair, wait until nothing runs,
//! collect the evidence.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sqlx::Connection;
use sqlx::postgres::PgConnection;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::checks::timelines::visible_part;
use crate::fault_injectors::{FaultLog, SharedFaults};
use crate::model::Model;
use crate::node::Node;
use crate::record::{DatabaseSample, Evidence};
use crate::redis_faults::Redis;
use crate::settings::Settings;
use crate::spaces::Population;
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::http_client;
use crate::support::small_disk::SmallDisk;
use crate::support::test_postgres::Postgres;
use crate::tabs::Tab;
use crate::user_actions::{ActionLog, SimulatedUser, rng_for};
use crate::{
    cpu_starvation, facts, fault_injectors, settings, silent_clients, spaces, stored_state,
    triggers,
};

/// The limit for pending runs after the last fault is reverted.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// The time limit for the tasks of the memory after that. A node polls every 5 seconds and executes one task
/// of each space at a time, whose calls of the faulty model may time out.
const LEARNED_TIMEOUT: Duration = Duration::from_secs(180);
/// The limit for tabs to show what is stored.
const CONVERGENCE_TIMEOUT: Duration = Duration::from_secs(10);

/// Executes the phases and returns all records.
pub async fn run(settings: &Settings) -> Evidence {
    let model = Model::start(settings.seed).await;
    let mut redis = None;
    if settings.has_redis {
        redis = Some(Redis::start(settings::N_NODES).await);
    }
    let targets = build(settings, &model, redis.as_ref());
    let population = open(settings, &targets).await;
    let urls: Vec<String> = targets.nodes.iter().map(|it| it.url.clone()).collect();
    let tabs: Vec<Arc<Tab>> = population
        .users
        .iter()
        .map(|guest| {
            let rng = rng_for(settings.seed, 1_000 + guest.index);
            Tab::open(guest, urls.clone(), rng, targets.cut.subscribe())
        })
        .collect();

    let (done, samples) = (
        FaultLog::default(),
        Arc::<Mutex<Vec<DatabaseSample>>>::default(),
    );
    let mut watching = vec![
        tokio::spawn(cpu_starvation::watch_the_clock(Arc::clone(&done))),
        tokio::spawn(sample_database(
            targets.postgres.url(),
            Arc::clone(&samples),
        )),
    ];
    for node in &targets.nodes {
        let watch = cpu_starvation::watch_a_node(Arc::clone(node), Arc::clone(&done));
        watching.push(tokio::spawn(watch));
    }
    let (actions, _redis) = run_load(settings, &targets, redis, &population, &tabs, &done).await;
    end_all_faults(&targets).await;
    let witness = population.users[0].clone();
    let silent_clients = tokio::spawn(silent_clients::run_silent_clients(
        population.silent_users,
        witness,
        urls,
    ));
    wait_until_idle(&targets).await;
    let mut stored = connect(&targets).await;
    wait_until_learned(&mut stored).await;
    let mut evidence = Evidence::default();
    triggers::read(&targets.postgres.url(), &mut evidence)
        .await
        .expect("the database is available again");
    evidence.stored = stored_state::read(&mut stored).await;
    read_tabs(&tabs, &targets.cut, &mut evidence).await;
    watching.iter().for_each(|it| it.abort());

    let actions = std::mem::take(&mut *actions.lock());
    evidence.stored_facts = facts::read(&mut stored, &actions.posts).await;
    evidence.posts = actions.posts;
    evidence.read_backs = actions.read_backs;
    evidence.stops = actions.stops;
    evidence.skips = actions.skips;
    evidence.promises = actions.promised_texts;
    evidence.n_candidates = actions.n_candidates;
    evidence.silent_clients = silent_clients.await.expect("the harness does not panic");
    evidence.faults = done.lock().clone();
    evidence.samples = std::mem::take(&mut *samples.lock());
    evidence.calls = model.calls();
    evidence.n_choices = model.n_choices();
    evidence.n_calls = model.n_calls();
    evidence.n_faulty = model.n_faults();
    evidence.sent_texts = model.sent_texts();
    evidence.panics = targets.nodes.iter().flat_map(|it| it.panics()).collect();
    evidence.stale_ms = settings.stale_after.as_millis() as i64;
    evidence.heartbeat_ms = settings::HEARTBEAT.as_millis() as i64;
    evidence.run_timeout_ms = settings::RUN_TIMEOUT.as_millis() as i64;
    keep_logs(&targets);
    evidence
}

fn build(settings: &Settings, model: &Model, redis: Option<&Redis>) -> Arc<SharedFaults> {
    // The write-ahead log alone must not fill the disk.
    let setting = "max_connections = 200\nmax_wal_size = 64MB\nmin_wal_size = 32MB";
    let disk = SmallDisk::mount(settings::DISK_MIB);
    let postgres = Postgres::start_on(setting, disk);
    let mut env = settings::of_a_node(settings);
    let more = [
        ("DATABASE_URL", postgres.url()),
        ("TROUPE_LLM_BASE_URL", model.upstream.base_url()),
        ("TROUPE_LLM_API_KEY", "sk-test".to_owned()),
        ("TROUPE_LLM_MODEL", "scripted".to_owned()),
    ];
    env.extend(more.map(|(name, value)| (name.to_owned(), value)));
    let node = |n: usize| {
        let mut env = env.clone();
        let url = redis.map(|it| it.lines[n].url());
        env.extend(url.map(|it| ("REDIS_URL".to_owned(), it)));
        Arc::new(Node::new(n, env))
    };
    let nodes = (0..settings::N_NODES).map(node);
    Arc::new(SharedFaults {
        postgres,
        nodes: nodes.collect(),
        cut: watch::Sender::new(0),
    })
}

async fn open(settings: &Settings, targets: &SharedFaults) -> Population {
    for node in &targets.nodes {
        assert!(node.start().await, "{}", node.tail(40));
    }
    triggers::record(&targets.postgres.url())
        .await
        .expect("create the triggers");
    stored_state::record(&mut connect(targets).await).await;
    spaces::create_spaces(&targets.nodes[0].url, settings.n_clients, settings.seed).await
}

/// Runs the users and the fault injectors until the time is over and every user has ended.
async fn run_load(
    settings: &Settings,
    targets: &Arc<SharedFaults>,
    redis: Option<Redis>,
    population: &Population,
    tabs: &[Arc<Tab>],
    done: &FaultLog,
) -> (Arc<Mutex<ActionLog>>, Option<Redis>) {
    let end = Instant::now() + settings.lasts;
    let actions = Arc::<Mutex<ActionLog>>::default();
    let mut all = JoinSet::new();
    let http = http_client();
    let urls: Vec<String> = targets.nodes.iter().map(|it| it.url.clone()).collect();
    for (guest, tab) in population.users.iter().zip(tabs) {
        let visitor = SimulatedUser {
            at: guest.index % urls.len(),
            guest: guest.clone(),
            nodes: urls.clone(),
            tab: Arc::clone(tab),
            http: http.clone(),
            rng: rng_for(settings.seed, guest.index),
            think: settings.think,
            last: None,
            actions: Arc::clone(&actions),
        };
        all.spawn(visitor.run(end));
    }
    if settings.only_replaces {
        let nodes = targets.nodes.clone();
        all.spawn(fault_injectors::replace_nodes(nodes, end, Arc::clone(done)));
    } else {
        start_fault_injectors(settings, targets, end, done, &mut all);
    }
    let fault_injection = async {
        let rng = rng_for(settings.seed, 4_000);
        match redis {
            Some(it) if !settings.only_replaces => {
                Some(it.inject_faults(rng, end, Arc::clone(done)).await)
            }
            it => it,
        }
    };
    let all_users = async {
        while let Some(ended) = all.join_next().await {
            ended.expect("the harness does not panic");
        }
    };
    let (redis, ()) = tokio::join!(fault_injection, all_users);
    (actions, redis)
}

/// Starts one fault injector for each node, and one for the shared services.
fn start_fault_injectors(
    settings: &Settings,
    targets: &Arc<SharedFaults>,
    end: Instant,
    done: &FaultLog,
    all: &mut JoinSet<()>,
) {
    for node in &targets.nodes {
        let rng = rng_for(settings.seed, 2_000 + node.index);
        let (node, done) = (Arc::clone(node), Arc::clone(done));
        all.spawn(fault_injectors::inject_node_faults(
            node,
            rng,
            settings.peace,
            end,
            done,
        ));
    }
    let rng = rng_for(settings.seed, 3_000);
    let (targets, done) = (Arc::clone(targets), Arc::clone(done));
    all.spawn(fault_injectors::inject_shared_faults(
        targets, rng, end, done,
    ));
}

/// Reverts all faults and waits until all nodes are ready.
async fn end_all_faults(targets: &SharedFaults) {
    targets.postgres.signal("CONT");
    fault_injectors::answers(&targets.postgres.url()).await;
    for node in &targets.nodes {
        node.signal("CONT");
        assert!(node.start().await, "node {}\n{}", node.index, node.tail(40));
    }
}

/// Waits until nothing is running or due. The checks report what is stuck.
async fn wait_until_idle(targets: &SharedFaults) {
    let end = Instant::now() + IDLE_TIMEOUT;
    while Instant::now() < end {
        // Twice in a row, because for a moment between two turns no run is unfinished.
        let mut n = 0;
        for _ in 0..2 {
            n += triggers::unfinished(&targets.postgres.url())
                .await
                .unwrap_or(1);
            sleep(Duration::from_millis(300)).await;
        }
        if n == 0 {
            return;
        }
    }
    let stuck = triggers::stuck(&targets.postgres.url()).await;
    eprintln!("stuck: {:#?}", stuck.unwrap_or_default());
}

async fn connect(targets: &SharedFaults) -> DatabaseFacts {
    let connection = PgConnection::connect(&targets.postgres.url()).await;
    DatabaseFacts::Postgres(Box::new(
        connection.expect("the database is available again"),
    ))
}

/// Waits until no messages are left to learn from. The checks report what was not learned.
pub async fn wait_until_learned(stored: &mut DatabaseFacts) {
    let end = Instant::now() + LEARNED_TIMEOUT;
    loop {
        let n = facts::hasten(stored).await;
        if n == 0 {
            return;
        }
        if Instant::now() > end {
            eprintln!("{n} tasks of the memory are left");
            return;
        }
        sleep(Duration::from_millis(500)).await;
    }
}

/// Waits until the tabs show what is stored, and reads what they received.
pub async fn read_tabs(tabs: &[Arc<Tab>], cut: &watch::Sender<u64>, evidence: &mut Evidence) {
    evidence.behind = catch_up(tabs, evidence).await;
    if !evidence.behind.is_empty() {
        cut.send_modify(|n| *n += 1);
        catch_up(tabs, evidence).await;
    }
    evidence.n_tabs = tabs.len();
    evidence.client_logs = tabs.iter().flat_map(|it| it.client_logs()).collect();
    evidence.readers = tabs.iter().map(|it| it.reader()).collect();
}

/// Waits until each tab shows what is stored; returns those that do not in time.
async fn catch_up(tabs: &[Arc<Tab>], evidence: &Evidence) -> Vec<String> {
    let end = Instant::now() + CONVERGENCE_TIMEOUT;
    let nothing = Vec::new();
    loop {
        let mut behind = Vec::new();
        for (n, tab) in tabs.iter().enumerate() {
            for client_log in tab.shown() {
                let stored = evidence.stored.timelines.get(&client_log.conversation);
                let stored = visible_part(&client_log, stored.unwrap_or(&nothing));
                if stored != client_log.lines {
                    let (shows, of) = (client_log.lines.len(), stored.len());
                    behind.push(format!(
                        "tab {n} shows {shows} of {of} lines of conversation {}",
                        client_log.conversation
                    ));
                }
            }
        }
        if behind.is_empty() || Instant::now() > end {
            return behind;
        }
        sleep(Duration::from_millis(200)).await;
    }
}

/// Reads all timelines repeatedly, as a reader would.
async fn sample_database(url: String, samples: Arc<Mutex<Vec<DatabaseSample>>>) {
    loop {
        if let Ok(mut db) = PgConnection::connect(&url).await {
            while let Ok(sample) = triggers::sample(&mut db).await {
                samples.lock().push(sample);
                sleep(Duration::from_millis(200)).await;
            }
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// Writes the output of the nodes to the folder `CHAOS_LOGS`.
fn keep_logs(targets: &SharedFaults) {
    if let Ok(folder) = std::env::var("CHAOS_LOGS") {
        let folder = std::path::PathBuf::from(folder);
        targets.nodes.iter().for_each(|it| it.write_log(&folder));
    }
}
