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

use crate::checks::check::Check;
use crate::fault_injectors::FaultLog;
use crate::group_counts::GroupCounts;
use crate::model::Model;
use crate::node::Node;
use crate::record::{Evidence, Post, StoredFact};
use crate::report::ON_BOTH;
use crate::settings::Settings;
use crate::sqlite_faults::SqliteFaults;
use crate::support::backends::TestDatabase;
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::http_client;
use crate::support::small_disk::SmallDisk;
use crate::support::{invariants, transitions};
use crate::tabs::Tab;
use crate::user_actions::{ActionLog, SimulatedUser, rng_for};
use crate::{facts, run_phases, settings, spaces, sqlite_faults, stored_state};

/// The limit for pending runs after the last fault is reverted.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// The result of the run.
pub struct Verdict {
    kinds: BTreeMap<String, (usize, usize)>,
    n_acknowledged: usize,
    n_facts: usize,
    n_extracted: usize,
    group_counts: GroupCounts,
    checks: Vec<Check>,
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
        let all_hold = self.checks.iter().all(|it| it.broken.is_empty());
        all_healed && all_hold && found.iter().all(|it| it.is_empty())
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
        write!(f, "{}", self.group_counts)?;
        for (kind, (n, healed)) in &self.kinds {
            writeln!(f, "  {n:5} {kind}, recovered {healed}")?;
        }
        for found in [&self.lost, &self.doubled, &self.stuck, &self.broken] {
            for line in found.iter().take(8) {
                writeln!(f, "         {line}")?;
            }
        }
        self.checks.iter().try_for_each(|it| write!(f, "{it}"))
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
    let mut facts = DatabaseFacts::open(&database).await;
    transitions::record(&mut facts).await;
    stored_state::record(&mut facts).await;

    let targets = SqliteFaults {
        node: Arc::clone(&node),
        file: folder.join("troupe.db"),
        disk: disk.clone(),
    };
    let done = FaultLog::default();
    let cut = watch::Sender::new(0);
    drop(facts);
    let (actions, tabs) = run_load(settings, targets, &done, &cut).await;
    node.signal("CONT");
    node.limit_files(None);
    let is_ready = node.start().await;
    let stuck = wait_until_idle(&database).await;
    let mut facts = DatabaseFacts::open(&database).await;
    run_phases::wait_until_learned(&mut facts).await;
    let mut evidence = Evidence {
        stored: stored_state::read(&mut facts).await,
        posts: actions.posts,
        promises: actions.promised_texts,
        calls: model.calls(),
        n_choices: model.n_choices(),
        sent_texts: model.sent_texts(),
        faults: done.lock().clone(),
        ..Evidence::default()
    };
    run_phases::read_tabs(&tabs, &cut, &mut evidence).await;
    // Only the content of the file counts.
    node.kill();
    let mut verdict = judge(&database, &evidence.posts).await;
    verdict.group_counts = GroupCounts::of(&evidence);
    verdict.checks = ON_BOTH.iter().map(|check| check(&evidence)).collect();
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

/// Runs the users and the fault injector until the time is over; returns the actions of the users and
/// their tabs, which a change of `cut` connects again.
async fn run_load(
    settings: &Settings,
    targets: SqliteFaults,
    done: &FaultLog,
    cut: &watch::Sender<u64>,
) -> (ActionLog, Vec<Arc<Tab>>) {
    let urls = vec![targets.node.url.clone()];
    let population = spaces::create_spaces(&urls[0], settings.n_clients, settings.seed).await;
    let end = Instant::now() + settings.lasts;
    let (actions, http) = (Arc::<Mutex<ActionLog>>::default(), http_client());
    let (mut all, mut tabs) = (JoinSet::new(), Vec::new());
    for guest in &population.users {
        let rng = rng_for(settings.seed, 1_000 + guest.index);
        let tab = Tab::open(guest, urls.clone(), rng, cut.subscribe());
        tabs.push(Arc::clone(&tab));
        let visitor = SimulatedUser {
            at: 0,
            guest: guest.clone(),
            nodes: urls.clone(),
            tab,
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
    let actions = std::mem::take(&mut *actions.lock());
    (actions, tabs)
}

/// Waits until nothing is queued or running and no round waits for a person; returns what still is after the limit.
async fn wait_until_idle(database: &TestDatabase) -> Vec<String> {
    let end = Instant::now() + IDLE_TIMEOUT;
    let mut facts = DatabaseFacts::open(database).await;
    let sql = format!(
        "SELECT 'run ' || {id} || ' is ' || status FROM conversation_runs WHERE status IN ('queued', 'running') \
         UNION ALL SELECT 'round ' || {id} || ' is waiting' FROM conversation_rounds \
         WHERE status = 'active' AND state = 'waiting' AND deadline_at IS NOT NULL",
        id = facts.hex("id")
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
        group_counts: GroupCounts::default(),
        checks: Vec::new(),
        lost,
        doubled,
        stuck: Vec::new(),
        broken,
    }
}
