//! Defines the plan of a command: the list of changes to write, decided before anything is written.

use std::sync::Arc;

use base::clock::Timestamp;
use base::ids::{AttachmentId, ConversationId, MembershipId, MessageId, RoundId, RunId};

use crate::conversations::audience::message_audience::Audience;
use crate::conversations::{message, swipe};
use crate::memories::tool::pending_changes::RequestedChange;
use crate::personas::message_persona::MessagePersona;
use crate::prompt::record::prompt_effects::PromptEffects;
use crate::prompt::record::sent_prompt::SentPromptJson;
use crate::rounds::{round, slot};
use crate::runs::scheduling::command::MessageEdit;
use crate::runs::scheduling::messages::new_post::NewPost;
use crate::runs::store::{queue, run};
use crate::speakers::selection::SpeakerChoice;

/// The changes in the order in which they are applied; all of them commit, or none. All changes to
/// a round are written to its row at once: when the round ends or, if it stays active, after the last
/// change of the plan.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub changes: Vec<PlanChange>,
    /// The one run to queue, written last: ends are written before the new run.
    pub enqueue: Option<EnqueueRun>,
}

impl Plan {
    /// Returns whether the plan claims a run and changes nothing else.
    pub fn is_only_claim(&self) -> bool {
        matches!(self.changes.as_slice(), [PlanChange::ClaimRun(_)]) && self.enqueue.is_none()
    }
}

/// One change of the conversation's state.
#[derive(Clone, Debug)]
pub enum PlanChange {
    Append(NewMessage),
    SetVisibility {
        message: MessageId,
        visibility: message::Visibility,
    },
    SetRemembered {
        message: MessageId,
        remember: bool,
    },
    SetOutOfCharacter {
        message: MessageId,
        is_ooc: bool,
    },
    /// Replaces the shown text by a user's edit.
    SetContent(MessageEdit),
    /// Hides the messages since a user message, which becomes the tail again.
    HideMessages(Vec<message::Model>),
    /// Adds a swipe to the target message and shows it.
    AddSwipe(swipe::SwipeText),
    /// Shows another existing swipe of the target message, selected by a membership.
    ShowSwipe {
        swipe: swipe::Model,
        by: Option<MembershipId>,
    },
    /// Starts a round. No other round may be active.
    StartRound(NewRound),
    /// Changes the active round.
    ChangeRound(RoundChange),
    /// Ends the active round.
    EndRound {
        status: round::RoundStatus,
        reason: &'static str,
    },
    ClaimRun(run::Model),
    /// Stores the speaker of the running run, the reason and the usage so far. Fenced as `Finish`.
    ChooseSpeaker(run::Model),
    /// The reason is in its `debug`.
    SkipQueued(run::Model),
    FailQueued(run::Model, run::RunError),
    CancelQueued(run::Model),
    /// The executor is asked to end the run and keep the text so far.
    RequestCancel(run::Model),
    /// Fenced: if the run is no longer running under this lease, the whole plan is dropped.
    Finish {
        run: run::Model,
        end: queue::RunEnd,
    },
    /// As `Finish`, for a run whose heartbeat stopped; dropped if the heartbeat resumed.
    ExpireLease {
        run: run::Model,
        end: queue::RunEnd,
        silent_for_ms: i64,
    },
    ReleaseRun(run::Model),
    /// Changes the tail that a queued run expects.
    ExpectTail {
        run: run::Model,
        tail: Option<MessageRef>,
    },
    /// Sets the number of auto mode turns since the last user message.
    AutoModeTurns(i64),
    /// Decrements the copilot steps of this membership.
    SpendCopilotStep(MembershipId),
    /// Stores the prompt that a run sent.
    StorePrompt(RunId, SentPromptJson),
    /// Stores macro variables and timed effects of the lorebooks.
    StoreEffects(Arc<PromptEffects>),
    /// Stores the changes of memories that a run requested; its reply is the message of this plan.
    ChangeMemories(Arc<[RequestedChange]>),
}

/// A round to start.
#[derive(Clone, Debug)]
pub struct NewRound {
    pub id: RoundId,
    pub kind: round::RoundKind,
    pub trigger: MessageRef,
    pub seed: i64,
    /// Who sees it and its replies; `None`: everyone.
    pub audience: Option<Audience>,
    pub slots: Vec<NewSlot>,
}

impl NewRound {
    /// Returns the row of the round. `trigger` is `None` as long as the message has no id.
    pub fn to_row(
        &self,
        conversation: ConversationId,
        trigger: Option<MessageId>,
        now: Timestamp,
    ) -> round::Model {
        let slots = new_slots(0, self.slots.clone());
        let row = round::new_model(self.id, conversation, self.kind, self.seed, now, slots);
        round::Model {
            trigger_message_id: trigger,
            audience: self.audience.clone(),
            ..row
        }
    }
}

/// A slot to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSlot {
    /// Who speaks; `None`: the director chooses.
    pub speaker: Option<MembershipId>,
    /// The reason as users read it.
    pub reason: String,
    /// Whether a user forced it: the member then speaks even if it is muted.
    pub is_forced: bool,
}

impl From<SpeakerChoice> for NewSlot {
    fn from(choice: SpeakerChoice) -> Self {
        Self {
            speaker: Some(choice.id),
            reason: choice.reason,
            is_forced: choice.is_forced,
        }
    }
}

impl From<slot::Slot> for NewSlot {
    fn from(slot: slot::Slot) -> Self {
        Self {
            speaker: slot.space_membership_id,
            reason: slot.chosen_because,
            is_forced: slot.forced,
        }
    }
}

/// A change of a round that remains active.
#[derive(Clone, Debug)]
pub enum RoundChange {
    Move {
        state: round::RoundState,
        cursor: i64,
    },
    /// Waits for the message of the person at the cursor.
    Wait {
        since: Timestamp,
        deadline: Option<Timestamp>,
    },
    /// Replaces the slots from a position on.
    ReplaceSlots { from: i64, slots: Vec<NewSlot> },
    MarkSlot {
        position: i64,
        status: slot::SlotStatus,
        skip_reason: Option<&'static str>,
    },
}

impl RoundChange {
    /// Applies the change to the round's row. A slot becomes spoken in the plan that appends its message,
    /// which is `appended` once it has an id.
    pub fn apply(&self, round: &mut round::Model, appended: Option<MessageId>) {
        match self {
            Self::Move { state, cursor } => {
                (round.state, round.cursor) = (*state, *cursor);
                (round.turn_started_at, round.deadline_at) = (None, None);
            }
            Self::Wait { since, deadline } => {
                round.state = round::RoundState::Waiting;
                (round.turn_started_at, round.deadline_at) = (Some(*since), *deadline);
            }
            Self::ReplaceSlots { from, slots } => {
                let slots = new_slots(*from, slots.clone());
                round.slots.replace_from(*from, slots);
            }
            Self::MarkSlot {
                position,
                status,
                skip_reason,
            } => {
                round.slots.mark(*position, *status, *skip_reason);
                if let Some(message) = appended.filter(|_| *status == slot::SlotStatus::Spoken) {
                    round.slots.set_message(*position, message);
                }
            }
        }
    }
}

/// A message to append.
#[derive(Clone, Debug)]
pub struct NewMessage {
    pub author: MembershipId,
    pub role: message::MessageRole,
    pub content: String,
    pub token_count: i64,
    pub client_id: Option<String>,
    /// Whether it is out of character.
    pub is_ooc: bool,
    /// Who sees it; `None`: everyone.
    pub audience: Option<Audience>,
    /// Whether no character belongs to its audience.
    pub is_for_people: bool,
    /// The persona under which it is posted. The copilot's is found when the message is written.
    pub persona: Option<MessagePersona>,
    /// The message that it answers.
    pub reply_to: Option<MessageId>,
    /// Its pictures, which nothing else shows yet.
    pub attachments: Vec<AttachmentId>,
    pub run: Option<RunId>,
    /// All texts of a greeting with several, `content` first; else empty.
    pub alternates: Vec<swipe::SwipeText>,
    pub metadata: serde_json::Value,
}

impl NewMessage {
    /// Returns the message of a post for an audience with a character, or for everyone.
    pub fn of_post(post: &NewPost, audience: Option<Audience>) -> Self {
        Self {
            author: post.shown_author(),
            role: post.kind.role(),
            content: post.content.clone(),
            token_count: post.token_count,
            client_id: post.client_id.clone(),
            is_ooc: false,
            audience,
            is_for_people: false,
            persona: post.persona.clone(),
            reply_to: post.reply_to,
            attachments: post.attachments.clone(),
            run: None,
            alternates: Vec::new(),
            metadata: post.metadata.clone(),
        }
    }
}

/// A run to queue.
#[derive(Clone, Debug)]
pub struct EnqueueRun {
    pub run: run::Model,
    pub trigger: Option<MessageRef>,
    /// The tail that the run requires at its claim.
    pub expected_tail: Option<MessageRef>,
}

/// Refers to a message that may be created by this plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageRef {
    /// The message that this plan appends.
    Appended,
    /// An existing message.
    Message(MessageId),
}

/// Returns pending slots, from a position on.
pub fn new_slots(from: i64, slots: Vec<NewSlot>) -> Vec<slot::Slot> {
    let slots = (from..).zip(slots);
    slots
        .map(|(position, it)| slot::Slot {
            position,
            space_membership_id: it.speaker,
            status: slot::SlotStatus::Pending,
            message_id: None,
            skip_reason: None,
            chosen_because: it.reason,
            forced: it.is_forced,
        })
        .collect()
}
