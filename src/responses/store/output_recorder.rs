//! Defines `OutputRecorder`, which stores what a task produces: a response, or a run of a thread.

use responses_api::event::EncodedEvent;

use crate::responses::execution::projection::Projection;
use crate::responses::execution::recorder::{RecordError, Recorder};
use crate::responses::thread_runs::run_recorder::RunRecorder;

/// Writes to the row of one task.
pub enum OutputRecorder {
    Response(Box<Recorder>),
    Run(Box<RunRecorder>),
}

impl OutputRecorder {
    /// Stores what is new, and these events.
    ///
    /// # Errors
    /// Returns `LeaseLost` when this node no longer owns the row, and `Database` when the write fails.
    pub async fn record(
        &mut self,
        projection: &Projection,
        events: &[EncodedEvent],
    ) -> Result<(), RecordError> {
        match (self, projection) {
            (Self::Run(recorder), Projection::Run(fold)) => recorder.record(fold, events).await,
            (Self::Response(recorder), projection) => {
                recorder.record(projection.items(), events).await
            }
            // A run is recorded by its own recorder only.
            (Self::Run(_), _) => Ok(()),
        }
    }

    /// Stores the end of the task with what is new. Retries while the database fails.
    ///
    /// # Errors
    /// Returns `LeaseLost` when this node no longer owns the row, and `Database` when all attempts
    /// fail.
    pub async fn finish(
        &self,
        projection: &Projection,
        events: &[EncodedEvent],
    ) -> Result<(), RecordError> {
        match (self, projection) {
            (Self::Run(recorder), Projection::Run(fold)) => recorder.finish(fold, events).await,
            (Self::Response(recorder), projection) => {
                let (items, state) = (projection.items(), projection.state());
                recorder.finish(items, events, state).await
            }
            (Self::Run(_), _) => Ok(()),
        }
    }
}
