//! The verbs about versions of what was said: another text for a message, one of its texts, a branch
//! that goes on from it, and writing anew in a branch what must stay here as it is.

use crate::conversations::branching;
use crate::conversations::branching::NewBranch;
use crate::conversations::conversation;
use crate::conversations::job;
use crate::conversations::job::JobSubject;
use crate::conversations::message;
use crate::conversations::timeline;
use crate::db::backend;
use crate::ids::ConversationId;
use crate::ids::MembershipId;
use crate::ids::MessageId;
use crate::ids::RunId;
use crate::ids::UserId;
use crate::runs::command::Command;
use crate::runs::command::Refusal;
use crate::runs::deletions::MAX_SHORT_BYTES;
use crate::runs::deletions::MAX_SHORT_MESSAGES;
use crate::runs::deletions::MAX_WAITED_MESSAGES;
use crate::runs::engine::Engine;
use crate::runs::error::EngineError;
use crate::runs::job_batches;
use crate::runs::jobs;
use crate::runs::run;
use crate::runs::scheduler::Done;
use crate::runs::situation;
use sea_orm::EntityTrait;

/// What came of a wish for another text.
#[derive(Debug)]
pub struct Regenerated {
    pub run: run::View,
    /// Where it is written.
    pub conversation: ConversationId,
    /// That is a branch, which was made for it and which no one has been told of.
    pub branch: Option<conversation::Model>,
}

/// What is to be branched.
#[derive(Clone, Debug)]
pub struct Fork {
    pub conversation: ConversationId,
    /// The last message that the branch has.
    pub at: MessageId,
    pub title: String,
    /// Who asked; the job, if there is one, is theirs.
    pub user: Option<UserId>,
}

/// A branch, or the job that makes it.
#[derive(Debug)]
pub enum Branched {
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
pub enum PlannedText {
    Run(Box<Regenerated>),
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
enum Begun {
    Whole(conversation::Model),
    Job(job::Model),
}

impl Engine {
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
        let fork = Fork {
            conversation,
            at,
            title,
            user: None,
        };
        match self.start_branch(fork, None).await? {
            Begun::Whole(row) => Ok(row),
            Begun::Job(job) => {
                let job = self.until_made(job).await?;
                self.made(&job).await
            }
        }
    }

    /// Makes a branch that goes on from a message. Nothing runs in it. With up to 2,000 messages it
    /// is whole in the answer.
    ///
    /// # Errors
    /// [`Refusal::NotFound`]; [`Refusal::MessageBeingWritten`] while that message is written anew: what
    /// hangs on it must not change under it. [`EngineError::StorageFull`], [`EngineError::JobRunning`].
    pub async fn begin_branch(&self, fork: Fork) -> Result<Branched, EngineError> {
        let job = match self.start_branch(fork, None).await? {
            Begun::Whole(row) => {
                return Ok(Branched::Whole {
                    row: Box::new(row),
                    is_announced: false,
                });
            }
            Begun::Job(job) => job,
        };
        let job = self.until_made_if_short(job).await?;
        match job.status {
            job::JobStatus::Running => Ok(Branched::Job(Box::new(job))),
            _ => Ok(Branched::Whole {
                row: Box::new(self.made(&job).await?),
                is_announced: true,
            }),
        }
    }

    /// Begins a branch: whole if it is short, else with a job. `by` is who has a message of it
    /// written anew.
    async fn start_branch(&self, fork: Fork, by: Option<String>) -> Result<Begun, EngineError> {
        let db = self.context.db.reader();
        let at = situation::message_in(db, fork.conversation, fork.at).await?;
        let at = at.ok_or(Refusal::NotFound)?;
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
                let (parent, space) = parent.ok_or(Refusal::NotFound)?;
                let at = situation::message_in(tx, parent.id, fork.at).await?;
                let is_shown = |it: &message::Model| it.visibility != message::Visibility::Hidden;
                let at = at.filter(is_shown).ok_or(Refusal::NotFound)?;
                let (queued, running) = run::active_in(tx, parent.id).await?;
                let is_for = |it: run::Model| it.debug.target_message_id == Some(at.id);
                if [queued, running].into_iter().flatten().any(is_for) {
                    return Err(Refusal::MessageBeingWritten.into());
                }
                quota.require(tx, space.owner_id, new.text_bytes).await?;
                if !new.is_hidden {
                    let row = branching::create_branch(tx, &parent, &at, new).await?;
                    return Ok(Begun::Whole(row));
                }
                let row = branching::insert_branch(tx, &parent, &at, new).await?;
                let subject = JobSubject {
                    space: space.id,
                    conversation: Some(row.id),
                };
                match job::insert(tx, job, subject).await {
                    Ok(job) => Ok(Begun::Job(job)),
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
    async fn until_made_if_short(&self, job: job::Model) -> Result<job::Model, EngineError> {
        if job.n_total <= MAX_WAITED_MESSAGES {
            return self.until_made(job).await;
        }
        Ok(jobs::start(&self.context, job).job)
    }

    async fn until_made(&self, job: job::Model) -> Result<job::Model, EngineError> {
        let work = jobs::start(&self.context, job);
        let job = work.finished(&self.context).await?;
        Ok(job.ok_or(Refusal::NotFound)?)
    }

    /// The branch of a job that ended.
    async fn made(&self, job: &job::Model) -> Result<conversation::Model, EngineError> {
        let (job::JobStatus::Succeeded, Some(id)) = (job.status, job.conversation_id) else {
            return Err(match job.status {
                job::JobStatus::Canceled => EngineError::Lost,
                _ => Refusal::NotFound.into(),
            });
        };
        let row = conversation::Entity::find_by_id(id);
        let row = row.one(self.context.db.reader()).await?;
        row.ok_or(Refusal::NotFound.into())
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
    ) -> Result<Regenerated, EngineError> {
        let by = Requester {
            user: None,
            name: by,
        };
        match self.plan_text(conversation, message, by).await? {
            PlannedText::Run(run) => Ok(*run),
            PlannedText::Job(job) => {
                let job = self.until_made(*job).await?;
                self.regenerated_by(&job).await
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
    ) -> Result<PlannedText, EngineError> {
        let job = match self.plan_text(conversation, message, by).await? {
            PlannedText::Job(job) => self.until_made_if_short(*job).await?,
            planned => return Ok(planned),
        };
        match job.status {
            job::JobStatus::Running => Ok(PlannedText::Job(Box::new(job))),
            _ => {
                let run = self.regenerated_by(&job).await?;
                Ok(PlannedText::Run(Box::new(run)))
            }
        }
    }

    /// Plans the run, or begins the branch for it; a job is not started.
    async fn plan_text(
        &self,
        conversation: ConversationId,
        message: Option<MessageId>,
        by: Requester,
    ) -> Result<PlannedText, EngineError> {
        let again = Command::Regenerate {
            message,
            by: by.name.clone(),
        };
        let at = match self.step(conversation, again).await {
            Ok(done) => return Ok(PlannedText::Run(Box::new(regenerated(done)?))),
            Err(EngineError::Refused(Refusal::BranchFirst(at))) => at,
            Err(error) => return Err(error),
        };
        let fork = Fork {
            conversation,
            at,
            title: String::new(),
            user: by.user,
        };
        match self.start_branch(fork, Some(by.name.clone())).await? {
            Begun::Job(job) => Ok(PlannedText::Job(Box::new(job))),
            Begun::Whole(branch) => {
                let run = job_batches::answer_again(&self.context, branch.id, by.name).await?;
                let mut planned = self.planned_in(branch.id, run).await?;
                // As it is with its run.
                let row = conversation::Entity::find_by_id(branch.id);
                planned.branch = row.one(self.context.db.reader()).await?;
                Ok(PlannedText::Run(Box::new(planned)))
            }
        }
    }

    async fn regenerated_by(&self, job: &job::Model) -> Result<Regenerated, EngineError> {
        match (job.status, job.conversation_id, job.run_id) {
            (job::JobStatus::Succeeded, Some(branch), Some(run)) => {
                self.planned_in(branch, run).await
            }
            (job::JobStatus::Canceled, ..) => Err(EngineError::Lost),
            _ => Err(Refusal::NothingToRegenerate.into()),
        }
    }

    async fn planned_in(
        &self,
        conversation: ConversationId,
        run: RunId,
    ) -> Result<Regenerated, EngineError> {
        let row = run::Entity::find_by_id(run);
        let row = row.one(self.context.db.reader()).await?;
        Ok(Regenerated {
            run: row.ok_or(Refusal::NothingToRegenerate)?.view(),
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
        let command = Command::SwipeSelected {
            message,
            position,
            expected_version,
        };
        self.step_about(conversation, command).await
    }
}

fn regenerated(done: Done) -> Result<Regenerated, EngineError> {
    let run = done.situation.queued;
    Ok(Regenerated {
        run: run.ok_or(Refusal::NothingToRegenerate)?.view(),
        conversation: done.situation.conversation.id,
        branch: None,
    })
}
