//! Writing transactions: the only place that begins one.
//!
//! **Invariant:** every transaction runs in a task of the main runtime. A request that is dropped
//! half-way (the client left) cannot drop the transaction with it: on PostgreSQL a cancelled
//! `BEGIN` poisons its connection, and work already promised would be undone.

use crate::db::connect::Db;
use crate::db::doubt::Proof;
use crate::db::doubt::is_committed;
use futures::future::BoxFuture;
use sea_orm::DatabaseTransaction;
use sea_orm::DbErr;
use sea_orm::RuntimeErr;
use sea_orm::SqliteTransactionMode;
use sea_orm::TransactionOptions;
use sea_orm::TransactionTrait;
use std::time::Instant;

/// What a writing transaction may end with, beside its value.
pub trait WriteError: From<DbErr> + Send + 'static {}
impl<E: From<DbErr> + Send + 'static> WriteError for E {}

impl Db {
    /// Runs `work` in one transaction, commits when it is `Ok`, rolls back when it is `Err`.
    ///
    /// # Errors
    /// What `work` returns, or the database's refusal to begin or commit.
    pub async fn write<T, E, F>(&self, work: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: WriteError,
        F: for<'a> FnOnce(&'a DatabaseTransaction) -> BoxFuture<'a, Result<T, E>> + Send + 'static,
    {
        self.write_proved(work, |_| None).await
    }

    /// The same where it must be known whether it is committed, though the connection died before
    /// the COMMIT was answered: then `proof` of the value is asked for.
    ///
    /// # Errors
    /// As [`Db::write`]; nothing was changed then.
    pub async fn write_proved<T, E, F>(
        &self,
        work: F,
        proof: fn(&T) -> Option<Proof>,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: WriteError,
        F: for<'a> FnOnce(&'a DatabaseTransaction) -> BoxFuture<'a, Result<T, E>> + Send + 'static,
    {
        let (writer, meter) = (self.writer.clone(), self.meter.clone());
        let task = self.main.spawn(async move {
            // Immediate: a transaction that reads first and then writes fails at once on SQLite
            // when another writer was faster, whatever the busy timeout.
            let options = TransactionOptions {
                sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
                ..Default::default()
            };
            let asked = Instant::now();
            let tx = writer.begin_with_options(options).await?;
            meter.waited(asked.elapsed());
            match work(&tx).await {
                Ok(value) => {
                    crate::fail_point!("write.before_commit", ?);
                    match commit(tx).await {
                        Ok(()) => Ok(value),
                        Err(error) => match proof(&value) {
                            Some(proof) if is_committed(&writer, &proof).await => Ok(value),
                            _ => Err(error.into()),
                        },
                    }
                }
                Err(error) => {
                    // The first error is the one to tell; the database rolls back by itself.
                    let _ = tx.rollback().await;
                    Err(error)
                }
            }
        });
        match task.await {
            Ok(result) => result,
            Err(_) => {
                Err(DbErr::Exec(RuntimeErr::Internal("the transaction's task ended".into())).into())
            }
        }
    }
}

async fn commit(tx: DatabaseTransaction) -> Result<(), DbErr> {
    tx.commit().await?;
    // Committed, and whoever asked does not learn it.
    crate::fail_point!("write.after_commit", ?);
    Ok(())
}
