//! Adds checks to the connection pools: a connection that may still be in a transaction is closed
//! instead of reused.
//!
//! **Invariant:** a connection whose COMMIT or ROLLBACK failed is closed and never reused. sqlx
//! lowers its transaction depth only when these statements succeed; a connection that keeps a depth
//! of 1 runs the next `begin` as a SAVEPOINT, and nothing ever commits it.

use std::sync::Arc;

use sqlx::Connection;
use sqlx::pool::PoolOptions;
use sqlx::postgres::PgConnection;
use tokio::sync::watch;

/// How the last transaction of the only writing connection of SQLite ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TransactionEnd {
    Succeeded,
    Pending,
    Failed,
}

/// Reports the result of COMMIT and ROLLBACK to the pool that the connection returns to.
#[derive(Clone, Debug)]
pub(super) struct TransactionEnds {
    last: Arc<watch::Sender<TransactionEnd>>,
}

impl Default for TransactionEnds {
    fn default() -> Self {
        Self {
            last: Arc::new(watch::Sender::new(TransactionEnd::Succeeded)),
        }
    }
}

impl TransactionEnds {
    /// Must be called before COMMIT or ROLLBACK. The pool waits for the result before it reuses the
    /// connection; dropping the guard without [`TransactionEndGuard::mark_succeeded`] means
    /// failure.
    pub(super) fn start_ending(&self) -> TransactionEndGuard {
        self.last.send_replace(TransactionEnd::Pending);
        TransactionEndGuard {
            transaction_ends: self.clone(),
            end: TransactionEnd::Failed,
        }
    }

    /// Records that the connection cannot begin transactions: it is replaced before the next one.
    pub(super) fn mark_failed(&self) {
        self.last.send_replace(TransactionEnd::Failed);
    }

    /// Returns whether the returned connection may be kept.
    async fn is_reusable(&self) -> bool {
        let mut last = self.last.subscribe();
        // `self` holds the sender, so this cannot fail.
        let _ = last.wait_for(|it| *it != TransactionEnd::Pending).await;
        self.last.send_replace(TransactionEnd::Succeeded) != TransactionEnd::Failed
    }
}

/// A running COMMIT or ROLLBACK.
pub(super) struct TransactionEndGuard {
    transaction_ends: TransactionEnds,
    end: TransactionEnd,
}

impl TransactionEndGuard {
    /// Records success.
    pub(super) fn mark_succeeded(mut self) {
        self.end = TransactionEnd::Succeeded;
    }
}

impl Drop for TransactionEndGuard {
    fn drop(&mut self) {
        self.transaction_ends.last.send_replace(self.end);
    }
}

/// Adds the checks of SQLite's writing connection. They cost no statement: the depth is a number in
/// memory, and `BEGIN IMMEDIATE` itself fails inside a transaction.
pub(super) fn check_sqlite_writer(
    options: PoolOptions<sqlx::Sqlite>,
    transaction_ends: &TransactionEnds,
) -> PoolOptions<sqlx::Sqlite> {
    let (released, acquired) = (transaction_ends.clone(), transaction_ends.clone());
    options
        .after_release(move |connection, _| {
            let endings = released.clone();
            Box::pin(
                async move { Ok(endings.is_reusable().await && !connection.is_in_transaction()) },
            )
        })
        .before_acquire(move |connection, _| {
            let endings = acquired.clone();
            Box::pin(
                async move { Ok(endings.is_reusable().await && !connection.is_in_transaction()) },
            )
        })
}

/// Adds the check of SQLite's reading connections: one that stayed in a transaction would show the
/// same state forever.
pub(super) fn check_sqlite_readers(
    options: PoolOptions<sqlx::Sqlite>,
) -> PoolOptions<sqlx::Sqlite> {
    options
        .after_release(|connection, _| Box::pin(async move { Ok(!connection.is_in_transaction()) }))
}

/// Adds the checks of a PostgreSQL connection before it is reused; they cost no statement either. A
/// `BEGIN` whose future is dropped would leave its connection in an open transaction that these
/// checks do not detect (sqlx 0.9.0): transactions therefore begin only in tasks that nothing
/// drops.
pub(super) fn check_postgres(options: PoolOptions<sqlx::Postgres>) -> PoolOptions<sqlx::Postgres> {
    options
        .before_acquire(|connection, _| Box::pin(async move { Ok(is_settled(connection)) }))
        .after_release(|connection, _| Box::pin(async move { Ok(is_settled(connection)) }))
}

/// Returns whether no transaction is open and no ROLLBACK is queued: sqlx queues one when a
/// transaction is dropped and when its COMMIT or ROLLBACK failed.
fn is_settled(connection: &PgConnection) -> bool {
    !connection.is_in_transaction() && !connection.should_flush()
}
