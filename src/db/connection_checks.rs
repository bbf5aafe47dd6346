//! Whether a connection may be used again after a transaction.
//!
//! **Invariant:** a connection whose COMMIT or ROLLBACK failed is closed and never handed out
//! again. sqlx lowers its transaction depth only when these statements succeed; a connection that
//! keeps a depth of 1 answers the next `begin` with a SAVEPOINT, and nothing ever commits it.

use std::sync::Arc;

use sqlx::Connection;
use sqlx::pool::PoolOptions;
use sqlx::postgres::PgConnection;
use tokio::sync::watch;

/// How the last transaction of the one writing connection of SQLite ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TransactionEnd {
    Succeeded,
    Pending,
    Failed,
}

/// Carries the outcome of COMMIT and ROLLBACK to the pool that gets the connection back.
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
    /// To be called before COMMIT or ROLLBACK. The pool waits for the outcome before it hands the
    /// connection out again; a value that is dropped without [`Ending::well`] is a failure.
    pub(super) fn start_ending(&self) -> TransactionEndGuard {
        self.last.send_replace(TransactionEnd::Pending);
        TransactionEndGuard {
            transaction_ends: self.clone(),
            end: TransactionEnd::Failed,
        }
    }

    /// Notes that the connection does not begin transactions: it is replaced before the next one.
    pub(super) fn mark_failed(&self) {
        self.last.send_replace(TransactionEnd::Failed);
    }

    /// Whether the connection that was given back may be kept.
    async fn is_reusable(&self) -> bool {
        let mut last = self.last.subscribe();
        // The sender lives as long as this value.
        let _ = last.wait_for(|it| *it != TransactionEnd::Pending).await;
        self.last.send_replace(TransactionEnd::Succeeded) != TransactionEnd::Failed
    }
}

/// A COMMIT or ROLLBACK that is under way.
pub(super) struct TransactionEndGuard {
    transaction_ends: TransactionEnds,
    end: TransactionEnd,
}

impl TransactionEndGuard {
    /// It succeeded.
    pub(super) fn mark_succeeded(mut self) {
        self.end = TransactionEnd::Succeeded;
    }
}

impl Drop for TransactionEndGuard {
    fn drop(&mut self) {
        self.transaction_ends.last.send_replace(self.end);
    }
}

/// The checks of the writing connection of SQLite. They cost no statement: the depth is a number in
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

/// The check of the reading connections of SQLite: one that stayed in a transaction would show the
/// same state for ever.
pub(super) fn check_sqlite_readers(
    options: PoolOptions<sqlx::Sqlite>,
) -> PoolOptions<sqlx::Sqlite> {
    options
        .after_release(|connection, _| Box::pin(async move { Ok(!connection.is_in_transaction()) }))
}

/// The checks of a PostgreSQL connection before it is handed out; no statement either.
pub(super) fn check_postgres(options: PoolOptions<sqlx::Postgres>) -> PoolOptions<sqlx::Postgres> {
    options
        .before_acquire(|connection, _| Box::pin(async move { Ok(is_settled(connection)) }))
        .after_release(|connection, _| {
            Box::pin(async move { Ok(is_settled(connection) && is_idle(connection).await?) })
        })
}

/// Whether no transaction is open, and no ROLLBACK waits to be sent: sqlx queues one when a
/// transaction is dropped and when its COMMIT or ROLLBACK has failed.
fn is_settled(connection: &PgConnection) -> bool {
    !connection.is_in_transaction() && !connection.should_flush()
}

/// A `BEGIN` whose future was dropped leaves its connection inside an open transaction (sqlx
/// 0.9.0); such a connection would swallow the next writes. In a simple query the two clocks agree
/// only outside a transaction. Goes when a later sqlx is out.
async fn is_idle(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    use sqlx::{Executor, Row};
    let row = connection
        .fetch_one("select now() = statement_timestamp()")
        .await?;
    row.try_get::<bool, _>(0)
}
