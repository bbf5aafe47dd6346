//! Defines the WebSocket events about runs, messages, the queue and copilot candidates, with their
//! names and JSON fields.

use base::clock::Timestamp;
use base::ids::{ConversationId, GenerationId, MembershipId, MessageId, RoundId, RunId};
use realtime::envelope::Event;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::AllOfBuilder;
use utoipa::openapi::{Ref, Schema};

use crate::conversations::annotations::reaction::ReactionView;
use crate::conversations::message;
use crate::runs::reading::views::{ConversationState, RoundDocument};
use crate::runs::store::run;
use crate::runs::store::run_view::{RunDocument, RunView};

/// A run starts to write.
#[derive(Debug, Serialize, ToSchema)]
pub struct TypingStart {
    pub conversation_id: ConversationId,
    pub run_id: RunId,
    pub membership_id: MembershipId,
    pub kind: run::RunKind,
    pub target_message_id: Option<MessageId>,
    /// For a `continue`: the UTF-16 code units of the existing text, with which the text begins.
    pub base_length: Option<usize>,
}

/// A piece of the text of a running run.
#[derive(Debug, Serialize, ToSchema)]
pub struct StreamChunk<'a> {
    pub conversation_id: ConversationId,
    pub run_id: RunId,
    /// Length of the text before this piece, in UTF-16 code units, as JavaScript counts. For a
    /// `continue` it includes the existing text.
    pub offset: usize,
    pub delta: &'a str,
}

/// `stream_chunk` in protocol 2: a piece of the text of a running run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SocketChunk)]
pub struct ShortStreamChunk<'a> {
    /// The handle from the last `typing_start` or snapshot that contained it.
    pub h: i64,
    /// As `offset` of a `stream_chunk`.
    pub o: usize,
    /// The text.
    pub d: &'a str,
}

/// The text restarts; discard the text so far. For a `continue` the existing text remains.
#[derive(Debug, Serialize, ToSchema)]
pub struct StreamReset {
    pub conversation_id: ConversationId,
    pub run_id: RunId,
}

/// The text is complete; no chunk follows.
#[derive(Debug, Serialize, ToSchema)]
pub struct StreamComplete {
    pub conversation_id: ConversationId,
    pub run_id: RunId,
    pub status: run::RunStatus,
}

/// The last event of a run that had a `typing_start`.
#[derive(Debug, Serialize, ToSchema)]
pub struct TypingStop {
    pub conversation_id: ConversationId,
    pub run_id: RunId,
    pub membership_id: MembershipId,
}

/// A message was created or changed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Message)]
pub struct MessageEvent {
    #[serde(skip)]
    pub is_new: bool,
    pub conversation_id: ConversationId,
    pub rev: i64,
    pub message: message::MessageView,
}

/// A message was deleted for everyone; contains its position but not its text.
#[derive(Debug, Serialize, ToSchema)]
pub struct MessageHidden {
    pub conversation_id: ConversationId,
    pub rev: i64,
    pub message: message::HiddenMessageView,
}

/// The reactions to a message were changed.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReactionsUpdated {
    pub conversation_id: ConversationId,
    pub rev: i64,
    pub message_id: MessageId,
    /// All reactions of the message.
    pub reactions: Vec<ReactionView>,
}

/// A run was queued, or ended without a message.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Run)]
pub struct RunEvent {
    pub conversation_id: ConversationId,
    pub rev: i64,
    pub run: RunView,
    /// Only for a failed run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = optional_error)]
    pub error: Option<run::RunError>,
    /// Only for a canceled run: its `canceled_because`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = optional_reason)]
    pub reason: Option<run::RunCancelReason>,
    /// Only for a run that a post canceled: the id of that post, if everyone sees it who sees the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = optional_message)]
    pub message_id: Option<MessageId>,
}

fn optional_error() -> Schema {
    optional(run::RunError::name())
}

fn optional_reason() -> Schema {
    optional(run::RunCancelReason::name())
}

fn optional_message() -> Schema {
    optional(MessageId::name())
}

/// Schema of a field that is omitted when it has no value.
fn optional(name: impl AsRef<str>) -> Schema {
    AllOfBuilder::new()
        .item(Ref::from_schema_name(name.as_ref()))
        .extensions(Some([("x-optional", true)].into_iter().collect()))
        .into()
}

/// The state of the conversation: its round, the running and the queued run.
#[derive(Debug, Serialize, ToSchema)]
pub struct QueueUpdated {
    pub conversation_id: ConversationId,
    pub rev: i64,
    pub state: ConversationState,
    pub round: Option<RoundDocument>,
    pub queued_run: Option<RunDocument>,
    pub running_run: Option<RunDocument>,
    /// Null while auto mode is off.
    pub auto_mode_turns_left: Option<i64>,
}

/// It is the turn of a member; only for that user's own sockets.
#[derive(Debug, Serialize, ToSchema)]
pub struct YourTurn {
    pub conversation_id: ConversationId,
    pub round_id: RoundId,
    pub slot_position: i64,
    pub membership_id: MembershipId,
    /// When the turn is skipped; null: never.
    pub deadline_at: Option<Timestamp>,
}

/// The conversation changed in a way that the subscriber does not see: in place of an event about a
/// whisper of others, so that `rev` stays consecutive.
#[derive(Debug, Serialize, ToSchema)]
pub struct RevAdvanced {
    pub conversation_id: ConversationId,
    pub rev: i64,
}

/// A conversation of the space has a new message; for lists of conversations.
#[derive(Debug, Serialize, ToSchema)]
pub struct Activity {
    pub conversation_id: ConversationId,
    pub seq: i64,
}

/// A message that the model suggests to the user.
#[derive(Debug, Serialize, ToSchema)]
pub struct CopilotCandidate {
    pub generation_id: GenerationId,
    pub membership_id: MembershipId,
    /// From 0 to the requested count minus 1.
    pub index: i64,
    pub text: String,
}

/// A candidate that could not be generated.
#[derive(Debug, Serialize, ToSchema)]
pub struct CopilotCandidateError {
    pub generation_id: GenerationId,
    pub index: i64,
    pub error: run::RunError,
}

macro_rules! named {
    ($($event:ty => $name:literal;)*) => {$(
        impl Event for $event {
            fn name(&self) -> &'static str {
                $name
            }
        }
    )*};
}

named! {
    TypingStart => "typing_start";
    StreamChunk<'_> => "stream_chunk";
    StreamReset => "stream_reset";
    StreamComplete => "stream_complete";
    TypingStop => "typing_stop";
    QueueUpdated => "queue_updated";
    YourTurn => "your_turn";
    RevAdvanced => "rev_advanced";
    Activity => "activity";
    CopilotCandidate => "copilot_candidate";
    CopilotCandidateError => "copilot_candidate_error";
    MessageHidden => "message_hidden";
    ReactionsUpdated => "reactions_updated";
}

impl Event for MessageEvent {
    fn name(&self) -> &'static str {
        match self.is_new {
            true => "message_created",
            false => "message_updated",
        }
    }
}

impl Event for RunEvent {
    fn name(&self) -> &'static str {
        match self.run.status {
            run::RunStatus::Failed => "run_failed",
            run::RunStatus::Canceled => "run_canceled",
            run::RunStatus::Skipped => "run_skipped",
            _ => "run_queued",
        }
    }
}
