//! The response object of the API, as used in blocking results, GET and stream events.

use base::clock::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

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

/// Why a response failed: a code for programs and a message for users.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "sea-orm", derive(sea_orm::FromJsonQueryResult))]
pub struct ResponseError {
    pub code: String,
    pub message: String,
}

/// The token usage of a response.
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
    pub fn json(self) -> Value {
        json!({
            "input_tokens": self.input_tokens,
            "input_tokens_details": { "cached_tokens": 0, "cache_write_tokens": 0 },
            "output_tokens": self.output_tokens,
            "output_tokens_details": { "reasoning_tokens": self.reasoning_tokens },
            "total_tokens": self.input_tokens.saturating_add(self.output_tokens),
        })
    }
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

/// Returns the response object with every field that clients require.
pub fn document(header: &ResponseHeader, state: &ResponseState, output: &[Value]) -> Value {
    let is_completed = state.status == ResponseStatus::Completed;
    let completed_at = state.ended_at.filter(|_| is_completed).map(seconds);
    let reason = state.incomplete_reason.as_ref();
    let mut all = Map::new();
    let mut insert = |name: &str, value: Value| {
        all.insert(name.to_owned(), value);
    };
    insert("id", json!(header.id));
    insert("object", json!("response"));
    insert("created_at", json!(seconds(header.created_at)));
    insert("completed_at", json!(completed_at));
    insert("status", json!(state.status));
    insert("error", json!(state.error));
    insert(
        "incomplete_details",
        reason.map_or(Value::Null, |it| json!({ "reason": it })),
    );
    for (name, value) in &header.echo {
        insert(name, value.clone());
    }
    insert("output", json!(output));
    insert(
        "usage",
        state.usage.map_or(Value::Null, ResponseUsage::json),
    );
    Value::Object(all)
}

/// Returns a time in whole seconds, the unit of this API.
pub fn seconds(at: Timestamp) -> i64 {
    at.0.div_euclid(1_000)
}
