//! Defines `RunEngine`: the operations on conversations and their runs that handlers call, such as
//! posting and stopping; those that change messages are in `message_changes/`. Most pass a command to the scheduler, which applies it in one
//! transaction (a step).

use base::ids::{
    ConversationId, GenerationId, MembershipId, RunId, SpaceId, ToolApprovalId, UserId,
};
use llm::tokens;
use sea_orm::DbErr;

use crate::conversations::audience::viewer::Viewer;
use crate::conversations::display::display_scripts::ShownText;
use crate::conversations::message;
use crate::runs::error::EngineError;
use crate::runs::execution::candidates::{CandidateRequest, CopilotCandidates};
use crate::runs::execution::{approval_wait, candidates};
use crate::runs::scheduling::command::{
    Command, CommandError, ForcedTurn, SlotsEdit, VersionRequest,
};
use crate::runs::scheduling::messages::narration;
use crate::runs::scheduling::messages::new_post::{NewPost, PostKind};
use crate::runs::scheduling::scheduler::StepResult;
use crate::runs::scheduling::state::post_persona;
use crate::runs::scheduling::{scheduler, space_changes};
use crate::runs::services::RunServices;
use crate::runs::store::run::RunCancelReason;
use crate::runs::store::run_view::{RunDocument, RunView};
use crate::runs::store::{run, tool_approval};
use crate::spaces::membership;
use crate::spaces::permissions::SkipRight;

/// The operations on conversations and their runs. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct RunEngine {
    pub(super) context: RunServices,
    /// The copilot candidates that this node is generating.
    pub candidates: CopilotCandidates,
}

/// The result of a post.
#[derive(Debug)]
pub struct PostResult {
    pub message: message::MessageView,
    /// The queued run that answers the post, if any.
    pub run: Option<RunView>,
    /// The same post was sent before; this is the result of the first one.
    pub is_repeated: bool,
}

impl RunEngine {
    /// Creates the engine; no task runs until [`RunEngine::start`].
    pub fn new(context: RunServices) -> Self {
        Self {
            context,
            candidates: CopilotCandidates::default(),
        }
    }

    /// Returns the services, for reads that need no operation of the engine.
    pub fn context(&self) -> &RunServices {
        &self.context
    }

    /// Appends a message of `author` and lets the scheduler decide who answers. Its persona, its text
    /// without the prefix that names the persona, the result of dice, and its token count are filled in
    /// here.
    ///
    /// # Errors
    /// Returns `StorageFull`, or `Rejected` with `GenerationLocked`, `CopilotActive`,
    /// `SpaceArchived`, `ClientIdReused`, `UnknownMention`, `UnknownReplyTarget`,
    /// `UnknownAudience`, `UnknownSpeaker`, `UnknownPersona`, `BlankMessage`, `NameTaken`, `SlowMode`,
    /// `Forbidden` or `NotFound`.
    pub async fn post(
        &self,
        conversation: ConversationId,
        author: &membership::Model,
        post: NewPost,
    ) -> Result<PostResult, EngineError> {
        base::fail_point!("post.begin", ?);
        let db = self.context.db.reader();
        let mut post = match post.kind {
            PostKind::Own | PostKind::Roll(_) => {
                post_persona::choose(db, conversation, author, post).await?
            }
            PostKind::Narrator | PostKind::Character(_) => post,
        };
        narration::fill_in(&mut post, author, &mut rand::rng());
        let client_id = post.client_id.as_deref();
        self.require_quota(conversation, post.shown_author(), &post.content, client_id)
            .await?;
        post.token_count = self.count_tokens(post.content.clone()).await?;
        let done = self
            .step(conversation, Command::MessagePosted(Box::new(post)))
            .await?;
        base::fail_point!("post.after_commit", ?);
        let planned = done.state.queued.as_ref().filter(|_| !done.is_repeated);
        let row = done.message.as_ref().ok_or(CommandError::NotFound)?;
        let run = planned.filter(|it| it.debug.trigger_message_id == Some(row.id));
        Ok(PostResult {
            message: self.message_view(&done, Viewer::Member(author.id), row),
            run: run.map(run::Model::view),
            is_repeated: done.is_repeated,
        })
    }

    /// Makes a member speak.
    ///
    /// # Errors
    /// Returns [`CommandError::NoSpeaker`] when no member can speak, and
    /// [`CommandError::UnknownAudience`] when the requested audience names a member that is not in the
    /// space.
    pub async fn force_talk(
        &self,
        conversation: ConversationId,
        turn: ForcedTurn,
    ) -> Result<RunView, EngineError> {
        let done = self.step(conversation, Command::ForceTalk(turn)).await?;
        done.state
            .queued
            .map(|it| it.view())
            .ok_or(CommandError::NoSpeaker.into())
    }

    /// Continues an AI's message if it is the newest: the same member extends its text.
    ///
    /// # Errors
    /// Returns [`CommandError::NotTheNewest`], [`CommandError::NothingToContinue`],
    /// [`CommandError::GenerationLocked`], [`CommandError::NoSpeaker`] or [`CommandError::TooLong`].
    pub async fn continue_message(
        &self,
        conversation: ConversationId,
        request: VersionRequest,
    ) -> Result<RunView, EngineError> {
        let done = self.step(conversation, Command::Continue(request));
        let run = done.await?.state.queued.map(|it| it.view());
        run.ok_or(CommandError::NothingToContinue.into())
    }

    /// Cancels the running and the queued run, and pauses the round.
    ///
    /// # Errors
    /// Returns `NotFound` when the conversation does not exist.
    pub async fn stop(&self, id: ConversationId, keep_partial: bool) -> Result<(), EngineError> {
        self.step(id, Command::Stop { keep_partial })
            .await
            .map(|_| ())
    }

    /// Lets the running run finish and pauses the round.
    ///
    /// # Errors
    /// Returns [`CommandError::NoRound`] when no round is active.
    pub async fn pause(&self, id: ConversationId) -> Result<(), EngineError> {
        self.step(id, Command::Pause).await.map(|_| ())
    }

    /// Continues a paused round, or the copilot.
    ///
    /// # Errors
    /// Returns [`CommandError::NothingPaused`] when there is nothing to continue.
    pub async fn resume(&self, id: ConversationId) -> Result<(), EngineError> {
        self.step(id, Command::Resume).await.map(|_| ())
    }

    /// Skips the current slot of the round.
    ///
    /// # Errors
    /// Returns [`CommandError::NoRound`] when no round is active, and [`CommandError::Forbidden`] when
    /// the viewer does not see it or may not skip the current turn.
    pub async fn skip(
        &self,
        (id, viewer): (ConversationId, Viewer),
        right: SkipRight,
    ) -> Result<(), EngineError> {
        let skip = Command::Skip { viewer, right };
        self.step(id, skip).await.map(|_| ())
    }

    /// Replaces the pending slots of a round.
    ///
    /// # Errors
    /// Returns [`CommandError::StaleRound`] when the round is no longer active,
    /// [`CommandError::NotSchedulable`] when a member cannot be scheduled.
    pub async fn edit_queue(&self, id: ConversationId, edit: SlotsEdit) -> Result<(), EngineError> {
        self.step(id, Command::EditQueue(edit)).await.map(|_| ())
    }

    /// Retries a failed or stopped run, for a person who may edit texts of others or not.
    ///
    /// # Errors
    /// Returns [`CommandError::NothingToRetry`] when there is none that the viewer sees, and
    /// [`CommandError::InPlaceForbidden`] for an in-place run if the person may not edit.
    pub async fn retry(
        &self,
        (id, viewer): (ConversationId, Viewer),
        may_edit: bool,
    ) -> Result<RunView, EngineError> {
        let done = self.step(id, Command::Retry { may_edit, viewer }).await?;
        let planned = done.state.running.or(done.state.queued);
        planned
            .map(|it| it.view())
            .ok_or(CommandError::NothingToRetry.into())
    }

    /// Cancels one run.
    ///
    /// # Errors
    /// Returns [`CommandError::AlreadyFinished`] when the run has ended.
    pub async fn cancel_run(
        &self,
        (id, viewer): (ConversationId, Viewer),
        run: RunId,
    ) -> Result<RunDocument, EngineError> {
        self.step(id, Command::CancelRun { run }).await?;
        let found = run::find(self.context.db.reader(), run).await?;
        found
            .map(|it| it.document(viewer))
            .ok_or(CommandError::NotFound.into())
    }

    /// Cancels the candidates and runs of a member who was muted or removed. Performs a step in
    /// every active conversation of the space, so it is called for such changes only.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn member_changed(
        &self,
        space: SpaceId,
        membership: MembershipId,
    ) -> Result<(), EngineError> {
        candidates::on_membership_changed(&self.context.db, &self.candidates, membership).await?;
        space_changes::apply_to_space(&self.context, space, &Command::ApplyChanges).await
    }

    /// Starts the copilot of a membership if the conversation is idle.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn start_copilot(
        &self,
        conversation: ConversationId,
        membership: MembershipId,
    ) -> Result<(), EngineError> {
        match self
            .step(conversation, Command::CopilotStarted { membership })
            .await
        {
            // The conversation was archived or deleted meanwhile; the copilot does not start.
            Ok(_) | Err(EngineError::Rejected(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Applies changed settings of a space, with the same steps as [`RunEngine::member_changed`].
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn settings_changed(&self, space: SpaceId) -> Result<(), EngineError> {
        space_changes::apply_to_space(&self.context, space, &Command::ApplyChanges).await
    }

    /// Cancels everything in a space that is archived or about to be deleted.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn space_closed(
        &self,
        id: SpaceId,
        reason: RunCancelReason,
    ) -> Result<(), EngineError> {
        self.candidates.cancel_matching(|it| it.space == id);
        space_changes::apply_to_space(&self.context, id, &Command::SpaceClosed(reason)).await
    }

    /// Starts to generate candidates; they are published only to the user who requested them.
    pub fn suggest_candidates(&self, request: CandidateRequest) -> GenerationId {
        candidates::start(self.context.clone(), self.candidates.clone(), request)
    }

    /// Cancels the generations of a user who has no socket left on this node.
    pub fn on_user_disconnected(&self, user: UserId) {
        self.candidates.cancel_matching(|it| it.user == user);
    }

    /// Stores a moderator's decision about a tool call. Returns `None` if it was already decided or
    /// the run is over.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn decide_tool_approval(
        &self,
        id: ToolApprovalId,
        is_allowed: bool,
        by: String,
    ) -> Result<Option<tool_approval::Model>, DbErr> {
        approval_wait::decide(&self.context, id, is_allowed, by).await
    }

    pub(super) async fn step(
        &self,
        id: ConversationId,
        command: Command,
    ) -> Result<StepResult, EngineError> {
        scheduler::step(&self.context, id, command).await
    }

    /// Performs a step about a message and returns that message after the step, as the viewer sees it.
    pub(super) async fn step_for_message(
        &self,
        id: ConversationId,
        viewer: Viewer,
        command: Command,
    ) -> Result<message::MessageView, EngineError> {
        let done = self.step(id, command).await?;
        let target = done.state.facts.target().map(|it| &it.row);
        let row = done.message.as_ref().or(target);
        Ok(self.message_view(&done, viewer, row.ok_or(CommandError::NotFound)?))
    }

    /// Counts tokens on a blocking thread: it is CPU work, and the first call loads the tables.
    pub(super) async fn count_tokens(&self, text: String) -> Result<i64, EngineError> {
        let counting = self
            .context
            .shutdown
            .main()
            .spawn_blocking(move || tokens::count(&text));
        Ok(counting.await?)
    }

    fn message_view(
        &self,
        done: &StepResult,
        viewer: Viewer,
        row: &message::Model,
    ) -> message::MessageView {
        let author = done.state.member(row.space_membership_id);
        let name = author.map_or("", |it| it.cached_display_name.as_str());
        let shown = ShownText::of_message(row, name);
        let html = done.scripts.render(&self.context.markdown, shown);
        let n_swipes = done.state.facts.target().map_or(0, |it| it.n_swipes);
        let view = row.view(name, n_swipes, Some(html));
        done.annotations.annotate(view, viewer)
    }
}
