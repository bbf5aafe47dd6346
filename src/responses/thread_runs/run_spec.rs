//! Defines the settings of a run as they are stored: a copy of those of its assistant with the changes
//! of the request.

use responses_api::request::threads::run_bodies::ThreadRunSettings;
use sea_orm::FromJsonQueryResult;
use serde::{Deserialize, Serialize};

use crate::responses::execution::tool_config::ToolConfig;
use crate::responses::request::{RequestedReasoning, Sampling, StoredRequest};
use crate::responses::{request, tool_declarations};

/// The settings of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct RunSpec {
    pub model: String,
    /// The request to the model, without messages.
    pub request: StoredRequest,
    /// The maximum number of tokens of all prompts of the run together.
    pub max_prompt_tokens: Option<u32>,
    /// The maximum number of tokens of all answers of the run together.
    pub max_completion_tokens: Option<u32>,
    /// The number of messages that the model sees; `None` means as many as fit.
    pub n_last_messages: Option<usize>,
    /// The `seq` of the next message of the thread when the run is created. In the context of later
    /// runs, the calls of this run are after the messages with a lower `seq`.
    pub first_seq: i64,
}

impl From<ThreadRunSettings> for RunSpec {
    fn from(settings: ThreadRunSettings) -> Self {
        let ThreadRunSettings {
            model,
            instructions,
            tools,
            tool_choice,
            parallel_tool_calls,
            sampling,
            format,
            effort,
            max_prompt_tokens,
            n_last_messages,
            echo,
        } = settings;
        Self {
            max_completion_tokens: sampling.max_output_tokens,
            request: StoredRequest {
                echo,
                instructions,
                sampling: Sampling::new(sampling, &[]),
                truncates: true,
                format: request::output_format(format),
                tools: ToolConfig {
                    is_serial: !parallel_tool_calls,
                    ..tool_declarations::tool_config(tools, tool_choice)
                },
                reasoning: RequestedReasoning {
                    effort: effort.map(request::effort_of),
                    ..RequestedReasoning::default()
                },
                ..StoredRequest::default()
            },
            model,
            max_prompt_tokens,
            n_last_messages,
            first_seq: 0,
        }
    }
}
