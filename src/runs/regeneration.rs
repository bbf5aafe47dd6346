//! Engine operations that regenerate a reply, select a swipe or create a branch; a reply that
//! cannot be changed in place is regenerated in a new branch. Also checks whether a post fits the
//! storage quota.

use base::ids::{ConversationId, MembershipId, MessageId, RunId, UserId};
use sea_orm::EntityTrait;

use crate::conversations::audience::viewer::Viewer;
use crate::conversations::branching::NewBranch;
use crate::conversations::jobs::job;
use crate::conversations::jobs::job::JobSubject;
use crate::conversations::{branching, conversation, message, timeline};
use crate::db::backend;
use crate::memories::summaries::summary_branching::copy_summaries;
use crate::runs::deletions::{MAX_SHORT_BYTES, MAX_SHORT_MESSAGES, MAX_WAITED_MESSAGES};
use crate::runs::engine::RunEngine;
use crate::runs::error::EngineError;
use crate::runs::scheduling::command::{Command, CommandError, VersionRequest};
use crate::runs::scheduling::scheduler::StepResult;
use crate::runs::store::run;
use crate::runs::store::run_view::RunView;
use crate::runs::{background_jobs, job_batches};

/// The result of a regenerate.
#[derive(Debug)]
pub struct RegenerateResult {
    pub run: RunView,
    /// The conversation in which the run writes.
    pub conversation: ConversationId,
    /// Set if that is a branch created for this run, which was not announced yet.
    pub branch: Option<conversation::Model>,
}

/// The message at which to branch.
#[derive(Clone, Debug)]
pub struct BranchRequest {
    pub conversation: ConversationId,
    /// The last message of the branch.
    pub at: MessageId,
    /// The branch contains all whispers, but it can start only at a message that this viewer sees.
    pub viewer: Viewer,
    pub title: String,
    /// The user who requested it and who owns the job, if one is needed.
    pub user: Option<UserId>,
}

/// A branch, or the job that creates it.
#[derive(Debug)]
pub enum BranchResult {
    /// The branch is complete. `is_announced`: its job has announced it already.
    Whole {
        row: Box<conversation::Model>,
        is_announced: bool,
    },
    /// The job is still creating it.
    Job(Box<job::Model>),
}

/// A run that writes a swipe, or the job that creates the branch for it.
#[derive(Debug)]
pub enum RegenerationPlan {
    Run(Box<RegenerateResult>),
    Job(Box<job::Model>),
}

/// Who requests a regenerate.
#[derive(Clone, Debug)]
pub struct Requester {
    pub user: Option<UserId>,
    /// The displayed name.
    pub name: String,
    pub viewer: Viewer,
}

/// A branch that was created completely, or the job that will fill it.
enum StartedBranch {
    Whole(conversation::Model),
    Job(job::Model),
}

impl RunEngine {
    /// Creates a branch at a message and waits until it is complete. No run is queued in it.
    ///
    /// # Errors
    /// As for [`RunEngine::begin_branch`].
    pub async fn branch(
        &self,
        conversation: ConversationId,
        at: MessageId,
        title: String,
    ) -> Result<conversation::Model, EngineError> {
        let fork = BranchRequest {
            conversation,
            at,
            viewer: Viewer::Server,
            title,
            user: None,
        };
        match self.start_branch(fork, None).await? {
            StartedBranch::Whole(row) => Ok(row),
            StartedBranch::Job(job) => {
                let job = self.wait_for_job(job).await?;
                self.load_branch(&job).await
            }
        }
    }

    /// Creates a branch at a message. No run is queued in it. A branch of up to 2,000 messages is
    /// complete when this returns.
    ///
    /// # Errors
    /// Returns `NotFound` when the message does not exist, `MessageBeingWritten` while a run
    /// regenerates that message, because the shared messages must not change under the branch,
    /// [`EngineError::StorageFull`], or [`EngineError::JobRunning`].
    pub async fn begin_branch(&self, fork: BranchRequest) -> Result<BranchResult, EngineError> {
        let job = match self.start_branch(fork, None).await? {
            StartedBranch::Whole(row) => {
                return Ok(BranchResult::Whole {
                    row: Box::new(row),
                    is_announced: false,
                });
            }
            StartedBranch::Job(job) => job,
        };
        let job = self.wait_for_job_if_short(job).await?;
        match job.status {
            job::JobStatus::Running => Ok(BranchResult::Job(Box::new(job))),
            _ => Ok(BranchResult::Whole {
                row: Box::new(self.load_branch(&job).await?),
                is_announced: true,
            }),
        }
    }

    /// Starts a branch: complete if it is short, else filled by a job. `by` is set if the branch is
    /// for a regenerate, and names the user who requested it.
    async fn start_branch(
        &self,
        fork: BranchRequest,
        by: Option<String>,
    ) -> Result<StartedBranch, EngineError> {
        let db = self.context.db.reader();
        let at = message::find_in_conversation(db, fork.conversation, fork.at).await?;
        let at = at.ok_or(CommandError::NotFound)?;
        let (n_messages, text_bytes) = branching::measure(db, fork.conversation, at.seq).await?;
        let is_short = n_messages <= MAX_SHORT_MESSAGES && text_bytes <= MAX_SHORT_BYTES;
        let kind = match by {
            Some(_) => job::StoredJobKind::RegenerateBranch,
            None => job::StoredJobKind::Branch,
        };
        let mut job = self.new_job(kind, fork.user, n_messages);
        job.cursor.by = by.unwrap_or_default();
        let new = NewBranch {
            title: fork.title,
            text_bytes,
            is_hidden: !is_short,
            now: job.now,
        };
        let quota = self.context.quota.clone();
        let begun = self.context.db.write(move |tx| {
            Box::pin(async move {
                let parent = conversation::lock_with_space(tx, fork.conversation).await?;
                let parent = parent.filter(|(row, space)| !row.is_hidden && !space.is_hidden);
                let (parent, space) = parent.ok_or(CommandError::NotFound)?;
                let at = message::find_in_conversation(tx, parent.id, fork.at).await?;
                let is_shown = |it: &message::Model| {
                    it.visibility != message::Visibility::Hidden
                        && fork.viewer.sees(it.audience.as_ref())
                };
                let at = at.filter(is_shown).ok_or(CommandError::NotFound)?;
                let (queued, running) = run::find_active(tx, parent.id).await?;
                let is_for = |it: run::Model| it.debug.target_message_id == Some(at.id);
                if [queued, running].into_iter().flatten().any(is_for) {
                    return Err(CommandError::MessageBeingWritten.into());
                }
                quota.require(tx, space.owner_id, new.text_bytes).await?;
                if !new.is_hidden {
                    let now = new.now;
                    let row = branching::create_branch(tx, &parent, &at, new).await?;
                    copy_summaries(tx, &parent, &row, now).await?;
                    return Ok(StartedBranch::Whole(row));
                }
                let row = branching::insert_branch(tx, &parent, &at, new).await?;
                let subject = JobSubject {
                    space: space.id,
                    conversation: Some(row.id),
                };
                match job::insert(tx, job, subject).await {
                    Ok(job) => Ok(StartedBranch::Job(job)),
                    Err(error) if backend::is_unique_violation(&error) => {
                        Err(EngineError::JobRunning)
                    }
                    Err(error) => Err(error.into()),
                }
            })
        });
        begun.await
    }

    /// Starts the job, and waits for its end if it is short enough for a request to wait.
    async fn wait_for_job_if_short(&self, job: job::Model) -> Result<job::Model, EngineError> {
        if job.n_total <= MAX_WAITED_MESSAGES {
            return self.wait_for_job(job).await;
        }
        Ok(background_jobs::start(&self.context, job).job)
    }

    async fn wait_for_job(&self, job: job::Model) -> Result<job::Model, EngineError> {
        let work = background_jobs::start(&self.context, job);
        let job = work.wait_until_finished(&self.context).await?;
        Ok(job.ok_or(CommandError::NotFound)?)
    }

    /// Returns the branch of a job that ended.
    async fn load_branch(&self, job: &job::Model) -> Result<conversation::Model, EngineError> {
        let (job::JobStatus::Succeeded, Some(id)) = (job.status, job.conversation_id) else {
            return Err(match job.status {
                job::JobStatus::Canceled => EngineError::Conflict,
                _ => CommandError::NotFound.into(),
            });
        };
        let row = conversation::Entity::find_by_id(id);
        let row = row.one(self.context.db.reader()).await?;
        row.ok_or(CommandError::NotFound.into())
    }

    /// Regenerates an AI's message: this one, or the tail. If later messages or branches depend on
    /// it, this happens in a new branch with that message as its tail, and this function waits for
    /// the branch. `by` is the displayed name of the user who requested it.
    ///
    /// # Errors
    /// As for [`RunEngine::begin_regenerate`].
    pub async fn regenerate(
        &self,
        conversation: ConversationId,
        message: Option<MessageId>,
        by: String,
    ) -> Result<RegenerateResult, EngineError> {
        let by = Requester {
            user: None,
            name: by,
            viewer: Viewer::Server,
        };
        match self.plan_regeneration(conversation, message, by).await? {
            RegenerationPlan::Run(run) => Ok(*run),
            RegenerationPlan::Job(job) => {
                let job = self.wait_for_job(*job).await?;
                self.regenerate_result_of_job(&job).await
            }
        }
    }

    /// Regenerates an AI's message, in a branch if later messages or branches depend on it. With up
    /// to 2,000 messages the run is queued when this returns.
    ///
    /// # Errors
    /// Returns `NothingToRegenerate`, `NoSpeaker`, or the errors of [`RunEngine::begin_branch`].
    pub async fn begin_regenerate(
        &self,
        conversation: ConversationId,
        message: Option<MessageId>,
        by: Requester,
    ) -> Result<RegenerationPlan, EngineError> {
        let job = match self.plan_regeneration(conversation, message, by).await? {
            RegenerationPlan::Job(job) => self.wait_for_job_if_short(*job).await?,
            planned => return Ok(planned),
        };
        match job.status {
            job::JobStatus::Running => Ok(RegenerationPlan::Job(Box::new(job))),
            _ => {
                let run = self.regenerate_result_of_job(&job).await?;
                Ok(RegenerationPlan::Run(Box::new(run)))
            }
        }
    }

    /// Plans the run, or creates the branch for it; does not start the job.
    async fn plan_regeneration(
        &self,
        conversation: ConversationId,
        message: Option<MessageId>,
        by: Requester,
    ) -> Result<RegenerationPlan, EngineError> {
        let again = Command::Regenerate(VersionRequest {
            instruction: None,
            message,
            by: by.name.clone(),
            viewer: by.viewer,
        });
        let at = match self.step(conversation, again).await {
            Ok(done) => return Ok(RegenerationPlan::Run(Box::new(regenerate_result(done)?))),
            Err(EngineError::Rejected(CommandError::BranchRequired(at))) => at,
            Err(error) => return Err(error),
        };
        let fork = BranchRequest {
            conversation,
            at,
            viewer: by.viewer,
            title: String::new(),
            user: by.user,
        };
        match self.start_branch(fork, Some(by.name.clone())).await? {
            StartedBranch::Job(job) => Ok(RegenerationPlan::Job(Box::new(job))),
            StartedBranch::Whole(branch) => {
                let run =
                    job_batches::reply_to_branch_tail(&self.context, branch.id, by.name).await?;
                let mut planned = self.regenerate_result_of_run(branch.id, run).await?;
                // Loaded again, because queueing the run changed the row.
                let row = conversation::Entity::find_by_id(branch.id);
                planned.branch = row.one(self.context.db.reader()).await?;
                Ok(RegenerationPlan::Run(Box::new(planned)))
            }
        }
    }

    async fn regenerate_result_of_job(
        &self,
        job: &job::Model,
    ) -> Result<RegenerateResult, EngineError> {
        match (job.status, job.conversation_id, job.run_id) {
            (job::JobStatus::Succeeded, Some(branch), Some(run)) => {
                self.regenerate_result_of_run(branch, run).await
            }
            (job::JobStatus::Canceled, ..) => Err(EngineError::Conflict),
            _ => Err(CommandError::NothingToRegenerate.into()),
        }
    }

    async fn regenerate_result_of_run(
        &self,
        conversation: ConversationId,
        run: RunId,
    ) -> Result<RegenerateResult, EngineError> {
        let row = run::find(self.context.db.reader(), run).await?;
        Ok(RegenerateResult {
            run: row.ok_or(CommandError::NothingToRegenerate)?.view(),
            conversation,
            branch: None,
        })
    }

    /// Checks that a post fits the quota of the space's owner. A repeated post is accepted in any
    /// case.
    pub(super) async fn require_quota(
        &self,
        conversation: ConversationId,
        author: MembershipId,
        content: &str,
        client_id: Option<&str>,
    ) -> Result<(), EngineError> {
        let db = self.context.db.reader();
        let quota = &self.context.quota;
        let Err(full) = quota.require_for_post(db, conversation, content).await else {
            return Ok(());
        };
        if let Some(client_id) = client_id
            && timeline::find_by_client_id(db, conversation, author, client_id)
                .await?
                .is_some()
        {
            return Ok(());
        }
        Err(full.into())
    }

    /// Adds a version to an AI's message, wherever it is. Later messages stay.
    ///
    /// # Errors
    /// Returns `NotAnAiMessage`, `NothingToRegenerate`, `NoSpeaker` or `NotFound`.
    pub async fn regenerate_in_place(
        &self,
        conversation: ConversationId,
        request: VersionRequest,
    ) -> Result<RegenerateResult, EngineError> {
        let command = Command::RegenerateInPlace(request);
        regenerate_result(self.step(conversation, command).await?)
    }
}

fn regenerate_result(done: StepResult) -> Result<RegenerateResult, EngineError> {
    let run = done.state.queued;
    Ok(RegenerateResult {
        run: run.ok_or(CommandError::NothingToRegenerate)?.view(),
        conversation: done.state.conversation.id,
        branch: None,
    })
}
