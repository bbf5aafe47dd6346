//! Migrates the database, also when several processes start at the same time.

use migration::{Migrator, MigratorTrait};
use sea_orm::{ConnectionTrait, DbErr, TransactionTrait};

use crate::db::backend::Backend;
use crate::db::connect::Db;

/// Arbitrary, the same on every node: held by the node that migrates.
const MIGRATION_LOCK: i64 = 7_236_451_918;

impl Db {
    /// Applies every missing migration.
    ///
    /// # Errors
    /// Returns `DbErr` when a step fails; the step is rolled back completely.
    pub async fn migrate(&self) -> Result<(), DbErr> {
        match self.backend() {
            // Only one process uses the file: it was locked before it was opened.
            Backend::Sqlite => Migrator::up(&self.writer, None).await,
            Backend::Postgres => self.migrate_under_lock().await,
        }
    }

    /// Returns the number of missing migrations.
    ///
    /// # Errors
    /// Returns `DbErr` when the database does not answer.
    pub async fn missing_migrations(&self) -> Result<usize, DbErr> {
        Ok(Migrator::get_pending_migrations(&self.writer).await?.len())
    }

    async fn migrate_under_lock(&self) -> Result<(), DbErr> {
        let lock = self.heartbeat_connection().begin().await?;
        // The default limits would abort the wait for another node's long migration.
        lock.execute_unprepared("set local lock_timeout = 0; set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0")
            .await?;
        lock.execute_unprepared(&format!("select pg_advisory_xact_lock({MIGRATION_LOCK})"))
            .await?;
        base::fail_point!("migrate.begin", ?);
        Migrator::up(&self.writer, None).await?;
        base::fail_point!("migrate.end", ?);
        lock.commit().await
    }
}
