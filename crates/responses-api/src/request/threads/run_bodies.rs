//! Parses and validates the bodies of requests about runs of threads: a new run, with or without its
//! thread, outputs of tools, and changes of metadata.

use serde_json::{Map, Value, json};

use crate::request::chat::{chat_completion, chat_tools};
use crate::request::error::RequestError;
use crate::request::object_reader::ObjectReader;
use crate::request::parameters::{EffortLevel, SamplingParameters};
use crate::request::server_rules::ServerRules;
use crate::request::text_config::TextFormat;
use crate::request::threads::thread_bodies::NewThread;
use crate::request::threads::thread_messages::NewThreadMessage;
use crate::request::threads::{thread_messages, thread_tools};
use crate::request::tools::tool::{MAX_TOOLS, RequestTool};
use crate::request::tools::tool_choice::RequestedChoice;
use crate::request::{object_reader, parameters};

/// The fields of a new run. `tool_resources` must be empty.
const RUN_FIELDS: [&str; 18] = [
    "additional_instructions",
    "additional_messages",
    "assistant_id",
    "instructions",
    "max_completion_tokens",
    "max_prompt_tokens",
    "metadata",
    "model",
    "parallel_tool_calls",
    "reasoning_effort",
    "response_format",
    "stream",
    "temperature",
    "tool_choice",
    "tool_resources",
    "tools",
    "top_p",
    "truncation_strategy",
];

/// The field of a request that contains the new thread of a run.
const THREAD: &str = "thread";

/// The fields that a run takes from its assistant if its request does not contain them.
const INHERITED_FIELDS: [&str; 6] = [
    "instructions",
    "model",
    "response_format",
    "temperature",
    "tools",
    "top_p",
];

/// The maximum length of instructions, in characters, as in OpenAI's API.
const MAX_INSTRUCTIONS_CHARS: usize = 256_000;

/// The reason in the error about a field that is absent.
const REQUIRED_MESSAGE: &str = "This parameter is required.";

/// A request to create a run.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateThreadRun {
    pub assistant_id: String,
    /// The thread to create, if the request creates one.
    pub thread: Option<NewThread>,
    /// Appended to the thread before the run.
    pub additional_messages: Vec<NewThreadMessage>,
    pub metadata: Map<String, Value>,
    pub stream: bool,
}

/// The settings of a run: those of its assistant, with the changes of the request.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadRunSettings {
    pub model: String,
    pub instructions: Option<String>,
    pub tools: Vec<RequestTool>,
    pub tool_choice: RequestedChoice,
    pub parallel_tool_calls: bool,
    pub sampling: SamplingParameters,
    pub format: TextFormat,
    pub effort: Option<EffortLevel>,
    /// The maximum number of tokens of all prompts of the run together.
    pub max_prompt_tokens: Option<u32>,
    /// The number of messages that the model sees; `None` means as many as fit.
    pub n_last_messages: Option<usize>,
    /// The settings as the run object contains them.
    pub echo: Map<String, Value>,
}

impl CreateThreadRun {
    /// Parses the body of a request for a run of an existing thread.
    ///
    /// # Errors
    /// Returns the first invalid field.
    pub fn parse(body: &Map<String, Value>) -> Result<Self, RequestError> {
        object_reader::parse(body, |body| {
            body.require_known(&RUN_FIELDS);
            Self::read(body, None)
        })
    }

    /// Parses the body of a request for a run of a new thread.
    ///
    /// # Errors
    /// Returns the first invalid field.
    pub fn parse_with_thread(body: &Map<String, Value>) -> Result<Self, RequestError> {
        object_reader::parse(body, |body| {
            body.require_known(&[&RUN_FIELDS[..], &[THREAD]].concat());
            let thread = body.object(THREAD).map(|it| NewThread::read(&it));
            Self::read(body, Some(thread.unwrap_or_default()))
        })
    }

    fn read(body: &ObjectReader, thread: Option<NewThread>) -> Self {
        let assistant_id = body.text("assistant_id").unwrap_or_default();
        if assistant_id.is_empty() {
            body.missing("assistant_id", REQUIRED_MESSAGE);
        }
        thread_tools::reject_resources(body);
        Self {
            assistant_id: assistant_id.to_owned(),
            thread,
            additional_messages: thread_messages::additional(body, "additional_messages"),
            metadata: parameters::metadata(body),
            stream: body.flag("stream").unwrap_or(false),
        }
    }
}

impl ThreadRunSettings {
    /// Parses the settings in the body of a request. `assistant` has the fields of the assistant.
    ///
    /// # Errors
    /// Returns the first invalid field.
    pub fn parse(
        body: &Map<String, Value>,
        assistant: &Map<String, Value>,
        rules: &ServerRules,
    ) -> Result<Self, RequestError> {
        let mut fields = body.clone();
        for name in INHERITED_FIELDS {
            let given = fields.get(name).filter(|it| !it.is_null());
            if given.is_none()
                && let Some(value) = assistant.get(name)
            {
                fields.insert(name.to_owned(), value.clone());
            }
        }
        object_reader::parse(&fields, |fields| Self::read(fields, rules))
    }

    fn read(body: &ObjectReader, rules: &ServerRules) -> Self {
        let model = body.text("model").unwrap_or_default();
        if model.is_empty() {
            body.missing("model", REQUIRED_MESSAGE);
        }
        let instructions = instructions(body);
        let most = i64::from(u32::MAX);
        let tokens = |name: &str| {
            let limit = body.integer(name, 1..=most);
            limit.and_then(|it| u32::try_from(it).ok())
        };
        let sampling = SamplingParameters {
            temperature: body.number("temperature", 0.0..=2.0),
            top_p: body.number("top_p", 0.0..=1.0),
            presence_penalty: None,
            frequency_penalty: None,
            max_output_tokens: tokens("max_completion_tokens"),
            top_logprobs: None,
        };
        let tools = thread_tools::tools(body, rules);
        let tool_choice = chat_tools::choice(body, &tools);
        let mut settings = Self {
            model: model.to_owned(),
            instructions,
            tool_choice,
            tools,
            parallel_tool_calls: body.flag("parallel_tool_calls").unwrap_or(true),
            sampling,
            format: response_format(body),
            effort: body.word("reasoning_effort"),
            max_prompt_tokens: tokens("max_prompt_tokens"),
            n_last_messages: n_last_messages(body),
            echo: Map::new(),
        };
        settings.echo = settings.echo_of(body);
        settings
    }

    fn echo_of(&self, body: &ObjectReader) -> Map<String, Value> {
        let given = |name: &str| body.get(name).cloned();
        let or_auto = |name: &str| given(name).unwrap_or_else(|| json!("auto"));
        let truncation = match self.n_last_messages {
            Some(n) => json!({ "type": "last_messages", "last_messages": n }),
            None => json!({ "type": "auto", "last_messages": null }),
        };
        let echo = json!({
            "model": self.model,
            "instructions": self.instructions.clone().unwrap_or_default(),
            "tools": given("tools").unwrap_or_else(|| json!([])),
            "temperature": given("temperature"),
            "top_p": given("top_p"),
            "max_prompt_tokens": given("max_prompt_tokens"),
            "max_completion_tokens": given("max_completion_tokens"),
            "truncation_strategy": truncation,
            "response_format": or_auto("response_format"),
            "tool_choice": or_auto("tool_choice"),
            "parallel_tool_calls": self.parallel_tool_calls,
            "reasoning_effort": given("reasoning_effort"),
        });
        match echo {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }
}

/// Returns the instructions, followed by the additional ones.
fn instructions(body: &ObjectReader) -> Option<String> {
    let text = |name: &str| {
        let text = body.text(name)?;
        let is_short = text.chars().count() <= MAX_INSTRUCTIONS_CHARS;
        body.require(is_short, name, "at most 256000 characters");
        (!text.is_empty()).then_some(text)
    };
    let parts = [text("instructions"), text("additional_instructions")];
    let parts: Vec<&str> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// Reads `response_format`: `auto`, or an object.
fn response_format(body: &ObjectReader) -> TextFormat {
    match body.get("response_format").and_then(Value::as_str) {
        Some(word) => {
            body.require(word == "auto", "response_format", "auto, or an object");
            TextFormat::Text
        }
        None => chat_completion::response_format(body),
    }
}

/// Reads `truncation_strategy`, and returns the number of the last messages, if it has one.
fn n_last_messages(body: &ObjectReader) -> Option<usize> {
    let strategy = body.object("truncation_strategy")?;
    strategy.require_known(&["type", "last_messages"]);
    match strategy.text("type") {
        Some("auto") => None,
        Some("last_messages") => {
            if strategy.get("last_messages").is_none() {
                let reason = "The type `last_messages` requires the number of messages.";
                strategy.missing("last_messages", reason);
            }
            let n_messages = strategy.integer("last_messages", 1..=i64::from(u32::MAX))?;
            usize::try_from(n_messages).ok()
        }
        None if strategy.get("type").is_none() => {
            strategy.missing("type", REQUIRED_MESSAGE);
            None
        }
        _ => {
            strategy.wrong_value("type", "auto or last_messages");
            None
        }
    }
}

/// Outputs of tools that the client has run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmitToolOutputs {
    pub outputs: Vec<ToolOutput>,
    pub stream: bool,
}

/// The output of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutput {
    pub call_id: String,
    pub output: String,
}

impl SubmitToolOutputs {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// Returns the first invalid field.
    pub fn parse(body: &Map<String, Value>) -> Result<Self, RequestError> {
        object_reader::parse(body, |body| {
            body.require_known(&["tool_outputs", "stream"]);
            if body.get("tool_outputs").is_none() {
                body.missing("tool_outputs", REQUIRED_MESSAGE);
            }
            let given = body.list("tool_outputs").unwrap_or_default();
            let is_short = given.len() <= MAX_TOOLS;
            body.require(is_short, "tool_outputs", "at most 128 outputs");
            let outputs = body.elements("tool_outputs", given).map(|it| output(&it));
            Self {
                outputs: outputs.collect(),
                stream: body.flag("stream").unwrap_or(false),
            }
        })
    }
}

fn output(fields: &ObjectReader) -> ToolOutput {
    fields.require_known(&["tool_call_id", "output"]);
    let call_id = fields.text("tool_call_id").unwrap_or_default();
    if fields.get("tool_call_id").is_none() {
        fields.missing("tool_call_id", REQUIRED_MESSAGE);
    }
    // An absent output is an empty one.
    let output = fields.optional_item_text("output").unwrap_or_default();
    ToolOutput {
        call_id: call_id.to_owned(),
        output: output.to_owned(),
    }
}

/// Parses a change of a run, and returns its new metadata. `None` keeps the present one.
///
/// # Errors
/// Returns the first invalid field.
pub fn parse_run_change(
    body: &Map<String, Value>,
) -> Result<Option<Map<String, Value>>, RequestError> {
    object_reader::parse(body, |body| {
        body.require_known(&["metadata"]);
        body.get("metadata").map(|_| parameters::metadata(body))
    })
}

#[cfg(test)]
#[path = "run_bodies_tests.rs"]
mod tests;
