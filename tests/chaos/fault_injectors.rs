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

/// All that was done so far.
pub type FaultLog = Arc<Mutex<Vec<Fault>>>;

/// Where a node can be hit from inside: every step of a post, a claim, a reply and a sweep.
const PLACES: &[&str] = &[
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

/// Where a panic affects only a run or a step, not the node.
const PANICS: &[&str] = &[
    "exec.after_claim",
    "exec.after_connect",
    "exec.mid_stream",
    "step.between",
    "write.before_commit",
    "write.after_commit",
    "step.after_commit",
];

/// Where the database can seem to fail. After a commit, that is an answer which got lost.
const ERRORS: &[&str] = &[
    "post.begin",
    "post.after_commit",
    "step.between",
    "write.before_commit",
    "write.after_commit",
    "beat.begin",
    "reap.begin",
];

/// How long one waits for a node to come to the place where it shall fall.
const FAIL_POINT_TIMEOUT: Duration = Duration::from_millis(2_500);
/// Longer than any node may take to stand again.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(60);

/// Hits one node again and again until the end.
pub async fn inject_node_faults(
    node: Arc<Node>,
    mut dice: ChaCha8Rng,
    peace: Duration,
    end: Instant,
    done: FaultLog,
) {
    let mut stood = now();
    loop {
        let longest = peace.as_millis() as u64 * 2;
        sleep(Duration::from_millis(dice.random_range(0..=longest))).await;
        if Instant::now() >= end {
            return;
        }
        let worker = node.worker();
        let (mut at, mut kind) = (stood, exited_at_fail_point(&node));
        if kind.is_none() {
            at = now();
            kind = inject_fault(&node, &mut dice).await;
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

/// On a busy machine a node may reach the place of its crash after the wait for it has ended.
pub fn exited_at_fail_point(node: &Node) -> Option<String> {
    if node.is_stopped() {
        node.signal("CONT");
        return Some("stop, seen late".to_owned());
    }
    node.is_gone()
        .then(|| "kill at its place, seen late".to_owned())
}

/// Does one fault; says what it was. `None`: the node never came to the place.
pub async fn inject_fault(node: &Node, dice: &mut ChaCha8Rng) -> Option<String> {
    let place = PLACES[dice.random_range(0..PLACES.len())];
    match dice.random_range(0..100) {
        0..28 => {
            node.kill();
            Some("kill -9".to_owned())
        }
        28..34 => Some(fail_commits(node).await),
        34..58 => {
            node.arm(place, "1*return(kill)");
            let fell = wait_until(FAIL_POINT_TIMEOUT, || node.is_gone()).await;
            node.arm(place, "off");
            fell.then(|| format!("kill at {place}"))
        }
        58..68 => {
            let long = dice.random_range(0..3) > 0;
            node.signal("STOP");
            sleep(if long { above(dice) } else { below(dice) }).await;
            node.signal("CONT");
            Some(if long { "stop, long" } else { "stop, short" }.to_owned())
        }
        68..82 => {
            node.arm(place, "1*return(stop)");
            let stands = wait_until(FAIL_POINT_TIMEOUT, || node.is_stopped()).await;
            if stands {
                sleep(above(dice)).await;
                node.signal("CONT");
            }
            node.arm(place, "off");
            stands.then(|| format!("stop at {place}"))
        }
        82..87 => {
            let place = PANICS[dice.random_range(0..PANICS.len())];
            node.arm(place, "1*panic");
            sleep(Duration::from_millis(700)).await;
            node.arm(place, "off");
            Some(format!("panic at {place}"))
        }
        87..93 => {
            let place = ERRORS[dice.random_range(0..ERRORS.len())];
            node.arm(place, "2*return(error)");
            sleep(Duration::from_millis(700)).await;
            node.arm(place, "off");
            Some(format!("error at {place}"))
        }
        93..96 => {
            node.arm(place, "1*sleep(900)");
            sleep(Duration::from_millis(1_200)).await;
            node.arm(place, "off");
            Some(format!("sleep at {place}"))
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

/// The database itself refuses some COMMITs; what follows meets their connections.
pub async fn fail_commits(node: &Node) -> String {
    node.arm("write.in_commit", "3*return(error)");
    sleep(Duration::from_millis(700)).await;
    node.arm("write.in_commit", "off");
    "COMMIT failed in the database".to_owned()
}

/// Long enough that others take its runs.
fn above(dice: &mut ChaCha8Rng) -> Duration {
    STALE_AFTER + Duration::from_millis(dice.random_range(400..1_500))
}

/// Short enough that nothing must happen.
fn below(dice: &mut ChaCha8Rng) -> Duration {
    Duration::from_millis(dice.random_range(100..700))
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

/// Replaces one node after another, as an upgrade does, and again from the first until the end: it
/// receives the signal to stop, releases its runs, and the next one follows when it is back.
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
/// A node that received the signal to stop and is back.
pub const REPLACED: &str = "replaced";

/// What all nodes stand on.
pub struct SharedFaults {
    pub postgres: Postgres,
    pub nodes: Vec<Arc<Node>>,
    /// Breaks the connections of all tabs each time it changes.
    pub cut: watch::Sender<u64>,
}

/// Hits the ground until the end.
pub async fn inject_shared_faults(
    ground: Arc<SharedFaults>,
    mut dice: ChaCha8Rng,
    end: Instant,
    done: FaultLog,
) {
    loop {
        sleep(Duration::from_millis(dice.random_range(1_500..6_000))).await;
        if Instant::now() >= end {
            return;
        }
        let at = now();
        let kind = inject_shared_fault(&ground, &mut dice).await;
        let until = now();
        let healed = timeout(RECOVERY_TIMEOUT, answers(&ground.postgres.url()))
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

async fn inject_shared_fault(ground: &Arc<SharedFaults>, dice: &mut ChaCha8Rng) -> String {
    match dice.random_range(0..11) {
        10 => fill_the_disk(ground, dice).await,
        0..4 => {
            let n = dice.random_range(1..12);
            terminate(&ground.postgres.url(), n).await;
            "connections to the database cut".to_owned()
        }
        4..6 => {
            ground.cut.send_modify(|n| *n += 1);
            "connections of clients cut".to_owned()
        }
        6 => {
            let ground = Arc::clone(ground);
            let restart = move || ground.postgres.restart_immediately();
            let _ = tokio::task::spawn_blocking(restart).await;
            "database restarted at once".to_owned()
        }
        kind => {
            let long = kind == 9;
            ground.postgres.signal("STOP");
            sleep(if long { above(dice) * 2 } else { below(dice) }).await;
            ground.postgres.signal("CONT");
            let kind = if long { "long" } else { "short" };
            format!("database stopped, {kind}")
        }
    }
}

async fn fill_the_disk(ground: &Arc<SharedFaults>, dice: &mut ChaCha8Rng) -> String {
    let lasts = Duration::from_millis(dice.random_range(300..2_000));
    let ground = Arc::clone(ground);
    let filled = tokio::task::spawn_blocking(move || {
        let Some(disk) = &ground.postgres.disk else {
            return "database disk full: not tried, it takes root";
        };
        disk.fill();
        std::thread::sleep(lasts);
        disk.empty();
        ground.postgres.revive();
        "database disk full"
    });
    let kind = filled.await.expect("the harness itself does not break");
    kind.to_owned()
}

async fn terminate(url: &str, n: u32) {
    let sql = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() \
         AND backend_type = 'client backend' ORDER BY random() LIMIT {n}"
    );
    if let Ok(mut db) = PgConnection::connect(url).await {
        // Cut while it is cutting: just as well.
        let _ = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut db).await;
    }
}

/// Waits until the database answers.
pub async fn answers(url: &str) {
    loop {
        if let Ok(db) = PgConnection::connect(url).await {
            let _ = db.close().await;
            return;
        }
        sleep(Duration::from_millis(50)).await;
    }
}
