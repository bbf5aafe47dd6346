//! Generates copilot candidates: suggested messages that the model writes for one person and that
//! only this person sees. No run and no message is created for them.
//!
//! **Invariant:** each requested candidate is published exactly once, as a text or as an error.
//!
//! **Invariant:** a membership has at most one active generation; a newer one cancels the older.
//!
//! **Invariant:** a model is called only with a permit of this node, as for a run; all due runs get
//! their permits before candidates.

use std::sync::Arc;

use agent::model_call;
use agent::outcome::{GenerationFailure, GenerationOutcome};
use agent::usage::UsageTotal;
use base::ids::{ConversationId, GenerationId, MembershipId, ProviderId, RunId, SpaceId, UserId};
use dashmap::DashMap;
use futures::future::join_all;
use llm::request::Request;
use realtime::envelope::{Envelope, Event};
use realtime::topic::Topic;
use sea_orm::DbErr;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::conversations::token_usage;
use crate::db::connect::Db;
use crate::runs::events::{CopilotCandidate, CopilotCandidateError};
use crate::runs::execution::permits::Permit;
use crate::runs::execution::preparation::prepared_run;
use crate::runs::execution::preparation::prepared_run::PreparedRun;
use crate::runs::scheduling::state::command_facts::token_limit_exceeded;
use crate::runs::services::RunServices;
use crate::runs::store::due_runs::DueRun;
use crate::runs::store::run;
use crate::spaces::membership;

/// A user's request for candidates.
#[derive(Clone, Debug)]
pub struct CandidateRequest {
    pub conversation: ConversationId,
    pub space: SpaceId,
    /// The membership for which the texts are written.
    pub membership: MembershipId,
    /// The user of that membership, who receives the candidates.
    pub user: UserId,
    /// The number of texts.
    pub count: i64,
    /// What the texts should be about.
    pub instruction: Option<String>,
}

/// The active generations of this node. Cheap to clone; clones share state.
#[derive(Clone, Default)]
pub struct CopilotCandidates {
    by_membership: Arc<DashMap<MembershipId, ActiveGeneration>>,
}

struct ActiveGeneration {
    generation: GenerationId,
    request: CandidateRequest,
    stop: CancellationToken,
}

impl CopilotCandidates {
    fn register(
        &self,
        generation: GenerationId,
        request: CandidateRequest,
        stop: CancellationToken,
    ) {
        let membership = request.membership;
        let begun = ActiveGeneration {
            generation,
            request,
            stop,
        };
        if let Some(older) = self.by_membership.insert(membership, begun) {
            older.stop.cancel();
        }
    }

    fn remove(&self, membership: MembershipId, generation: GenerationId) {
        self.by_membership
            .remove_if(&membership, |_, it| it.generation == generation);
    }

    /// Cancels the matching requests; each pending candidate is published as canceled.
    pub(in crate::runs) fn cancel_matching(&self, matches: impl Fn(&CandidateRequest) -> bool) {
        for it in self.by_membership.iter().filter(|it| matches(&it.request)) {
            it.stop.cancel();
        }
    }

    /// Returns the number of active generations.
    pub fn count(&self) -> usize {
        self.by_membership.len()
    }
}

/// Starts to generate candidates; they are published only to the user who requested them.
pub(in crate::runs) fn start(
    context: RunServices,
    active: CopilotCandidates,
    request: CandidateRequest,
) -> GenerationId {
    let generation = GenerationId::new();
    let stop = context.shutdown.releasing.child_token();
    active.register(generation, request.clone(), stop.clone());
    let shutdown = context.shutdown.clone();
    shutdown.spawn(async move {
        let task = CandidateTask {
            context: &context,
            generation,
            request: &request,
            stop,
        };
        task.generate_all().await;
        active.remove(request.membership, generation);
    });
    generation
}

/// The task of one generation.
struct CandidateTask<'a> {
    context: &'a RunServices,
    generation: GenerationId,
    request: &'a CandidateRequest,
    stop: CancellationToken,
}

impl CandidateTask<'_> {
    async fn generate_all(&self) {
        let seed = self.generation.0.as_u64_pair().1;
        let prepared = match self.prepare(seed).await {
            Ok(prepared) => prepared,
            Err(failure) => {
                let error = run_error(failure);
                return (0..self.request.count).for_each(|index| self.publish_error(index, &error));
            }
        };
        let all = (0..self.request.count).map(|index| {
            let request = Request {
                seed: seed.wrapping_add_signed(index),
                ..prepared.request.clone()
            };
            self.generate(index, &prepared, request)
        });
        join_all(all).await;
    }

    async fn prepare(&self, seed: u64) -> Result<PreparedRun, GenerationFailure> {
        let request = self.request;
        let db = self.context.db.reader();
        let found = token_usage::find_has_reached_limit(db, request.space, 0).await;
        if let Ok(Some(true)) = found {
            return Err(token_limit_exceeded());
        }
        let instruction = request.instruction.clone();
        prepared_run::prepare_candidate(
            self.context,
            request.conversation,
            request.membership,
            instruction,
            seed,
        )
        .await
    }

    async fn generate(&self, index: i64, prepared: &PreparedRun, request: Request) {
        let (provider, trim) = (prepared.provider.as_ref(), prepared.trim.clone());
        let watches = &self.context.settings.call_limits;
        let permit = match self.acquire_permit(prepared.provider_id).await {
            Ok(permit) => permit,
            Err(error) => return self.publish_error(index, &error),
        };
        let mut text = String::new();
        let outcome =
            model_call::generate(provider, &request, trim, watches, &mut text, &self.stop).await;
        drop(permit);
        let (usage, result) = match outcome {
            GenerationOutcome::Succeeded { text, usage, .. } => (usage, Ok(text)),
            GenerationOutcome::Failed { failure, usage, .. } => (usage, Err(run_error(failure))),
            GenerationOutcome::Canceled { usage, .. } => (usage, Err(canceled_error())),
        };
        if let Some(usage) = usage
            && let Err(error) = self.charge_tokens(usage).await
        {
            tracing::warn!(space.id = %self.request.space, %error, "failed to count the tokens of a copilot candidate: {error}");
        }
        match result {
            Ok(text) if self.can_still_speak().await => self.publish(&CopilotCandidate {
                generation_id: self.generation,
                membership_id: self.request.membership,
                index,
                text,
            }),
            Ok(_) => self.publish_error(index, &canceled_error()),
            Err(error) => self.publish_error(index, &error),
        }
    }

    /// Waits for a permit, at most the time limit for the first chunk of a model.
    async fn acquire_permit(&self, provider: ProviderId) -> Result<Permit, run::RunError> {
        let context = self.context;
        let now = context.clock.now();
        let due = DueRun {
            id: RunId::new(), // unique; no run has this id
            conversation_id: self.request.conversation,
            space_id: self.request.space,
            run_after: Some(now),
            created_at: now,
            provider_id: Some(provider),
        };
        let mut permit = context.permits.request_for_candidate(due, &context.wakeup);
        tokio::select! {
            () = self.stop.cancelled() => Err(canceled_error()),
            () = permit.granted() => Ok(permit),
            () = sleep(context.settings.call_limits.first_chunk) => Err(no_permit_error()),
        }
    }

    async fn charge_tokens(&self, usage: UsageTotal) -> Result<(), DbErr> {
        let (space, conversation) = (self.request.space, self.request.conversation);
        let charging = self.context.db.write(move |tx| {
            Box::pin(async move {
                token_usage::add_tokens(tx, space, conversation, usage.total()).await
            })
        });
        charging.await
    }

    /// Returns whether the user still has the membership, which may have changed on another node.
    async fn can_still_speak(&self) -> bool {
        let db = self.context.db.reader();
        let membership = membership::find(db, self.request.membership).await;
        membership.is_ok_and(|it| it.is_some_and(|it| can_user_speak(&it, self.request.user)))
    }

    fn publish_error(&self, index: i64, error: &run::RunError) {
        self.publish(&CopilotCandidateError {
            generation_id: self.generation,
            index,
            error: error.clone(),
        });
    }

    fn publish(&self, event: &impl Event) {
        let topic = Topic::User(self.request.user);
        self.context.hub.publish(Envelope::plain(topic, event));
    }
}

/// Returns whether the membership still belongs to this user and may write.
fn can_user_speak(membership: &membership::Model, user: UserId) -> bool {
    membership.user_id == Some(user)
        && membership.status == membership::MembershipStatus::Active
        && membership.participation != membership::Participation::Observer
}

/// Cancels generations of a membership that was lost or may no longer write.
pub(in crate::runs) async fn on_membership_changed(
    db: &Db,
    active: &CopilotCandidates,
    id: MembershipId,
) -> Result<(), DbErr> {
    let Some(user) = active.by_membership.get(&id).map(|it| it.request.user) else {
        return Ok(());
    };
    let membership = membership::find(db.reader(), id).await?;
    if !membership.is_some_and(|it| can_user_speak(&it, user)) {
        active.cancel_matching(|it| it.membership == id);
    }
    Ok(())
}

fn run_error(failure: GenerationFailure) -> run::RunError {
    run::RunError {
        code: failure.code.to_string(),
        message: failure.message,
        retryable: failure.is_retryable,
    }
}

fn no_permit_error() -> run::RunError {
    run::RunError {
        code: "rate_limited".to_owned(),
        message: "The model is busy with replies. Try again in a moment.".to_owned(),
        retryable: true,
    }
}

fn canceled_error() -> run::RunError {
    run::RunError {
        code: "canceled".to_owned(),
        message: "This suggestion was stopped before it was written.".to_owned(),
        retryable: true,
    }
}
