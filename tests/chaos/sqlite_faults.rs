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

/// Longer than the node may take to be ready again: a write probe is written every 5 s.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(60);
/// Longer than a start needs to reject a file.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(30);

/// The node and its file.
pub struct SqliteFaults {
    pub node: Arc<Node>,
    pub file: PathBuf,
    /// `None` where none can be mounted.
    pub disk: Option<Arc<SmallDisk>>,
}

/// One fault after another until the end; the node is ready between them.
pub async fn inject_faults(
    ground: SqliteFaults,
    mut dice: ChaCha8Rng,
    peace: Duration,
    end: Instant,
    done: FaultLog,
) {
    while Instant::now() < end {
        let longest = peace.as_millis() as u64 * 2;
        sleep(Duration::from_millis(dice.random_range(0..=longest))).await;
        let (at, worker) = (now(), ground.node.worker());
        let outcome = match fault_injectors::exited_at_fail_point(&ground.node) {
            Some(kind) => Some((kind, true)),
            None => inject_fault(&ground, &mut dice).await,
        };
        let Some((kind, is_right)) = outcome else {
            continue;
        };
        let until = now();
        let healed = timeout(RECOVERY_TIMEOUT, ground.node.start())
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

/// Does one fault; says what it was, and whether the node did what it must meanwhile.
async fn inject_fault(ground: &SqliteFaults, dice: &mut ChaCha8Rng) -> Option<(String, bool)> {
    let lasts = Duration::from_millis(dice.random_range(300..2_500));
    match dice.random_range(0..10) {
        0 | 1 => {
            let disk = Arc::clone(ground.disk.as_ref()?);
            let filled = tokio::task::spawn_blocking(move || {
                disk.fill();
                std::thread::sleep(lasts);
                disk.empty();
            });
            filled.await.expect("the harness itself does not break");
            Some(("disk full".to_owned(), true))
        }
        2 => {
            ground.node.limit_files(Some(4096));
            sleep(lasts).await;
            ground.node.limit_files(None);
            Some(("I/O errors of the disk".to_owned(), true))
        }
        3 => {
            let refused = damage(ground, dice).await.unwrap_or(false);
            Some(("file damaged while stopped".to_owned(), refused))
        }
        4 => Some((fault_injectors::fail_commits(&ground.node).await, true)),
        _ => Some((
            fault_injectors::inject_fault(&ground.node, dice).await?,
            true,
        )),
    }
}

/// Damages a page that is in use; whether the node refuses the file and leaves it as it is. Then the
/// page is put back, as from a backup.
async fn damage(ground: &SqliteFaults, dice: &mut ChaCha8Rng) -> Result<bool, sqlx::Error> {
    ground.node.kill();
    let roots = roots(&ground.file).await?;
    let root = roots[dice.random_range(0..roots.len())] as usize;
    let sound = fs::read(&ground.file)?;
    let mut damaged = sound.clone();
    let page = (root - 1) * 4096..root * 4096;
    damaged[page].iter_mut().for_each(|it| *it ^= 0x5a);
    fs::write(&ground.file, &damaged)?;

    ground.node.spawn();
    let ended = fault_injectors::wait_until(REFUSAL_TIMEOUT, || ground.node.is_gone()).await;
    let refused = ended && ground.node.tail(5).contains("is damaged");
    let kept = fs::read(&ground.file)? == damaged;
    ground.node.kill();
    fs::write(&ground.file, &sound)?;
    Ok(refused && kept)
}

/// The first page of each table and index, with everything in the file itself.
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
