//! Starts the choices of a chat completion: several executions of one prepared request at the same
//! time, each with its own permits. Nothing of them is stored.

use base::ids::UserId;
use futures::future::join_all;
use responses_api::fold::chat_choices;
use responses_api::fold::chat_fold::ChatFold;
use responses_api::fold::chat_objects::{ChatCompletion, CompletionHeader};
use responses_api::object_ids;
use responses_api::objects::seconds;
use responses_api::response::ResponseError;

use crate::responses::engine::ResponseEngine;
use crate::responses::error::ResponseEngineError;
use crate::responses::execution::end_log::EndLog;
use crate::responses::execution::event_stream::EventReceiver;
use crate::responses::execution::projection::Projection;
use crate::responses::foreground::foreground_task;
use crate::responses::foreground::foreground_task::{NewTask, PendingResponse, StartedTask};
use crate::responses::request::ChatRequest;
use crate::responses::telemetry::call_log::CallSurface;
use crate::responses::telemetry::ended_call::SharedEnd;

/// A chat completion that is running.
pub enum StartedChat {
    Streamed(StreamedChat),
    Blocking(PendingChat),
}

/// A chat completion whose chunks are read. Dropping it cancels all of its choices.
pub struct StreamedChat {
    pub header: CompletionHeader,
    /// The chunks of each choice, and its result after the last of them.
    pub choices: Vec<(EventReceiver, PendingResponse)>,
}

/// A chat completion whose answer is awaited. Dropping it cancels all of its choices.
pub struct PendingChat {
    header: CompletionHeader,
    choices: Vec<PendingResponse>,
}

impl PendingChat {
    /// Returns the complete answer, or `None` if a task ended without a result.
    ///
    /// # Errors
    /// Returns the failure of the first choice if all of them failed.
    pub async fn wait(self) -> Option<Result<ChatCompletion, ResponseError>> {
        let choices = self.choices.into_iter();
        let folds = join_all(choices.map(PendingResponse::wait_for_chat)).await;
        let folds: Vec<ChatFold> = folds.into_iter().collect::<Option<_>>()?;
        Some(chat_choices::completion(&self.header, folds))
    }
}

impl ResponseEngine {
    /// Starts a chat completion.
    ///
    /// # Errors
    /// Returns why the request was refused; in that case no model was called.
    pub async fn complete_chat(
        &self,
        user: UserId,
        chat: ChatRequest,
    ) -> Result<StartedChat, ResponseEngineError> {
        let mut request = chat.request;
        let mut permits = Vec::new();
        for _ in 0..chat.n_choices {
            permits.push(vec![self.foreground_permit(user)?]);
        }
        // The semaphore is never closed; an error would only skip the limit.
        let _creation_permit = self.services.creation_permits.acquire().await.ok();
        let prepared = self.prepare(user, &mut request).await?;
        for permits in &mut permits {
            permits.push(prepared.acquire_response_permit(user)?);
        }
        let (now, metrics) = (self.services.clock.now(), &self.services.call_metrics);
        let header = CompletionHeader {
            id: object_ids::generate_chat_completion(),
            created: seconds(now),
            model: request.model.clone(),
            include_usage: chat.include_usage,
        };
        let shared_end = SharedEnd::new(chat.n_choices);
        let start = |(index, permits)| {
            let task = NewTask {
                lease_id: format!("{}/{index}", header.id),
                fold: Projection::Chat(Box::new(ChatFold::new(header.clone(), index))),
                recorder: None,
                sealer: None,
                is_streamed: request.stream,
                permits,
                end_log: EndLog::new(&header.id, user, metrics, now)
                    .with_request(&request)
                    .with_surface(CallSurface::ChatCompletions)
                    .with_shared_end(shared_end.clone()),
            };
            foreground_task::start(&self.services, prepared.for_choice(index), task)
        };
        let started: Vec<StartedTask> = permits.into_iter().enumerate().map(start).collect();
        if !request.stream {
            let choices = started.into_iter().map(|it| it.result).collect();
            return Ok(StartedChat::Blocking(PendingChat { header, choices }));
        }
        let choices = started.into_iter();
        let choices = choices.filter_map(|it| Some((it.reader?, it.result)));
        let choices = choices.collect();
        Ok(StartedChat::Streamed(StreamedChat { header, choices }))
    }
}
