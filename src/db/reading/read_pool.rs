//! Defines `ReadPool`, the connections for statements that read. It can be used from any runtime,
//! and records file damage that a read finds.
//!
//! **Invariant:** on PostgreSQL every statement runs on the main runtime. A connection belongs to
//! the reactor of the thread that opened it, and an empty pool opens one on the caller's thread: on
//! an HTTP worker it would be served only while that worker is not busy, and break when it ends. A
//! separate task also finishes a statement whose caller was dropped.

use async_trait::async_trait;
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DbBackend, DbErr, ExecResult, QueryResult, RuntimeErr,
    Statement,
};
use tokio::runtime::Handle;

use crate::db::health::WriteHealth;

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
        let own_runtime = |_| async { Ok(Handle::current().id()) };
        reader.run(own_runtime).await
    }

    #[test]
    fn a_statement_requested_on_a_worker_runs_on_the_main_runtime() {
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
