//! Parses the client frames of the WebSocket at `/v1/responses` into requests, and builds its error
//! frames.

use bytestring::ByteString;
use responses_api::request::create_response::CreateResponse;
use responses_api::request::server_rules::ServerRules;
use serde_json::{Map, Value, json};

use crate::responses::request::ResponseRequest;
use crate::web::v1::error::{V1Error, V1Result};
use crate::web::v1::parsing::body;

/// Fields that a frame must not contain, because the socket determines them.
const SOCKET_CONTROLLED_FIELDS: [&str; 2] = ["stream_options", "background"];

/// A parsed frame.
pub struct V1Frame {
    /// The response to continue; also known for a rejected frame.
    pub previous_response_id: Option<String>,
    /// The request, always with streaming.
    pub request: V1Result<ResponseRequest>,
}

/// Parses a frame.
pub fn parse(text: &str, rules: &ServerRules) -> V1Frame {
    let read = body::parse_object(text.as_bytes());
    let previous = read.as_ref().ok().and_then(previous_response_id);
    let spec = read.and_then(|fields| parse_request(fields, rules));
    V1Frame {
        previous_response_id: previous,
        request: spec,
    }
}

fn previous_response_id(fields: &Map<String, Value>) -> Option<String> {
    let previous = fields.get("previous_response_id")?.as_str()?;
    Some(previous.to_owned())
}

fn parse_request(mut fields: Map<String, Value>, rules: &ServerRules) -> V1Result<ResponseRequest> {
    if fields.shift_remove("type") != Some(json!("response.create")) {
        let message = "Unsupported frame: `type` must be `response.create`.";
        return Err(V1Error::invalid("invalid_event", "type", message));
    }
    if let Some(name) = SOCKET_CONTROLLED_FIELDS
        .iter()
        .find(|it| fields.contains_key(**it))
    {
        let message = format!("Unsupported parameter on a socket: '{name}'.");
        return Err(V1Error::invalid("unsupported_parameter", name, message));
    }
    // Clients send the same body as over HTTP; every turn of a socket is streamed.
    if fields.get("stream") == Some(&Value::Bool(false)) {
        let message =
            "Unsupported value for 'stream': false. The responses of a socket are always streamed.";
        return Err(V1Error::invalid("unsupported_parameter", "stream", message));
    }
    let request = CreateResponse::parse(&fields, rules)?;
    Ok(ResponseRequest {
        stream: true,
        ..request.into()
    })
}

/// Builds an error frame.
pub fn error_frame(problem: &V1Error) -> ByteString {
    let frame = json!({ "type": "error", "status": problem.status, "error": problem.body() });
    frame.to_string().into()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{error_frame, parse};
    use crate::responses::tool_declarations::SERVER_RULES;
    use crate::web::v1::error::V1Error;

    fn rejection(frame: Value) -> (u16, &'static str, Option<String>) {
        let problem = parse(&frame.to_string(), &SERVER_RULES)
            .request
            .unwrap_err();
        (problem.status, problem.code, problem.param)
    }

    #[test]
    fn a_frame_is_a_request_and_always_streamed() {
        for stream in [json!(null), json!(true)] {
            let frame = json!({
                "type": "response.create", "model": "m", "input": "x", "store": false,
                "previous_response_id": "resp_1", "stream": stream,
            });

            let frame = parse(&frame.to_string(), &SERVER_RULES);

            let spec = frame.request.unwrap();
            assert!(spec.stream && !spec.store);
            assert_eq!(frame.previous_response_id, spec.previous_response_id);
        }
    }

    #[test]
    fn socket_controlled_fields_and_other_frames_are_rejected() {
        for name in ["stream", "stream_options", "background"] {
            let mut frame = json!({ "type": "response.create", "model": "m", "input": "x" });
            frame[name] = json!(false);
            let param = Some(name.to_owned());
            assert_eq!(rejection(frame), (400, "unsupported_parameter", param));
        }
        let is_no_event = (400, "invalid_event", Some("type".to_owned()));
        assert_eq!(rejection(json!({ "type": "session.update" })), is_no_event);
        assert_eq!(
            rejection(json!({ "model": "m", "input": "x" })),
            is_no_event
        );
        assert_eq!(rejection(json!([])), (400, "invalid_json", None));
    }

    #[test]
    fn a_rejected_frame_keeps_its_previous_response_id() {
        let frame = json!({ "type": "response.create", "previous_response_id": "resp_1" });

        let frame = parse(&frame.to_string(), &SERVER_RULES);

        assert!(frame.request.is_err());
        assert_eq!(frame.previous_response_id.as_deref(), Some("resp_1"));
    }

    #[test]
    fn an_error_frame_contains_its_status() {
        let frame: Value = serde_json::from_str(&error_frame(&V1Error::not_found())).unwrap();

        assert_eq!(frame["type"], "error");
        assert_eq!(frame["status"], 404);
        assert_eq!(frame["error"]["code"], "not_found");
        assert_eq!(frame["error"]["param"], Value::Null);
    }
}
