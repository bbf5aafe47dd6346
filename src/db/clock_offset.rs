//! Measures how far the clock of this process is from the database's, so that all nodes have one time.

use crate::clock::Clock;
use crate::clock::LONGEST_ROUND_TRIP;
use crate::db::connect::Db;
use crate::db::connect::Dialect;
use crate::db::dialect;
use tokio::time::timeout;

/// Asks the database for its time and corrects `clock`. On SQLite, which one process owns, that clock
/// is right as it is. What cannot be measured is logged, and the last offset stays.
pub async fn measure(db: &Db, clock: &Clock) {
    if db.dialect() == Dialect::Sqlite {
        return;
    }
    let Some(measurement) = clock.begin_measurement() else {
        return;
    };
    let asking = dialect::leases_show(db.pulse(), db.dialect(), clock.now());
    match timeout(LONGEST_ROUND_TRIP, asking).await {
        Ok(Ok(Some(shown))) if clock.finish_measurement(measurement, shown) => {}
        Ok(Ok(_)) | Err(_) => {
            tracing::warn!("the clock of the database answered too late, it is asked again");
        }
        Ok(Err(error)) => {
            tracing::warn!(%error, "the clock of the database could not be read, it is asked again: {error}");
        }
    }
}
