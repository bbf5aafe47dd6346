//! Builds the stream of a response that has already ended, without the pieces of its texts: the response
//! begins, each item is added and done, the response ends.

use serde_json::{Map, Value, json};

use crate::event::{EncodedEvent, StreamEvent};
use crate::response::Response;
use crate::status::ResponseStatus;

/// Returns the events of a response that has ended.
pub fn finished_events(document: &Response<Value>) -> Vec<EncodedEvent> {
    let begun = Response {
        status: ResponseStatus::InProgress,
        completed_at: None,
        error: None,
        incomplete_details: None,
        output: Vec::new(),
        usage: None,
        ..document.clone()
    };
    let mut events = vec![
        event("response.created", json!({ "response": begun })),
        event("response.in_progress", json!({ "response": begun })),
    ];
    for (at, item) in document.output.iter().enumerate() {
        let fields = json!({ "output_index": at, "item": item });
        events.push(event("response.output_item.added", fields.clone()));
        events.push(event("response.output_item.done", fields));
    }
    let last = match document.status {
        ResponseStatus::Completed => "response.completed",
        ResponseStatus::Failed => "response.failed",
        _ => "response.incomplete",
    };
    events.push(event(last, json!({ "response": document })));
    let numbered = events.into_iter().zip(0..);
    numbered
        .map(|(event, number)| EncodedEvent::encode(event, number))
        .collect()
}

fn event(kind: &str, fields: Value) -> StreamEvent {
    let mut all = Map::new();
    all.insert("type".to_owned(), json!(kind));
    if let Value::Object(fields) = fields {
        all.extend(fields);
    }
    StreamEvent::Other(all)
}

#[cfg(test)]
mod tests {
    use base::clock::Timestamp;
    use serde_json::{Map, Value, json};

    use super::finished_events;
    use crate::response::{Response, ResponseHeader, ResponseState};
    use crate::status::ResponseStatus;

    #[test]
    fn a_finished_response_is_streamed_without_deltas() {
        let header = ResponseHeader {
            id: "resp_1".to_owned(),
            created_at: Timestamp(0),
            echo: Map::new(),
        };
        let state = ResponseState::new(ResponseStatus::Completed);
        let output = vec![json!({ "id": "msg_1", "type": "message" })];

        let events = finished_events(&Response::new(&header, &state, output.clone()));

        let kinds: Vec<&str> = events.iter().map(|it| it.kind.as_str()).collect();
        let expected = [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.output_item.done",
            "response.completed",
        ];
        assert_eq!(kinds, expected);
        let read: Vec<Value> = events
            .iter()
            .map(|it| serde_json::from_str(&it.json).unwrap())
            .collect();
        assert_eq!(read[0]["response"]["status"], "in_progress");
        assert_eq!(read[0]["response"]["output"], json!([]));
        assert_eq!(read[4]["response"]["output"], json!(output));
        assert_eq!(read[4]["sequence_number"], 4);
    }
}
