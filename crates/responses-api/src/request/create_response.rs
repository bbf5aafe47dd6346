//! Parses the bodies of `POST /v1/responses` and `POST /v1/responses/compact`, and returns the
//! fields that the response repeats.

use serde_json::{Map, Value, json};

use crate::request::error::RequestError;
use crate::request::items::input_items;
use crate::request::object_reader::ObjectReader;
use crate::request::parameters::{
    CallerHints, IncludedOutput, ReasoningConfig, SamplingParameters, TruncationMode,
};
use crate::request::server_rules::ServerRules;
use crate::request::text_config::TextConfig;
use crate::request::tools::tool;
use crate::request::tools::tool::RequestTool;
use crate::request::tools::tool_choice::RequestedChoice;
use crate::request::{ignored_fields, object_reader, parameters};

/// The fields that a request may name. The last three are also in [`UNSUPPORTED`].
const KNOWN_FIELDS: [&str; 35] = [
    "access_programs",
    "background",
    "client_metadata",
    "conversation",
    "frequency_penalty",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "parallel_tool_calls",
    "presence_penalty",
    "previous_response_id",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
    "prompt",
    "context_management",
    "moderation",
];

const UNSUPPORTED: [&str; 3] = ["prompt", "context_management", "moderation"];

const KNOWN_BY_COMPACT: [&str; 5] = [
    "input",
    "instructions",
    "model",
    "previous_response_id",
    "prompt_cache_key",
];

/// A request to create a response.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateResponse {
    pub model: String,
    /// New items, each with its id, in the form in which they are stored.
    pub input: Vec<Value>,
    pub previous_response_id: Option<String>,
    /// The id of an API conversation.
    pub conversation: Option<String>,
    pub store: bool,
    pub background: bool,
    pub stream: bool,
    /// Stream events are padded.
    pub include_obfuscation: bool,
    pub include: Vec<IncludedOutput>,
    pub instructions: Option<String>,
    /// Texts of the client.
    pub metadata: Map<String, Value>,
    pub sampling: SamplingParameters,
    pub truncation: TruncationMode,
    pub reasoning: Option<ReasoningConfig>,
    pub text: TextConfig,
    pub hints: CallerHints,
    pub tools: Vec<RequestTool>,
    pub tool_choice: RequestedChoice,
    pub max_tool_calls: Option<i64>,
    pub parallel_tool_calls: bool,
    /// The fields and tools that were accepted without effect.
    pub ignored: Vec<String>,
}

/// A request to compact an exchange.
#[derive(Clone, Debug, PartialEq)]
pub struct CompactExchange {
    pub model: String,
    pub input: Vec<Value>,
    pub previous_response_id: Option<String>,
    pub instructions: Option<String>,
}

impl CreateResponse {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// Returns the first invalid field.
    pub fn parse(body: &Map<String, Value>, rules: &ServerRules) -> Result<Self, RequestError> {
        object_reader::parse(body, |body| Self::read(body, rules))
    }

    fn read(body: &ObjectReader, rules: &ServerRules) -> Self {
        for name in UNSUPPORTED.iter().filter(|it| body.get(it).is_some()) {
            body.unsupported(name);
        }
        body.require_known(&KNOWN_FIELDS);
        let model = model(body);
        let previous_response_id = body.text("previous_response_id").map(str::to_owned);
        let conversation = conversation(body);
        let has_history = previous_response_id.is_some() || conversation.is_some();
        let input = input(body, has_history);
        let store = body.flag("store").unwrap_or(true);
        let background = body.flag("background").unwrap_or(false);
        let stream = body.flag("stream").unwrap_or(false);
        if previous_response_id.is_some() && conversation.is_some() {
            let message = "Give either `previous_response_id` or `conversation`, not both.";
            let code = "mutually_exclusive_parameters";
            body.fail(code, "previous_response_id", message);
        }
        if background && !store {
            let message = "A background response must be stored. Omit `store`.";
            body.fail("background_requires_store", "background", message);
        }
        if conversation.is_some() && !store {
            let message = "A response in a conversation must be stored. Omit `store`.";
            body.fail("conversation_requires_store", "conversation", message);
        }
        let (sampling, include) = parameters::sampling(body);
        let truncation = body.word("truncation").unwrap_or_default();
        let instructions = body.text("instructions").map(str::to_owned);
        let metadata = parameters::metadata(body);
        let reasoning = parameters::reasoning(body);
        let text = TextConfig::read(body);
        let hints = parameters::caller_hints(body);
        let include_obfuscation = parameters::include_obfuscation(body);
        let tools = tool::tools(body, rules);
        let tool_choice = RequestedChoice::read(body, &tools);
        Self {
            model,
            input,
            previous_response_id,
            conversation,
            store,
            background,
            stream,
            include_obfuscation,
            include,
            instructions,
            metadata,
            sampling,
            truncation,
            reasoning,
            text,
            hints,
            tools,
            tool_choice,
            max_tool_calls: body.integer("max_tool_calls", 1..=i64::MAX),
            parallel_tool_calls: body.flag("parallel_tool_calls").unwrap_or(true),
            ignored: ignored_fields::find(body, rules),
        }
    }

    /// Returns the fields that the response object repeats, with the defaults of absent ones.
    pub fn echo(&self) -> Map<String, Value> {
        let mut echo = Map::new();
        let mut insert = |name: &str, value: Value| {
            echo.insert(name.to_owned(), value);
        };
        let sampling = &self.sampling;
        insert("model", json!(self.model));
        insert("previous_response_id", json!(self.previous_response_id));
        if let Some(id) = &self.conversation {
            insert("conversation", json!({ "id": id }));
        }
        insert("instructions", json!(self.instructions));
        insert("max_output_tokens", json!(sampling.max_output_tokens));
        insert("metadata", json!(self.metadata));
        insert("reasoning", json!(self.reasoning));
        insert("store", json!(self.store));
        insert("background", json!(self.background));
        insert("temperature", json!(sampling.temperature.unwrap_or(1.0)));
        insert("top_p", json!(sampling.top_p.unwrap_or(1.0)));
        let presence_penalty = sampling.presence_penalty.unwrap_or(0.0);
        insert("presence_penalty", json!(presence_penalty));
        let frequency_penalty = sampling.frequency_penalty.unwrap_or(0.0);
        insert("frequency_penalty", json!(frequency_penalty));
        insert("text", self.text.echo());
        insert("truncation", json!(self.truncation));
        insert("top_logprobs", json!(sampling.top_logprobs.unwrap_or(0)));
        insert("service_tier", json!("default"));
        insert("safety_identifier", json!(self.hints.safety_identifier));
        insert("prompt_cache_key", json!(self.hints.prompt_cache_key));
        insert("max_tool_calls", json!(self.max_tool_calls));
        insert("parallel_tool_calls", json!(self.parallel_tool_calls));
        insert("tool_choice", self.tool_choice.echo());
        insert("tools", self.tools.iter().map(RequestTool::echo).collect());
        echo
    }
}

impl CompactExchange {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// Returns the first invalid field.
    pub fn parse(body: &Map<String, Value>) -> Result<Self, RequestError> {
        object_reader::parse(body, |body| {
            body.require_known(&KNOWN_BY_COMPACT);
            body.text("prompt_cache_key");
            let model = model(body);
            let previous_response_id = body.text("previous_response_id").map(str::to_owned);
            Self {
                model,
                input: input(body, previous_response_id.is_some()),
                previous_response_id,
                instructions: body.text("instructions").map(str::to_owned),
            }
        })
    }
}

fn model(body: &ObjectReader) -> String {
    let model = body.text("model").unwrap_or_default();
    if model.is_empty() {
        body.missing("model", "`GET /v1/models` lists the models.");
    }
    model.to_owned()
}

fn conversation(body: &ObjectReader) -> Option<String> {
    let id = match body.get("conversation")? {
        Value::Object(object) => object.get("id").and_then(Value::as_str),
        value => value.as_str(),
    };
    if id.is_none() {
        let expected = "the id of a conversation, or an object with it";
        body.wrong_type("conversation", expected);
    }
    id.map(str::to_owned)
}

/// Returns the items of `input`, which may be absent if the request continues from earlier items.
fn input(body: &ObjectReader, has_history: bool) -> Vec<Value> {
    if body.get("input").is_some() {
        return input_items::input(body);
    }
    if !has_history {
        body.missing("input", "Send a text or a list of items.");
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::{KNOWN_BY_COMPACT, KNOWN_FIELDS, UNSUPPORTED};
    use crate::schemas::request_bodies::CompactBody;
    use crate::schemas::request_values;
    use crate::schemas::response_body::CreateResponseBody;

    #[test]
    fn the_api_document_has_every_supported_field() {
        let supported = KNOWN_FIELDS.iter().filter(|it| !UNSUPPORTED.contains(it));
        let supported: Vec<&str> = supported.copied().collect();

        assert_eq!(
            request_values::field_names::<CreateResponseBody>(),
            supported
        );
        assert_eq!(
            request_values::field_names::<CompactBody>(),
            KNOWN_BY_COMPACT
        );
    }
}
