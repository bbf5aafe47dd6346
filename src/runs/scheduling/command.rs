//! Defines the commands of the scheduler with their data, and the errors with which it rejects
//! them.

use std::sync::Arc;

use base::ids::{MembershipId, MemoryId, MessageId, RoundId, RunId};
use tavern::macros::variables::VariableChanges;

use crate::conversations::audience::viewer::Viewer;
use crate::conversations::{message, swipe};
use crate::memories::tool::pending_changes::RequestedChange;
use crate::prompt::record::prompt_effects::PromptEffects;
use crate::prompt::record::sent_prompt::SentPromptJson;
use crate::runs::scheduling::director::choice::DirectorChoice;
use crate::runs::scheduling::messages::new_post::{NewPost, RequestedAudience};
use crate::runs::store::run;
use crate::spaces::permissions::SkipRight;

/// An input of the scheduler: something that happened, or a request.
#[derive(Clone, Debug)]
pub enum Command {
    /// A human posted a message.
    MessagePosted(Box<NewPost>),
    /// The dispatcher found a queued run that is due.
    Claim {
        run: RunId,
    },
    /// The director answered who speaks in a running run.
    SpeakerChosen {
        run: RunId,
        lease: i64,
        choice: DirectorChoice,
    },
    /// The executor has finished a run.
    RunEnded {
        run: RunId,
        lease: i64,
        end: Box<ExecutionEnd>,
    },
    /// The reaper found a run whose heartbeat stopped.
    LeaseExpired {
        run: RunId,
        lease: i64,
        /// The minimum time since its last heartbeat; shorter means that it is still alive.
        silent_for_ms: i64,
    },
    /// Characters joined the space and greet.
    InsertGreetings(Vec<Greeting>),
    /// A closing node releases a run.
    RunReleased {
        run: RunId,
        lease: i64,
        /// The cost of its model calls so far.
        usage: Option<run::RunUsage>,
    },
    /// The reaper found a round without a run that would continue it.
    RoundStalled,
    Stop {
        keep_partial: bool,
    },
    Pause,
    Resume,
    Skip {
        viewer: Viewer,
        right: SkipRight,
    },
    /// The turn of a person in this round may have passed its end.
    TurnTimedOut {
        round: RoundId,
    },
    Retry {
        /// Whether the person may edit texts of others; else an in-place run is refused.
        may_edit: bool,
        viewer: Viewer,
    },
    CancelRun {
        run: RunId,
    },
    /// A person makes a member speak.
    ForceTalk(ForcedTurn),
    /// Replaces the pending slots of a round.
    EditQueue(SlotsEdit),
    /// Shows a message, excludes it from prompts, or deletes it for everyone.
    SetVisibility {
        message: MessageId,
        visibility: message::Visibility,
    },
    /// Sets whether the memory may use a message.
    SetRemembered {
        message: MessageId,
        remember: bool,
    },
    /// Sets whether a person's message is out of character.
    SetOutOfCharacter {
        message: MessageId,
        is_ooc: bool,
    },
    /// Replaces the text of a message with a person's text.
    EditMessage(MessageEdit),
    /// Selects the swipe that a message shows.
    SelectSwipe {
        message: MessageId,
        position: i64,
        /// The version of the message that the person saw, if the client sent it.
        expected_version: Option<i64>,
        /// The membership that selects it; `None` for an admin without one.
        by: Option<MembershipId>,
    },
    /// Regenerates an AI's message.
    Regenerate(VersionRequest),
    /// As `Regenerate`, but adds the new version to the message wherever it is; later messages stay.
    RegenerateInPlace(VersionRequest),
    /// Continues an AI's message.
    Continue(VersionRequest),
    /// Answers the human message at the end of a branch again.
    ReplyToTail,
    /// A human has turned on their copilot.
    CopilotStarted {
        membership: MembershipId,
    },
    /// Settings or memberships of the space changed; ends what they no longer allow.
    ApplyChanges,
    /// The space is archived, or the space or the conversation is about to be deleted.
    SpaceClosed(run::RunCancelReason),
}

impl Command {
    /// Returns the memberships that the command names.
    pub fn referenced_members(&self) -> Vec<MembershipId> {
        match self {
            Self::MessagePosted(post) => post.referenced_members(),
            Self::ForceTalk(turn) => turn.referenced_members(),
            Self::CopilotStarted { membership } => vec![*membership],
            Self::EditQueue(edit) => edit.slots.iter().copied().flatten().collect(),
            Self::InsertGreetings(greetings) => greetings.iter().map(|it| it.membership).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns whether a person requests something new, which an archived space refuses. Existing
    /// runs may still end there.
    pub fn starts_new_work(&self) -> bool {
        matches!(
            self,
            Self::MessagePosted(_)
                | Self::ForceTalk(_)
                | Self::CopilotStarted { .. }
                | Self::Resume
                | Self::Skip { .. }
                | Self::Retry { .. }
                | Self::EditQueue(_)
                | Self::SetVisibility { .. }
                | Self::SetRemembered { .. }
                | Self::SetOutOfCharacter { .. }
                | Self::EditMessage(_)
                | Self::SelectSwipe { .. }
                | Self::Regenerate(_)
                | Self::RegenerateInPlace(_)
                | Self::Continue(_)
                | Self::ReplyToTail
        )
    }
}

/// A turn that a person requests.
#[derive(Clone, Debug)]
pub struct ForcedTurn {
    /// Who speaks; if it is `None`, the scheduler chooses.
    pub speaker: Option<MembershipId>,
    /// The display name of the person; shown as the reason.
    pub by: String,
    pub viewer: Viewer,
    /// Who sees the reply.
    pub audience: RequestedAudience,
}

impl ForcedTurn {
    /// Returns a turn whose reply has the audience of the newest message, if the viewer sees it.
    pub fn new(speaker: Option<MembershipId>, by: impl Into<String>, viewer: Viewer) -> Self {
        Self {
            speaker,
            by: by.into(),
            viewer,
            audience: RequestedAudience::Inherited,
        }
    }

    fn referenced_members(&self) -> Vec<MembershipId> {
        let audience = self.audience.members().iter().copied();
        self.speaker.into_iter().chain(audience).collect()
    }
}

/// A person's new order of the pending slots of a round.
#[derive(Clone, Debug)]
pub struct SlotsEdit {
    pub round: RoundId,
    /// The speakers in order; `None`: a slot for which the director chooses.
    pub slots: Vec<Option<MembershipId>>,
    /// The display name of the person; shown as the reason of new slots.
    pub by: String,
    pub viewer: Viewer,
}

/// A new version of an AI's message that a person requests.
#[derive(Clone, Debug)]
pub struct VersionRequest {
    /// `None`: the newest message that the person sees.
    pub message: Option<MessageId>,
    /// What a continuation should contain.
    pub instruction: Option<String>,
    /// The display name of the person; shown as the reason.
    pub by: String,
    pub viewer: Viewer,
}

/// A person's new text for a message.
#[derive(Clone, Debug)]
pub struct MessageEdit {
    pub message: MessageId,
    pub content: String,
    pub token_count: i64,
    /// The version of the message on which the new text is based.
    pub expected_version: i64,
    /// The membership that edits; `None` for an admin without one.
    pub by: Option<MembershipId>,
    /// The text before scripts changed it; `None`: they did not.
    pub unscripted: Option<String>,
}

/// The greeting of a character.
#[derive(Clone, Debug)]
pub struct Greeting {
    pub membership: MembershipId,
    /// The first message, then the alternate greetings, with macros expanded.
    pub texts: Vec<swipe::SwipeText>,
    /// The variables that macros in the greeting have set.
    pub macros: VariableChanges,
}

/// How the execution of a run ended.
#[derive(Clone, Debug)]
pub enum ExecutionEnd {
    Succeeded(GeneratedText),
    Failed {
        error: run::RunError,
        usage: Option<run::RunUsage>,
        prompt: Option<SentPromptRef>,
    },
    /// A cancellation was requested; `partial` is the text to keep, if any.
    Canceled {
        partial: Option<GeneratedText>,
        /// The cost, if no text is kept.
        usage: Option<run::RunUsage>,
        /// The prompt that was sent, if no text is kept.
        prompt: Option<SentPromptRef>,
    },
}

/// A generated text that becomes a message.
#[derive(Clone, Debug)]
pub struct GeneratedText {
    pub content: String,
    pub token_count: i64,
    pub usage: Option<run::RunUsage>,
    /// What a reader should know about the text: `truncated`, `finish_reason`, `stopped`.
    pub metadata: serde_json::Value,
    pub prompt: Option<SentPromptRef>,
    /// The changes of memories that the run requested; empty for a text that was stopped.
    pub memory_changes: Arc<[RequestedChange]>,
}

/// The prompt of a run after it was sent.
#[derive(Clone, Debug)]
pub struct SentPromptRef {
    /// Sizes of the prompt, for the row of the run.
    pub stats: run::PromptStats,
    /// The complete prompt, for people who inspect it.
    pub record: SentPromptJson,
    /// Changes by macros and World Info; stored if the run succeeds.
    pub effects: Arc<PromptEffects>,
    /// The memories that it contains.
    pub recalled: Arc<[MemoryId]>,
}

impl ExecutionEnd {
    /// Returns the cost of the model calls, if any was answered.
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

    /// Returns the text to store, if any.
    pub fn text(&self) -> Option<&GeneratedText> {
        match self {
            Self::Succeeded(written) => Some(written),
            Self::Canceled { partial, .. } => partial.as_ref(),
            Self::Failed { .. } => None,
        }
    }

    /// Returns the prompt that was sent, if any.
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

/// Why a command changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    #[error("the conversation, message, run or membership does not exist")]
    NotFound,
    #[error("a reply is being written")]
    GenerationLocked,
    #[error("a reply is being written into this message")]
    MessageBeingWritten,
    #[error("the copilot writes for this person")]
    CopilotActive,
    #[error("this membership has no permission to do that")]
    Forbidden,
    #[error("the space is archived")]
    SpaceArchived,
    #[error("no member can speak")]
    NoSpeaker,
    #[error("a mention names a member that is not in the space")]
    UnknownMention,
    #[error("the message to answer does not exist or is hidden")]
    UnknownReplyTarget,
    #[error("a picture does not exist, belongs to another person or was posted already")]
    UnknownAttachment,
    #[error("the message would have neither a text nor a picture")]
    NothingShown,
    #[error("the audience is empty or names a member that is not in the space")]
    UnknownAudience,
    #[error("the named speaker is no active character of the space")]
    UnknownSpeaker,
    #[error("a roll of dice cannot be edited")]
    RollNotEditable,
    #[error("the client id was already used for another text")]
    ClientIdReused,
    /// The author must wait for this time.
    #[error("the space is in slow mode")]
    SlowMode { remaining_ms: i64 },
    #[error("the message was not written by a person")]
    NotOfPerson,
    #[error("the persona does not exist or belongs to another person")]
    UnknownPersona,
    #[error("no text follows the name of the persona")]
    BlankMessage,
    #[error("the persona's name looks like that of another member")]
    NameTaken,
    #[error("the message was changed after the given version")]
    EditConflict,
    #[error("the message has branches")]
    ForkPoint,
    #[error("the swipe does not exist")]
    NoSuchSwipe,
    #[error("the last message was not written by an AI")]
    NothingToRegenerate,
    #[error("the message was not written by an AI")]
    NotAnAiMessage,
    #[error("only a person who may edit the message can write a new version in place")]
    InPlaceForbidden,
    #[error("no message was written by an AI")]
    NothingToContinue,
    #[error("only the newest message can be continued")]
    NotTheNewest,
    #[error("the message is as long as a message can be")]
    TooLong,
    /// Never reaches a client: the operation continues in a branch created from this message.
    #[error("the message has later messages or branches")]
    BranchRequired(MessageId),
    #[error("no round is active")]
    NoRound,
    #[error("the round is no longer active")]
    StaleRound,
    #[error("a member cannot be scheduled")]
    NotSchedulable,
    #[error("nothing is paused")]
    NothingPaused,
    #[error("there is nothing to retry")]
    NothingToRetry,
    #[error("the run has ended")]
    AlreadyFinished,
}
