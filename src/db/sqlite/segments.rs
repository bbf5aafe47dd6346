//! Merges the segments of SQLite's search index, in small transactions.
//!
//! Each transaction that writes messages adds a segment to the index (FTS5), and segments must be
//! merged. FTS5 would do this inside the transaction that happens to have written enough, for up to
//! tens of milliseconds; this is switched off, and bulk writers merge after each batch.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sea_orm::{ConnectionTrait, DatabaseBackend, DatabaseTransaction, DbErr, Statement};
use tokio::sync::Mutex;

use crate::db::connect::{Backend, Db};

/// The intended duration of a transaction.
const TARGET_DURATION: Duration = Duration::from_micros(1_500);
/// The index entries of trigrams that are in most messages are merged in one piece, whatever the
/// duration. After a transaction of this length, merging pauses for 100 times as long.
const SLOW_DURATION: Duration = Duration::from_millis(3);
const PAUSE_FACTOR: u32 = 100;
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// Pages of 4 KiB that the first transaction of a call writes, and the maximum of later ones.
const FIRST_PAGES: i64 = 4;
const MAX_PAGES: i64 = 32;
/// The maximum number of transactions of one call; the next call continues.
const MAX_STEPS: u32 = 64;

/// The merges of one file: one call at a time. Holds the end of the pause after a slow transaction.
#[derive(Clone, Default)]
pub(in crate::db) struct SegmentMerges {
    resume_at: Arc<Mutex<Option<Instant>>>,
}

impl Db {
    /// Merges segments until few are left, or until a transaction was slow. Other writes can run
    /// between its transactions. Does nothing on PostgreSQL.
    ///
    /// Returns whether more may have to be merged later. An error ends the call: it is recorded in
    /// the write health, and the next call continues.
    pub async fn merge_segments(&self) -> bool {
        if self.backend() == Backend::Postgres {
            return false;
        }
        let Ok(mut resume_at) = self.merges.resume_at.try_lock() else {
            return true; // another call is merging
        };
        if resume_at.is_some_and(|it| it > Instant::now()) {
            return true;
        }
        let mut pages = FIRST_PAGES;
        for _ in 0..MAX_STEPS {
            let db = self.clone();
            let step = self.main.spawn(async move {
                db.write_once(move |tx| Box::pin(merge_pages(tx, pages)), |_| None)
                    .await
            });
            match step.await {
                Ok(Ok(Some(began))) => {
                    let took = began.elapsed();
                    if took >= SLOW_DURATION {
                        *resume_at = Some(Instant::now() + (took * PAUSE_FACTOR).min(MAX_PAUSE));
                        return true;
                    }
                    pages = next_pages(pages, took);
                }
                Ok(Ok(None) | Err(_)) | Err(_) => return false,
            }
        }
        true
    }
}

/// Adapts the page count: where deleted texts are merged, many pages are read for few written.
fn next_pages(pages: i64, took: Duration) -> i64 {
    match took > TARGET_DURATION {
        true => (pages / 2).max(1),
        false => (pages * 2).min(MAX_PAGES),
    }
}

/// Returns when the transaction began, or `None` if there was nothing to merge.
async fn merge_pages(tx: &DatabaseTransaction, pages: i64) -> Result<Option<Instant>, DbErr> {
    let began = Instant::now();
    let before = count_changes(tx).await?;
    let merge = "INSERT INTO message_search(message_search, rank) VALUES ('merge', $1)";
    tx.execute_raw(Statement::from_sql_and_values(
        DatabaseBackend::Sqlite,
        merge,
        [pages.into()],
    ))
    .await?;
    // One change is the statement itself (https://sqlite.org/fts5.html#the_merge_command).
    let is_merged = count_changes(tx).await? - before > 1;
    Ok(is_merged.then_some(began))
}

async fn count_changes(tx: &DatabaseTransaction) -> Result<i64, DbErr> {
    let query = Statement::from_string(DatabaseBackend::Sqlite, "SELECT total_changes()");
    match tx.query_one_raw(query).await? {
        Some(row) => row.try_get_by_index(0),
        None => Ok(0),
    }
}
