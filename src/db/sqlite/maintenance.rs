//! Maintains the SQLite file after commits: runs checkpoints and merges the segments of the search
//! index, which SQLite would otherwise do inside a COMMIT.

use std::time::Duration;

use base::shutdown::Shutdown;

use crate::db::backend::Backend;
use crate::db::connect::Db;
use crate::db::sqlite::checkpoint::Checkpoints;
use crate::db::sqlite::segments;

/// The pause before each batch of merges.
const MERGE_INTERVAL: Duration = Duration::from_millis(500);

/// Maintains an SQLite file after commits, until the node drains. Does nothing on PostgreSQL.
pub async fn run_maintenance(db: Db, shutdown: Shutdown) {
    let Some(checkpoints) = db.checkpoints.clone() else {
        return;
    };
    tokio::select! {
        () = shutdown.draining.cancelled() => {}
        () = checkpoints.run_checkpoints() => {}
        () = run_merges(&db, &checkpoints) => {}
    }
}

async fn run_merges(db: &Db, checkpoints: &Checkpoints) {
    let mut commits = checkpoints.subscribe();
    while commits.changed().await.is_ok() {
        loop {
            tokio::time::sleep(MERGE_INTERVAL).await;
            if !db.merge_segments().await {
                break;
            }
        }
    }
}

impl Db {
    /// Merges segments of the search index until few are left, or until a transaction was slow.
    /// Other writes can run between its transactions. Does nothing on PostgreSQL.
    ///
    /// Returns whether more may have to be merged later. An error ends the call: it is recorded in
    /// the write health, and the next call continues.
    pub async fn merge_segments(&self) -> bool {
        if self.backend() == Backend::Postgres {
            return false;
        }
        let Some(mut call) = self.merges.start() else {
            return true;
        };
        while let Some(pages) = call.next_pages() {
            match self.merge_pages(pages).await {
                Some(took) => call.record(took),
                None => return false,
            }
        }
        true
    }

    /// Merges segments in one transaction, which writes at most `pages` pages. Returns its duration,
    /// or `None` if nothing was left to merge or an error occurred.
    async fn merge_pages(&self, pages: i64) -> Option<Duration> {
        let db = self.clone();
        let step = self.main.spawn(async move {
            db.write_once(
                move |tx| Box::pin(segments::merge_pages(tx, pages)),
                |_| None,
            )
            .await
        });
        let began = step.await.ok()?.ok()??;
        Some(began.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::Duration;

    use base::shutdown::Shutdown;
    use sea_orm::{ConnectionTrait, DatabaseBackend, DbErr, Statement};

    use super::run_maintenance;
    use crate::db::connect::{Db, DbOptions};

    const N_WRITES: i64 = 40;

    async fn open_migrated(file: &Path) -> Db {
        let options = DbOptions {
            url: format!("sqlite://{}?mode=rwc", file.display()),
            synchronous_full: true,
        };
        let db = Db::connect(&options).await.unwrap();
        db.migrate().await.unwrap();
        db
    }

    /// Writes several transactions; each adds a segment.
    async fn write_segments(db: &Db) {
        for id in 1..=N_WRITES {
            let insert = format!(
                "INSERT INTO message_search(rowid, content) VALUES ({id}, 'The rain on the quay {id}')"
            );
            let written: Result<_, DbErr> = db
                .write(move |tx| Box::pin(async move { tx.execute_unprepared(&insert).await }))
                .await;
            written.unwrap();
        }
    }

    async fn count_segments(db: &Db) -> i64 {
        let sql = "SELECT COUNT(DISTINCT segid) FROM message_search_idx";
        let query = Statement::from_string(DatabaseBackend::Sqlite, sql);
        let row = db.reader().query_one_raw(query).await.unwrap().unwrap();
        row.try_get_by_index(0).unwrap()
    }

    async fn wait_until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
        let waiting = async {
            while !condition().await {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(30), waiting).await;
        waited.unwrap_or_else(|_| panic!("timed out waiting until {what}"));
    }

    #[tokio::test]
    async fn a_transaction_that_writes_a_message_merges_no_segments() {
        let folder = tempfile::tempdir().unwrap();
        let db = open_migrated(&folder.path().join("troupe.db")).await;

        write_segments(&db).await;

        assert_eq!(count_segments(&db).await, N_WRITES);
        // On a busy machine a slow transaction ends a call early.
        while db.merge_segments().await {}
        assert!(count_segments(&db).await < 10);
        db.close().await;
    }

    #[tokio::test]
    async fn after_commits_segments_are_merged_and_pages_move_into_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("troupe.db");
        let db = open_migrated(&file).await;
        let shutdown = Shutdown::new();
        let before = fs::read(&file).unwrap();
        let maintenance = tokio::spawn(run_maintenance(db.clone(), shutdown.clone()));

        write_segments(&db).await;

        wait_until("few segments are left", async || {
            count_segments(&db).await < 10
        })
        .await;
        wait_until("the file has changed", async || {
            fs::read(&file).unwrap() != before
        })
        .await;
        shutdown.draining.cancel();
        maintenance.await.unwrap();
        db.close().await;
    }
}
