//! Starts the task of a response with a waiting client or of one choice of a chat completion, and waits
//! for its result.

use base::ids::UserId;
use leased_jobs::concurrency_limit::ConcurrencyPermit;
use leased_jobs::lease::CancelHandle;
use responses_api::fold::chat_fold::ChatFold;
use responses_api::response::Response;
use tokio::sync::oneshot;
use tokio_util::sync::DropGuard;

use crate::responses::execution::end_log::EndLog;
use crate::responses::execution::event_stream::EventReceiver;
use crate::responses::execution::projection::Projection;
use crate::responses::execution::recorder::Recorder;
use crate::responses::execution::response_task::{ResponseOutput, TaskOutcome};
use crate::responses::execution::{event_stream, response_task};
use crate::responses::input::sealed_reasoning::ReasoningSealer;
use crate::responses::preparation::PreparedResponse;
use crate::responses::services::ResponseServices;
use crate::responses::store::output_recorder::OutputRecorder;

/// What a task needs besides its prepared request.
pub struct NewTask {
    /// The id under which this node registers the task while it runs.
    pub lease_id: String,
    pub fold: Projection,
    /// `None` if nothing is stored.
    pub recorder: Option<Recorder>,
    /// `None` if the reasoning cannot be sent back.
    pub sealer: Option<ReasoningSealer>,
    pub is_streamed: bool,
    pub permits: Vec<ConcurrencyPermit<UserId>>,
    pub end_log: EndLog,
}

/// A task that was started. Dropping one of the values before the end cancels it.
pub struct StartedTask {
    /// `None` if the task is not streamed.
    pub reader: Option<EventReceiver>,
    pub result: PendingResponse,
}

/// A running response whose result is awaited. Dropping it cancels the response.
pub struct PendingResponse {
    done: oneshot::Receiver<Projection>,
    cancel_on_drop: DropGuard,
}

impl PendingResponse {
    /// Returns the complete response, or `None` if its task ended without a result.
    pub async fn wait(self) -> Option<Box<Response>> {
        self.done.await.ok()?.response()
    }

    /// Returns the fold of a choice of a chat completion, or `None` if its task ended without a result.
    pub async fn wait_for_chat(self) -> Option<ChatFold> {
        self.done.await.ok()?.into_chat()
    }

    /// Returns a task without a server, and the sender of its result, for tests of its readers.
    #[cfg(test)]
    pub fn for_test() -> (oneshot::Sender<Projection>, Self) {
        let (sender, done) = oneshot::channel();
        let cancel_on_drop = CancelHandle::default().token.drop_guard();
        let pending = Self {
            done,
            cancel_on_drop,
        };
        (sender, pending)
    }

    /// Stops waiting; the response continues.
    pub fn detach(self) {
        self.cancel_on_drop.disarm();
    }
}

/// Starts the task of a prepared request.
pub fn start(
    services: &ResponseServices,
    prepared: PreparedResponse,
    task: NewTask,
) -> StartedTask {
    let cancel = CancelHandle::default();
    let lease = task.recorder.as_ref().map_or(0, Recorder::lease);
    let (guard, log_written) = services.hold_lease(&task.lease_id, lease, &cancel);
    let (sender, reader) = match task.is_streamed {
        true => Some(event_stream::channel(cancel.token.clone())).unzip(),
        false => (None, None),
    };
    let output = ResponseOutput {
        fold: task.fold,
        recorder: task
            .recorder
            .map(|it| OutputRecorder::Response(Box::new(it))),
        sender,
        is_reader_dropped: false,
        permits: task.permits,
        is_background: false,
        end_log: task.end_log,
        log_written,
    };
    let task = prepared.into_task(services, task.sealer, cancel.clone(), output);
    let (done_sender, done) = oneshot::channel();
    services.shutdown.spawn(async move {
        if let TaskOutcome::Finished(fold) = response_task::run(task).await {
            // Fails if nothing awaits the result.
            let _ = done_sender.send(fold);
        }
        drop(guard);
    });
    StartedTask {
        reader,
        result: PendingResponse {
            done,
            cancel_on_drop: cancel.token.drop_guard(),
        },
    }
}
