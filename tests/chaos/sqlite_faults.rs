//! Injects faults into one node on an SQLite file: those of any node, and in addition a full disk,
//! I/O errors, and a damaged page of the stopped file.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use tokio::time::{Instant, sleep, timeout};

use crate::fault_injectors;
use crate::fault_injectors::FaultLog;
use crate::node::Node;
use crate::record::{Fault, now};
use crate::support::small_disk::SmallDisk;

/// The limit for the node to be ready again; it probes a write every 5 s.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(60);
/// The limit for a start to reject a file.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(30);

/// The node and its file.
pub struct SqliteFaults {
    pub node: Arc<Node>,
    pub file: PathBuf,
    /// `None` if the process may not mount a disk.
    pub disk: Option<Arc<SmallDisk>>,
}

/// Injects one fault after another until the end, and waits until the node is ready in between.
pub async fn inject_faults(
    targets: SqliteFaults,
    mut rng: ChaCha8Rng,
    peace: Duration,
    end: Instant,
    done: FaultLog,
) {
    while Instant::now() < end {
        let longest = peace.as_millis() as u64 * 2;
        sleep(Duration::from_millis(rng.random_range(0..=longest))).await;
        let (at, worker) = (now(), targets.node.worker());
        let outcome = match fault_injectors::exited_at_fail_point(&targets.node) {
            Some(kind) => Some((kind, true)),
            None => inject_fault(&targets, &mut rng).await,
        };
        let Some((kind, is_right)) = outcome else {
            continue;
        };
        let until = now();
        let healed = timeout(RECOVERY_TIMEOUT, targets.node.start())
            .await
            .unwrap_or(false);
        done.lock().push(Fault {
            kind,
            node: Some(0),
            worker,
            at,
            until,
            healed: healed && is_right,
        });
    }
}

/// Injects one fault; returns its kind, and whether the node reacted to it as required.
async fn inject_fault(targets: &SqliteFaults, rng: &mut ChaCha8Rng) -> Option<(String, bool)> {
    let lasts = Duration::from_millis(rng.random_range(300..2_500));
    match rng.random_range(0..10) {
        0 | 1 => {
            let disk = Arc::clone(targets.disk.as_ref()?);
            let filled = tokio::task::spawn_blocking(move || {
                disk.fill();
                std::thread::sleep(lasts);
                disk.empty();
            });
            filled.await.expect("the harness does not panic");
            Some(("disk full".to_owned(), true))
        }
        2 => {
            targets.node.limit_files(Some(4096));
            sleep(lasts).await;
            targets.node.limit_files(None);
            Some(("I/O errors of the disk".to_owned(), true))
        }
        3 => {
            let refused = damage(targets, rng).await.unwrap_or(false);
            Some(("file damaged while stopped".to_owned(), refused))
        }
        4 => Some((fault_injectors::fail_commits(&targets.node).await, true)),
        _ => Some((
            fault_injectors::inject_fault(&targets.node, rng).await?,
            true,
        )),
    }
}

/// Damages a page that is in use; returns whether the node rejected the file and left it unchanged.
/// Then restores the page, as from a backup.
async fn damage(targets: &SqliteFaults, rng: &mut ChaCha8Rng) -> Result<bool, sqlx::Error> {
    targets.node.kill();
    let roots = roots(&targets.file).await?;
    let root = roots[rng.random_range(0..roots.len())] as usize;
    let sound = fs::read(&targets.file)?;
    let mut damaged = sound.clone();
    let page = (root - 1) * 4096..root * 4096;
    damaged[page].iter_mut().for_each(|it| *it ^= 0x5a);
    fs::write(&targets.file, &damaged)?;

    targets.node.spawn();
    let ended = fault_injectors::wait_until(REFUSAL_TIMEOUT, || targets.node.is_gone()).await;
    let refused = ended && targets.node.tail(5).contains("is damaged");
    let kept = fs::read(&targets.file)? == damaged;
    targets.node.kill();
    fs::write(&targets.file, &sound)?;
    Ok(refused && kept)
}

/// Writes the WAL to the file and returns the first page of each table and index.
async fn roots(file: &std::path::Path) -> Result<Vec<i64>, sqlx::Error> {
    let options = SqliteConnectOptions::new().filename(file);
    let mut connection = SqliteConnection::connect_with(&options).await?;
    sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)")
        .execute(&mut connection)
        .await?;
    let roots = "SELECT rootpage FROM sqlite_master WHERE rootpage > 1";
    let roots = sqlx::query_scalar(roots).fetch_all(&mut connection).await?;
    connection.close().await?;
    Ok(roots)
}
