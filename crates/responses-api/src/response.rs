//! Defines the response object of blocking results, `GET` and stream events, with its error and
//! token usage, and the object that a compaction returns.

use base::clock::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::failure_codes;
use crate::item::OutputItem;
use crate::objects::{ObjectType, seconds};
use crate::status::ResponseStatus;

/// The part of a response that never changes.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseHeader {
    pub id: String,
    pub created_at: Timestamp,
    /// The request fields that the object repeats, by name.
    pub echo: Map<String, Value>,
}

/// The part of a response that changes, without its items.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseState {
    pub status: ResponseStatus,
    pub error: Option<ResponseError>,
    pub incomplete_reason: Option<String>,
    pub usage: Option<ResponseUsage>,
    /// When it ended, with any status.
    pub ended_at: Option<Timestamp>,
}

impl ResponseState {
    /// Returns a state that only has a status.
    pub fn new(status: ResponseStatus) -> Self {
        Self {
            status,
            error: None,
            incomplete_reason: None,
            usage: None,
            ended_at: None,
        }
    }
}

/// Why a response failed: a code for programs and a message for users.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(feature = "sea-orm", derive(sea_orm::FromJsonQueryResult))]
pub struct ResponseError {
    pub code: String,
    pub message: String,
}

impl ResponseError {
    /// Returns the error object of the API.
    pub fn view(&self) -> ErrorView {
        let (_, status) = failure_codes::with_status(&self.code);
        ErrorView {
            kind: failure_codes::kind(status).to_owned(),
            code: self.code.clone(),
            message: self.message.clone(),
        }
    }
}

/// The error object of the API. Some clients cannot read one without a type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorView {
    /// Absent in events that were stored before errors had a type.
    #[serde(rename = "type", default = "server_error")]
    pub kind: String,
    pub code: String,
    pub message: String,
}

fn server_error() -> String {
    failure_codes::kind(500).to_owned()
}

/// The token usage of a response, as counted and stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "sea-orm", derive(sea_orm::FromJsonQueryResult))]
pub struct ResponseUsage {
    pub input_tokens: i64,
    pub output_tokens: i64,
    /// Included in `output_tokens`.
    pub reasoning_tokens: i64,
}

impl ResponseUsage {
    /// Returns the sum of the known values, or `None` if there are none.
    pub fn sum(usages: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        usages.into_iter().flatten().reduce(|one, other| Self {
            input_tokens: one.input_tokens.saturating_add(other.input_tokens),
            output_tokens: one.output_tokens.saturating_add(other.output_tokens),
            reasoning_tokens: one.reasoning_tokens.saturating_add(other.reasoning_tokens),
        })
    }

    /// Returns the usage object of the API.
    pub fn view(self) -> UsageView {
        UsageView {
            input_tokens: self.input_tokens,
            input_tokens_details: InputTokensDetails::default(),
            output_tokens: self.output_tokens,
            output_tokens_details: OutputTokensDetails {
                reasoning_tokens: self.reasoning_tokens,
            },
            total_tokens: self.input_tokens.saturating_add(self.output_tokens),
        }
    }
}

/// The usage object of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageView {
    pub input_tokens: i64,
    pub input_tokens_details: InputTokensDetails,
    pub output_tokens: i64,
    pub output_tokens_details: OutputTokensDetails,
    pub total_tokens: i64,
}

/// What the input tokens contain. No model reports these to us, so both are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InputTokensDetails {
    pub cached_tokens: i64,
    pub cache_write_tokens: i64,
}

/// What the output tokens contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutputTokensDetails {
    pub reasoning_tokens: i64,
}

/// The response object with every field that clients require. `I` is the type of its items; JSON is
/// sufficient for stored items that are returned unchanged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response<I = OutputItem> {
    pub id: String,
    pub object: ObjectType,
    /// In seconds since 1970, as `completed_at`.
    pub created_at: i64,
    /// `None` unless the status is `completed`.
    pub completed_at: Option<i64>,
    pub status: ResponseStatus,
    pub error: Option<ErrorView>,
    pub incomplete_details: Option<IncompleteDetails>,
    /// The request fields that the object repeats, by name.
    #[serde(flatten)]
    pub echo: Map<String, Value>,
    pub output: Vec<I>,
    pub usage: Option<UsageView>,
}

/// Why a response ended early.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IncompleteDetails {
    pub reason: String,
}

impl<I> Response<I> {
    /// Returns the object of a response in this state with this output.
    pub fn new(header: &ResponseHeader, state: &ResponseState, output: Vec<I>) -> Self {
        let is_completed = state.status == ResponseStatus::Completed;
        let reason = state.incomplete_reason.clone();
        Self {
            id: header.id.clone(),
            object: ObjectType::Response,
            created_at: seconds(header.created_at),
            completed_at: state.ended_at.filter(|_| is_completed).map(seconds),
            status: state.status,
            error: state.error.as_ref().map(ResponseError::view),
            incomplete_details: reason.map(|reason| IncompleteDetails { reason }),
            echo: header.echo.clone(),
            output,
            usage: state.usage.map(ResponseUsage::view),
        }
    }
}

/// A compacted history: messages as they were sent, and a summary.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Compaction {
    id: String,
    object: ObjectType,
    created_at: i64,
    #[schema(value_type = Vec<Object>)]
    output: Vec<Value>,
    usage: UsageView,
}

impl Compaction {
    /// Returns the object of a compaction.
    pub fn new(id: String, created_at: Timestamp, output: Vec<Value>, usage: UsageView) -> Self {
        Self {
            id,
            object: ObjectType::ResponseCompaction,
            created_at: seconds(created_at),
            output,
            usage,
        }
    }
}

#[cfg(test)]
mod tests {
    use base::clock::Timestamp;
    use serde_json::json;

    use super::{Compaction, ResponseError, ResponseUsage};

    #[test]
    fn an_error_has_the_type_of_its_code() {
        for (code, kind) in [
            ("context_length_exceeded", "invalid_request_error"),
            ("rate_limit_exceeded", "rate_limit_error"),
            ("instance_lost", "server_error"),
        ] {
            let error = ResponseError {
                code: code.to_owned(),
                message: "It failed.".to_owned(),
            };

            let expected = json!({ "type": kind, "code": code, "message": "It failed." });
            assert_eq!(serde_json::to_value(error.view()).unwrap(), expected);
        }
    }

    #[test]
    fn a_compaction_has_exactly_this_json() {
        let usage = ResponseUsage {
            input_tokens: 3,
            output_tokens: 2,
            reasoning_tokens: 1,
        };
        let items = vec![json!({ "b": 1, "a": 2 })];

        let object = Compaction::new("x_1".to_owned(), Timestamp(1_000), items, usage.view());

        let expected = r#"{"id":"x_1","object":"response.compaction","created_at":1,"output":[{"b":1,"a":2}],"usage":{"input_tokens":3,"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":1},"total_tokens":5}}"#;
        assert_eq!(serde_json::to_string(&object).unwrap(), expected);
    }
}
