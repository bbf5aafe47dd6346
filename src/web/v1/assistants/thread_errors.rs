//! Translates the errors of operations on threads for clients.

use crate::responses::threads::thread_error::ThreadError;
use crate::web::v1::error::V1Error;

impl From<ThreadError> for V1Error {
    fn from(error: ThreadError) -> Self {
        match error {
            ThreadError::NotFound => Self::not_found(),
            ThreadError::ActiveRun(run) => {
                let message = format!(
                    "The run '{run}' of this thread is active. Wait for its end, or cancel it."
                );
                Self::new(400, "thread_has_active_run", message)
            }
            ThreadError::Database(error) => error.into(),
        }
    }
}
