//! Describes the bodies of requests about runs of threads. A field whose value is `null` counts as
//! absent.

use std::borrow::Cow;

use serde_json::Value;
use utoipa::openapi::schema::{SchemaType, Type};
use utoipa::openapi::{ObjectBuilder, OneOfBuilder, Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::request::parameters::EffortLevel;
use crate::schemas::request_values;
use crate::schemas::thread_bodies::{NewThreadBody, NewThreadMessageBody};

/// A new run of a thread.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewThreadRunBody {
    pub assistant_id: String,
    /// The id of a model; that of the assistant by default.
    #[schema(min_length = 1, example = "demo")]
    pub model: Option<String>,
    /// Replace those of the assistant.
    #[schema(max_length = 256_000)]
    pub instructions: Option<String>,
    /// Follow the instructions.
    #[schema(max_length = 256_000)]
    pub additional_instructions: Option<String>,
    /// Messages that are appended to the thread before the run.
    #[schema(max_items = 2_000)]
    pub additional_messages: Option<Vec<AdditionalMessageBody>>,
    #[schema(value_type = Option<Vec<Object>>, max_items = 128)]
    pub tools: Option<Vec<Value>>,
    /// Must be empty: no tool of this server uses files.
    #[schema(value_type = Option<Object>)]
    pub tool_resources: Option<Value>,
    #[schema(schema_with = request_values::tool_choice)]
    pub tool_choice: Option<Value>,
    pub parallel_tool_calls: Option<bool>,
    #[schema(schema_with = request_values::answer_format)]
    pub response_format: Option<Value>,
    #[schema(minimum = 0, maximum = 2)]
    pub temperature: Option<f64>,
    #[schema(minimum = 0, maximum = 1)]
    pub top_p: Option<f64>,
    /// The maximum number of tokens of all prompts of the run together.
    #[schema(minimum = 1)]
    pub max_prompt_tokens: Option<i64>,
    /// The maximum number of tokens of all answers of the run together.
    #[schema(minimum = 1)]
    pub max_completion_tokens: Option<i64>,
    /// Which messages the model sees: `{type: "auto"}` as many as fit, or `{type: "last_messages", last_messages}`.
    #[schema(value_type = Option<Object>)]
    pub truncation_strategy: Option<Value>,
    pub reasoning_effort: Option<EffortLevel>,
    #[schema(schema_with = request_values::metadata)]
    pub metadata: Option<Value>,
    pub stream: Option<bool>,
}

/// A new thread, and a run of it.
pub struct NewThreadAndRunBody;

impl PartialSchema for NewThreadAndRunBody {
    fn schema() -> RefOr<Schema> {
        let thread = OneOfBuilder::new()
            .item(Ref::from_schema_name(NewThreadBody::name()))
            .item(ObjectBuilder::new().schema_type(Type::Null));
        request_values::fields_of::<NewThreadRunBody>("A new thread, and a run of it.")
            .property("thread", thread)
            .into()
    }
}

impl ToSchema for NewThreadAndRunBody {
    fn name() -> Cow<'static, str> {
        "NewThreadAndRunBody".into()
    }

    fn schemas(named: &mut Vec<(String, RefOr<Schema>)>) {
        NewThreadRunBody::schemas(named);
        named.push((NewThreadBody::name().into_owned(), NewThreadBody::schema()));
        NewThreadBody::schemas(named);
    }
}

/// A message that is appended to the thread of a run.
pub struct AdditionalMessageBody;

impl PartialSchema for AdditionalMessageBody {
    fn schema() -> RefOr<Schema> {
        let types = SchemaType::from_iter([Type::Boolean, Type::Null]);
        let hidden = ObjectBuilder::new()
            .schema_type(types)
            .description(Some("Whether only this run sees it."));
        request_values::fields_of::<NewThreadMessageBody>("A message before the run.")
            .property("hidden", hidden)
            .into()
    }
}

impl ToSchema for AdditionalMessageBody {
    fn name() -> Cow<'static, str> {
        "AdditionalMessageBody".into()
    }

    fn schemas(named: &mut Vec<(String, RefOr<Schema>)>) {
        NewThreadMessageBody::schemas(named);
    }
}

/// Outputs of the tools for which a run waits.
#[derive(Clone, Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolOutputsBody {
    /// Exactly one for each open call.
    #[schema(max_items = 128)]
    pub tool_outputs: Vec<ToolOutputBody>,
    pub stream: Option<bool>,
}

/// The output of a tool.
#[derive(Clone, Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolOutputBody {
    pub tool_call_id: String,
    /// Empty by default.
    pub output: Option<String>,
}
