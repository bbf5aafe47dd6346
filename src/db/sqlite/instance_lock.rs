//! Allows one process per SQLite file on a file system without `flock`, by a row in the file with a
//! heartbeat.
//!
//! **Invariant:** the row belongs to the process that wrote it last, while its heartbeat is not
//! older than [`VALID_MS`]. A process that finds another owner in the row ends immediately.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use base::clock::{Clock, Timestamp};
use base::shutdown::Shutdown;
use sea_orm::{ConnectionTrait, DbErr, Statement};
use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use uuid::Uuid;

use crate::db::connect::Db;
use crate::db::sqlite::file_lock;

/// How often the heartbeat is written.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);
/// How long after its last heartbeat a process still owns the file, in milliseconds.
const VALID_MS: i64 = 30_000;

const CREATE_TABLE: &str = "create table if not exists instance_lock \
    (id bigint not null primary key, owner text not null, heartbeat_at bigint not null)";

/// The row of this process.
#[derive(Clone, Debug)]
pub struct InstanceLock {
    owner: String,
}

/// Makes this process the owner of the file, before its pools are opened.
///
/// # Errors
/// Returns an error if another process has a recent heartbeat, or the row cannot be written.
pub async fn acquire(file: &Path, now: Timestamp) -> anyhow::Result<InstanceLock> {
    let owner = Uuid::new_v4().simple().to_string();
    let is_ours = write_row(file, &owner, now)
        .await
        .with_context(|| format!("{} cannot be locked", file.display()))?;
    anyhow::ensure!(is_ours, file_lock::in_use_message(file));
    Ok(InstanceLock { owner })
}

async fn write_row(file: &Path, owner: &str, now: Timestamp) -> Result<bool, sqlx::Error> {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .busy_timeout(Duration::from_secs(10));
    let mut connection = SqliteConnection::connect_with(&options).await?;
    sqlx::query(CREATE_TABLE).execute(&mut connection).await?;
    // One statement: of two processes that start at the same time, one finds the other's row.
    let written = sqlx::query(
        "insert into instance_lock (id, owner, heartbeat_at) values (1, ?, ?) \
         on conflict (id) do update set owner = excluded.owner, heartbeat_at = excluded.heartbeat_at \
         where abs(excluded.heartbeat_at - instance_lock.heartbeat_at) > ?",
    )
    .bind(owner)
    .bind(now.0)
    .bind(VALID_MS)
    .execute(&mut connection)
    .await?;
    connection.close().await?;
    Ok(written.rows_affected() == 1)
}

impl InstanceLock {
    /// Writes heartbeats until shutdown; then releases the file.
    pub async fn run_heartbeat(self, db: Db, clock: Clock, shutdown: Shutdown) {
        loop {
            tokio::select! {
                () = shutdown.stopping.cancelled() => break,
                () = tokio::time::sleep(HEARTBEAT_INTERVAL) => {}
            }
            match self.renew(&db, clock.now()).await {
                Ok(true) => {}
                Ok(false) => {
                    tracing::error!("another process owns the database file now: exiting");
                    std::process::exit(1);
                }
                Err(error) => {
                    tracing::warn!(%error, "failed to write the heartbeat of the file lock; retrying: {error}");
                }
            }
        }
        // If the row cannot be deleted, it expires after 30 s.
        let _ = self
            .execute(&db, "delete from instance_lock where owner = ?", vec![])
            .await;
    }

    /// Writes the heartbeat and returns whether this process still owns the file.
    async fn renew(&self, db: &Db, now: Timestamp) -> Result<bool, DbErr> {
        let update = "update instance_lock set heartbeat_at = ? where owner = ?";
        Ok(self.execute(db, update, vec![now.0.into()]).await? == 1)
    }

    async fn execute(
        &self,
        db: &Db,
        sql: &'static str,
        mut values: Vec<sea_orm::Value>,
    ) -> Result<u64, DbErr> {
        values.push(self.owner.clone().into());
        db.write(move |tx| {
            Box::pin(async move {
                let backend = tx.get_database_backend();
                let statement = Statement::from_sql_and_values(backend, sql, values);
                Ok(tx.execute_raw(statement).await?.rows_affected())
            })
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use base::clock::Timestamp;

    use super::{VALID_MS, acquire};
    use crate::db::connect::{Db, DbOptions};

    #[tokio::test]
    async fn a_file_without_flock_belongs_to_one_process_until_its_heartbeat_is_old() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("troupe.db");
        let start = Timestamp(1_000_000);
        let options = DbOptions {
            url: format!("sqlite://{}?mode=rwc", file.display()),
            synchronous_full: true,
        };

        let first = acquire(&file, start).await.unwrap();
        let db = Db::connect(&options).await.unwrap();

        let refusal = acquire(&file, start.plus_ms(VALID_MS)).await.unwrap_err();
        assert!(
            refusal
                .to_string()
                .contains("in use by another troupe process")
        );
        assert!(first.renew(&db, start.plus_ms(5_000)).await.unwrap());
        assert!(
            acquire(&file, start.plus_ms(VALID_MS + 5_000))
                .await
                .is_err()
        );

        assert!(
            acquire(&file, start.plus_ms(VALID_MS + 5_001))
                .await
                .is_ok()
        );
        assert!(!first.renew(&db, start.plus_ms(40_000)).await.unwrap());
        db.close().await;
    }
}
