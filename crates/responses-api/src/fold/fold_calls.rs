//! Builds the item of a tool call for its `output_item.added` event, and the stream events between
//! that event and `output_item.done`. No I/O.

use crate::event::{
    CustomInputDone, FunctionArgumentsDone, ItemDelta, ItemPosition, McpArgumentsDone, StreamEvent,
    ToolProgress,
};
use crate::item::{ItemBody, OutputItem, SearchStatus};
use crate::status::ItemStatus;

/// Returns the item for its `added` event, without the arguments or tools that later events report.
pub fn initial_item(item: &OutputItem) -> OutputItem {
    let mut begun = item.clone();
    begun.body.set_status(ItemStatus::InProgress);
    match &mut begun.body {
        ItemBody::McpListTools(list) => list.tools.clear(),
        ItemBody::FunctionCall(call) => call.arguments.clear(),
        ItemBody::McpCall(call) => call.arguments.clear(),
        ItemBody::CustomToolCall(call) => call.input.clear(),
        _ => {}
    }
    begun
}

/// Returns the events that report the content of a call item.
pub fn body_events(item: &OutputItem, index: usize) -> Vec<StreamEvent> {
    let at = position(item, index);
    let delta = |text: &str| {
        (!text.is_empty()).then(|| ItemDelta {
            at: at.clone(),
            delta: text.to_owned(),
        })
    };
    let mut events = Vec::new();
    match &item.body {
        ItemBody::FunctionCall(call) => {
            events.extend(delta(&call.arguments).map(StreamEvent::FunctionArgumentsDelta));
            events.push(StreamEvent::FunctionArgumentsDone(FunctionArgumentsDone {
                at,
                arguments: call.arguments.clone(),
                name: call.name.clone(),
            }));
        }
        ItemBody::CustomToolCall(call) => {
            events.extend(delta(&call.input).map(StreamEvent::CustomInputDelta));
            events.push(StreamEvent::CustomInputDone(CustomInputDone {
                at,
                input: call.input.clone(),
            }));
        }
        ItemBody::McpCall(call) => {
            events.push(StreamEvent::McpCallInProgress(at.clone()));
            events.extend(delta(&call.arguments).map(StreamEvent::McpArgumentsDelta));
            events.push(StreamEvent::McpArgumentsDone(McpArgumentsDone {
                at,
                arguments: call.arguments.clone(),
            }));
        }
        ItemBody::WebSearchCall(_) => {
            events.push(StreamEvent::WebSearchInProgress(at.clone()));
            events.push(StreamEvent::WebSearchSearching(at));
        }
        ItemBody::McpListTools(list) => {
            events.push(StreamEvent::McpListInProgress(at.clone()));
            events.push(match list.error {
                None => StreamEvent::McpListCompleted(at),
                Some(_) => StreamEvent::McpListFailed(at),
            });
        }
        _ => {}
    }
    events
}

/// Returns the event that reports the result of an MCP call or of a search that did not fail, before
/// its `done` event. `status` is the final status of the item.
pub fn outcome_event(item: &OutputItem, index: usize, status: ItemStatus) -> Option<StreamEvent> {
    let at = position(item, index);
    match &item.body {
        ItemBody::McpCall(call) if call.output.is_some() && call.error.is_none() => {
            Some(StreamEvent::McpCallCompleted(at))
        }
        ItemBody::McpCall(_) => Some(StreamEvent::McpCallFailed(at)),
        ItemBody::WebSearchCall(call) => {
            let is_complete =
                status == ItemStatus::Completed && call.status != SearchStatus::Failed;
            is_complete.then_some(StreamEvent::WebSearchCompleted(at))
        }
        _ => None,
    }
}

/// Returns the progress event of a server-side tool.
pub fn progress_event(item: &OutputItem, index: usize, message: &str) -> StreamEvent {
    StreamEvent::ToolProgress(ToolProgress {
        at: position(item, index),
        message: message.to_owned(),
    })
}

fn position(item: &OutputItem, index: usize) -> ItemPosition {
    ItemPosition {
        item_id: item.id.clone(),
        output_index: index,
    }
}
