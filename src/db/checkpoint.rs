//! Checkpoints of SQLite: pages that were committed move from the write-ahead log into the file.
//!
//! SQLite would do this in the COMMIT of the transaction that fills the log, and every write that
//! waits for the one writing connection would wait for two more syncs of the disk. Here a connection
//! of its own does it beside the writer (`SQLITE_CHECKPOINT_PASSIVE`, which waits for no one).

use std::sync::Arc;
use std::time::Duration;

use sea_orm::{ConnectionTrait, DatabaseConnection};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use tokio::sync::watch;

/// The time between two checkpoints. What is written in it is what the writer moves when the log is
/// full.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(4);
/// A log of more pages (128 MiB) is checkpointed by the writer. Only there can the log begin anew
/// while writes never pause; few pages are left for it to move.
const MAX_LOG_PAGES: &str = "32768";

/// The connection that makes checkpoints. It is opened by the first one.
#[derive(Clone)]
pub(super) struct Checkpoints {
    pool: DatabaseConnection,
    committed: Arc<watch::Sender<()>>,
}

impl Checkpoints {
    pub(super) fn new(pool: SqlitePoolOptions, options: SqliteConnectOptions) -> Self {
        Self {
            pool: pool.connect_lazy_with(options).into(),
            committed: Arc::default(),
        }
    }

    /// Notes that something was committed.
    pub(super) fn committed(&self) {
        self.committed.send_replace(());
    }

    /// Sees the commits that follow.
    pub(super) fn subscribe(&self) -> watch::Receiver<()> {
        self.committed.subscribe()
    }

    /// Makes checkpoints after commits, for ever.
    pub(super) async fn run_checkpoints(&self) {
        let mut commits = self.subscribe();
        let mut is_failing = false;
        // The sender lives as long as this value.
        while commits.changed().await.is_ok() {
            tokio::time::sleep(CHECKPOINT_INTERVAL).await;
            let statement = "PRAGMA wal_checkpoint(PASSIVE)";
            let error = self.pool.execute_unprepared(statement).await.err();
            if let Some(error) = error.as_ref().filter(|_| !is_failing) {
                // Nothing is lost: what was committed stays in the log.
                tracing::warn!(%error, "the write-ahead log was not moved into the database file: {error}");
            }
            is_failing = error.is_some();
        }
    }

    pub(super) fn into_pool(self) -> DatabaseConnection {
        self.pool
    }
}

/// Options of the writing connection, which leaves checkpoints to the other one.
pub(super) fn writer_options(options: SqliteConnectOptions) -> SqliteConnectOptions {
    options.pragma("wal_autocheckpoint", MAX_LOG_PAGES)
}
