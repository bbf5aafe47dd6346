//! Why a verb of the engine changed nothing.

use crate::characters::room::Full;
use crate::characters::room::RoomError;
use crate::runs::command::Refusal;
use sea_orm::DbErr;

/// What a caller of the engine must tell apart.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The rules say no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A run that the plan moves is no longer where it was: somebody else was faster.
    #[error("the run is no longer ours")]
    Lost,
    /// The text that it would store does not fit the quota of the space's owner.
    #[error(transparent)]
    StorageFull(#[from] Full),
    /// The person has another branch job that runs.
    #[error("another branch is being made for this person")]
    JobRunning,
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DbErr),
}

impl From<RoomError> for EngineError {
    fn from(error: RoomError) -> Self {
        match error {
            RoomError::Full(full) => Self::StorageFull(full),
            RoomError::Db(error) => Self::Database(error),
        }
    }
}
