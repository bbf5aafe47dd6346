//! After a failed write, writes a test row (the write probe) every 5 seconds, to detect when writes
//! succeed again.

use std::time::Duration;

use base::shutdown::Shutdown;
use sea_orm::DbErr;
use sea_orm::sea_query::{Alias, Expr, OnConflict, Query};

use crate::db::connect::Db;
use crate::db::health::WriteState;

/// The time between a failure and the probe, and between failed probes.
const PROBE_INTERVAL: Duration = Duration::from_secs(5);

/// Larger than the free space that a nearly full disk still has inside the database files.
const PROBE_BYTES: usize = 64 * 1024;

/// Writes probes while writes fail, until the node drains. Writes nothing while they succeed.
pub async fn run_write_probe(db: Db, shutdown: Shutdown) {
    let mut number = 0;
    loop {
        tokio::select! {
            () = shutdown.draining.cancelled() => return,
            () = db.health().wait_until_failing() => {}
        }
        tokio::select! {
            () = shutdown.draining.cancelled() => return,
            () = tokio::time::sleep(PROBE_INTERVAL) => {}
        }
        number += 1;
        // `write` has already recorded the failure, which is logged only once.
        let _ = db.probe_write(number).await;
    }
}

impl Db {
    /// Writes a row that needs new pages each time; success ends the state `Failing`.
    ///
    /// # Errors
    /// Returns `DbErr` when the row is not stored.
    pub async fn probe_write(&self, number: u32) -> Result<(), DbErr> {
        // Different bytes than the last time: equal pages would not be written.
        let filler = format!("{number:>16}").repeat(PROBE_BYTES / 16);
        self.write(move |tx| {
            Box::pin(async move {
                use sea_orm::ConnectionTrait;
                let (id, column) = (Alias::new("id"), Alias::new("filler"));
                let row = Query::insert()
                    .into_table(Alias::new("write_probe"))
                    .columns([id.clone(), column.clone()])
                    .values_panic([Expr::value(1_i64), Expr::value(filler)])
                    .on_conflict(OnConflict::column(id).update_column(column).to_owned())
                    .to_owned();
                tx.execute(&row).await?;
                Ok::<_, DbErr>(())
            })
        })
        .await?;
        if self.health().state() != WriteState::Damaged {
            self.health().record_recovery();
        }
        Ok(())
    }
}
