//! Defines the stream events that extend a message or the calls of a step.
//!
//! **Invariant:** the order of the fields is the order on the wire.

use serde::{Deserialize, Serialize};

use crate::threads::run_message::RunMessagePart;
use crate::threads::run_state::StepCall;
use crate::threads::run_values::StepCallKind;

/// The next piece of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageDelta {
    pub id: String,
    object: DeltaType,
    delta: AddedParts,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct AddedParts {
    content: Vec<PartDelta>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct PartDelta {
    index: usize,
    #[serde(flatten)]
    part: DeltaText,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum DeltaText {
    Text { text: TextValue },
    Refusal { refusal: String },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct TextValue {
    value: String,
}

/// The type of an event with a delta, in its field `object`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum DeltaType {
    #[serde(rename = "thread.message.delta")]
    Message,
    #[serde(rename = "thread.run.step.delta")]
    Step,
}

impl MessageDelta {
    /// Returns the event for a text that was added to the part at this position.
    pub fn new(id: String, index: usize, text: RunMessagePart) -> Self {
        let part = match text {
            RunMessagePart::Text(value) => DeltaText::Text {
                text: TextValue { value },
            },
            RunMessagePart::Refusal(refusal) => DeltaText::Refusal { refusal },
        };
        Self {
            id,
            object: DeltaType::Message,
            delta: AddedParts {
                content: vec![PartDelta { index, part }],
            },
        }
    }

    /// Returns the added texts.
    pub fn into_texts(self) -> impl Iterator<Item = RunMessagePart> {
        let parts = self.delta.content.into_iter();
        parts.map(|it| match it.part {
            DeltaText::Text { text } => RunMessagePart::Text(text.value),
            DeltaText::Refusal { refusal } => RunMessagePart::Refusal(refusal),
        })
    }
}

/// The next piece of a call of a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepDelta {
    id: String,
    object: DeltaType,
    delta: StepChange,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct StepChange {
    step_details: ChangedDetails,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ChangedDetails {
    ToolCalls { tool_calls: Vec<StepCallDelta> },
}

/// What is added to a call. The first delta of a call has its id and name.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct StepCallDelta {
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(rename = "type")]
    kind: StepCallKind,
    function: FunctionDelta,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct FunctionDelta {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
}

impl StepDelta {
    /// Returns the events for a new call: first its id and name, then its arguments if there are any.
    pub fn of_call(step: &str, index: usize, call: &StepCall) -> Vec<Self> {
        let first = FunctionDelta {
            name: Some(call.function.name.clone()),
            arguments: Some(String::new()),
            output: None,
        };
        let mut deltas = vec![Self::new(step, index, Some(call.id.clone()), first)];
        if !call.function.arguments.is_empty() {
            let arguments = FunctionDelta {
                arguments: Some(call.function.arguments.clone()),
                ..FunctionDelta::default()
            };
            deltas.push(Self::new(step, index, None, arguments));
        }
        deltas
    }

    /// Returns the event for the output of a call.
    pub fn of_output(step: &str, index: usize, output: String) -> Self {
        let output = FunctionDelta {
            output: Some(output),
            ..FunctionDelta::default()
        };
        Self::new(step, index, None, output)
    }

    fn new(step: &str, index: usize, id: Option<String>, function: FunctionDelta) -> Self {
        let call = StepCallDelta {
            index,
            id,
            kind: StepCallKind::Function,
            function,
        };
        Self {
            id: step.to_owned(),
            object: DeltaType::Step,
            delta: StepChange {
                step_details: ChangedDetails::ToolCalls {
                    tool_calls: vec![call],
                },
            },
        }
    }
}
