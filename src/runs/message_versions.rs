//! The verbs about versions of what was said: another text for a message, one of its texts, a branch
//! that goes on from it, and writing anew in a branch what must stay here as it is.

use sea_orm::EntityTrait;

use crate::conversations::branching::NewBranch;
use crate::conversations::job::JobSubject;
use crate::conversations::{branching, conversation, job, message, timeline};
use crate::db::backend;
use crate::ids::{ConversationId, MembershipId, MessageId, RunId, UserId};
use crate::runs::command::{Command, CommandError};
use crate::runs::deletions::{MAX_SHORT_BYTES, MAX_SHORT_MESSAGES, MAX_WAITED_MESSAGES};
use crate::runs::engine::RunEngine;
use crate::runs::error::EngineError;
use crate::runs::scheduler::StepResult;
use crate::runs::{job_batches, jobs, run, state};

/// What came of a wish for another text.
#[derive(Debug)]
pub struct RegenerateResult {
    pub run: run::RunView,
    /// Where it is written.
    pub conversation: ConversationId,
    /// That is a branch, which was made for it and which no one has been told of.
    pub branch: Option<conversation::Model>,
}

/// What is to be branched.
#[derive(Clone, Debug)]
pub struct BranchRequest {
    pub conversation: ConversationId,
    /// The last message that the branch has.
    pub at: MessageId,
    pub title: String,
    /// Who asked; the job, if there is one, is theirs.
    pub user: Option<UserId>,
}

/// A branch, or the job that makes it.
#[derive(Debug)]
pub enum BranchResult {
    /// It is whole. `is_announced`: its job has told of it.
    Whole {
        row: Box<conversation::Model>,
        is_announced: bool,
    },
    /// It is being made.
    Job(Box<job::Model>),
}

/// A run that writes another text, or the job that makes the branch for it.
#[derive(Debug)]
pub enum RegenerationPlan {
    Run(Box<RegenerateResult>),
    Job(Box<job::Model>),
}

/// Who asks for another text.
#[derive(Clone, Debug)]
pub struct Requester {
    pub user: Option<UserId>,
    /// As people read it.
    pub name: String,
}

/// How a branch began.
enum StartedBranch {
    Whole(conversation::Model),
    Job(job::Model),
}

impl RunEngine {
    /// Makes a branch that goes on from a message, and waits for it. Nothing runs in it.
    ///
    /// # Errors
    /// As for [`Engine::begin_branch`].
    pub async fn branch(
        &self,
        conversation: ConversationId,
        at: MessageId,
        title: String,
    ) -> Result<conversation::Model, EngineError> {
        let fork = BranchRequest {
            conversation,
            at,
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

    /// Makes a branch that goes on from a message. Nothing runs in it. With up to 2,000 messages it
    /// is whole in the answer.
    ///
    /// # Errors
    /// [`Refusal::NotFound`]; [`Refusal::MessageBeingWritten`] while that message is written anew: what
    /// hangs on it must not change under it. [`EngineError::StorageFull`], [`EngineError::JobRunning`].
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

    /// Begins a branch: whole if it is short, else with a job. `by` is who has a message of it
    /// written anew.
    async fn start_branch(
        &self,
        fork: BranchRequest,
        by: Option<String>,
    ) -> Result<StartedBranch, EngineError> {
        let db = self.context.db.reader();
        let at = state::find_message(db, fork.conversation, fork.at).await?;
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
                let at = state::find_message(tx, parent.id, fork.at).await?;
                let is_shown = |it: &message::Model| it.visibility != message::Visibility::Hidden;
                let at = at.filter(is_shown).ok_or(CommandError::NotFound)?;
                let (queued, running) = run::find_active(tx, parent.id).await?;
                let is_for = |it: run::Model| it.debug.target_message_id == Some(at.id);
                if [queued, running].into_iter().flatten().any(is_for) {
                    return Err(CommandError::MessageBeingWritten.into());
                }
                quota.require(tx, space.owner_id, new.text_bytes).await?;
                if !new.is_hidden {
                    let row = branching::create_branch(tx, &parent, &at, new).await?;
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

    /// The job, ended if the request waits for it.
    async fn wait_for_job_if_short(&self, job: job::Model) -> Result<job::Model, EngineError> {
        if job.n_total <= MAX_WAITED_MESSAGES {
            return self.wait_for_job(job).await;
        }
        Ok(jobs::start(&self.context, job).job)
    }

    async fn wait_for_job(&self, job: job::Model) -> Result<job::Model, EngineError> {
        let work = jobs::start(&self.context, job);
        let job = work.wait_until_finished(&self.context).await?;
        Ok(job.ok_or(CommandError::NotFound)?)
    }

    /// The branch of a job that ended.
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

    /// Has an AI's message written anew: this one, or the tail. Where others have built on it, that
    /// happens in a branch, of which it is the tail, and this waits for the branch. `by` is who asked,
    /// as people read it.
    ///
    /// # Errors
    /// As for [`Engine::begin_regenerate`].
    pub async fn regenerate(
        &self,
        conversation: ConversationId,
        message: Option<MessageId>,
        by: String,
    ) -> Result<RegenerateResult, EngineError> {
        let by = Requester {
            user: None,
            name: by,
        };
        match self.plan_regeneration(conversation, message, by).await? {
            RegenerationPlan::Run(run) => Ok(*run),
            RegenerationPlan::Job(job) => {
                let job = self.wait_for_job(*job).await?;
                self.regenerate_result_of_job(&job).await
            }
        }
    }

    /// Has an AI's message written anew, in a branch where others have built on it. With up to 2,000
    /// messages the run is queued in the answer.
    ///
    /// # Errors
    /// [`Refusal::NothingToRegenerate`], [`Refusal::NoSpeaker`]; those of a branch.
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

    /// Plans the run, or begins the branch for it; a job is not started.
    async fn plan_regeneration(
        &self,
        conversation: ConversationId,
        message: Option<MessageId>,
        by: Requester,
    ) -> Result<RegenerationPlan, EngineError> {
        let again = Command::Regenerate {
            message,
            by: by.name.clone(),
        };
        let at = match self.step(conversation, again).await {
            Ok(done) => return Ok(RegenerationPlan::Run(Box::new(regenerate_result(done)?))),
            Err(EngineError::Rejected(CommandError::BranchRequired(at))) => at,
            Err(error) => return Err(error),
        };
        let fork = BranchRequest {
            conversation,
            at,
            title: String::new(),
            user: by.user,
        };
        match self.start_branch(fork, Some(by.name.clone())).await? {
            StartedBranch::Job(job) => Ok(RegenerationPlan::Job(Box::new(job))),
            StartedBranch::Whole(branch) => {
                let run =
                    job_batches::reply_to_branch_tail(&self.context, branch.id, by.name).await?;
                let mut planned = self.regenerate_result_of_run(branch.id, run).await?;
                // As it is with its run.
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
        let row = run::Entity::find_by_id(run);
        let row = row.one(self.context.db.reader()).await?;
        Ok(RegenerateResult {
            run: row.ok_or(CommandError::NothingToRegenerate)?.view(),
            conversation,
            branch: None,
        })
    }

    /// Whether a post fits the quota of the space's owner. One that came before is answered in any
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

    /// Shows another text of the tail.
    ///
    /// # Errors
    /// [`Refusal::EditConflict`] when `expected_version` is not the present one;
    /// [`Refusal::NotTail`], [`Refusal::ForkPoint`], [`Refusal::GenerationLocked`],
    /// [`Refusal::MessageBeingWritten`], [`Refusal::NoSuchSwipe`].
    pub async fn select_swipe(
        &self,
        conversation: ConversationId,
        message: MessageId,
        position: i64,
        expected_version: Option<i64>,
    ) -> Result<message::MessageView, EngineError> {
        let command = Command::SelectSwipe {
            message,
            position,
            expected_version,
        };
        self.step_for_message(conversation, command).await
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
