//! Merges the segments of SQLite's search index, in small transactions.
//!
//! Each transaction that writes messages adds a segment to the index (FTS5), and segments must be
//! merged. FTS5 would do this inside the transaction that happens to have written enough, for up to
//! tens of milliseconds; this is switched off. Instead `maintenance.rs` merges after commits, and
//! bulk writers after each batch.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sea_orm::{ConnectionTrait, DatabaseBackend, DatabaseTransaction, DbErr, Statement};
use tokio::sync::{Mutex, MutexGuard};

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

/// A call that merges: which transactions it executes.
pub(super) struct MergeCall<'a> {
    resume_at: MutexGuard<'a, Option<Instant>>,
    pages: i64,
    n_steps_left: u32,
}

impl SegmentMerges {
    /// Starts a call. Returns `None` while another one merges, and during a pause.
    pub(super) fn start(&self) -> Option<MergeCall<'_>> {
        let resume_at = self.resume_at.try_lock().ok()?;
        if resume_at.is_some_and(|it| it > Instant::now()) {
            return None;
        }
        Some(MergeCall {
            resume_at,
            pages: FIRST_PAGES,
            n_steps_left: MAX_STEPS,
        })
    }
}

impl MergeCall<'_> {
    /// Returns how many pages the next transaction may write; `None` if the call is over.
    pub(super) fn next_pages(&self) -> Option<i64> {
        (self.n_steps_left > 0).then_some(self.pages)
    }

    /// Records the duration of a transaction; a slow one ends the call.
    pub(super) fn record(&mut self, took: Duration) {
        self.n_steps_left -= 1;
        if took >= SLOW_DURATION {
            *self.resume_at = Some(Instant::now() + (took * PAUSE_FACTOR).min(MAX_PAUSE));
            self.n_steps_left = 0;
        }
        self.pages = adapt_pages(self.pages, took);
    }
}

/// Adapts the page count: where deleted texts are merged, many pages are read for few written.
fn adapt_pages(pages: i64, took: Duration) -> i64 {
    match took > TARGET_DURATION {
        true => (pages / 2).max(1),
        false => (pages * 2).min(MAX_PAGES),
    }
}

/// Merges segments in `tx`, writing this many pages. Returns when it began, or `None` if there was
/// nothing to merge.
pub(super) async fn merge_pages(
    tx: &DatabaseTransaction,
    pages: i64,
) -> Result<Option<Instant>, DbErr> {
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
