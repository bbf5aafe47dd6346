//! Defines the frames that only `/ws` sends: answers to client frames, and the events that request
//! a new subscription, end one, or replace the text of a stream.

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, RunId, SpaceId};
use bytestring::ByteString;
use realtime::envelope::Event;
use realtime::presence_table::PresentMember;
use serde::Serialize;
use serde_json::{Number, json};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::web::error::ApiError;

/// The client must subscribe again, with its last `rev`.
#[derive(Debug, Serialize, ToSchema)]
pub struct Resync {
    pub conversation_id: ConversationId,
}

/// The right to subscribe to a conversation was lost.
#[derive(Debug, Serialize, ToSchema)]
pub struct Unsubscribed {
    pub conversation_id: ConversationId,
    pub reason: &'static str,
}

/// The right to subscribe to a space was lost.
#[derive(Debug, Serialize, ToSchema)]
pub struct UnsubscribedSpace {
    pub space_id: SpaceId,
    pub reason: &'static str,
}

/// A gap in a stream is repaired: replace the text with this one.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StreamReset)]
pub struct StreamRepaired<'a> {
    pub conversation_id: ConversationId,
    pub run_id: Uuid,
    /// Only in this frame; a stream that restarts after a retry has no text yet.
    #[schema(extensions(("x-optional" = json!(true))))]
    pub text: &'a str,
}

macro_rules! event_names {
    ($($event:ty => $name:literal;)*) => {$(
        impl Event for $event {
            fn name(&self) -> &'static str {
                $name
            }
        }
    )*};
}

event_names! {
    Resync => "resync";
    Unsubscribed => "unsubscribed";
    UnsubscribedSpace => "unsubscribed";
    StreamRepaired<'_> => "stream_reset";
}

/// The text so far of the run that is running in the snapshot.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = StreamSoFar)]
pub struct StreamState {
    /// Only in protocol 2: the handle of the pieces that follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = i64, extensions(("x-optional" = json!(true))))]
    pub h: Option<i64>,
    pub run_id: RunId,
    pub membership_id: MembershipId,
    /// For a `continue`: the UTF-16 code units of the existing text, with which `text` begins.
    pub base_length: Option<usize>,
    pub text: String,
}

/// Creates the answer to a successful operation.
pub fn ok(re: &Number) -> ByteString {
    json!({ "re": re, "ok": true }).to_string().into()
}

/// Creates the answer to `ping`, with the current time.
pub fn time(re: &Number, time: Timestamp) -> ByteString {
    json!({ "re": re, "ok": true, "time": time })
        .to_string()
        .into()
}

/// Creates the answer to a failed operation; `re` is null if the frame could not be parsed.
pub fn error(re: Option<&Number>, error: &ApiError) -> ByteString {
    json!({ "re": re, "error": error.body(None) })
        .to_string()
        .into()
}

/// Creates the answer to `subscribe`. `snapshot` is an encoded object; presence and stream are
/// added to it.
pub fn snapshot(
    re: &Number,
    rev: i64,
    snapshot: &str,
    presence: &[PresentMember],
    stream: Option<&StreamState>,
) -> ByteString {
    let presence = json!(presence);
    let stream = json!(stream);
    let inner = snapshot.strip_suffix('}').unwrap_or(snapshot);
    format!(
        r#"{{"re":{re},"ok":true,"rev":{rev},"snapshot":{inner},"presence":{presence},"stream":{stream}}}}}"#
    )
    .into()
}

#[cfg(test)]
mod tests {
    use base::ids::{MembershipId, RunId};
    use realtime::presence_table::{PresenceState, PresentMember};
    use serde_json::{Number, Value, json};

    use super::{StreamState, error, snapshot};
    use crate::web::error::ApiError;

    #[test]
    fn presence_and_stream_are_part_of_the_snapshot() {
        let run_id = RunId::new();
        let stream = StreamState {
            h: None,
            run_id,
            membership_id: MembershipId(3),
            base_length: None,
            text: "So \"far\"".to_owned(),
        };
        let present = PresentMember {
            membership_id: MembershipId(3),
            state: PresenceState::Away,
        };
        let body = r#"{"reset":false,"running_run":{"error":{}}}"#;

        let frame = snapshot(&Number::from(7), 12, body, &[present], Some(&stream));

        let frame: Value = serde_json::from_str(&frame).unwrap();
        assert_eq!(
            frame,
            json!({"re": 7, "ok": true, "rev": 12, "snapshot": {
                "reset": false,
                "running_run": {"error": {}},
                "presence": [{"membership_id": 3, "state": "away"}],
                "stream": {"run_id": run_id, "membership_id": 3, "base_length": null, "text": "So \"far\""},
            }})
        );
    }

    #[test]
    fn an_error_frame_contains_the_usual_error_object() {
        let frame: Value = serde_json::from_str(&error(None, &ApiError::not_found())).unwrap();

        assert_eq!(
            frame,
            json!({"re": null, "error": {
                "type": "invalid_request_error",
                "code": "not_found",
                "message": "This does not exist, or you cannot see it.",
                "param": null,
            }})
        );
    }
}
