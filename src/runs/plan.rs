//! What is to be done about a command: a list of changes, decided before anything is written.

use std::sync::Arc;

use crate::conversations::{message, swipe};
use crate::ids::{MembershipId, MessageId, RoundId, RunId};
use crate::prompt::builder::PromptEffects;
use crate::prompt::prompt_record::SentPrompt;
use crate::rounds::{round, slot};
use crate::runs::command::MessageEdit;
use crate::runs::{queue, run};
use crate::speakers::selection::SpeakerChoice;

/// The changes in the order in which they are written; all of them commit, or none.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub changes: Vec<PlanChange>,
    /// The one run to queue, written last: what ends comes before what begins.
    pub enqueue: Option<EnqueueRun>,
}

/// One change of the conversation's state.
#[derive(Clone, Debug)]
pub enum PlanChange {
    Append(NewMessage),
    SetVisibility {
        message: MessageId,
        visibility: message::Visibility,
    },
    /// A person's text replaces the one that the message shows.
    SetContent(MessageEdit),
    /// What was said since a message is deleted for everyone: that is the tail again.
    HideMessages(Vec<message::Model>),
    /// Another text for the message the command is about; it is shown from now on.
    AddSwipe(swipe::SwipeText),
    /// One of its texts is shown in place of the present one.
    ShowSwipe(swipe::Model),
    NewRound {
        id: RoundId,
        kind: round::RoundKind,
        trigger: MessageRef,
        seed: i64,
        slots: Vec<SpeakerChoice>,
    },
    EndRound {
        id: RoundId,
        status: round::RoundStatus,
        reason: &'static str,
    },
    MoveRound {
        id: RoundId,
        state: round::RoundState,
        cursor: i64,
    },
    /// The slots from a position on give way to these.
    ReplaceSlots {
        round: RoundId,
        from: i64,
        slots: Vec<SpeakerChoice>,
    },
    MarkSlot {
        round: RoundId,
        position: i64,
        status: slot::SlotStatus,
        skip_reason: Option<&'static str>,
    },
    ClaimRun(run::Model),
    /// Its `debug` says why.
    SkipQueued(run::Model),
    FailQueued(run::Model, run::RunError),
    CancelQueued(run::Model),
    /// The executor is asked to end the run and commit what it has.
    RequestCancel(run::Model),
    /// Fenced: if the run is no longer ours under this lease, the whole plan is dropped.
    Finish {
        run: run::Model,
        end: queue::RunEnd,
    },
    /// As `Finish`, for a run whose heartbeat stopped; dropped if it beats again.
    ExpireLease {
        run: run::Model,
        end: queue::RunEnd,
        silent_for_ms: i64,
    },
    ReleaseRun(run::Model),
    /// How often auto mode has spoken since a person did.
    AutoModeTurns(i64),
    /// The copilot of this seat has said something.
    SpendCopilotStep(MembershipId),
    /// What a run sent.
    StorePrompt(RunId, Arc<SentPrompt>),
    /// What macros and lore have noted in a turn that has come to its end.
    StoreEffects(Arc<PromptEffects>),
}

/// A message to append.
#[derive(Clone, Debug)]
pub struct NewMessage {
    pub author: MembershipId,
    pub role: message::MessageRole,
    pub content: String,
    pub token_count: i64,
    pub client_id: Option<String>,
    pub run: Option<RunId>,
    /// Every text of a greeting that has several, `content` first; else empty.
    pub alternates: Vec<swipe::SwipeText>,
    pub metadata: serde_json::Value,
}

/// A run to put into the queued place.
#[derive(Clone, Debug)]
pub struct EnqueueRun {
    pub run: run::Model,
    pub trigger: Option<MessageRef>,
    /// The tail after which it makes sense.
    pub expected_tail: Option<MessageRef>,
}

/// A message that may only come to be with this plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageRef {
    /// The message that this plan appends.
    Appended,
    /// One that is there.
    Message(MessageId),
}

/// Slots for these speakers, from a position on.
pub fn new_slots(round: RoundId, from: i64, speakers: Vec<SpeakerChoice>) -> Vec<slot::Model> {
    let slots = (from..).zip(speakers);
    slots
        .map(|(position, it)| slot::Model {
            forced: it.is_forced,
            ..slot::new_model(round, position, it.id, it.reason)
        })
        .collect()
}
