//! The chaos run on SQLite: one node, the same users and the same model. In the end the harness
//! reads and checks the file.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::fault_injectors::FaultLog;
use crate::model::Model;
use crate::node::Node;
use crate::record::{Post, StoredFact};
use crate::settings::Settings;
use crate::sqlite_faults::SqliteFaults;
use crate::support::backends::TestDatabase;
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::http_client;
use crate::support::small_disk::SmallDisk;
use crate::support::{invariants, transitions};
use crate::tabs::Tab;
use crate::user_actions::{ActionLog, SimulatedUser, rng_for};
use crate::{facts, run_phases, settings, spaces, sqlite_faults};

/// The limit for pending runs after the last fault is reverted.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// The result of the run.
pub struct Verdict {
    kinds: BTreeMap<String, (usize, usize)>,
    n_acknowledged: usize,
    n_facts: usize,
    n_extracted: usize,
    lost: Vec<String>,
    doubled: Vec<String>,
    stuck: Vec<String>,
    /// Violated invariants, illegal transitions of runs, and panics.
    broken: Vec<String>,
}

impl Verdict {
    /// Whether every rule held, and the node was ready again after each fault.
    pub fn holds(&self) -> bool {
        let all_healed = self.kinds.values().all(|(n, healed)| n == healed);
        let found = [&self.lost, &self.doubled, &self.stuck, &self.broken];
        all_healed && found.iter().all(|it| it.is_empty())
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum = |of: fn(&(usize, usize)) -> usize| self.kinds.values().map(of).sum::<usize>();
        writeln!(
            f,
            "SQLite, one node: faults tried {}, survived {}; messages acknowledged {}, lost {}, duplicated {}; stuck {}",
            sum(|it| it.0),
            sum(|it| it.1),
            self.n_acknowledged,
            self.lost.len(),
            self.doubled.len(),
            self.stuck.len(),
        )?;
        writeln!(
            f,
            "sentences to remember {}, {} of them by the model",
            self.n_facts, self.n_extracted,
        )?;
        for (kind, (n, healed)) in &self.kinds {
            writeln!(f, "  {n:5} {kind}, recovered {healed}")?;
        }
        for found in [&self.lost, &self.doubled, &self.stuck, &self.broken] {
            for line in found.iter().take(8) {
                writeln!(f, "         {line}")?;
            }
        }
        Ok(())
    }
}

/// Executes the run and checks the file.
pub async fn run(settings: &Settings) -> Verdict {
    let disk = SmallDisk::mount(settings::DISK_MIB).map(Arc::new);
    let spare = tempfile::tempdir().expect("create a temporary folder");
    let folder = disk.as_ref().map_or(spare.path(), |it| it.path());
    let database = TestDatabase::in_folder(folder);
    let model = Model::start(settings.seed).await;
    let mut env = settings::of_a_node(settings);
    let more = [
        ("DATABASE_URL", database.url().to_owned()),
        ("TROUPE_LLM_BASE_URL", model.upstream.base_url()),
        ("TROUPE_LLM_API_KEY", "sk-test".to_owned()),
        ("TROUPE_LLM_MODEL", "scripted".to_owned()),
    ];
    env.extend(more.map(|(name, value)| (name.to_owned(), value)));
    let node = Arc::new(Node::new(0, env));
    assert!(node.start().await, "{}", node.tail(40));
    transitions::record(&mut DatabaseFacts::open(&database).await).await;

    let targets = SqliteFaults {
        node: Arc::clone(&node),
        file: folder.join("troupe.db"),
        disk: disk.clone(),
    };
    let done = FaultLog::default();
    let posts = run_load(settings, targets, &done).await;
    node.signal("CONT");
    node.limit_files(None);
    let is_ready = node.start().await;
    let stuck = wait_until_idle(&database).await;
    run_phases::wait_until_learned(&mut DatabaseFacts::open(&database).await).await;
    // Only the content of the file counts.
    node.kill();
    let mut verdict = judge(&database, &posts).await;
    verdict.stuck = stuck;
    verdict.broken.extend(node.panics());
    if !is_ready {
        verdict
            .broken
            .push(format!("the node is not ready: {}", node.tail(5)));
    }
    for fault in done.lock().iter() {
        let kind = verdict.kinds.entry(fault.kind.clone()).or_default();
        kind.0 += 1;
        kind.1 += usize::from(fault.healed);
    }
    if let Ok(folder) = std::env::var("CHAOS_LOGS") {
        node.write_log(std::path::Path::new(&folder));
    }
    verdict
}

async fn run_load(settings: &Settings, targets: SqliteFaults, done: &FaultLog) -> Vec<Post> {
    let urls = vec![targets.node.url.clone()];
    let population = spaces::create_spaces(&urls[0], settings.n_clients, settings.seed).await;
    let end = Instant::now() + settings.lasts;
    let (actions, http) = (Arc::<Mutex<ActionLog>>::default(), http_client());
    let cut = watch::Sender::new(0);
    let mut all = JoinSet::new();
    for guest in &population.users {
        let rng = rng_for(settings.seed, 1_000 + guest.index);
        let visitor = SimulatedUser {
            at: 0,
            guest: guest.clone(),
            nodes: urls.clone(),
            tab: Tab::open(guest, urls.clone(), rng, cut.subscribe()),
            http: http.clone(),
            rng: rng_for(settings.seed, guest.index),
            think: settings.think,
            last: None,
            actions: Arc::clone(&actions),
        };
        all.spawn(visitor.run(end));
    }
    let rng = rng_for(settings.seed, 2_000);
    let (peace, done) = (settings.peace, Arc::clone(done));
    all.spawn(sqlite_faults::inject_faults(targets, rng, peace, end, done));
    while let Some(ended) = all.join_next().await {
        ended.expect("the harness does not panic");
    }
    std::mem::take(&mut actions.lock().posts)
}

/// Waits until nothing is queued or running; returns what still is after the limit.
async fn wait_until_idle(database: &TestDatabase) -> Vec<String> {
    let end = Instant::now() + IDLE_TIMEOUT;
    let mut facts = DatabaseFacts::open(database).await;
    let sql = format!(
        "SELECT 'run ' || {} || ' is ' || status FROM conversation_runs WHERE status IN ('queued', 'running')",
        facts.hex("id")
    );
    loop {
        // Twice in a row, because for a moment between two turns no run is unfinished.
        let mut found = facts.rows(&sql).await;
        sleep(Duration::from_millis(500)).await;
        found.extend(facts.rows(&sql).await);
        if found.is_empty() || Instant::now() > end {
            return found.into_iter().flatten().flatten().collect();
        }
    }
}

async fn judge(database: &TestDatabase, posts: &[Post]) -> Verdict {
    let mut facts = DatabaseFacts::open(database).await;
    let (mut lost, mut doubled, mut n_acknowledged) = (Vec::new(), Vec::new(), 0);
    for post in posts {
        let sql = format!(
            "SELECT CAST(id AS TEXT) FROM messages WHERE conversation_id = {} AND client_id = '{}' AND origin_message_id IS NULL",
            post.conversation, post.key
        );
        let stored = facts.rows(&sql).await;
        if stored.len() > 1 {
            doubled.push(format!(
                "message {} is stored {} times",
                post.key,
                stored.len()
            ));
        }
        if let Some(promised) = post.acknowledged() {
            n_acknowledged += 1;
            let id = promised.message.to_string();
            if !stored.iter().any(|it| it[0].as_deref() == Some(&id)) {
                lost.push(format!("message {} ({id}) was acknowledged", post.key));
            }
        }
    }
    let twice = format!(
        "SELECT {} FROM messages WHERE conversation_run_id IS NOT NULL AND origin_message_id IS NULL \
         GROUP BY conversation_run_id HAVING count(*) > 1",
        facts.hex("conversation_run_id")
    );
    let twice = facts.rows(&twice).await;
    doubled.extend(twice.into_iter().flatten().flatten());
    let remembered = facts::read(&mut facts, posts).await;
    for it in &remembered {
        lost.extend((it.is_shown && it.n_memories == 0).then(|| format!("no memory: {it:?}")));
        doubled.extend((it.n_memories > 1).then(|| format!("two memories: {it:?}")));
    }
    let mut broken = invariants::at_rest(&mut facts).await;
    let is_wrong = |it: &&StoredFact| !it.is_shown && it.n_memories > 0;
    let forgotten = remembered.iter().filter(is_wrong);
    broken.extend(forgotten.map(|it| format!("hidden or edited, but remembered: {it:?}")));
    broken.extend(transitions::illegal(&mut facts).await);
    let check = facts.rows("PRAGMA integrity_check").await;
    if check != [[Some("ok".to_owned())]] {
        broken.push(format!("the file is damaged: {check:?}"));
    }
    Verdict {
        kinds: BTreeMap::new(),
        n_acknowledged,
        n_facts: remembered.len(),
        n_extracted: remembered.iter().map(|it| it.n_extracted).sum(),
        lost,
        doubled,
        stuck: Vec::new(),
        broken,
    }
}
