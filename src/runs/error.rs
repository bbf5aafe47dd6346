//! Why a verb of the engine changed nothing.

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
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DbErr),
}
