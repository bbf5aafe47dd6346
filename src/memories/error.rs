//! Errors of learning, searching, importing and exporting memories.

use sea_orm::DbErr;
use tokio::task::JoinError;

use crate::memories::models::memory_models::MemoryModelError;

/// An error of the memories of a space.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    #[error(transparent)]
    Database(#[from] DbErr),
    /// The task that embeds or searches texts panicked.
    #[error("the task ended without a result")]
    TaskEnded(#[from] JoinError),
    #[error(transparent)]
    Model(#[from] MemoryModelError),
    /// The model returned an object without a summary.
    #[error("the model's answer contains no summary")]
    NoSummary,
    /// Messages kept changing while a model summarized them.
    #[error("the messages changed while they were summarized")]
    MessagesChanged,
    /// The node shuts down, or the lease of the task was lost.
    #[error("the task was canceled")]
    Canceled,
    #[error("the file of memories could not be read or written")]
    Io(#[from] std::io::Error),
    /// The time limit of a search was exceeded.
    #[error("the search of the memories timed out")]
    TimedOut,
}

impl MemoryError {
    /// Returns the text for members. That of the database is left out, because it may contain SQL.
    pub fn to_public_text(&self) -> String {
        match self {
            Self::Database(_) | Self::Model(MemoryModelError::Database(_)) => {
                "The database returned an error.".to_owned()
            }
            other => other.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use sea_orm::DbErr;

    use super::MemoryError;
    use crate::memories::models::memory_models::MemoryModelError;

    #[test]
    fn the_message_of_the_database_is_not_shown() {
        let planted = || DbErr::Custom("SELECT planted".to_owned());

        for error in [
            MemoryError::from(planted()),
            MemoryError::from(MemoryModelError::from(planted())),
        ] {
            assert_eq!(error.to_public_text(), "The database returned an error.");
        }
        let other = MemoryError::NoSummary;
        assert_eq!(other.to_public_text(), other.to_string());
    }
}
