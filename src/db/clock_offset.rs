//! Measures how far the clock of this process is from the database's, so that all nodes have one time.

use tokio::time::timeout;

use crate::clock::{Clock, MAX_ROUND_TRIP};
use crate::db::backend;
use crate::db::connect::{Backend, Db};

/// Asks the database for its time and corrects `clock`. On SQLite, which one process owns, that clock
/// is right as it is. What cannot be measured is logged, and the last offset stays.
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
            tracing::warn!("the clock of the database answered too late, it is asked again");
        }
        Ok(Err(error)) => {
            tracing::warn!(%error, "the clock of the database could not be read, it is asked again: {error}");
        }
    }
}
