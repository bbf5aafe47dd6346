//! Defines the facts that only some commands need: a provider, a message with its swipes, the newest
//! message that people see, or the newest run; and the failures of a claim that follow from them. `state_loader` loads the facts.

use std::collections::HashSet;

use agent::outcome::{FailureCode, GenerationFailure};
use base::ids::MembershipId;

use crate::conversations::audience::message_audience::Audience;
use crate::conversations::{message, swipe};
use crate::providers::provider;
use crate::runs::store::run;

/// The facts that only some commands need. Each variant is loaded only for its commands.
#[derive(Clone, Debug)]
pub enum CommandFacts {
    /// All other commands.
    None,
    /// For a post.
    Post {
        /// The audience of the message that it answers; `None` if it answers none, or one that its
        /// author cannot answer.
        answered: Option<Option<Audience>>,
    },
    /// For a claim.
    Claim {
        /// The usable provider of the queued run's speaker.
        provider: Option<provider::Model>,
        /// Whether the space has used up its token limit.
        has_reached_token_limit: bool,
        /// Whether the message to which the queued run adds a version is hidden or gone.
        is_target_hidden: bool,
        /// The message that the queued run continues.
        continued: Option<message::Model>,
    },
    /// For commands that continue after a stop.
    Continuation {
        /// The newest run, whatever its status.
        newest_run: Option<run::Model>,
        /// The newest message that everyone sees, if the tail is a whisper: what a copilot answers.
        newest_seen: Option<message::Model>,
    },
    /// For a turn that a person requests: the newest message that everyone sees who will see its text, if
    /// that is not the tail.
    RequestedTurn { newest_seen: Option<message::Model> },
    /// For changes of a message, and for the end of a run that adds a version; `None` if there is no such
    /// message.
    Message(Option<TargetMessage>),
    /// For the mark of a message that is out of character.
    OutOfCharacter {
        target: Option<TargetMessage>,
        /// The newest message before the target that the schedule reads.
        before: Option<message::Model>,
    },
    /// For the choice of a swipe.
    Swipe {
        target: Option<TargetMessage>,
        swipe: Option<swipe::Model>,
    },
    /// For a regenerate or a continue; `None` if there is no such message.
    Regenerate(Option<RegenerateFacts>),
    /// For greetings.
    Greetings {
        /// The members that have greeted; `None` once other messages than greetings exist.
        greeted: Option<HashSet<MembershipId>>,
    },
}

/// The message that a command refers to.
#[derive(Clone, Debug)]
pub struct TargetMessage {
    pub row: message::Model,
    /// Whether a branch starts at it.
    pub is_fork_point: bool,
    pub n_swipes: i64,
}

/// What a regenerate replaces, or a continue extends.
#[derive(Clone, Debug)]
pub struct RegenerateFacts {
    pub target: TargetMessage,
    /// The newest visible message of role user before the target, which it answers.
    pub answered: Option<message::Model>,
    /// The messages since then, loaded if a whole turn may be regenerated.
    pub last_turn: Vec<message::Model>,
    /// Whether a branch starts at one of them.
    pub has_fork_point_in_last_turn: bool,
    /// Whether no later message is for everyone or has the audience of the target.
    pub is_newest: bool,
}

impl CommandFacts {
    /// Returns the message that the command refers to, if it refers to one that exists.
    pub fn target(&self) -> Option<&TargetMessage> {
        match self {
            Self::Message(target)
            | Self::Swipe { target, .. }
            | Self::OutOfCharacter { target, .. } => target.as_ref(),
            Self::Regenerate(facts) => facts.as_ref().map(|it| &it.target),
            Self::None
            | Self::Post { .. }
            | Self::Claim { .. }
            | Self::Continuation { .. }
            | Self::RequestedTurn { .. }
            | Self::Greetings { .. } => None,
        }
    }

    /// As [`Self::target`], to be changed.
    pub fn target_mut(&mut self) -> Option<&mut TargetMessage> {
        match self {
            Self::Message(target)
            | Self::Swipe { target, .. }
            | Self::OutOfCharacter { target, .. } => target.as_mut(),
            Self::Regenerate(facts) => facts.as_mut().map(|it| &mut it.target),
            Self::None
            | Self::Post { .. }
            | Self::Claim { .. }
            | Self::Continuation { .. }
            | Self::RequestedTurn { .. }
            | Self::Greetings { .. } => None,
        }
    }

    /// Returns the newest run, if the command continues after a stop.
    pub fn newest_run(&self) -> Option<&run::Model> {
        match self {
            Self::Continuation { newest_run, .. } => newest_run.as_ref(),
            _ => None,
        }
    }

    /// Returns the newest message that everyone sees who will see the requested text, if it is not the tail.
    pub fn newest_seen(&self) -> Option<&message::Model> {
        match self {
            Self::Continuation { newest_seen, .. } | Self::RequestedTurn { newest_seen } => {
                newest_seen.as_ref()
            }
            _ => None,
        }
    }

    /// Returns the message that the claimed run continues, if it does.
    pub fn continued(&self) -> Option<&message::Model> {
        match self {
            Self::Claim { continued, .. } => continued.as_ref(),
            _ => None,
        }
    }

    /// Returns whether the claimed run would write into a hidden message.
    pub fn is_target_hidden(&self) -> bool {
        matches!(
            self,
            Self::Claim {
                is_target_hidden: true,
                ..
            }
        )
    }

    /// Returns the failure with which the claimed run must end, or `None` if its model can be called.
    pub fn claim_failure(&self) -> Option<GenerationFailure> {
        match self {
            Self::Claim {
                has_reached_token_limit: true,
                ..
            } => Some(token_limit_exceeded()),
            Self::Claim {
                provider: Some(_), ..
            } => None,
            _ => Some(no_provider()),
        }
    }

    /// Returns the memberships that the facts refer to.
    pub(super) fn referenced_members(&self) -> impl Iterator<Item = MembershipId> {
        let (answered, last_turn) = match self {
            Self::Regenerate(Some(facts)) => (facts.answered.as_ref(), facts.last_turn.as_slice()),
            _ => (None, [].as_slice()),
        };
        let target = self.target().map(|it| &it.row);
        let messages = target.into_iter().chain(answered).chain(last_turn);
        let speaker = self
            .newest_run()
            .and_then(|it| it.speaker_space_membership_id);
        messages.map(|it| it.space_membership_id).chain(speaker)
    }
}

/// Returns the failure for a space that has used up its tokens; no model is called there.
pub fn token_limit_exceeded() -> GenerationFailure {
    GenerationFailure {
        code: FailureCode::TokenLimitExceeded,
        message: "This space has used up its token limit. Its owner can raise it.".to_owned(),
        is_retryable: true,
    }
}

/// Returns the failure for a speaker without a usable provider.
pub fn no_provider() -> GenerationFailure {
    GenerationFailure {
        code: FailureCode::NoProvider,
        message: "No model is connected. Connect one, then try again.".to_owned(),
        is_retryable: true,
    }
}
