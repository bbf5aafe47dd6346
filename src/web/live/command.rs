//! Defines the commands of `/ws` clients and parses their frames: one JSON object each, with an
//! `id` that the answer repeats.

use base::ids::{ConversationId, SpaceId};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};
use utoipa::ToSchema;

use crate::web::error::ApiError;
use crate::web::extract::deserialize;

/// A valid frame.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientFrame {
    /// Any number, chosen by the client.
    pub id: Number,
    pub command: ClientCommand,
}

/// The requested operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCommand {
    Subscribe(Subscribe),
    Unsubscribe(Unsubscribe),
    SubscribeSpace(SubscribeSpace),
    Away(AwayCommand),
    Typing(TypingCommand),
    Ping,
}

/// Subscribes to a conversation, and requests the events missed since `after_rev`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Subscribe {
    pub conversation_id: ConversationId,
    #[schema(minimum = 0)]
    pub after_rev: Option<i64>,
}

/// Ends the subscription to a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Unsubscribe {
    pub conversation_id: ConversationId,
}

/// Subscribes to the space-wide events of a space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SubscribeSpace {
    pub space_id: SpaceId,
}

/// Reports whether the user is away from this socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Away)]
pub struct AwayCommand {
    pub away: bool,
}

/// Reports whether the user types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Typing)]
pub struct TypingCommand {
    pub conversation_id: ConversationId,
    pub active: bool,
}

/// No further fields.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Nothing)]
pub struct EmptyPayload {}

/// An invalid frame, and its `id` if that is valid.
#[derive(Debug)]
pub struct InvalidFrame {
    pub id: Option<Number>,
    pub error: ApiError,
}

/// Parses a frame.
///
/// # Errors
/// Returns the error and its field, as for the body of a request.
pub fn parse(text: &str) -> Result<ClientFrame, InvalidFrame> {
    let fields = object(text).map_err(|error| InvalidFrame { id: None, error })?;
    let id = match fields.get("id") {
        Some(Value::Number(id)) => Ok(id.clone()),
        Some(_) => Err(bad_request(
            "invalid_type",
            "The `id` of a frame must be a number.",
        )),
        None => Err(bad_request("missing_field", "The field `id` is missing.")),
    };
    let id = id.map_err(|error| InvalidFrame {
        id: None,
        error: error.with_param("id"),
    })?;
    match command(fields) {
        Ok(command) => Ok(ClientFrame { id, command }),
        Err(error) => Err(InvalidFrame {
            id: Some(id),
            error,
        }),
    }
}

fn object(text: &str) -> Result<Map<String, Value>, ApiError> {
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(bad_request(
            "invalid_type",
            "A frame must be a JSON object.",
        )),
        Err(_) => Err(bad_request("invalid_json", "The frame is not valid JSON.")),
    }
}

fn command(mut fields: Map<String, Value>) -> Result<ClientCommand, ApiError> {
    fields.shift_remove("id");
    let op = match fields.shift_remove("op") {
        Some(Value::String(op)) => op,
        Some(_) => {
            return Err(bad_request("invalid_type", "`op` must be a string.").with_param("op"));
        }
        None => {
            return Err(bad_request("missing_field", "The field `op` is missing.").with_param("op"));
        }
    };
    Ok(match op.as_str() {
        "subscribe" => ClientCommand::Subscribe(subscribe(fields)?),
        "unsubscribe" => ClientCommand::Unsubscribe(read(fields)?),
        "subscribe_space" => ClientCommand::SubscribeSpace(read(fields)?),
        "away" => ClientCommand::Away(read(fields)?),
        "typing" => ClientCommand::Typing(read(fields)?),
        "ping" => read(fields).map(|EmptyPayload {}| ClientCommand::Ping)?,
        _ => {
            let takes =
                "Must be one of subscribe, unsubscribe, subscribe_space, away, typing, ping.";
            return Err(ApiError::invalid_value("op", takes));
        }
    })
}

fn subscribe(fields: Map<String, Value>) -> Result<Subscribe, ApiError> {
    let subscribe: Subscribe = read(fields)?;
    match subscribe.after_rev {
        Some(..0) => Err(ApiError::invalid_value("after_rev", "Must be 0 or more.")),
        _ => Ok(subscribe),
    }
}

fn read<T: DeserializeOwned>(fields: Map<String, Value>) -> Result<T, ApiError> {
    deserialize::from_value(Value::Object(fields)).map_err(ApiError::from)
}

fn bad_request(code: &'static str, message: &str) -> ApiError {
    ApiError::new(400, code, message)
}

#[cfg(test)]
mod tests {
    use base::ids::ConversationId;

    use super::{ClientCommand, Subscribe, parse};

    fn error_of(text: &str) -> (Option<String>, &'static str, Option<String>) {
        let it = parse(text).unwrap_err();
        (
            it.id.map(|it| it.to_string()),
            it.error.code,
            it.error.param,
        )
    }

    #[test]
    fn every_operation_is_parsed() {
        for (text, command) in [
            (
                r#""op":"subscribe","conversation_id":7"#,
                "Subscribe(Subscribe { conversation_id: ConversationId(7), after_rev: None })",
            ),
            (
                r#""op":"unsubscribe","conversation_id":7"#,
                "Unsubscribe(Unsubscribe { conversation_id: ConversationId(7) })",
            ),
            (
                r#""op":"subscribe_space","space_id":7"#,
                "SubscribeSpace(SubscribeSpace { space_id: SpaceId(7) })",
            ),
            (
                r#""op":"away","away":true"#,
                "Away(AwayCommand { away: true })",
            ),
            (
                r#""op":"typing","conversation_id":7,"active":false"#,
                "Typing(TypingCommand { conversation_id: ConversationId(7), active: false })",
            ),
            (r#""op":"ping""#, "Ping"),
        ] {
            let frame = parse(&format!("{{\"id\":1,{text}}}")).unwrap();

            assert_eq!(format!("{:?}", frame.command), command);
        }
    }

    #[test]
    fn the_rev_may_be_missing_or_null_but_not_negative() {
        let after = |rev: &str| {
            parse(&format!(
                r#"{{"op":"subscribe","conversation_id":7,"id":1{rev}}}"#
            ))
        };
        let expected = |after_rev| {
            ClientCommand::Subscribe(Subscribe {
                conversation_id: ConversationId(7),
                after_rev,
            })
        };

        assert_eq!(after("").unwrap().command, expected(None));
        assert_eq!(
            after(r#","after_rev":null"#).unwrap().command,
            expected(None)
        );
        assert_eq!(
            after(r#","after_rev":0"#).unwrap().command,
            expected(Some(0))
        );
        assert_eq!(
            after(r#","after_rev":-1"#).unwrap_err().error.code,
            "invalid_value"
        );
    }

    #[test]
    fn any_number_is_an_id() {
        for id in ["0", "-1", "1.5", "9007199254740993", "1e3"] {
            let frame = parse(&format!(r#"{{"op":"ping","id":{id}}}"#)).unwrap();

            let expected: serde_json::Value = serde_json::from_str(id).unwrap();
            assert_eq!(serde_json::Value::Number(frame.id), expected);
        }
    }

    #[test]
    fn errors_name_their_kind_and_field() {
        let one = || Some("1".to_owned());
        let param = |it: &str| Some(it.to_owned());
        for (text, expected) in [
            ("{", (None, "invalid_json", None)),
            ("", (None, "invalid_json", None)),
            ("[]", (None, "invalid_type", None)),
            ("{}", (None, "missing_field", param("id"))),
            (
                r#"{"id":"1","op":"ping"}"#,
                (None, "invalid_type", param("id")),
            ),
            (r#"{"id":1}"#, (one(), "missing_field", param("op"))),
            (r#"{"id":1,"op":2}"#, (one(), "invalid_type", param("op"))),
            (
                r#"{"id":1,"op":"shout"}"#,
                (one(), "invalid_value", param("op")),
            ),
            (
                r#"{"id":1,"op":"ping","at":1}"#,
                (one(), "unknown_field", param("at")),
            ),
            (
                r#"{"id":1,"op":"subscribe"}"#,
                (one(), "missing_field", param("conversation_id")),
            ),
            (
                r#"{"id":1,"op":"subscribe","conversation_id":"7"}"#,
                (one(), "invalid_type", param("conversation_id")),
            ),
            (
                r#"{"id":1,"op":"away","away":1}"#,
                (one(), "invalid_type", param("away")),
            ),
        ] {
            assert_eq!(error_of(text), expected, "{text}");
        }
    }

    #[test]
    fn a_deeply_nested_frame_is_an_error_and_not_a_crash() {
        let deep = format!(r#"{{"id":1,"op":{}"#, "[".repeat(60_000));

        assert_eq!(error_of(&deep).1, "invalid_json");
    }
}
