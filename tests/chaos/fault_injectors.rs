//! Injects faults: one task for each node, one for the services that all nodes share. Each picks a
//! fault, applies it, reverts it, and waits until the nodes are ready again.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::cpu_starvation::starved_for;
use crate::node::Node;
use crate::record::{Fault, Micros, now};
use crate::settings::STALE_AFTER;
use crate::support::test_postgres::Postgres;

/// All faults so far.
pub type FaultLog = Arc<Mutex<Vec<Fault>>>;

/// Fail points at every step of a post, a claim, a reply and a recovery.
const FAIL_POINTS: &[&str] = &[
    "post.begin",
    "post.after_commit",
    "step.between",
    "step.after_commit",
    "write.before_commit",
    "write.after_commit",
    "claim.after_commit",
    "exec.after_claim",
    "exec.after_connect",
    "exec.mid_stream",
    "exec.before_commit",
    "exec.after_commit",
    "beat.begin",
    "reap.begin",
    "reap.mid",
];

/// Fail points where a panic affects only a run or a step, not the node.
const PANICS: &[&str] = &[
    "exec.after_claim",
    "exec.after_connect",
    "exec.mid_stream",
    "step.between",
    "write.before_commit",
    "write.after_commit",
    "step.after_commit",
];

/// Fail points that return a database error. After a commit that is a lost response.
const ERRORS: &[&str] = &[
    "post.begin",
    "post.after_commit",
    "step.between",
    "write.before_commit",
    "write.after_commit",
    "beat.begin",
    "reap.begin",
];

/// The limit for a node to reach a fail point.
const FAIL_POINT_TIMEOUT: Duration = Duration::from_millis(2_500);
/// The limit for a node to be ready again.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(60);

/// Injects faults into one node until the end.
pub async fn inject_node_faults(
    node: Arc<Node>,
    mut rng: ChaCha8Rng,
    peace: Duration,
    end: Instant,
    done: FaultLog,
) {
    let mut stood = now();
    loop {
        let longest = peace.as_millis() as u64 * 2;
        sleep(Duration::from_millis(rng.random_range(0..=longest))).await;
        if Instant::now() >= end {
            return;
        }
        let worker = node.worker();
        let (mut at, mut kind) = (stood, exited_at_fail_point(&node));
        if kind.is_none() {
            at = now();
            kind = inject_fault(&node, &mut rng).await;
        }
        let Some(kind) = kind else { continue };
        let until = now();
        let healed = timeout(RECOVERY_TIMEOUT, node.start())
            .await
            .unwrap_or(false);
        done.lock().push(Fault {
            kind,
            node: Some(node.index),
            worker,
            at,
            until,
            healed,
        });
        stood = now();
    }
}

/// On a busy machine a node may reach its fail point after [`FAIL_POINT_TIMEOUT`].
pub fn exited_at_fail_point(node: &Node) -> Option<String> {
    if node.is_stopped() {
        node.signal("CONT");
        return Some("stop, seen late".to_owned());
    }
    node.is_gone()
        .then(|| "kill at its place, seen late".to_owned())
}

/// Injects one fault and returns its kind; `None` if the node did not reach the fail point.
pub async fn inject_fault(node: &Node, rng: &mut ChaCha8Rng) -> Option<String> {
    let fail_point = FAIL_POINTS[rng.random_range(0..FAIL_POINTS.len())];
    match rng.random_range(0..100) {
        0..28 => {
            node.kill();
            Some("kill -9".to_owned())
        }
        28..34 => Some(fail_commits(node).await),
        34..58 => {
            node.arm(fail_point, "1*return(kill)");
            let is_killed = wait_until(FAIL_POINT_TIMEOUT, || node.is_gone()).await;
            node.arm(fail_point, "off");
            is_killed.then(|| format!("kill at {fail_point}"))
        }
        58..68 => {
            let long = rng.random_range(0..3) > 0;
            node.signal("STOP");
            sleep(if long { above(rng) } else { below(rng) }).await;
            node.signal("CONT");
            Some(if long { "stop, long" } else { "stop, short" }.to_owned())
        }
        68..82 => {
            node.arm(fail_point, "1*return(stop)");
            let is_stopped = wait_until(FAIL_POINT_TIMEOUT, || node.is_stopped()).await;
            if is_stopped {
                sleep(above(rng)).await;
                node.signal("CONT");
            }
            node.arm(fail_point, "off");
            is_stopped.then(|| format!("stop at {fail_point}"))
        }
        82..87 => {
            let fail_point = PANICS[rng.random_range(0..PANICS.len())];
            node.arm(fail_point, "1*panic");
            sleep(Duration::from_millis(700)).await;
            node.arm(fail_point, "off");
            Some(format!("panic at {fail_point}"))
        }
        87..93 => {
            let fail_point = ERRORS[rng.random_range(0..ERRORS.len())];
            node.arm(fail_point, "2*return(error)");
            sleep(Duration::from_millis(700)).await;
            node.arm(fail_point, "off");
            Some(format!("error at {fail_point}"))
        }
        93..96 => {
            node.arm(fail_point, "1*sleep(900)");
            sleep(Duration::from_millis(1_200)).await;
            node.arm(fail_point, "off");
            Some(format!("sleep at {fail_point}"))
        }
        kind => {
            node.signal("TERM");
            if kind == 96 {
                sleep(Duration::from_millis(200)).await;
            } else {
                wait_until(Duration::from_secs(8), || node.is_gone()).await;
            }
            let left = node.is_gone();
            node.kill();
            Some(
                if left {
                    "sent away"
                } else {
                    "kill while it drains"
                }
                .to_owned(),
            )
        }
    }
}

/// The database rejects some COMMITs; later statements use the same connections.
pub async fn fail_commits(node: &Node) -> String {
    node.arm("write.in_commit", "3*return(error)");
    sleep(Duration::from_millis(700)).await;
    node.arm("write.in_commit", "off");
    "COMMIT failed in the database".to_owned()
}

/// Long enough for other nodes to recover its runs.
fn above(rng: &mut ChaCha8Rng) -> Duration {
    STALE_AFTER + Duration::from_millis(rng.random_range(400..1_500))
}

/// Too short for a recovery.
fn below(rng: &mut ChaCha8Rng) -> Duration {
    Duration::from_millis(rng.random_range(100..700))
}

pub async fn wait_until(within: Duration, is_so: impl Fn() -> bool) -> bool {
    let end = Instant::now() + within;
    while Instant::now() < end {
        if is_so() {
            return true;
        }
        sleep(Duration::from_millis(10)).await;
    }
    is_so()
}

/// Replaces one node after another until the end, as an upgrade does: a node receives the signal
/// to stop and releases its runs; the next one follows when it is ready again.
pub async fn replace_nodes(nodes: Vec<Arc<Node>>, end: Instant, done: FaultLog) {
    for (n, node) in nodes.iter().cycle().enumerate() {
        if Instant::now() >= end && n >= ROUNDS * nodes.len() {
            return;
        }
        let (worker, at) = (node.worker(), now());
        node.signal("TERM");
        let left = wait_until(MAX_STARVED_THREADS * DRAIN_TIMEOUT, || node.is_gone()).await;
        let until = now();
        let starved = starved_for(&done.lock(), &worker, at, until);
        let left = left && until - at - starved <= DRAIN_TIMEOUT.as_micros() as Micros;
        node.kill();
        let healed = timeout(RECOVERY_TIMEOUT, node.start())
            .await
            .unwrap_or(false);
        done.lock().push(Fault {
            kind: REPLACED.to_owned(),
            node: Some(node.index),
            worker,
            at,
            until,
            healed: healed && left,
        });
        sleep(Duration::from_millis(500)).await;
    }
}

/// The least number of times that each node is replaced, regardless of how long that lasts.
pub const ROUNDS: usize = 2;
/// The limit for a node to exit, while the machine has CPU time for it.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(15);
/// The factor on that limit while the machine has none.
const MAX_STARVED_THREADS: u32 = 4;
/// The kind of fault of a node that was stopped by the signal and started again.
pub const REPLACED: &str = "replaced";

/// The services that all nodes share.
pub struct SharedFaults {
    pub postgres: Postgres,
    pub nodes: Vec<Arc<Node>>,
    /// Breaks the connections of all tabs each time it changes.
    pub cut: watch::Sender<u64>,
}

/// Injects faults into the shared services until the end.
pub async fn inject_shared_faults(
    targets: Arc<SharedFaults>,
    mut rng: ChaCha8Rng,
    end: Instant,
    done: FaultLog,
) {
    loop {
        sleep(Duration::from_millis(rng.random_range(1_500..6_000))).await;
        if Instant::now() >= end {
            return;
        }
        let at = now();
        let kind = inject_shared_fault(&targets, &mut rng).await;
        let until = now();
        let healed = timeout(RECOVERY_TIMEOUT, answers(&targets.postgres.url()))
            .await
            .is_ok();
        done.lock().push(Fault {
            kind,
            node: None,
            worker: String::new(),
            at,
            until,
            healed,
        });
    }
}

async fn inject_shared_fault(targets: &Arc<SharedFaults>, rng: &mut ChaCha8Rng) -> String {
    match rng.random_range(0..11) {
        10 => fill_the_disk(targets, rng).await,
        0..4 => {
            let n = rng.random_range(1..12);
            terminate(&targets.postgres.url(), n).await;
            "connections to the database cut".to_owned()
        }
        4..6 => {
            targets.cut.send_modify(|n| *n += 1);
            "connections of clients cut".to_owned()
        }
        6 => {
            let targets = Arc::clone(targets);
            let restart = move || targets.postgres.restart_immediately();
            let _ = tokio::task::spawn_blocking(restart).await;
            "database restarted at once".to_owned()
        }
        kind => {
            let long = kind == 9;
            targets.postgres.signal("STOP");
            sleep(if long { above(rng) * 2 } else { below(rng) }).await;
            targets.postgres.signal("CONT");
            let kind = if long { "long" } else { "short" };
            format!("database stopped, {kind}")
        }
    }
}

async fn fill_the_disk(targets: &Arc<SharedFaults>, rng: &mut ChaCha8Rng) -> String {
    let lasts = Duration::from_millis(rng.random_range(300..2_000));
    let targets = Arc::clone(targets);
    let filled = tokio::task::spawn_blocking(move || {
        let Some(disk) = &targets.postgres.disk else {
            return "database disk full: not tried, it requires root";
        };
        disk.fill();
        std::thread::sleep(lasts);
        disk.empty();
        targets.postgres.revive();
        "database disk full"
    });
    let kind = filled.await.expect("the harness does not panic");
    kind.to_owned()
}

async fn terminate(url: &str, n: u32) {
    let sql = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() \
         AND backend_type = 'client backend' ORDER BY random() LIMIT {n}"
    );
    if let Ok(mut db) = PgConnection::connect(url).await {
        // Its own connection may be terminated too.
        let _ = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut db).await;
    }
}

/// Waits until the database responds.
pub async fn answers(url: &str) {
    loop {
        if let Ok(db) = PgConnection::connect(url).await {
            let _ = db.close().await;
            return;
        }
        sleep(Duration::from_millis(50)).await;
    }
}
