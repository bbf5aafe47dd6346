//! Measures once how much the clock of this process differs from that of the PostgreSQL server, and
//! corrects it, so that all nodes agree on the time. Does nothing on SQLite. Callers repeat it.

use base::clock::{Clock, MAX_ROUND_TRIP};
use tokio::time::timeout;

use crate::db::backend;
use crate::db::backend::Backend;
use crate::db::connect::Db;

/// Reads the database's time and corrects `clock`. On SQLite, which one process owns, the clock
/// needs no correction. A failure is logged, and the last offset stays.
pub async fn measure(db: &Db, clock: &Clock) {
    if db.backend() == Backend::Sqlite {
        return;
    }
    let Some(measurement) = clock.begin_measurement() else {
        return;
    };
    let query = backend::read_lease_time(db.heartbeat_connection(), db.backend(), clock.now());
    match timeout(MAX_ROUND_TRIP, query).await {
        Ok(Ok(Some(database_time))) if clock.finish_measurement(measurement, database_time) => {}
        Ok(Ok(_)) | Err(_) => {
            tracing::warn!("reading the database's clock took too long; retrying later");
        }
        Ok(Err(error)) => {
            tracing::warn!(%error, "failed to read the database's clock; retrying later: {error}");
        }
    }
}
