//! Creates responses for the handlers of `/v1`: checks a request, then starts a task for it or
//! queues it for a worker. Also counts the tokens of a request. Operations on existing responses
//! are in `retrieval`.

use std::collections::HashSet;

use agent::tools::builtin::web_search;
use agent::usage;
use base::clock::Timestamp;
use base::ids::UserId;
use leased_jobs::concurrency_limit::ConcurrencyPermit;
use responses_api::fold::engine_event::EngineEvent;
use responses_api::fold::response_fold::Fold;
use responses_api::request::server_rules::ServerRules;
use responses_api::response::Response;
use responses_api::status::ResponseStatus;
use responses_api::{object_ids, pending_tool_calls};
use sea_orm::{DbErr, SqlErr};

use crate::responses::error::ResponseEngineError;
use crate::responses::execution::end_log::EndLog;
use crate::responses::execution::event_stream::EventReceiver;
use crate::responses::execution::mcp::plan;
use crate::responses::execution::recorder::Recorder;
use crate::responses::foreground::foreground_task;
use crate::responses::foreground::foreground_task::{NewTask, PendingResponse};
use crate::responses::input::sealed_reasoning::ReasoningSealer;
use crate::responses::input::{history, summary_items};
use crate::responses::persona_models::space_tools;
use crate::responses::preparation;
use crate::responses::preparation::PreparedResponse;
use crate::responses::request::ResponseRequest;
use crate::responses::services::ResponseServices;
use crate::responses::store::item::ItemDirection;
use crate::responses::store::{event, idempotency_key, item, queue, response};
use crate::responses::tool_declarations::SERVER_RULES;

/// The operations of this module. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct ResponseEngine {
    pub(super) services: ResponseServices,
}

/// A response that was created.
pub enum Created {
    /// Runs now and streams its events; dropping the receiver disconnects the reader.
    Streamed(EventReceiver),
    /// Runs now; see [`PendingResponse::wait`].
    Blocking(PendingResponse),
    /// Queued for a background worker; contains the response object.
    Queued(Box<Response>),
}

impl ResponseEngine {
    /// Creates an engine; no task runs until [`ResponseEngine::start`].
    pub fn new(services: ResponseServices) -> Self {
        Self { services }
    }

    /// Returns the shared services, for handlers that read directly.
    pub fn services(&self) -> &ResponseServices {
        &self.services
    }

    /// Returns what a request may contain on this server.
    pub fn server_rules(&self) -> ServerRules {
        let registry = &self.services.tool_runtime.registry;
        ServerRules {
            has_web_search: registry.find(web_search::NAME).is_some(),
            ..SERVER_RULES
        }
    }

    /// Creates a response and starts or queues it.
    ///
    /// # Errors
    /// Returns why the request was refused; in that case nothing was written and no model was
    /// called.
    pub async fn create(
        &self,
        user: UserId,
        request: ResponseRequest,
    ) -> Result<Created, ResponseEngineError> {
        // A separate task, because a client that disconnects during the insert must not leave a row
        // without a task. The response is canceled when the unread result is dropped.
        let engine = self.clone();
        let creating = async move { engine.create_in_task(user, request).await };
        let created = self.services.shutdown.spawn(creating).await;
        created?
    }

    async fn create_in_task(
        &self,
        user: UserId,
        mut request: ResponseRequest,
    ) -> Result<Created, ResponseEngineError> {
        let permit = match request.background {
            true => None,
            false => Some(self.foreground_permit(user)?),
        };
        let follow_permit = match request.background && request.stream {
            true => Some(self.permit_to_follow(user)?),
            false => None,
        };
        // The semaphore is never closed; an error would only skip the limit.
        let _creation_permit = self.services.creation_permits.acquire().await.ok();
        let prepared = self.prepare(user, &mut request).await?;
        let now = self.services.clock.now();
        let id = object_ids::generate(object_ids::RESPONSE);
        match permit {
            // The worker reads the conversation again when it claims the response.
            None => self.enqueue(user, &id, request, follow_permit, now).await,
            Some(permit) => {
                let permits = vec![permit, prepared.acquire_response_permit(user)?];
                self.start_foreground(user, &id, request, prepared, permits, now)
                    .await
            }
        }
    }

    /// Returns the number of prompt tokens of a request, without calling a model.
    ///
    /// # Errors
    /// As [`ResponseEngine::create`].
    pub async fn count_tokens(
        &self,
        user: UserId,
        mut request_body: ResponseRequest,
    ) -> Result<i64, ResponseEngineError> {
        let _permit = self.foreground_permit(user)?;
        let prepared = self.prepare(user, &mut request_body).await?;
        let request = prepared.request().clone();
        let count = move || usage::prompt_tokens(&request);
        let counted = self.services.shutdown.main().spawn_blocking(count).await;
        Ok(counted?)
    }

    /// Acquires a permit to receive a long body.
    ///
    /// # Errors
    /// Returns `ServerBusy` or `UserLimitReached` when the limit is reached.
    pub fn permit_to_receive(
        &self,
        user: UserId,
    ) -> Result<ConcurrencyPermit<UserId>, ResponseEngineError> {
        Ok(self.services.body_permits.acquire(user)?)
    }

    pub(super) fn foreground_permit(
        &self,
        user: UserId,
    ) -> Result<ConcurrencyPermit<UserId>, ResponseEngineError> {
        if self.services.shutdown.draining.is_cancelled() {
            return Err(ResponseEngineError::ServerBusy);
        }
        Ok(self.services.foreground_permits.acquire(user)?)
    }

    /// Acquires a permit to follow the log of a background response or of a run.
    ///
    /// # Errors
    /// Returns `ServerBusy` or `UserLimitReached` when the limit is reached.
    pub fn permit_to_follow(
        &self,
        user: UserId,
    ) -> Result<ConcurrencyPermit<UserId>, ResponseEngineError> {
        Ok(self.services.follower_permits.acquire(user)?)
    }

    pub(super) async fn prepare(
        &self,
        user: UserId,
        request: &mut ResponseRequest,
    ) -> Result<PreparedResponse, ResponseEngineError> {
        let db = self.services.db.reader();
        let target = preparation::find_target(&self.services, user, &request.model).await?;
        let registry = &self.services.tool_runtime.registry;
        let tools = &mut request.stored.tools;
        tools.require_tools(registry, target.space().is_some())?;
        if let Some(space) = target.space().filter(|_| request.stored.has_space_tools) {
            space_tools::offer(space, registry, tools);
        }
        if let Some(previous) = request
            .previous_response_id
            .as_ref()
            .filter(|_| request.prior_items.is_none())
        {
            history::check_previous(db, user, previous).await?;
        }
        let conversation_position = match &request.conversation_id {
            Some(conversation) => {
                Some(history::conversation_position(db, user, conversation).await?)
            }
            None => None,
        };
        history::resolve_references(db, user, &mut request.input).await?;
        item::make_ids_unique(&mut request.input, HashSet::new());
        let (previous, conversation) = (
            request.previous_response_id.as_deref(),
            request.conversation_id.as_deref(),
        );
        let prior = match &request.prior_items {
            Some(prior) => prior.to_vec(),
            None => history::list_items(db, previous, conversation).await?,
        };
        pending_tool_calls::check(&prior, &request.input)
            .map_err(ResponseEngineError::InvalidToolOutputs)?;
        let sealer = &self.services.models.cipher;
        let (prior, input) = summary_items::expand(sealer, user, prior, request.input.clone())?;
        let mcp_plan = plan::plan(&self.services, user, &request.stored.tools, &prior, &input)?;
        let mut prepared =
            preparation::prepare(&self.services, target, &request.stored, prior, input).await?;
        prepared.conversation_position = conversation_position;
        prepared.mcp_plan = mcp_plan;
        Ok(prepared)
    }

    async fn start_foreground(
        &self,
        user: UserId,
        id: &str,
        request: ResponseRequest,
        prepared: PreparedResponse,
        permits: Vec<ConcurrencyPermit<UserId>>,
        now: Timestamp,
    ) -> Result<Created, ResponseEngineError> {
        let fold = Fold::new(request.header(id, now), ResponseStatus::InProgress);
        let (stream, store) = (request.stream, request.store);
        let cipher = &self.services.models.cipher;
        let sealer = ReasoningSealer::of_request(cipher, user, &request);
        let end_log =
            EndLog::new(id, user, &self.services.call_metrics, now).with_request(&request);
        let recorder = match store {
            true => Some(
                self.insert_claimed(user, id, request, prepared.conversation_position, now)
                    .await?,
            ),
            false => None,
        };
        let task = NewTask {
            lease_id: id.to_owned(),
            fold: fold.into(),
            recorder,
            sealer,
            is_streamed: stream,
            permits,
            end_log,
        };
        let started = foreground_task::start(&self.services, prepared, task);
        Ok(match started.reader {
            Some(reader) => {
                started.result.detach();
                Created::Streamed(reader)
            }
            None => Created::Blocking(started.result),
        })
    }

    /// Inserts a response that is already claimed by this node.
    async fn insert_claimed(
        &self,
        user: UserId,
        id: &str,
        request: ResponseRequest,
        conversation_position: Option<i64>,
        now: Timestamp,
    ) -> Result<Recorder, ResponseEngineError> {
        let (node, database) = (self.services.node.clone(), self.services.db.backend());
        let (input, conversation) = (request.input.clone(), request.conversation_id.clone());
        let previous = request.previous_response_id.clone();
        let claim = request.idempotency.clone();
        let (row, id) = (row(user, id, request, None, now), id.to_owned());
        let claimed: Result<response::Model, ResponseEngineError> = self
            .services
            .db
            .write(move |tx| {
                Box::pin(async move {
                    idempotency_key::claim(tx, claim.as_ref(), &id, now).await?;
                    let row = queue::insert_claimed(tx, row, &node, now, database).await;
                    let row = row.map_err(|it| insert_error(it, previous))?;
                    // The insert blocks other responses of the conversation. One may have finished
                    // between the read and the insert, so the position is checked again.
                    if let (Some(it), Some(seen)) = (conversation, conversation_position)
                        && history::conversation_position(tx, user, &it).await? != seen
                    {
                        return Err(ResponseEngineError::ConversationLocked);
                    }
                    item::insert(tx, &id, ItemDirection::Input, 0, &input).await?;
                    Ok(row)
                })
            })
            .await;
        Ok(Recorder::new(self.services.db.clone(), &claimed?))
    }

    async fn enqueue(
        &self,
        user: UserId,
        id: &str,
        request: ResponseRequest,
        follow_permit: Option<ConcurrencyPermit<UserId>>,
        now: Timestamp,
    ) -> Result<Created, ResponseEngineError> {
        let mut fold = Fold::new(request.header(id, now), ResponseStatus::Queued);
        let events = fold.apply(EngineEvent::Created);
        let (input, claim) = (request.input.clone(), request.idempotency.clone());
        let sealed_secrets = plan::encrypt(
            &self.services.models.cipher,
            id,
            &request.stored.tools.credentials,
        );
        let previous = request.previous_response_id.clone();
        let (row, own_id) = (row(user, id, request, sealed_secrets, now), id.to_owned());
        let written: Result<(), ResponseEngineError> = self
            .services
            .db
            .write(move |tx| {
                Box::pin(async move {
                    idempotency_key::claim(tx, claim.as_ref(), &own_id, now).await?;
                    let inserted = queue::insert(tx, row).await;
                    inserted.map_err(|it| insert_error(it, previous))?;
                    item::insert(tx, &own_id, ItemDirection::Input, 0, &input).await?;
                    event::append(tx, &own_id, &events).await?;
                    Ok(())
                })
            })
            .await;
        written?;
        self.services.queue_signal.notify();
        match follow_permit {
            Some(place) => Ok(Created::Streamed(self.start_log_reader(id, -1, place))),
            None => Ok(Created::Queued(Box::new(fold.document()))),
        }
    }
}

fn row(
    user: UserId,
    id: &str,
    request: ResponseRequest,
    sealed_secrets: Option<String>,
    now: Timestamp,
) -> response::Model {
    response::Model {
        id: id.to_owned(),
        user_id: user,
        previous_response_id: request.previous_response_id,
        api_conversation_id: request.conversation_id,
        status: ResponseStatus::Queued,
        background: request.background,
        model: request.model,
        request: request.stored,
        error: None,
        incomplete_reason: None,
        usage: None,
        worker_id: None,
        lease: 0,
        attempt: 0,
        heartbeat_at: None,
        cancel_requested_at: None,
        sealed_secrets,
        created_at: now,
        started_at: None,
        completed_at: None,
        deleted_at: None,
    }
}

/// Translates a violated constraint of the table into an error for the client.
fn insert_error(error: DbErr, previous: Option<String>) -> ResponseEngineError {
    match error.sql_err() {
        Some(SqlErr::UniqueConstraintViolation(_)) => ResponseEngineError::ConversationLocked,
        // The previous response was deleted after it was checked.
        Some(SqlErr::ForeignKeyConstraintViolation(_)) => {
            ResponseEngineError::PreviousNotFound(previous.unwrap_or_default())
        }
        _ => ResponseEngineError::Database(error),
    }
}
