//! All that can happen to the schedule of a conversation, and the reasons to refuse it.

use std::sync::Arc;

use crate::conversations::{message, swipe};
use crate::ids::{MembershipId, MessageId, RoundId, RunId};
use crate::prompt::builder::PromptEffects;
use crate::prompt::macros::variables::VariableChanges;
use crate::prompt::prompt_record::SentPrompt;
use crate::runs::run;

/// Something happened, or somebody asks for something.
#[derive(Clone, Debug)]
pub enum Command {
    /// A human says something.
    MessagePosted(NewPost),
    /// A queued run's time has come, as far as the dispatcher could see.
    Claim {
        run: RunId,
    },
    /// The executor is done with a run.
    RunEnded {
        run: RunId,
        lease: i64,
        end: Box<ExecutionEnd>,
    },
    /// The reaper found a run whose heartbeat stopped.
    LeaseExpired {
        run: RunId,
        lease: i64,
        /// How long its heartbeat must have been silent.
        silent_for_ms: i64,
    },
    /// Characters took their seats.
    InsertGreetings(Vec<Greeting>),
    /// A closing node gives a run back.
    RunReleased {
        run: RunId,
        lease: i64,
        /// What its calls have cost so far.
        usage: Option<run::RunUsage>,
    },
    /// The reaper found a round that nothing moves.
    RoundStalled,
    Stop {
        keep_partial: bool,
    },
    Pause,
    Resume,
    Skip,
    Retry,
    CancelRun {
        run: RunId,
    },
    /// `speaker` is made to speak; without one, somebody is. `by` is shown as the reason.
    ForceTalk {
        speaker: Option<MembershipId>,
        by: String,
    },
    /// What is pending of a round is put together anew. `by` is shown as the reason.
    EditQueue {
        round: RoundId,
        slots: Vec<MembershipId>,
        by: String,
    },
    /// A message is shown again, dimmed, or deleted for everyone.
    SetVisibility {
        message: MessageId,
        visibility: message::Visibility,
    },
    /// The text of the tail is replaced by a person.
    EditMessage(MessageEdit),
    /// Another of its texts is shown of the tail.
    SelectSwipe {
        message: MessageId,
        position: i64,
        /// The version of the message that the person saw, if the client named it.
        expected_version: Option<i64>,
    },
    /// An AI's message is to be written anew: `message`, or the tail. `by` is shown as the reason.
    Regenerate {
        message: Option<MessageId>,
        by: String,
    },
    /// The human's message with which a branch ends is answered again.
    ReplyToTail,
    /// A human has turned their copilot on.
    CopilotStarted {
        seat: MembershipId,
    },
    /// A setting or a membership of the space changed: what it forbids now ends.
    ApplyChanges,
    /// The space is archived, or it or the conversation is about to be deleted.
    SpaceClosed(run::RunCancelReason),
}

impl Command {
    /// The seats that it names.
    pub fn referenced_members(&self) -> Vec<MembershipId> {
        match self {
            Self::MessagePosted(post) => [&[post.author], post.mentions.as_slice()].concat(),
            Self::ForceTalk { speaker, .. } => speaker.iter().copied().collect(),
            Self::CopilotStarted { seat } => vec![*seat],
            Self::EditQueue { slots, .. } => slots.clone(),
            Self::InsertGreetings(greetings) => greetings.iter().map(|it| it.membership).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether a person asks for something new: what an archived space refuses. What is there may
    /// still come to its end.
    pub fn starts_new_work(&self) -> bool {
        matches!(
            self,
            Self::MessagePosted(_)
                | Self::ForceTalk { .. }
                | Self::CopilotStarted { .. }
                | Self::Resume
                | Self::Skip
                | Self::Retry
                | Self::EditQueue { .. }
                | Self::SetVisibility { .. }
                | Self::EditMessage(_)
                | Self::SelectSwipe { .. }
                | Self::Regenerate { .. }
                | Self::ReplyToTail
        )
    }
}

/// What a human says.
#[derive(Clone, Debug)]
pub struct NewPost {
    pub author: MembershipId,
    pub content: String,
    pub client_id: Option<String>,
    /// Seats named by id beside the text.
    pub mentions: Vec<MembershipId>,
    pub token_count: i64,
}

/// Another text for a message, written by a person.
#[derive(Clone, Debug)]
pub struct MessageEdit {
    pub message: MessageId,
    pub content: String,
    pub token_count: i64,
    /// The version of the message that the text was made from.
    pub expected_version: i64,
    /// The membership that edits; `None` for an admin without one.
    pub by: Option<MembershipId>,
}

/// What a character says when it enters.
#[derive(Clone, Debug)]
pub struct Greeting {
    pub membership: MembershipId,
    /// The greeting, then its alternates; macros expanded.
    pub texts: Vec<swipe::SwipeText>,
    /// What macros in the greeting have set.
    pub macros: VariableChanges,
}

/// How the executor's work on a run ended.
#[derive(Clone, Debug)]
pub enum ExecutionEnd {
    Succeeded(GeneratedText),
    Failed {
        error: run::RunError,
        usage: Option<run::RunUsage>,
        prompt: Option<SentPromptRef>,
    },
    /// A cancel was asked for; `partial` is what is to be kept, if anything.
    Canceled {
        partial: Option<GeneratedText>,
        /// What it cost, where no text of it is kept.
        usage: Option<run::RunUsage>,
        /// What was sent, where no text of it is kept.
        prompt: Option<SentPromptRef>,
    },
}

/// A text that is to become a message.
#[derive(Clone, Debug)]
pub struct GeneratedText {
    pub content: String,
    pub token_count: i64,
    pub usage: Option<run::RunUsage>,
    /// `truncated`, `finish_reason`, `stopped`: what a reader should know about the text.
    pub metadata: serde_json::Value,
    pub prompt: Option<SentPromptRef>,
}

/// The prompt of a turn, once it has been sent.
#[derive(Clone, Debug)]
pub struct SentPromptRef {
    /// In figures, for the run's own row.
    pub stats: run::PromptStats,
    /// Whole, for whoever asks.
    pub record: Arc<SentPrompt>,
    /// What is remembered if the turn comes to its end.
    pub effects: Arc<PromptEffects>,
}

impl ExecutionEnd {
    /// What its calls cost, if any was answered.
    pub fn usage(&self) -> Option<run::RunUsage> {
        match self {
            Self::Succeeded(written) => written.usage,
            Self::Failed { usage, .. } => *usage,
            Self::Canceled { partial, usage, .. } => match partial {
                Some(written) => written.usage,
                None => *usage,
            },
        }
    }

    /// The text that is to be stored, if any.
    pub fn text(&self) -> Option<&GeneratedText> {
        match self {
            Self::Succeeded(written) => Some(written),
            Self::Canceled { partial, .. } => partial.as_ref(),
            Self::Failed { .. } => None,
        }
    }

    /// What was sent, if anything was.
    pub fn sent_prompt(&self) -> Option<&SentPromptRef> {
        match self {
            Self::Succeeded(written) => written.prompt.as_ref(),
            Self::Failed { prompt, .. } => prompt.as_ref(),
            Self::Canceled {
                partial, prompt, ..
            } => match partial {
                Some(written) => written.prompt.as_ref(),
                None => prompt.as_ref(),
            },
        }
    }
}

/// Why a command changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    #[error("the conversation, message, run or seat is not there")]
    NotFound,
    #[error("a reply is being written")]
    GenerationLocked,
    #[error("a reply is being written into this message")]
    MessageBeingWritten,
    #[error("the copilot speaks for this person")]
    CopilotActive,
    #[error("this seat may not do that")]
    Forbidden,
    #[error("the space is archived")]
    SpaceArchived,
    #[error("nobody can speak")]
    NoSpeaker,
    #[error("a mention names somebody who is not here")]
    UnknownMention,
    #[error("the client id was used for another text")]
    ClientIdReused,
    #[error("only the last message can be changed")]
    NotTail,
    #[error("the message was changed since the version that was named")]
    EditConflict,
    #[error("a branch hangs on this message")]
    ForkPoint,
    #[error("this text does not exist")]
    NoSuchSwipe,
    #[error("the last message is not an AI's")]
    NothingToRegenerate,
    /// Not for the doors: it goes on in a branch that is made of this message.
    #[error("others have built on this message")]
    BranchRequired(MessageId),
    #[error("there is no round")]
    NoRound,
    #[error("another round is active, or none")]
    StaleRound,
    #[error("a member cannot be scheduled")]
    NotSchedulable,
    #[error("nothing is paused")]
    NothingPaused,
    #[error("nothing can be tried again")]
    NothingToRetry,
    #[error("the run has ended")]
    AlreadyFinished,
}
