//! The verbs about versions of what was said: another text for a message, one of its texts, a branch
//! that goes on from it, and writing anew in a branch what must stay here as it is.

use crate::conversations::branching;
use crate::conversations::conversation;
use crate::conversations::message;
use crate::ids::ConversationId;
use crate::ids::MessageId;
use crate::runs::command::Command;
use crate::runs::command::Refusal;
use crate::runs::engine::Engine;
use crate::runs::error::EngineError;
use crate::runs::run;
use crate::runs::scheduler::Done;
use crate::runs::situation;

/// What came of a wish for another text.
#[derive(Debug)]
pub struct Regenerated {
    pub run: run::View,
    /// Where it is written.
    pub conversation: ConversationId,
    /// That is a branch, which was made for it.
    pub branch: Option<conversation::Model>,
}

impl Engine {
    /// Makes a branch that goes on from a message. Nothing runs in it.
    ///
    /// # Errors
    /// [`Refusal::NotFound`]; [`Refusal::GenerationLocked`] while that message is written anew: what
    /// hangs on it must not change under it.
    pub async fn branch(
        &self,
        conversation: ConversationId,
        at: MessageId,
        title: String,
    ) -> Result<conversation::Model, EngineError> {
        let now = self.context.clock.now();
        let made = self.context.db.write(move |tx| {
            Box::pin(async move {
                let parent = conversation::lock(tx, conversation).await?;
                let parent = parent.ok_or(Refusal::NotFound)?;
                let fork = situation::message_in(tx, conversation, at).await?;
                let is_shown = |it: &message::Model| it.visibility != message::Visibility::Hidden;
                let fork = fork.filter(is_shown).ok_or(Refusal::NotFound)?;
                let (queued, running) = run::active_in(tx, conversation).await?;
                let is_for = |it: run::Model| it.debug.target_message_id == Some(at);
                if [queued, running].into_iter().flatten().any(is_for) {
                    return Err(Refusal::GenerationLocked.into());
                }
                Ok(branching::branch(tx, &parent, &fork, title, now).await?)
            })
        });
        made.await
    }

    /// Has an AI's message written anew: this one, or the tail. Where others have built on it, that
    /// happens in a branch, of which it is the tail. `by` is who asked, as people read it.
    ///
    /// # Errors
    /// [`Refusal::NothingToRegenerate`], [`Refusal::NoSpeaker`]; those of a branch.
    pub async fn regenerate(
        &self,
        conversation: ConversationId,
        message: Option<MessageId>,
        by: String,
    ) -> Result<Regenerated, EngineError> {
        let again = Command::Regenerate {
            message,
            by: by.clone(),
        };
        match self.step(conversation, again).await {
            Ok(done) => regenerated(done, false),
            Err(EngineError::Refused(Refusal::BranchFirst(at))) => {
                let branch = self.branch(conversation, at, String::new()).await?;
                let done = match self.step(branch.id, Command::AnswerAgain).await {
                    // The branch ends with the very message that is to be written anew.
                    Err(EngineError::Refused(Refusal::NothingToRegenerate)) => {
                        let again = Command::Regenerate { message: None, by };
                        self.step(branch.id, again).await?
                    }
                    done => done?,
                };
                regenerated(done, true)
            }
            Err(error) => Err(error),
        }
    }

    /// Shows another text of the tail.
    ///
    /// # Errors
    /// [`Refusal::EditConflict`] when `expected_version` is not the present one;
    /// [`Refusal::NotTail`], [`Refusal::ForkPoint`], [`Refusal::GenerationLocked`],
    /// [`Refusal::NoSuchSwipe`].
    pub async fn select_swipe(
        &self,
        conversation: ConversationId,
        message: MessageId,
        position: i64,
        expected_version: Option<i64>,
    ) -> Result<message::View, EngineError> {
        let command = Command::SwipeSelected {
            message,
            position,
            expected_version,
        };
        self.step_about(conversation, command).await
    }
}

fn regenerated(done: Done, in_branch: bool) -> Result<Regenerated, EngineError> {
    let conversation = done.situation.conversation;
    let run = done.situation.queued;
    Ok(Regenerated {
        run: run.ok_or(Refusal::NothingToRegenerate)?.view(),
        conversation: conversation.id,
        branch: in_branch.then_some(conversation),
    })
}
