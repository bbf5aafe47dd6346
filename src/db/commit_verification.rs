//! Finds out whether a transaction committed when the connection dropped during COMMIT.
//!
//! **Invariant:** the check looks for what the transaction wrote, on another connection. The
//! transaction is never repeated blindly, and never reported as committed before the database
//! confirms it.

use std::time::{Duration, Instant};

use sea_orm::sea_query::SelectStatement;
use sea_orm::{ConnectionTrait, DatabaseConnection, DbErr};

use crate::db::backend;

/// A query that returns the word `committed` if the transaction was committed.
#[derive(Clone, Debug)]
pub struct CommitProof(pub SelectStatement);

/// Longer than a restart of the database.
const VERIFICATION_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause between two queries.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Returns whether the transaction was committed. Waits for a database that is unreachable.
pub(super) async fn is_committed(connection: &DatabaseConnection, proof: &CommitProof) -> bool {
    let began = Instant::now();
    while began.elapsed() < VERIFICATION_TIMEOUT {
        match query_status(connection, proof).await {
            // The server has not detected the disconnect yet.
            Ok(Some(word)) if word == "in progress" => {}
            Ok(word) => return word.is_some_and(|it| it == "committed"),
            Err(error) if backend::is_transient(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "failed to verify a COMMIT; it counts as failed: {error}");
                return false;
            }
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
    false
}

async fn query_status(
    connection: &DatabaseConnection,
    proof: &CommitProof,
) -> Result<Option<String>, DbErr> {
    match connection.query_one(&proof.0).await? {
        Some(row) => row.try_get_by_index(0),
        None => Ok(None),
    }
}
