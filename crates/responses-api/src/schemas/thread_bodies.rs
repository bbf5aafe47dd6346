//! Describes the bodies of requests to `/v1/assistants` and `/v1/threads`. A field whose value is `null`
//! counts as absent.

use std::borrow::Cow;

use serde_json::Value;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::schemas::request_values;
use crate::threads::thread_status::ThreadMessageRole;

/// A new assistant.
pub struct NewAssistantBody;

impl PartialSchema for NewAssistantBody {
    fn schema() -> RefOr<Schema> {
        request_values::fields_of::<AssistantChangeBody>("A new assistant.")
            .property(
                "model",
                request_values::text()
                    .description(Some("The id of a model."))
                    .examples(["demo"]),
            )
            .required("model")
            .into()
    }
}

impl ToSchema for NewAssistantBody {
    fn name() -> Cow<'static, str> {
        "NewAssistantBody".into()
    }

    fn schemas(named: &mut Vec<(String, RefOr<Schema>)>) {
        AssistantChangeBody::schemas(named);
    }
}

/// The fields of an assistant that change.
#[derive(Clone, Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AssistantChangeBody {
    /// The id of a model.
    #[schema(min_length = 1, example = "demo")]
    pub model: Option<String>,
    #[schema(max_length = 256)]
    pub name: Option<String>,
    #[schema(max_length = 512)]
    pub description: Option<String>,
    #[schema(max_length = 256_000)]
    pub instructions: Option<String>,
    /// All functions of the client and tools of this server (`troupe:*`).
    #[schema(value_type = Option<Vec<Object>>, max_items = 128)]
    pub tools: Option<Vec<Value>>,
    /// Must be empty: no tool of this server uses files.
    #[schema(value_type = Option<Object>)]
    pub tool_resources: Option<Value>,
    #[schema(schema_with = request_values::metadata)]
    pub metadata: Option<Value>,
    #[schema(minimum = 0, maximum = 2)]
    pub temperature: Option<f64>,
    #[schema(minimum = 0, maximum = 1)]
    pub top_p: Option<f64>,
    #[schema(schema_with = request_values::answer_format)]
    pub response_format: Option<Value>,
}

/// A new thread.
#[derive(Clone, Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewThreadBody {
    /// The first messages.
    #[schema(max_items = 2_000)]
    pub messages: Option<Vec<NewThreadMessageBody>>,
    #[schema(schema_with = request_values::metadata)]
    pub metadata: Option<Value>,
    /// Must be empty: no tool of this server uses files.
    #[schema(value_type = Option<Object>)]
    pub tool_resources: Option<Value>,
}

/// The fields of a thread that change.
#[derive(Clone, Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ThreadChangeBody {
    #[schema(schema_with = request_values::metadata)]
    pub metadata: Option<Value>,
    /// Must be empty: no tool of this server uses files.
    #[schema(value_type = Option<Object>)]
    pub tool_resources: Option<Value>,
}

/// A new message of a thread.
#[derive(Clone, Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewThreadMessageBody {
    pub role: ThreadMessageRole,
    #[schema(schema_with = request_values::text_or_parts)]
    pub content: Value,
    /// Must be empty: no tool of this server uses files.
    #[schema(value_type = Option<Vec<Object>>, max_items = 0)]
    pub attachments: Option<Vec<Value>>,
    #[schema(schema_with = request_values::metadata)]
    pub metadata: Option<Value>,
}
