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
use crate::presets::cache_layout::CacheLayout;
use crate::presets::complete_preset::{
    ExampleMessagesMode, NamesBehavior, PresetEntry, PromptPosition,
};
use crate::presets::message_formats::{ContinuePostfix, ExampleFormat};
use crate::presets::preset_checks::{
    ValidationError, check_count, check_integer, check_length, check_number, check_texts,
    validation_error,
};

const MAX_ENTRIES: usize = 300;
const MAX_LABEL_CHARS: usize = 200;
const MAX_ENTRY_CHARS: usize = 100_000;
const MAX_TEXT_CHARS: usize = 20_000;
const MAX_STOPS: usize = 100;
const MAX_STOP_CHARS: usize = 1_000;
const MAX_BANNED_STRINGS: usize = 1_000;
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
    /// The number of tokens that the repetition penalty covers; -1: the whole context.
    #[schema(minimum = -1, maximum = 10_000_000)]
    repetition_range: Option<i64>,
    #[schema(minimum = 0, maximum = 10)]
    repetition_slope: Option<f64>,
    /// 1: off.
    #[schema(minimum = 0, maximum = 1)]
    tfs: Option<f64>,
    /// 0: off.
    #[schema(minimum = 0, maximum = 100)]
    dry_multiplier: Option<f64>,
    #[schema(minimum = 0, maximum = 100)]
    dry_base: Option<f64>,
    #[schema(minimum = 0, maximum = 10_000)]
    dry_allowed_length: Option<i64>,
    /// -1: the whole context.
    #[schema(minimum = -1, maximum = 10_000_000)]
    dry_penalty_last_n: Option<i64>,
    #[schema(max_items = 100)]
    dry_sequence_breakers: Option<Vec<String>>,
    #[schema(minimum = 0, maximum = 1)]
    xtc_threshold: Option<f64>,
    /// 0: off.
    #[schema(minimum = 0, maximum = 1)]
    xtc_probability: Option<f64>,
    /// 0: off.
    #[schema(minimum = 0, maximum = 2)]
    mirostat_mode: Option<i64>,
    #[schema(minimum = 0, maximum = 100)]
    mirostat_tau: Option<f64>,
    #[schema(minimum = 0, maximum = 1)]
    mirostat_eta: Option<f64>,
    /// 0: off.
    #[schema(minimum = 0, maximum = 5)]
    dynatemp_range: Option<f64>,
    #[schema(minimum = 0, maximum = 10)]
    dynatemp_exponent: Option<f64>,
    /// 0: off.
    #[schema(minimum = 0, maximum = 10)]
    smoothing_factor: Option<f64>,
    /// 0: off.
    #[schema(minimum = 0, maximum = 100)]
    top_n_sigma: Option<f64>,
    /// Texts that the model must not write.
    #[schema(max_items = 1_000)]
    banned_strings: Option<Vec<String>>,
    /// A GBNF grammar for the reply.
    #[schema(max_length = 20_000)]
    grammar: Option<String>,
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
    #[serde(rename = "example_format")]
    _example_format: Option<ExampleFormat>,
    /// Whether the stored reply begins with the prefill.
    #[serde(rename = "show_prefill")]
    _show_prefill: Option<bool>,
    #[serde(rename = "continue_postfix")]
    _continue_postfix: Option<ContinuePostfix>,
    #[serde(rename = "cache_layout")]
    _cache_layout: Option<CacheLayout>,
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
    /// The beginning of each reply, where the provider accepts one.
    #[schema(max_length = 20_000)]
    assistant_prefill: Option<String>,
    /// The beginning of a text that the model writes for a user, where the provider accepts one.
    #[schema(max_length = 20_000)]
    assistant_impersonation: Option<String>,
    /// Sent as a message of the user if the newest message is one of a character.
    #[schema(max_length = 20_000)]
    replace_empty_message: Option<String>,
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

impl PartialPreset {
    /// Checks everything that the types do not guarantee.
    ///
    /// # Errors
    /// Returns the first invalid value.
    pub fn validate(&self) -> Result<(), ValidationError> {
        check_integer("preset_id", self.preset_id.map(|it| it.0), 1, i64::MAX)?;
        self.validate_samplers()?;
        self.validate_local_samplers()?;
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

    /// Checks the samplers that only the servers of local models support.
    fn validate_local_samplers(&self) -> Result<(), ValidationError> {
        let tokens = (-1, 10_000_000);
        check_integer(
            "repetition_range",
            self.repetition_range,
            tokens.0,
            tokens.1,
        )?;
        check_number("repetition_slope", self.repetition_slope, 0.0, 10.0)?;
        check_number("tfs", self.tfs, 0.0, 1.0)?;
        check_number("dry_multiplier", self.dry_multiplier, 0.0, 100.0)?;
        check_number("dry_base", self.dry_base, 0.0, 100.0)?;
        check_integer("dry_allowed_length", self.dry_allowed_length, 0, 10_000)?;
        let last_n = self.dry_penalty_last_n;
        check_integer("dry_penalty_last_n", last_n, tokens.0, tokens.1)?;
        check_texts(
            "dry_sequence_breakers",
            self.dry_sequence_breakers.as_deref(),
            (MAX_STOPS, MAX_STOP_CHARS),
        )?;
        check_number("xtc_threshold", self.xtc_threshold, 0.0, 1.0)?;
        check_number("xtc_probability", self.xtc_probability, 0.0, 1.0)?;
        check_integer("mirostat_mode", self.mirostat_mode, 0, 2)?;
        check_number("mirostat_tau", self.mirostat_tau, 0.0, 100.0)?;
        check_number("mirostat_eta", self.mirostat_eta, 0.0, 1.0)?;
        check_number("dynatemp_range", self.dynatemp_range, 0.0, 5.0)?;
        check_number("dynatemp_exponent", self.dynatemp_exponent, 0.0, 10.0)?;
        check_number("smoothing_factor", self.smoothing_factor, 0.0, 10.0)?;
        check_number("top_n_sigma", self.top_n_sigma, 0.0, 100.0)?;
        check_texts(
            "banned_strings",
            self.banned_strings.as_deref(),
            (MAX_BANNED_STRINGS, MAX_STOP_CHARS),
        )?;
        check_length(
            "grammar",
            self.grammar.as_deref().unwrap_or_default(),
            MAX_TEXT_CHARS,
        )
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

    fn short_texts(&self) -> [(&'static str, &Option<String>); 13] {
        [
            ("impersonation_prompt", &self.impersonation_prompt),
            ("new_chat_prompt", &self.new_chat_prompt),
            ("new_group_chat_prompt", &self.new_group_chat_prompt),
            ("new_example_chat_prompt", &self.new_example_chat_prompt),
            ("group_nudge_prompt", &self.group_nudge_prompt),
            ("continue_nudge_prompt", &self.continue_nudge_prompt),
            ("assistant_prefill", &self.assistant_prefill),
            ("assistant_impersonation", &self.assistant_impersonation),
            ("replace_empty_message", &self.replace_empty_message),
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
        check_texts("stop", self.stop.as_deref(), (MAX_STOPS, MAX_STOP_CHARS))
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

#[cfg(test)]
#[path = "partial_preset_tests.rs"]
mod tests;
