//! Applies the missing migrations, under a lock if several nodes start at the same time, and counts
//! them.

use migration::{Migrator, MigratorTrait};
use sea_orm::{ConnectionTrait, DatabaseConnection, DbErr};

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

    /// Uses one connection for the lock and for the steps. If this process is killed, PostgreSQL
    /// ends its last statement, which may commit a step, before it releases the lock.
    async fn migrate_under_lock(&self) -> Result<(), DbErr> {
        let connection = self.heartbeat_connection();
        // The default limits would abort the wait for another node's long migration.
        for limit in ["lock_timeout", "statement_timeout"] {
            connection
                .execute_unprepared(&format!("set {limit} = 0"))
                .await?;
        }
        connection
            .execute_unprepared(&format!("select pg_advisory_lock({MIGRATION_LOCK})"))
            .await?;
        for limit in ["lock_timeout", "statement_timeout"] {
            connection
                .execute_unprepared(&format!("reset {limit}"))
                .await?;
        }
        let migrated = self.migrate_on(connection).await;
        let unlocked = connection
            .execute_unprepared(&format!("select pg_advisory_unlock({MIGRATION_LOCK})"))
            .await;
        migrated.and(unlocked.map(drop))
    }

    async fn migrate_on(&self, connection: &DatabaseConnection) -> Result<(), DbErr> {
        base::fail_point!("migrate.begin", ?);
        Migrator::up(connection, None).await?;
        base::fail_point!("migrate.end", ?);
        Ok(())
    }
}
