//! Defines `StreamEvent`, all events of a response's stream, and `EncodedEvent`, such an event
//! serialized to JSON with its sequence number, which can be parsed again.
//!
//! **Invariant:** the order of the fields is the order on the wire: the type first, the sequence
//! number last.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::item::{ContentPart, OutputItem};
use crate::response::Response;
use crate::schemas::event_schemas;
use crate::schemas::output_items::OutputItemSchema;
use crate::schemas::response_object::ResponseObject;

/// Defines the events by their types, so that each type is spelled once.
macro_rules! stream_events {
    ($($(#[$docs:meta])* $variant:ident($payload:ty) = $kind:literal,)+) => {
        /// An event without its number.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "type")]
        pub enum StreamEvent {
            $($(#[$docs])* #[serde(rename = $kind)] $variant($payload),)+
            /// An event that this version does not know, with its type.
            #[serde(untagged)]
            Other(Map<String, Value>),
        }

        impl PartialSchema for StreamEvent {
            fn schema() -> RefOr<Schema> {
                event_schemas::one_of(&[$(stringify!($variant)),+])
            }
        }

        impl ToSchema for StreamEvent {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed("StreamEvent")
            }

            fn schemas(named: &mut Vec<(String, RefOr<Schema>)>) {
                $(event_schemas::add::<$payload>(named, stringify!($variant), $kind);)+
            }
        }

        impl StreamEvent {
            /// Returns the type.
            pub fn kind(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $kind,)+
                    Self::Other(fields) => {
                        fields.get("type").and_then(Value::as_str).unwrap_or_default()
                    }
                }
            }
        }
    };
}

stream_events! {
    /// The first event.
    Created(ResponseEvent) = "response.created",
    Queued(ResponseEvent) = "response.queued",
    InProgress(ResponseEvent) = "response.in_progress",
    /// One of the next three is the last event.
    Completed(ResponseEvent) = "response.completed",
    Incomplete(ResponseEvent) = "response.incomplete",
    Failed(ResponseEvent) = "response.failed",
    ItemAdded(ItemEvent) = "response.output_item.added",
    ItemDone(ItemEvent) = "response.output_item.done",
    ContentPartAdded(ContentPartEvent) = "response.content_part.added",
    ContentPartDone(ContentPartEvent) = "response.content_part.done",
    OutputTextDelta(OutputTextDelta) = "response.output_text.delta",
    OutputTextDone(OutputTextDone) = "response.output_text.done",
    AnnotationAdded(AnnotationAdded) = "response.output_text.annotation.added",
    RefusalDelta(ContentDelta) = "response.refusal.delta",
    RefusalDone(RefusalDone) = "response.refusal.done",
    SummaryPartAdded(SummaryPartEvent) = "response.reasoning_summary_part.added",
    SummaryPartDone(SummaryPartEvent) = "response.reasoning_summary_part.done",
    SummaryTextDelta(SummaryTextDelta) = "response.reasoning_summary_text.delta",
    SummaryTextDone(SummaryTextDone) = "response.reasoning_summary_text.done",
    FunctionArgumentsDelta(ItemDelta) = "response.function_call_arguments.delta",
    FunctionArgumentsDone(FunctionArgumentsDone) = "response.function_call_arguments.done",
    CustomInputDelta(ItemDelta) = "response.custom_tool_call_input.delta",
    CustomInputDone(CustomInputDone) = "response.custom_tool_call_input.done",
    WebSearchInProgress(ItemPosition) = "response.web_search_call.in_progress",
    WebSearchSearching(ItemPosition) = "response.web_search_call.searching",
    WebSearchCompleted(ItemPosition) = "response.web_search_call.completed",
    McpListInProgress(ItemPosition) = "response.mcp_list_tools.in_progress",
    McpListCompleted(ItemPosition) = "response.mcp_list_tools.completed",
    McpListFailed(ItemPosition) = "response.mcp_list_tools.failed",
    McpCallInProgress(ItemPosition) = "response.mcp_call.in_progress",
    McpArgumentsDelta(ItemDelta) = "response.mcp_call_arguments.delta",
    McpArgumentsDone(McpArgumentsDone) = "response.mcp_call_arguments.done",
    McpCallCompleted(ItemPosition) = "response.mcp_call.completed",
    McpCallFailed(ItemPosition) = "response.mcp_call.failed",
    ToolProgress(ToolProgress) = "troupe:tool.progress",
}

/// The state of the whole response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ResponseEvent {
    #[schema(value_type = ResponseObject)]
    pub response: Response,
}

/// An item begins or ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ItemEvent {
    pub output_index: usize,
    #[schema(value_type = OutputItemSchema)]
    pub item: OutputItem,
}

/// Identifies the item of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ItemPosition {
    pub item_id: String,
    pub output_index: usize,
}

/// Identifies the part of a message that an event changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContentPosition {
    pub item_id: String,
    pub output_index: usize,
    pub content_index: usize,
}

/// Identifies the part of reasoning that an event changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SummaryPosition {
    pub item_id: String,
    pub output_index: usize,
    pub summary_index: usize,
}

/// A part of a message begins or ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ContentPartEvent {
    #[serde(flatten)]
    pub at: ContentPosition,
    pub part: ContentPart,
}

/// The next piece of a text, with the logprobs of its tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OutputTextDelta {
    #[serde(flatten)]
    pub at: ContentPosition,
    pub delta: String,
    #[serde(default)]
    pub logprobs: Vec<Value>,
}

/// A text is complete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OutputTextDone {
    #[serde(flatten)]
    pub at: ContentPosition,
    pub text: String,
    pub logprobs: Vec<Value>,
}

/// A citation for a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AnnotationAdded {
    #[serde(flatten)]
    pub at: ContentPosition,
    pub annotation: Value,
    pub annotation_index: usize,
}

/// The next piece of a part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ContentDelta {
    #[serde(flatten)]
    pub at: ContentPosition,
    pub delta: String,
}

/// A refusal is complete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RefusalDone {
    #[serde(flatten)]
    pub at: ContentPosition,
    pub refusal: String,
}

/// A part of reasoning begins or ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SummaryPartEvent {
    #[serde(flatten)]
    pub at: SummaryPosition,
    pub part: ContentPart,
}

/// The next piece of reasoning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SummaryTextDelta {
    #[serde(flatten)]
    pub at: SummaryPosition,
    pub delta: String,
}

/// A part of reasoning is complete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SummaryTextDone {
    #[serde(flatten)]
    pub at: SummaryPosition,
    pub text: String,
}

/// The next piece of the arguments or the input of a call; never empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ItemDelta {
    #[serde(flatten)]
    pub at: ItemPosition,
    pub delta: String,
}

/// The arguments of a function call are complete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FunctionArgumentsDone {
    #[serde(flatten)]
    pub at: ItemPosition,
    pub arguments: String,
    pub name: String,
}

/// The input of a custom tool call is complete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CustomInputDone {
    #[serde(flatten)]
    pub at: ItemPosition,
    pub input: String,
}

/// The arguments of an MCP call are complete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct McpArgumentsDone {
    #[serde(flatten)]
    pub at: ItemPosition,
    pub arguments: String,
}

/// A server-side tool reports progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToolProgress {
    #[serde(flatten)]
    pub at: ItemPosition,
    pub message: String,
}

/// An event as it is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SequencedEvent {
    #[serde(flatten)]
    pub event: StreamEvent,
    pub sequence_number: i64,
}

/// A serialized event, which never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedEvent {
    pub seq: i64,
    pub kind: String,
    pub json: String,
}

/// The type of an event.
#[derive(Deserialize)]
struct EventType {
    #[serde(rename = "type")]
    kind: String,
}

impl EncodedEvent {
    /// Serializes an event.
    pub fn encode(event: StreamEvent, sequence_number: i64) -> Self {
        let event = SequencedEvent {
            event,
            sequence_number,
        };
        Self {
            seq: sequence_number,
            kind: event.event.kind().to_owned(),
            json: serde_json::to_string(&event).expect("an event is an object with text keys"),
        }
    }

    /// Returns the event that was serialized to this text.
    pub fn from_json(seq: i64, json: String) -> Self {
        let read: Result<EventType, _> = serde_json::from_str(&json);
        Self {
            seq,
            kind: read.map_or_else(|_| String::new(), |it| it.kind),
            json,
        }
    }

    /// Returns the event, or `None` if the text is not an event.
    pub fn decode(&self) -> Option<StreamEvent> {
        let read: Result<SequencedEvent, _> = serde_json::from_str(&self.json);
        read.ok().map(|it| it.event)
    }

    /// Returns whether this is the last event of a stream.
    pub fn is_terminal(&self) -> bool {
        matches!(
            self.kind.as_str(),
            "response.completed" | "response.incomplete" | "response.failed"
        )
    }

    /// Returns whether this is a piece of a text.
    pub fn is_delta(&self) -> bool {
        self.kind.ends_with(".delta")
    }
}
