//! What became of a transaction whose COMMIT was sent and never answered.
//!
//! **Invariant:** it is asked about by what it wrote, on another connection; it is never tried
//! again blindly, and never told of before the database says that it is there.

use std::time::{Duration, Instant};

use sea_orm::sea_query::SelectStatement;
use sea_orm::{ConnectionTrait, DatabaseConnection, DbErr};

use crate::db::backend;

/// A question that is answered with the one word `committed` once the transaction is.
#[derive(Clone, Debug)]
pub struct CommitProof(pub SelectStatement);

/// Longer than a restart of the database takes.
const VERIFICATION_TIMEOUT: Duration = Duration::from_secs(30);
/// Until it is asked again.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Whether the transaction is committed after all. Waits for a database that is away.
pub(super) async fn is_committed(connection: &DatabaseConnection, proof: &CommitProof) -> bool {
    let began = Instant::now();
    while began.elapsed() < VERIFICATION_TIMEOUT {
        match query_status(connection, proof).await {
            // The server has not noticed yet that nobody listens any more.
            Ok(Some(word)) if word == "in progress" => {}
            Ok(word) => return word.is_some_and(|it| it == "committed"),
            Err(error) if backend::is_transient(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "the database does not know of a transaction: {error}");
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
