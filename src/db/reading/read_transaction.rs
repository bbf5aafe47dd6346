//! Runs several reads in one read-only transaction ([`Db::read`]), and checks that the database
//! answers ([`Db::ping`]).
//!
//! **Invariant:** values that one response shows together are read by [`Db::read`], from one state
//! of the database: separate statements may each see another commit.

use futures::future::BoxFuture;
use sea_orm::{
    AccessMode, ConnectionTrait, DatabaseTransaction, DbErr, IsolationLevel, RuntimeErr,
    SqliteTransactionMode, TransactionOptions, TransactionTrait,
};

use crate::db::backend::Backend;
use crate::db::connect::Db;
use crate::db::write::WriteError;

impl Db {
    /// Checks that the database answers a query.
    ///
    /// # Errors
    /// Returns `DbErr` when it does not.
    pub async fn ping(&self) -> Result<(), DbErr> {
        self.reader().execute_unprepared("select 1").await.map(drop)
    }

    /// Runs several reads in one read-only transaction: all of them see the same committed state.
    ///
    /// The transaction holds one connection: `work` must only read, and use no other connection.
    ///
    /// # Errors
    /// Returns the error of `work`, or `DbErr` when the transaction cannot begin.
    pub async fn read<T, E, F>(&self, work: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: WriteError,
        F: for<'a> FnOnce(&'a DatabaseTransaction) -> BoxFuture<'a, Result<T, E>> + Send + 'static,
    {
        let (pool, health) = (self.reader().pool.clone(), self.health().clone());
        let options = snapshot_options(self.backend());
        // A separate task, so that a dropped request does not drop the transaction: see
        // `db::write`.
        let task = self.main.spawn(async move {
            let tx = pool.begin_with_options(options).await?;
            let found = work(&tx).await;
            match &found {
                Ok(_) => tx.commit().await?,
                Err(error) => {
                    health.observe_read(error);
                    // The first error is the one to report; there is nothing to undo.
                    drop(tx.rollback().await);
                }
            }
            found
        });
        task.await.unwrap_or_else(|_| {
            let message = "the transaction's task ended".to_owned();
            Err(DbErr::Query(RuntimeErr::Internal(message)).into())
        })
    }
}

/// Returns options for one snapshot per transaction. SQLite always has one, from the first read on;
/// PostgreSQL's default isolation level takes a new one for each statement.
fn snapshot_options(backend: Backend) -> TransactionOptions {
    match backend {
        Backend::Sqlite => TransactionOptions {
            sqlite_transaction_mode: Some(SqliteTransactionMode::Deferred),
            ..Default::default()
        },
        Backend::Postgres => TransactionOptions {
            isolation_level: Some(IsolationLevel::RepeatableRead),
            access_mode: Some(AccessMode::ReadOnly),
            ..Default::default()
        },
    }
}
