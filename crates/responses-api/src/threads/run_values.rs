//! Defines values that runs and their steps contain, as they are stored and returned: what the client
//! must do, why a run failed, and its token usage.
//!
//! **Invariant:** the order of the fields is the order on the wire.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::response::ResponseUsage;

/// What the client must do before the run continues: send the outputs of these calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(feature = "sea-orm", derive(sea_orm::FromJsonQueryResult))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RequiredAction {
    SubmitToolOutputs { submit_tool_outputs: OpenCalls },
}

/// The calls that wait for the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OpenCalls {
    pub tool_calls: Vec<OpenCall>,
}

/// A call that waits for the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OpenCall {
    pub id: String,
    #[serde(rename = "type")]
    pub kind: StepCallKind,
    pub function: OpenFunction,
}

/// The function of such a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OpenFunction {
    pub name: String,
    /// JSON as the model wrote it.
    pub arguments: String,
}

/// The kind of a call. Tools of this server are named `troupe:<tool>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepCallKind {
    Function,
}

/// Why a run or a step failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(feature = "sea-orm", derive(sea_orm::FromJsonQueryResult))]
pub struct ThreadRunError {
    /// `server_error` or `rate_limit_exceeded`.
    pub code: String,
    pub message: String,
}

/// The token usage of a run or a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(feature = "sea-orm", derive(sea_orm::FromJsonQueryResult))]
pub struct ThreadRunUsage {
    pub prompt_tokens: i64,
    pub completion_tokens: i64,
    pub total_tokens: i64,
}

impl ThreadRunUsage {
    /// Returns the sum of both.
    pub fn plus(self, more: Self) -> Self {
        Self {
            prompt_tokens: self.prompt_tokens.saturating_add(more.prompt_tokens),
            completion_tokens: self
                .completion_tokens
                .saturating_add(more.completion_tokens),
            total_tokens: self.total_tokens.saturating_add(more.total_tokens),
        }
    }
}

impl From<ResponseUsage> for ThreadRunUsage {
    fn from(usage: ResponseUsage) -> Self {
        Self {
            prompt_tokens: usage.input_tokens,
            completion_tokens: usage.output_tokens,
            total_tokens: usage.input_tokens.saturating_add(usage.output_tokens),
        }
    }
}

impl From<ThreadRunUsage> for ResponseUsage {
    fn from(usage: ThreadRunUsage) -> Self {
        Self {
            input_tokens: usage.prompt_tokens,
            output_tokens: usage.completion_tokens,
            ..Self::default()
        }
    }
}
