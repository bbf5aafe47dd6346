//! The verbs of the product: what doors call. Each is one step through the gate, or a few.

use std::time::Duration;

use sea_orm::{DbErr, EntityTrait};

use crate::conversations::message;
use crate::db::clock_offset;
use crate::ids::{ConversationId, MembershipId, MessageId, RoundId, RunId, SpaceId};
use crate::llm::tokens;
use crate::runs::command::{Command, CommandError, MessageEdit, NewPost};
use crate::runs::error::EngineError;
use crate::runs::run::RunCancelReason;
use crate::runs::scheduler::StepResult;
use crate::runs::services::RunServices;
use crate::runs::{candidates, lease, recovery, run, run_job, scheduler, step_marks};

/// How long listeners wait to be told of runs that are handed back. The runs themselves go on
/// trying for longer.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// The engine room behind its doors. Cloning gives another handle on the same one.
#[derive(Clone)]
pub struct RunEngine {
    pub(super) context: RunServices,
}

/// What came of a post.
#[derive(Debug)]
pub struct PostResult {
    pub message: message::MessageView,
    /// The run that will answer, if one is planned.
    pub run: Option<run::RunView>,
    /// The same post had come before: this is its first answer again.
    pub is_repeated: bool,
}

impl RunEngine {
    /// Over its parts; nothing runs until [`Engine::start`].
    pub fn new(context: RunServices) -> Self {
        Self { context }
    }

    /// The parts, for those who read beside the verbs.
    pub fn context(&self) -> &RunServices {
        &self.context
    }

    /// Heals what the last process left, then works, beats and reaps until the node closes.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn start(&self) -> Result<(), DbErr> {
        let context = &self.context;
        clock_offset::measure(&context.db, &context.clock).await;
        let healed = recovery::recover_at_start(context).await?;
        if healed != recovery::RecoveryReport::default() {
            tracing::info!(?healed, "healed what the last process left: {healed:?}");
        }
        context
            .shutdown
            .spawn(lease::run_heartbeat(context.clone()));
        context
            .shutdown
            .spawn(recovery::run_reaper(context.clone()));
        context.shutdown.spawn(run_job::run_worker(context.clone()));
        Ok(())
    }

    /// Takes no new run, lets running ones finish for `grace`, and hands the rest back. Returns when
    /// everybody who listens has been told.
    pub async fn drain(&self, grace: Duration) {
        let shutdown = &self.context.shutdown;
        shutdown.draining.cancel();
        if tokio::time::timeout(grace, self.context.leases.wait_until_empty())
            .await
            .is_err()
        {
            tracing::info!(
                runs = self.context.leases.count(),
                "handing back what still runs"
            );
        }
        shutdown.releasing.cancel();
        let handed_back =
            tokio::time::timeout(RELEASE_TIMEOUT, self.context.leases.wait_until_empty());
        if handed_back.await.is_err() {
            tracing::warn!("the database takes long to take back what still runs");
        }
    }

    /// A human says something, and whoever is next will answer.
    ///
    /// # Errors
    /// The refusals of a post: locked, copilot, archived, reused `client_id`, unknown mention.
    pub async fn post_message(
        &self,
        conversation: ConversationId,
        author: MembershipId,
        content: String,
        client_id: Option<String>,
        mentions: Vec<MembershipId>,
    ) -> Result<PostResult, EngineError> {
        crate::fail_point!("post.begin", ?);
        self.require_quota(conversation, author, &content, client_id.as_deref())
            .await?;
        let token_count = self.count_tokens(content.clone()).await?;
        let post = NewPost {
            author,
            content,
            client_id,
            mentions,
            token_count,
        };
        let done = self
            .step(conversation, Command::MessagePosted(post))
            .await?;
        crate::fail_point!("post.after_commit", ?);
        let planned = done.state.queued.as_ref().filter(|_| !done.is_repeated);
        let row = done.message.as_ref().ok_or(CommandError::NotFound)?;
        let run = planned.filter(|it| it.debug.trigger_message_id == Some(row.id));
        Ok(PostResult {
            message: self.message_view(&done, row),
            run: run.map(run::Model::view),
            is_repeated: done.is_repeated,
        })
    }

    /// Makes `speaker` speak, or wakes somebody. `by` is who asked, as people read it.
    ///
    /// # Errors
    /// [`Refusal::NoSpeaker`] when nobody can.
    pub async fn force_talk(
        &self,
        conversation: ConversationId,
        speaker: Option<MembershipId>,
        by: String,
    ) -> Result<run::RunView, EngineError> {
        let done = self
            .step(conversation, Command::ForceTalk { speaker, by })
            .await?;
        done.state
            .queued
            .map(|it| it.view())
            .ok_or(CommandError::NoSpeaker.into())
    }

    /// Stops what runs and what waits; the round rests.
    ///
    /// # Errors
    /// When the conversation is gone.
    pub async fn stop(&self, id: ConversationId, keep_partial: bool) -> Result<(), EngineError> {
        self.step(id, Command::Stop { keep_partial })
            .await
            .map(|_| ())
    }

    /// Lets the running run finish, and nothing follow.
    ///
    /// # Errors
    /// [`Refusal::NoRound`].
    pub async fn pause(&self, id: ConversationId) -> Result<(), EngineError> {
        self.step(id, Command::Pause).await.map(|_| ())
    }

    /// A paused round goes on.
    ///
    /// # Errors
    /// [`Refusal::NothingPaused`].
    pub async fn resume(&self, id: ConversationId) -> Result<(), EngineError> {
        self.step(id, Command::Resume).await.map(|_| ())
    }

    /// Passes over whose turn it is.
    ///
    /// # Errors
    /// [`Refusal::NoRound`].
    pub async fn skip(&self, id: ConversationId) -> Result<(), EngineError> {
        self.step(id, Command::Skip).await.map(|_| ())
    }

    /// Puts what is pending of a round together anew. `by` is who asked, as people read it.
    ///
    /// # Errors
    /// [`Refusal::StaleRound`], [`Refusal::NotSchedulable`].
    pub async fn edit_queue(
        &self,
        id: ConversationId,
        round: RoundId,
        slots: Vec<MembershipId>,
        by: String,
    ) -> Result<(), EngineError> {
        let command = Command::EditQueue { round, slots, by };
        self.step(id, command).await.map(|_| ())
    }

    /// Tries again what failed or was stopped.
    ///
    /// # Errors
    /// [`Refusal::NothingToRetry`].
    pub async fn retry(&self, id: ConversationId) -> Result<run::RunView, EngineError> {
        let done = self.step(id, Command::Retry).await?;
        let planned = done.state.running.or(done.state.queued);
        planned
            .map(|it| it.view())
            .ok_or(CommandError::NothingToRetry.into())
    }

    /// Stops one run.
    ///
    /// # Errors
    /// [`Refusal::AlreadyFinished`].
    pub async fn cancel_run(
        &self,
        id: ConversationId,
        run: RunId,
    ) -> Result<run::RunView, EngineError> {
        self.step(id, Command::CancelRun { run }).await?;
        let found = run::Entity::find_by_id(run)
            .one(self.context.db.reader())
            .await?;
        found
            .map(|it| it.view())
            .ok_or(CommandError::NotFound.into())
    }

    /// Replaces the text of the tail; the token count of `edit` is filled in here.
    ///
    /// # Errors
    /// [`Refusal::EditConflict`] when the message was changed since the version that `edit` names;
    /// [`Refusal::NotTail`], [`Refusal::ForkPoint`], [`Refusal::GenerationLocked`],
    /// [`Refusal::MessageBeingWritten`].
    pub async fn edit_message(
        &self,
        conversation: ConversationId,
        edit: MessageEdit,
    ) -> Result<message::MessageView, EngineError> {
        let token_count = self.count_tokens(edit.content.clone()).await?;
        let command = Command::EditMessage(MessageEdit {
            token_count,
            ..edit
        });
        self.step_for_message(conversation, command).await
    }

    /// Shows, dims or deletes a message.
    ///
    /// # Errors
    /// [`Refusal::ForkPoint`] when a branch hangs on it.
    pub async fn set_visibility(
        &self,
        conversation: ConversationId,
        message: MessageId,
        visibility: message::Visibility,
    ) -> Result<message::MessageView, EngineError> {
        let command = Command::SetVisibility {
            message,
            visibility,
        };
        self.step_for_message(conversation, command).await
    }

    /// A seat was muted, or lost: whose turn it was may have to move on. Steps in every
    /// conversation of the space, so only for such a change.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn member_changed(
        &self,
        space: SpaceId,
        membership: MembershipId,
    ) -> Result<(), EngineError> {
        candidates::on_membership_changed(&self.context, membership).await?;
        step_marks::apply_to_space(&self.context, space, &Command::ApplyChanges).await
    }

    /// Somebody has turned their copilot on: it begins, if the conversation is idle.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn start_copilot(
        &self,
        conversation: ConversationId,
        seat: MembershipId,
    ) -> Result<(), EngineError> {
        match self
            .step(conversation, Command::CopilotStarted { seat })
            .await
        {
            // Archived or deleted in between: then it rests.
            Ok(_) | Err(EngineError::Rejected(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Who may speak by the rules of a space changed. Steps as [`Engine::member_changed`] does.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn settings_changed(&self, space: SpaceId) -> Result<(), EngineError> {
        step_marks::apply_to_space(&self.context, space, &Command::ApplyChanges).await
    }

    /// A space is archived, or about to be deleted: nothing goes on in it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn space_closed(
        &self,
        id: SpaceId,
        reason: RunCancelReason,
    ) -> Result<(), EngineError> {
        self.context.candidates.cancel_matching(|it| it.space == id);
        step_marks::apply_to_space(&self.context, id, &Command::SpaceClosed(reason)).await
    }

    /// Sweeps now, and tells what was healed.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn run_recovery(&self) -> Result<recovery::RecoveryReport, EngineError> {
        Ok(recovery::recover(&self.context).await?)
    }

    pub(super) async fn step(
        &self,
        id: ConversationId,
        command: Command,
    ) -> Result<StepResult, EngineError> {
        scheduler::step(&self.context, id, command).await
    }

    /// A step about a message, answered with that message as it is now.
    pub(super) async fn step_for_message(
        &self,
        id: ConversationId,
        command: Command,
    ) -> Result<message::MessageView, EngineError> {
        let done = self.step(id, command).await?;
        let row = done.message.as_ref().or(done.state.target_message.as_ref());
        Ok(self.message_view(&done, row.ok_or(CommandError::NotFound)?))
    }

    /// Counting is CPU work, and the first count loads the tables: not on an HTTP worker.
    pub(super) async fn count_tokens(&self, text: String) -> Result<i64, EngineError> {
        let counting = self
            .context
            .shutdown
            .main()
            .spawn_blocking(move || tokens::count(&text));
        counting
            .await
            .map_err(|_| DbErr::Custom("tokens could not be counted".to_owned()).into())
    }

    fn message_view(&self, done: &StepResult, row: &message::Model) -> message::MessageView {
        let author = done.state.member(row.space_membership_id);
        let name = author.map_or("", |it| it.cached_display_name.as_str());
        row.view(
            name,
            done.state.n_target_swipes,
            Some(&self.context.markdown),
        )
    }
}
