//! Runs SQLite checkpoints after commits, on a separate connection: moves committed pages from the
//! write-ahead log into the file.
//!
//! SQLite would do this in the COMMIT of the transaction that fills the log, and every write that
//! waits for the only writing connection would wait for two more disk syncs. Here a separate
//! connection does it in parallel (`SQLITE_CHECKPOINT_PASSIVE`, which waits for no one).

use std::sync::Arc;
use std::time::Duration;

use sea_orm::{ConnectionTrait, DatabaseConnection};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use tokio::sync::watch;

/// The time between two checkpoints. The pages written in this time are what the writer has to move
/// when the log is full.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(4);
/// If the log has more pages (128 MiB), the writer checkpoints it. Only the writer can restart the
/// log while writes never pause; few pages are left for it to move.
const MAX_LOG_PAGES: &str = "32768";

/// The connection that makes checkpoints; opened by the first one.
#[derive(Clone)]
pub(in crate::db) struct Checkpoints {
    pool: DatabaseConnection,
    committed: Arc<watch::Sender<()>>,
}

impl Checkpoints {
    pub(in crate::db) fn new(pool: SqlitePoolOptions, options: SqliteConnectOptions) -> Self {
        Self {
            pool: pool.connect_lazy_with(options).into(),
            committed: Arc::default(),
        }
    }

    /// Reports a commit.
    pub(in crate::db) fn committed(&self) {
        self.committed.send_replace(());
    }

    /// Returns a receiver that is notified of later commits.
    pub(super) fn subscribe(&self) -> watch::Receiver<()> {
        self.committed.subscribe()
    }

    /// Makes checkpoints after commits, forever.
    pub(super) async fn run_checkpoints(&self) {
        let mut commits = self.subscribe();
        let mut is_failing = false;
        // `self` holds the sender, so the loop does not end.
        while commits.changed().await.is_ok() {
            tokio::time::sleep(CHECKPOINT_INTERVAL).await;
            let statement = "PRAGMA wal_checkpoint(PASSIVE)";
            let error = self.pool.execute_unprepared(statement).await.err();
            if let Some(error) = error.as_ref().filter(|_| !is_failing) {
                // Nothing is lost: committed data stays in the log.
                tracing::warn!(%error, "checkpoint of the write-ahead log failed: {error}");
            }
            is_failing = error.is_some();
        }
    }

    pub(in crate::db) fn into_pool(self) -> DatabaseConnection {
        self.pool
    }
}

/// Returns the options of the writing connection, which leaves checkpoints to the other connection.
pub(in crate::db) fn writer_options(options: SqliteConnectOptions) -> SqliteConnectOptions {
    options.pragma("wal_autocheckpoint", MAX_LOG_PAGES)
}
