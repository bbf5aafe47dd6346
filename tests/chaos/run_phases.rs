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
use crate::support::http_client::http_client;
use crate::support::small_disk::SmallDisk;
use crate::support::test_postgres::Postgres;
use crate::tabs::Tab;
use crate::user_actions::{ActionLog, SimulatedUser, rng_for};
use crate::{cpu_starvation, fault_injectors, settings, silent_clients, spaces, triggers};

/// How long what is left may take once everything is healed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// How long tabs may take until they show what is stored.
const CONVERGENCE_TIMEOUT: Duration = Duration::from_secs(10);

/// Plays it; answers with everything that was written down.
pub async fn run(settings: &Settings) -> Evidence {
    let model = Model::start(settings.seed).await;
    let mut redis = None;
    if settings.has_redis {
        redis = Some(Redis::start(settings::N_NODES).await);
    }
    let ground = build(settings, &model, redis.as_ref());
    let house = open(settings, &ground).await;
    let urls: Vec<String> = ground.nodes.iter().map(|it| it.url.clone()).collect();
    let tabs: Vec<Arc<Tab>> = house
        .users
        .iter()
        .map(|guest| {
            let dice = rng_for(settings.seed, 1_000 + guest.index);
            Tab::open(guest, urls.clone(), dice, ground.cut.subscribe())
        })
        .collect();

    let (done, looks) = (
        FaultLog::default(),
        Arc::<Mutex<Vec<DatabaseSample>>>::default(),
    );
    let mut watching = vec![
        tokio::spawn(cpu_starvation::watch_the_clock(Arc::clone(&done))),
        tokio::spawn(sample_database(ground.postgres.url(), Arc::clone(&looks))),
    ];
    for node in &ground.nodes {
        let watch = cpu_starvation::watch_a_node(Arc::clone(node), Arc::clone(&done));
        watching.push(tokio::spawn(watch));
    }
    let (deeds, _redis) = run_load(settings, &ground, redis, &house, &tabs, &done).await;
    end_all_faults(&ground).await;
    let witness = house.users[0].clone();
    let ghosts = tokio::spawn(silent_clients::run_silent_clients(
        house.silent_users,
        witness,
        urls,
    ));
    wait_until_idle(&ground).await;
    let mut evidence = Evidence::default();
    triggers::read(&ground.postgres.url(), &mut evidence)
        .await
        .expect("the database answers again");
    let mut behind = catch_up(&tabs, &evidence).await;
    if !behind.is_empty() {
        ground.cut.send_modify(|n| *n += 1);
        catch_up(&tabs, &evidence).await;
    }
    evidence.n_tabs = tabs.len();
    evidence.behind.append(&mut behind);
    watching.iter().for_each(|it| it.abort());

    let deeds = std::mem::take(&mut *deeds.lock());
    evidence.posts = deeds.posts;
    evidence.read_backs = deeds.read_backs;
    evidence.stops = deeds.stops;
    evidence.wishes = deeds.promised_texts;
    evidence.n_candidates = deeds.n_candidates;
    evidence.ghosts = ghosts.await.expect("the harness itself does not break");
    evidence.faults = done.lock().clone();
    evidence.looks = std::mem::take(&mut *looks.lock());
    evidence.ears = tabs.iter().flat_map(|it| it.client_logs()).collect();
    evidence.n_calls = model.upstream.n_requests();
    evidence.n_spoilt = model.n_faults();
    evidence.said = model.said();
    evidence.panics = ground.nodes.iter().flat_map(|it| it.panics()).collect();
    evidence.stale_ms = settings.stale_after.as_millis() as i64;
    evidence.heartbeat_ms = settings::HEARTBEAT.as_millis() as i64;
    evidence.run_timeout_ms = settings::RUN_TIMEOUT.as_millis() as i64;
    keep_logs(&ground);
    evidence
}

fn build(settings: &Settings, model: &Model, redis: Option<&Redis>) -> Arc<SharedFaults> {
    // Its log of changes must not grow to the size of the disk by itself.
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

async fn open(settings: &Settings, ground: &SharedFaults) -> Population {
    for node in &ground.nodes {
        assert!(node.start().await, "{}", node.tail(40));
    }
    triggers::record(&ground.postgres.url())
        .await
        .expect("the triggers can be made");
    spaces::create_spaces(&ground.nodes[0].url, settings.n_clients, settings.seed).await
}

/// People and tormentors, until the time is over and everybody has the last answer.
async fn run_load(
    settings: &Settings,
    ground: &Arc<SharedFaults>,
    redis: Option<Redis>,
    house: &Population,
    tabs: &[Arc<Tab>],
    done: &FaultLog,
) -> (Arc<Mutex<ActionLog>>, Option<Redis>) {
    let end = Instant::now() + settings.lasts;
    let deeds = Arc::<Mutex<ActionLog>>::default();
    let mut all = JoinSet::new();
    let http = http_client();
    let urls: Vec<String> = ground.nodes.iter().map(|it| it.url.clone()).collect();
    for (guest, tab) in house.users.iter().zip(tabs) {
        let visitor = SimulatedUser {
            at: guest.index % urls.len(),
            guest: guest.clone(),
            nodes: urls.clone(),
            tab: Arc::clone(tab),
            http: http.clone(),
            dice: rng_for(settings.seed, guest.index),
            think: settings.think,
            last: None,
            actions: Arc::clone(&deeds),
        };
        all.spawn(visitor.run(end));
    }
    if settings.only_replaces {
        let nodes = ground.nodes.clone();
        all.spawn(fault_injectors::replace_nodes(nodes, end, Arc::clone(done)));
    } else {
        start_fault_injectors(settings, ground, end, done, &mut all);
    }
    let tormenting = async {
        let dice = rng_for(settings.seed, 4_000);
        match redis {
            Some(it) if !settings.only_replaces => {
                Some(it.inject_faults(dice, end, Arc::clone(done)).await)
            }
            it => it,
        }
    };
    let everybody = async {
        while let Some(ended) = all.join_next().await {
            ended.expect("the harness itself does not break");
        }
    };
    let (redis, ()) = tokio::join!(tormenting, everybody);
    (deeds, redis)
}

/// One task for each node, and one for what they share.
fn start_fault_injectors(
    settings: &Settings,
    ground: &Arc<SharedFaults>,
    end: Instant,
    done: &FaultLog,
    all: &mut JoinSet<()>,
) {
    for node in &ground.nodes {
        let dice = rng_for(settings.seed, 2_000 + node.index);
        let (node, done) = (Arc::clone(node), Arc::clone(done));
        all.spawn(fault_injectors::inject_node_faults(
            node,
            dice,
            settings.peace,
            end,
            done,
        ));
    }
    let dice = rng_for(settings.seed, 3_000);
    let (ground, done) = (Arc::clone(ground), Arc::clone(done));
    all.spawn(fault_injectors::inject_shared_faults(
        ground, dice, end, done,
    ));
}

/// All nodes are started and ready.
async fn end_all_faults(ground: &SharedFaults) {
    ground.postgres.signal("CONT");
    fault_injectors::answers(&ground.postgres.url()).await;
    for node in &ground.nodes {
        node.signal("CONT");
        assert!(node.start().await, "node {}\n{}", node.index, node.tail(40));
    }
}

/// Waits until nothing is running or due. The checks report what is stuck.
async fn wait_until_idle(ground: &SharedFaults) {
    let end = Instant::now() + IDLE_TIMEOUT;
    while Instant::now() < end {
        // Twice in a row: between two turns nothing is to be seen for a moment.
        let mut n = 0;
        for _ in 0..2 {
            n += triggers::unfinished(&ground.postgres.url())
                .await
                .unwrap_or(1);
            sleep(Duration::from_millis(300)).await;
        }
        if n == 0 {
            return;
        }
    }
    let stuck = triggers::stuck(&ground.postgres.url()).await;
    eprintln!("stuck: {:#?}", stuck.unwrap_or_default());
}

/// Waits until each tab shows what is stored; which of them still do not after a while.
async fn catch_up(tabs: &[Arc<Tab>], evidence: &Evidence) -> Vec<String> {
    let end = Instant::now() + CONVERGENCE_TIMEOUT;
    let nothing = Vec::new();
    loop {
        let mut behind = Vec::new();
        for (n, tab) in tabs.iter().enumerate() {
            for ear in tab.shown() {
                let stored = evidence.timelines.get(&ear.conversation);
                let stored = visible_part(&ear, stored.unwrap_or(&nothing));
                if stored != ear.lines {
                    let (shows, of) = (ear.lines.len(), stored.len());
                    behind.push(format!(
                        "tab {n} shows {shows} of {of} lines of conversation {}",
                        ear.conversation
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

/// Looks at all timelines again and again, as a reader would.
async fn sample_database(url: String, looks: Arc<Mutex<Vec<DatabaseSample>>>) {
    loop {
        if let Ok(mut db) = PgConnection::connect(&url).await {
            while let Ok(look) = triggers::sample(&mut db).await {
                looks.lock().push(look);
                sleep(Duration::from_millis(200)).await;
            }
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// `CHAOS_LOGS` names a folder for what the nodes said.
fn keep_logs(ground: &SharedFaults) {
    if let Ok(folder) = std::env::var("CHAOS_LOGS") {
        let folder = std::path::PathBuf::from(folder);
        ground.nodes.iter().for_each(|it| it.write_log(&folder));
    }
}
