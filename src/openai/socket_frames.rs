//! Frames of the socket at `/v1/responses`: what a client may send, and how it is refused.

use crate::openai::body;
use crate::openai::error::Answer;
use crate::openai::error::Problem;
use crate::openai::fields::unsupported;
use crate::openai::request;
use crate::responses::spec::Spec;
use bytestring::ByteString;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

/// What a socket decides by itself.
const OF_THE_SOCKET: [&str; 3] = ["stream", "stream_options", "background"];

/// A frame that was read.
pub struct Frame {
    /// What it goes on from; known also of one that is refused.
    pub previous: Option<String>,
    /// What it asks for, always as a stream.
    pub spec: Answer<Spec>,
}

/// Reads a frame.
pub fn read(text: &str) -> Frame {
    let read = body::read(text.as_bytes());
    let previous = read.as_ref().ok().and_then(previous);
    let spec = read.and_then(wanted);
    Frame { previous, spec }
}

fn previous(fields: &Map<String, Value>) -> Option<String> {
    let previous = fields.get("previous_response_id")?.as_str()?;
    Some(previous.to_owned())
}

fn wanted(mut fields: Map<String, Value>) -> Answer<Spec> {
    if fields.shift_remove("type") != Some(json!("response.create")) {
        let message = "Send `response.create`.";
        return Err(Problem::invalid("invalid_event", "type", message));
    }
    if let Some(name) = OF_THE_SOCKET.iter().find(|it| fields.contains_key(**it)) {
        return Err(unsupported(name));
    }
    let spec = request::parse(&fields)?;
    Ok(Spec {
        stream: true,
        ..spec
    })
}

/// A refusal as a frame.
pub fn error(problem: &Problem) -> ByteString {
    let frame = json!({ "type": "error", "status": problem.status, "error": problem.body() });
    frame.to_string().into()
}

#[cfg(test)]
mod tests {
    use super::error;
    use super::read;
    use crate::openai::error::Problem;
    use serde_json::Value;
    use serde_json::json;

    fn refused(frame: Value) -> (u16, &'static str, Option<String>) {
        let problem = read(&frame.to_string()).spec.unwrap_err();
        (problem.status, problem.code, problem.param)
    }

    #[test]
    fn a_frame_is_a_request_and_always_streamed() {
        let frame = json!({
            "type": "response.create", "model": "m", "input": "x", "store": false,
            "previous_response_id": "resp_1",
        });

        let frame = read(&frame.to_string());

        let spec = frame.spec.unwrap();
        assert!(spec.stream && !spec.store);
        assert_eq!(frame.previous, spec.previous);
    }

    #[test]
    fn what_the_socket_decides_and_what_is_no_request_is_refused() {
        for name in ["stream", "stream_options", "background"] {
            let mut frame = json!({ "type": "response.create", "model": "m", "input": "x" });
            frame[name] = json!(false);
            let param = Some(name.to_owned());
            assert_eq!(refused(frame), (400, "unsupported_parameter", param));
        }
        let is_no_event = (400, "invalid_event", Some("type".to_owned()));
        assert_eq!(refused(json!({ "type": "session.update" })), is_no_event);
        assert_eq!(refused(json!({ "model": "m", "input": "x" })), is_no_event);
        assert_eq!(refused(json!([])), (400, "invalid_json", None));
    }

    #[test]
    fn what_a_refused_frame_went_on_from_is_known() {
        let frame = json!({ "type": "response.create", "previous_response_id": "resp_1" });

        let frame = read(&frame.to_string());

        assert!(frame.spec.is_err());
        assert_eq!(frame.previous.as_deref(), Some("resp_1"));
    }

    #[test]
    fn an_error_says_what_its_status_would_be() {
        let frame: Value = serde_json::from_str(&error(&Problem::not_found())).unwrap();

        assert_eq!(frame["type"], "error");
        assert_eq!(frame["status"], 404);
        assert_eq!(frame["error"]["code"], "not_found");
        assert_eq!(frame["error"]["param"], Value::Null);
    }
}
