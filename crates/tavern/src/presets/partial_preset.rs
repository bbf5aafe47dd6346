//! Defines a preset in which keys may be missing, as users write it, and validates its values.
//!
//! `settings.preset` of a space and of a membership, and presets in the library have the same keys.
//! Unknown keys are ignored here; the caller stores the whole document.

use std::collections::HashSet;

use base::ids::PresetId;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::instruct::context_template::{ContextTemplate, ReasoningTemplate, SystemPromptTemplate};
use crate::instruct::instruct_template::InstructTemplate;
use crate::instruct::template_limits::{
    TemplateProblem, check_context, check_instruct, check_reasoning, check_system_prompt,
};
use crate::presets::complete_preset::{
    ExampleMessagesMode, NamesBehavior, PresetEntry, PromptPosition,
};

const MAX_ENTRIES: usize = 300;
const MAX_LABEL_CHARS: usize = 200;
const MAX_ENTRY_CHARS: usize = 100_000;
const MAX_TEXT_CHARS: usize = 20_000;
const MAX_STOPS: usize = 100;
const MAX_STOP_CHARS: usize = 1_000;
const MAX_DEPTH: i64 = 10_000;
/// The largest seed that every provider accepts.
const MAX_SEED: i64 = 4_294_967_295;

/// Prompts and sampling settings. Missing keys are not set.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = PresetSettings)]
pub struct PartialPreset {
    /// In the settings of a space: the library preset that these keys override.
    pub preset_id: Option<PresetId>,
    #[schema(minimum = 0, maximum = 5)]
    temperature: Option<f64>,
    #[schema(minimum = 0, maximum = 1)]
    top_p: Option<f64>,
    /// 0: off.
    #[schema(minimum = 0, maximum = 100_000)]
    top_k: Option<i64>,
    /// 0: off.
    #[schema(minimum = 0, maximum = 1)]
    min_p: Option<f64>,
    /// 0: off.
    #[schema(minimum = 0, maximum = 1)]
    top_a: Option<f64>,
    /// 1: off.
    #[schema(minimum = 0, maximum = 1)]
    typical_p: Option<f64>,
    #[schema(minimum = -2, maximum = 2)]
    frequency_penalty: Option<f64>,
    #[schema(minimum = -2, maximum = 2)]
    presence_penalty: Option<f64>,
    /// 1: off.
    #[schema(minimum = 0.1, maximum = 5)]
    repetition_penalty: Option<f64>,
    #[schema(minimum = 0, maximum = 4_294_967_295_i64)]
    seed: Option<i64>,
    #[schema(minimum = 1, maximum = 1_000_000)]
    max_tokens: Option<i64>,
    #[schema(minimum = 64, maximum = 10_000_000)]
    context_tokens: Option<i64>,
    #[schema(max_items = 100)]
    stop: Option<Vec<String>>,
    #[schema(max_items = 300)]
    prompt_order: Option<Vec<PresetEntry>>,
    #[serde(rename = "examples")]
    _examples: Option<ExampleMessagesMode>,
    #[serde(rename = "names")]
    _names: Option<NamesBehavior>,
    /// Replaces the text of the main prompt.
    #[schema(max_length = 100_000)]
    main_prompt: Option<String>,
    /// Replaces the text of the post-history instructions.
    #[schema(max_length = 100_000)]
    post_history_instructions: Option<String>,
    #[schema(max_length = 20_000)]
    impersonation_prompt: Option<String>,
    #[schema(max_length = 20_000)]
    new_chat_prompt: Option<String>,
    #[schema(max_length = 20_000)]
    new_group_chat_prompt: Option<String>,
    #[schema(max_length = 20_000)]
    new_example_chat_prompt: Option<String>,
    #[schema(max_length = 20_000)]
    group_nudge_prompt: Option<String>,
    #[schema(max_length = 20_000)]
    continue_nudge_prompt: Option<String>,
    #[schema(max_length = 20_000)]
    lore_format: Option<String>,
    #[schema(max_length = 20_000)]
    scenario_format: Option<String>,
    #[schema(max_length = 20_000)]
    personality_format: Option<String>,
    #[schema(max_length = 20_000)]
    persona_format: Option<String>,
    /// The sequences around messages in text completion.
    instruct: Option<InstructTemplate>,
    /// How text completion arranges everything before the chat.
    context: Option<ContextTemplate>,
    /// Replaces the texts of the main prompt and of the post-history instructions, unless these are set.
    sysprompt: Option<SystemPromptTemplate>,
    /// The tags with which the model marks its reasoning, besides `<think>`.
    reasoning: Option<ReasoningTemplate>,
}

/// An invalid value: its key, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ValidationError {
    /// For example `prompt_order.3.place`.
    pub field: String,
    pub message: String,
}

impl PartialPreset {
    /// Checks everything that the types do not guarantee.
    ///
    /// # Errors
    /// Returns the first invalid value.
    pub fn validate(&self) -> Result<(), ValidationError> {
        check_integer("preset_id", self.preset_id.map(|it| it.0), 1, i64::MAX)?;
        self.validate_samplers()?;
        self.validate_texts()?;
        self.validate_stops()?;
        self.validate_templates()?;
        self.validate_entries()
    }

    fn validate_samplers(&self) -> Result<(), ValidationError> {
        check_number("temperature", self.temperature, 0.0, 5.0)?;
        check_number("top_p", self.top_p, 0.0, 1.0)?;
        check_integer("top_k", self.top_k, 0, 100_000)?;
        check_number("min_p", self.min_p, 0.0, 1.0)?;
        check_number("top_a", self.top_a, 0.0, 1.0)?;
        check_number("typical_p", self.typical_p, 0.0, 1.0)?;
        check_number("frequency_penalty", self.frequency_penalty, -2.0, 2.0)?;
        check_number("presence_penalty", self.presence_penalty, -2.0, 2.0)?;
        check_number("repetition_penalty", self.repetition_penalty, 0.1, 5.0)?;
        check_integer("seed", self.seed, 0, MAX_SEED)?;
        check_integer("max_tokens", self.max_tokens, 1, 1_000_000)?;
        check_integer("context_tokens", self.context_tokens, 64, 10_000_000)
    }

    /// Returns the texts in which macros are expanded, with the name of each: its key, or the label of
    /// an entry.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        let entries = self.prompt_order.iter().flatten();
        let entries = entries.map(|it| (it.label.as_str(), it.text.as_str()));
        let stops = self.stop.iter().flatten().map(|it| ("stop", it.as_str()));
        let own = self.long_texts().into_iter().chain(self.short_texts());
        let own = own.filter_map(|(field, text)| Some((field, text.as_deref()?)));
        own.chain(entries).chain(stops)
    }

    fn long_texts(&self) -> [(&'static str, &Option<String>); 2] {
        [
            ("main_prompt", &self.main_prompt),
            ("post_history_instructions", &self.post_history_instructions),
        ]
    }

    fn short_texts(&self) -> [(&'static str, &Option<String>); 10] {
        [
            ("impersonation_prompt", &self.impersonation_prompt),
            ("new_chat_prompt", &self.new_chat_prompt),
            ("new_group_chat_prompt", &self.new_group_chat_prompt),
            ("new_example_chat_prompt", &self.new_example_chat_prompt),
            ("group_nudge_prompt", &self.group_nudge_prompt),
            ("continue_nudge_prompt", &self.continue_nudge_prompt),
            ("lore_format", &self.lore_format),
            ("scenario_format", &self.scenario_format),
            ("personality_format", &self.personality_format),
            ("persona_format", &self.persona_format),
        ]
    }

    fn validate_texts(&self) -> Result<(), ValidationError> {
        for (field, text) in self.long_texts() {
            check_length(field, text.as_deref().unwrap_or_default(), MAX_ENTRY_CHARS)?;
        }
        for (field, text) in self.short_texts() {
            check_length(field, text.as_deref().unwrap_or_default(), MAX_TEXT_CHARS)?;
        }
        Ok(())
    }

    fn validate_stops(&self) -> Result<(), ValidationError> {
        let stops = self.stop.as_deref().unwrap_or_default();
        check_count("stop", stops.len(), MAX_STOPS)?;
        for (at, stop) in stops.iter().enumerate() {
            check_length(&format!("stop.{at}"), stop, MAX_STOP_CHARS)?;
        }
        Ok(())
    }

    fn validate_templates(&self) -> Result<(), ValidationError> {
        let within = |part: &'static str| {
            move |(key, message): TemplateProblem| {
                validation_error(&format!("{part}.{key}"), message)
            }
        };
        if let Some(it) = &self.instruct {
            check_instruct(it).map_err(within("instruct"))?;
        }
        if let Some(it) = &self.context {
            check_context(it).map_err(within("context"))?;
        }
        if let Some(it) = &self.sysprompt {
            check_system_prompt(it).map_err(within("sysprompt"))?;
        }
        match &self.reasoning {
            Some(it) => check_reasoning(it).map_err(within("reasoning")),
            None => Ok(()),
        }
    }

    fn validate_entries(&self) -> Result<(), ValidationError> {
        let entries = self.prompt_order.as_deref().unwrap_or_default();
        check_count("prompt_order", entries.len(), MAX_ENTRIES)?;
        let mut seen = HashSet::new();
        for (at, entry) in entries.iter().enumerate() {
            let field = |name: &str| format!("prompt_order.{at}.{name}");
            check_length(&field("id"), &entry.id, MAX_LABEL_CHARS)?;
            if entry.id.is_empty() || !seen.insert(&entry.id) {
                return Err(validation_error(
                    &field("id"),
                    "Must be unique among the entries, and not empty.",
                ));
            }
            check_length(&field("label"), &entry.label, MAX_LABEL_CHARS)?;
            check_length(&field("text"), &entry.text, MAX_ENTRY_CHARS)?;
            if let PromptPosition::InChat { depth, order } = entry.place {
                check_integer(&field("place.in_chat.depth"), Some(depth), 0, MAX_DEPTH)?;
                let order_field = field("place.in_chat.order");
                check_integer(&order_field, Some(order), -MAX_DEPTH, MAX_DEPTH)?;
            }
            check_count(&field("triggers"), entry.triggers.len(), 6)?;
        }
        Ok(())
    }
}

fn check_integer(
    field: &str,
    value: Option<i64>,
    min: i64,
    max: i64,
) -> Result<(), ValidationError> {
    match value.is_none_or(|it| (min..=max).contains(&it)) {
        true => Ok(()),
        false => Err(validation_error(
            field,
            format!("Must be between {min} and {max}."),
        )),
    }
}

fn check_number(
    field: &str,
    value: Option<f64>,
    min: f64,
    max: f64,
) -> Result<(), ValidationError> {
    match value.is_none_or(|it| (min..=max).contains(&it)) {
        true => Ok(()),
        false => Err(validation_error(
            field,
            format!("Must be between {min} and {max}."),
        )),
    }
}

fn check_length(field: &str, text: &str, max: usize) -> Result<(), ValidationError> {
    match text.chars().count() <= max {
        true => Ok(()),
        false => Err(validation_error(
            field,
            format!("Must have at most {max} characters."),
        )),
    }
}

fn check_count(field: &str, n: usize, max: usize) -> Result<(), ValidationError> {
    match n <= max {
        true => Ok(()),
        false => Err(validation_error(
            field,
            format!("Must have at most {max} items."),
        )),
    }
}

fn validation_error(field: &str, message: impl Into<String>) -> ValidationError {
    ValidationError {
        field: field.to_owned(),
        message: message.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::PartialPreset;

    fn invalid_field(stated: Value) -> Option<String> {
        let stated: PartialPreset = serde_json::from_value(stated).unwrap();
        stated.validate().err().map(|it| it.field)
    }

    #[test]
    fn valid_values_pass() {
        let usual =
            serde_json::to_value(crate::presets::complete_preset::Preset::default()).unwrap();

        assert_eq!(invalid_field(usual), None);
        assert_eq!(invalid_field(json!({})), None);
        assert_eq!(
            invalid_field(json!({"top_k": 0, "seed": 0, "unheard_of": {}})),
            None
        );
    }

    #[test]
    fn a_value_out_of_its_range_is_named() {
        let entry = |more: Value| {
            let mut entry = json!({"id": "a"});
            for (key, value) in more.as_object().unwrap() {
                entry[key] = value.clone();
            }
            json!({"prompt_order": [entry]})
        };
        for (stated, field) in [
            (json!({"temperature": 5.1}), "temperature"),
            (json!({"top_p": -0.1}), "top_p"),
            (json!({"top_k": -1}), "top_k"),
            (json!({"min_p": 1.1}), "min_p"),
            (json!({"frequency_penalty": -2.1}), "frequency_penalty"),
            (json!({"repetition_penalty": 0}), "repetition_penalty"),
            (json!({"max_tokens": 0}), "max_tokens"),
            (json!({"context_tokens": 63}), "context_tokens"),
            (json!({"stop": ["a", "b".repeat(1_001)]}), "stop.1"),
            (
                json!({"group_nudge_prompt": "x".repeat(20_001)}),
                "group_nudge_prompt",
            ),
            (entry(json!({"id": ""})), "prompt_order.0.id"),
            (
                entry(json!({"place": {"in_chat": {"depth": -1, "order": 0}}})),
                "prompt_order.0.place.in_chat.depth",
            ),
            (
                json!({"prompt_order": [{"id": "a"}, {"id": "a"}]}),
                "prompt_order.1.id",
            ),
        ] {
            assert_eq!(invalid_field(stated).as_deref(), Some(field));
        }
    }
}
