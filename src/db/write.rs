//! Runs all writing transactions of [`Db`] except migrations: begins them, commits or rolls them
//! back, and repeats those that the database rolled back because of another one.
//!
//! **Invariant:** every transaction runs in a task of the main runtime. A dropped request (the
//! client disconnected) cannot drop the transaction with it: on PostgreSQL a canceled `BEGIN`
//! poisons its connection, and acknowledged work would be undone.

use std::time::Instant;

use futures::future::BoxFuture;
use sea_orm::{
    DatabaseTransaction, DbErr, RuntimeErr, SqliteTransactionMode, TransactionOptions,
    TransactionTrait,
};

use crate::db::backend;
#[cfg(feature = "failpoints")]
use crate::db::backend::Backend;
use crate::db::commit_verification::{CommitProof, is_committed};
use crate::db::connect::Db;
use crate::db::health::{COMMIT_FAILED, ROLLED_BACK};

/// How often a transaction is tried that the database rolls back because of another one.
const MAX_ATTEMPTS: u32 = 3;

/// The error of a writing transaction.
pub trait WriteError: From<DbErr> + std::error::Error + Send + 'static {}
impl<E: From<DbErr> + std::error::Error + Send + 'static> WriteError for E {}

impl Db {
    /// Runs `work` in one transaction, commits if it is `Ok`, rolls back if it is `Err`. A
    /// transaction that the database rolls back for a deadlock or a serialization failure is
    /// repeated, at most twice: `work` must change nothing except the database.
    ///
    /// # Errors
    /// Returns the error of `work`, or `DbErr` when the transaction cannot begin or commit.
    pub async fn write<T, E, F>(&self, work: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: WriteError,
        F: for<'a> FnOnce(&'a DatabaseTransaction) -> BoxFuture<'a, Result<T, E>>
            + Clone
            + Send
            + 'static,
    {
        self.write_verified(work, |_| None).await
    }

    /// Like [`Db::write`], but if the connection drops before the COMMIT is acknowledged, it finds
    /// out with `proof` whether the transaction was committed.
    ///
    /// # Errors
    /// As [`Db::write`]; then nothing was changed.
    pub async fn write_verified<T, E, F>(
        &self,
        work: F,
        proof: fn(&T) -> Option<CommitProof>,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: WriteError,
        F: for<'a> FnOnce(&'a DatabaseTransaction) -> BoxFuture<'a, Result<T, E>>
            + Clone
            + Send
            + 'static,
    {
        let db = self.clone();
        let task = self.main.spawn(async move {
            for _ in 1..MAX_ATTEMPTS {
                match db.write_once(work.clone(), proof).await {
                    Err(error) if backend::is_rolled_back(&error) => {
                        tracing::warn!(%error, "the database rolled back a transaction; retrying: {error}");
                    }
                    done => return done,
                }
            }
            db.write_once(work, proof).await
        });
        match task.await {
            Ok(result) => {
                if let Some(checkpoints) = self.checkpoints.as_ref().filter(|_| result.is_ok()) {
                    checkpoints.committed();
                }
                result
            }
            Err(_) => {
                Err(DbErr::Exec(RuntimeErr::Internal("the transaction's task ended".into())).into())
            }
        }
    }

    /// Makes one attempt. Must be called in a task of the main runtime.
    pub(super) async fn write_once<T, E, F>(
        &self,
        work: F,
        proof: fn(&T) -> Option<CommitProof>,
    ) -> Result<T, E>
    where
        E: WriteError,
        F: for<'a> FnOnce(&'a DatabaseTransaction) -> BoxFuture<'a, Result<T, E>>,
    {
        let tx = self.begin().await?;
        match work(&tx).await {
            Ok(value) => {
                base::fail_point!("write.before_commit", ?);
                match self.commit(tx).await {
                    Ok(()) => Ok(value),
                    Err(error) => match proof(&value) {
                        Some(proof) if is_committed(&self.writer, &proof).await => Ok(value),
                        _ => Err(error.into()),
                    },
                }
            }
            Err(error) => {
                self.health().observe_write(&error);
                // The first error is the one to return.
                self.roll_back(tx).await;
                Err(error)
            }
        }
    }

    async fn begin(&self) -> Result<DatabaseTransaction, DbErr> {
        self.health().require_writable()?;
        // Immediate: on SQLite a transaction that reads first and then writes fails immediately if
        // another writer was faster, whatever the busy timeout. It also fails inside an open
        // transaction.
        let options = TransactionOptions {
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..Default::default()
        };
        let requested_at = Instant::now();
        match self.writer.begin_with_options(options).await {
            Ok(tx) => {
                self.metrics.record_wait(requested_at.elapsed());
                Ok(tx)
            }
            Err(error) => {
                self.health().observe_write(&error);
                if !matches!(error, DbErr::ConnectionAcquire(_)) {
                    self.transaction_ends.mark_failed();
                }
                Err(error)
            }
        }
    }

    async fn commit(&self, tx: DatabaseTransaction) -> Result<(), DbErr> {
        #[cfg(feature = "failpoints")]
        fail_inside_commit(&tx, self.backend()).await?;
        let ending = self.transaction_ends.start_ending();
        if let Err(error) = tx.commit().await {
            self.health().observe_transaction_end(&error, COMMIT_FAILED);
            return Err(error);
        }
        ending.mark_succeeded();
        // Committed, but the caller gets an error.
        base::fail_point!("write.after_commit", ?);
        Ok(())
    }

    async fn roll_back(&self, tx: DatabaseTransaction) {
        let ending = self.transaction_ends.start_ending();
        match tx.rollback().await {
            Ok(()) => ending.mark_succeeded(),
            Err(error) => self.health().observe_transaction_end(&error, ROLLED_BACK),
        }
    }
}

/// Makes the next COMMIT fail inside the database. On SQLite the transaction is already rolled
/// back, as after a disk error; PostgreSQL refuses it because of a deferred constraint.
#[cfg(feature = "failpoints")]
async fn fail_inside_commit(tx: &DatabaseTransaction, backend: Backend) -> Result<(), DbErr> {
    use sea_orm::ConnectionTrait;
    if base::fail_point::armed::hit("write.in_commit").is_ok() {
        return Ok(());
    }
    let statements = match backend {
        Backend::Sqlite => "rollback",
        Backend::Postgres => {
            "create temporary table twice (id int unique deferrable initially deferred) on commit drop; \
             insert into twice values (1), (1)"
        }
    };
    tx.execute_unprepared(statements).await?;
    Ok(())
}
