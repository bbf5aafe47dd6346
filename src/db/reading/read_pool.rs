//! The pool of read connections, which any runtime may use, and read-only transactions.
//!
//! **Invariant:** on PostgreSQL every statement runs on the main runtime. A connection belongs to
//! the reactor of the thread that opened it, and an empty pool opens one on the caller's thread: on
//! an HTTP worker it would be served only while that worker is not busy, and break when it ends. A
//! separate task also finishes a statement whose caller was dropped.
//!
//! **Invariant:** values that one response shows together are read by [`ReadPool::read`], from one
//! state of the database: separate statements may each see another commit.

use async_trait::async_trait;
use futures::future::BoxFuture;
use sea_orm::{
    AccessMode, ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr,
    ExecResult, IsolationLevel, QueryResult, RuntimeErr, SqliteTransactionMode, Statement,
    TransactionOptions, TransactionTrait,
};
use tokio::runtime::Handle;

use crate::db::connect::{Backend, Db};
use crate::db::health::WriteHealth;
use crate::db::write::WriteError;

/// The connections for reading. Cheap to clone; clones share the pool.
#[derive(Clone, Debug)]
pub struct ReadPool {
    pub(in crate::db) pool: DatabaseConnection,
    /// Where statements run; `None`: on the caller's runtime. SQLite has its own threads.
    runtime: Option<Handle>,
    /// Records damage that a read finds.
    health: WriteHealth,
}

impl ReadPool {
    /// Runs statements on the caller's runtime.
    pub(in crate::db) fn new(pool: DatabaseConnection, health: WriteHealth) -> Self {
        Self {
            pool,
            runtime: None,
            health,
        }
    }

    /// Runs every statement on `runtime`.
    pub(in crate::db) fn on_runtime(
        runtime: Handle,
        pool: DatabaseConnection,
        health: WriteHealth,
    ) -> Self {
        Self {
            pool,
            runtime: Some(runtime),
            health,
        }
    }

    async fn run<T, F>(&self, work: impl FnOnce(DatabaseConnection) -> F) -> Result<T, DbErr>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, DbErr>> + Send + 'static,
    {
        let work = work(self.pool.clone());
        let read = match self.runtime.as_ref().filter(|at| is_other_runtime(at)) {
            None => work.await,
            Some(at) => at.spawn(work).await.unwrap_or_else(|_| {
                let message = "the statement's task ended".to_owned();
                Err(DbErr::Query(RuntimeErr::Internal(message)))
            }),
        };
        if let Err(error) = &read {
            self.health.observe_read(error);
        }
        read
    }
}

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

/// Returns whether the caller runs on another runtime.
fn is_other_runtime(runtime: &Handle) -> bool {
    Handle::try_current().map_or(true, |current| current.id() != runtime.id())
}

#[async_trait]
impl ConnectionTrait for ReadPool {
    fn get_database_backend(&self) -> DbBackend {
        self.pool.get_database_backend()
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        self.run(|pool| async move { pool.execute_raw(statement).await })
            .await
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        let sql = sql.to_owned();
        self.run(|pool| async move { pool.execute_unprepared(&sql).await })
            .await
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        self.run(|pool| async move { pool.query_one_raw(statement).await })
            .await
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        self.run(|pool| async move { pool.query_all_raw(statement).await })
            .await
    }
}

#[cfg(test)]
mod tests {
    use sea_orm::{DatabaseConnection, DbErr};
    use tokio::runtime::{Builder, Handle, Id};

    use super::{ReadPool, WriteHealth};

    async fn runtime_of_statement(reader: &ReadPool) -> Result<Id, DbErr> {
        let here = |_| async { Ok(Handle::current().id()) };
        reader.run(here).await
    }

    #[test]
    fn a_statement_asked_for_on_a_worker_runs_on_the_main_runtime() {
        let main = Builder::new_multi_thread().build().unwrap();
        let worker = Builder::new_current_thread().build().unwrap();
        let on_main = ReadPool::on_runtime(
            main.handle().clone(),
            DatabaseConnection::default(),
            WriteHealth::default(),
        );
        let on_caller = ReadPool::new(DatabaseConnection::default(), WriteHealth::default());

        let id = main.handle().id();

        assert_eq!(worker.block_on(runtime_of_statement(&on_main)), Ok(id));
        assert_eq!(main.block_on(runtime_of_statement(&on_main)), Ok(id));
        assert_ne!(worker.block_on(runtime_of_statement(&on_caller)), Ok(id));
    }

    #[test]
    fn a_runtime_that_has_ended_is_an_error() {
        let main = Builder::new_multi_thread().build().unwrap();
        let worker = Builder::new_current_thread().build().unwrap();
        let reader = ReadPool::on_runtime(
            main.handle().clone(),
            DatabaseConnection::default(),
            WriteHealth::default(),
        );

        main.shutdown_background();

        assert!(worker.block_on(runtime_of_statement(&reader)).is_err());
    }
}
