//! Brings the tables up to date, also when several processes start at once.

use migration::{Migrator, MigratorTrait};
use sea_orm::{ConnectionTrait, DbErr, TransactionTrait};

use crate::db::connect::{Backend, Db};

/// Any number, the same on every node: who holds it migrates.
const MIGRATION_LOCK: i64 = 7_236_451_918;

impl Db {
    /// Applies every migration that is missing.
    ///
    /// # Errors
    /// When a step fails; the step is rolled back whole.
    pub async fn migrate(&self) -> Result<(), DbErr> {
        match self.backend() {
            // One process owns the file: its lock was taken before it was opened.
            Backend::Sqlite => Migrator::up(&self.writer, None).await,
            Backend::Postgres => self.migrate_under_lock().await,
        }
    }

    /// How many migrations are missing.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn missing_migrations(&self) -> Result<usize, DbErr> {
        Ok(Migrator::get_pending_migrations(&self.writer).await?.len())
    }

    async fn migrate_under_lock(&self) -> Result<(), DbErr> {
        let lock = self.heartbeat_connection().begin().await?;
        // The default limit would give up on a long migration of another node.
        lock.execute_unprepared("set local lock_timeout = 0; set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0")
            .await?;
        lock.execute_unprepared(&format!("select pg_advisory_xact_lock({MIGRATION_LOCK})"))
            .await?;
        crate::fail_point!("migrate.begin", ?);
        Migrator::up(&self.writer, None).await?;
        crate::fail_point!("migrate.end", ?);
        lock.commit().await
    }
}
