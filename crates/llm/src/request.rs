//! A request to a model, independent of any API: the finished prompt, sampling settings, tools and
//! the output format.

use std::collections::BTreeMap;

use base::prompt_role::PromptRole;
use base::samplers::Samplers;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::compatibility::refusals::{FoundRefusals, Refusals};
use crate::reasoning::effort::Effort;
use crate::reasoning::thought::Thought;
use crate::tool::{AnsweredCall, Attachment, OutputFormat, Tool, ToolCall, ToolChoice};

/// A request to a model. Built by `src/prompt/` or a `/v1` endpoint, executed by the crate `agent`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    pub model: String,
    /// Oldest first.
    pub messages: Vec<Message>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    /// Maximum number of tokens in the response; `None` uses the model's default.
    pub max_tokens: Option<u32>,
    /// The context size for which the prompt was built, for models that need to know it.
    pub context_tokens: Option<u32>,
    pub stop: Vec<String>,
    /// Further samplers. A provider sends only those that it supports.
    pub samplers: Samplers,
    /// Changes of the probability of tokens, by the id of the token. Sent to OpenAI and compatible
    /// servers only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub logit_bias: BTreeMap<String, f64>,
    /// Tools that the model may call; often none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub tool_choice: ToolChoice,
    /// Whether the model may call at most one tool at a time.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_serial: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub format: OutputFormat,
    /// Requests log probabilities of the tokens, and of this many alternatives for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_logprobs: Option<u8>,
    /// How much the model should reason, instead of the setting of its provider. A hint: an API that
    /// rejects it gets the request without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// The last message is the beginning of the response, which the model continues. Only for a
    /// provider that [can do so](crate::provider::Provider::can_prefill).
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_prefilled: bool,
    /// The whole prompt as one text, which the model continues; `messages` are then not sent. Only for a
    /// provider that [completes texts](crate::provider::Provider::completes_text).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_text: Option<String>,
    /// The tags around the reasoning at the start of the response, besides the usual ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tags: Option<(String, String)>,
    /// What is left out because the endpoint or the model refuses it.
    #[serde(skip)]
    pub refused: Refusals,
    /// What calls of this request have found to be refused; the same for all clones of the request.
    #[serde(skip)]
    pub found_refusals: FoundRefusals,
    /// Makes the demo model's reply reproducible; never sent to real models.
    pub seed: u64,
    /// Display name of the speaker, for the demo model and for instructions in the prompt.
    pub speaker: String,
}

impl Request {
    /// Returns whether an effort or earlier reasoning is sent.
    pub fn has_reasoning(&self) -> bool {
        self.effort.is_some() || self.messages.iter().any(|it| !it.thoughts.is_empty())
    }

    /// Removes the effort, or, if there is none, the reasoning of earlier messages.
    pub fn drop_reasoning(&mut self) {
        if self.effort.take().is_none() {
            self.messages.iter_mut().for_each(|it| it.thoughts.clear());
        }
    }

    /// Returns whether there are images that a text can replace.
    pub fn has_replaceable_pictures(&self) -> bool {
        let mut all = self.messages.iter().flat_map(|it| &it.attachments);
        all.any(|it| it.instead.is_some())
    }

    /// Replaces the images that a text can replace by these texts.
    pub fn replace_pictures(&mut self) {
        for message in &mut self.messages {
            let (replaced, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut message.attachments)
                .into_iter()
                .partition(|it| it.instead.is_some());
            message.attachments = kept;
            for text in replaced.into_iter().filter_map(|it| it.instead) {
                if !message.content.is_empty() {
                    message.content.push('\n');
                }
                message.content.push_str(&text);
            }
        }
    }

    /// Returns whether the model must not answer with text alone.
    pub fn requires_tool_call(&self) -> bool {
        matches!(
            self.tool_choice,
            ToolChoice::Required | ToolChoice::Named(_)
        ) && !self.tools.is_empty()
    }
}

/// One message of the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PromptMessage)]
pub struct Message {
    pub role: PromptRole,
    /// The speaker, if the role does not identify it. Each provider API expresses it differently.
    pub name: Option<String>,
    pub content: String,
    /// Tool calls of the model; only in assistant messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(ignore)]
    pub calls: Vec<ToolCall>,
    /// The reasoning before the tool calls; only in assistant messages with calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(ignore)]
    pub thoughts: Vec<Thought>,
    /// The text is the result of this tool call. Such a message belongs to the user's side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub answers: Option<AnsweredCall>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(ignore)]
    pub attachments: Vec<Attachment>,
}

impl Message {
    /// Creates a message without a speaker's name.
    pub fn new(role: PromptRole, content: impl Into<String>) -> Self {
        Self {
            role,
            name: None,
            content: content.into(),
            calls: Vec::new(),
            thoughts: Vec::new(),
            answers: None,
            attachments: Vec::new(),
        }
    }

    /// Returns the message with a speaker's name.
    pub fn with_name(self, name: impl Into<String>) -> Self {
        Self {
            name: Some(name.into()),
            ..self
        }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
