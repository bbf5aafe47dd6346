//! Checks the templates of a preset: the length of each text, and the syntax of the story string.

use crate::instruct::context_template::{ContextTemplate, ReasoningTemplate, SystemPromptTemplate};
use crate::instruct::instruct_template::InstructTemplate;
use crate::instruct::story_string::StoryString;

const MAX_NAME_CHARS: usize = 200;
const MAX_SEQUENCE_CHARS: usize = 2_000;
const MAX_MESSAGE_CHARS: usize = 20_000;
const MAX_STORY_CHARS: usize = 50_000;
const MAX_PROMPT_CHARS: usize = 100_000;
const MAX_REGEX_CHARS: usize = 1_000;
const MAX_TAG_CHARS: usize = 200;

/// An invalid key of a template, and what is allowed.
pub type TemplateProblem = (&'static str, String);

/// Checks an instruct template.
///
/// # Errors
/// Returns the first invalid key.
pub fn check_instruct(template: &InstructTemplate) -> Result<(), TemplateProblem> {
    check_length("name", &template.name, MAX_NAME_CHARS)?;
    let sequences = template.sequences();
    for (key, sequence) in InstructTemplate::SEQUENCE_KEYS.into_iter().zip(sequences) {
        check_length(key, sequence, MAX_SEQUENCE_CHARS)?;
    }
    let message = &template.user_alignment_message;
    check_length("user_alignment_message", message, MAX_MESSAGE_CHARS)?;
    check_length(
        "activation_regex",
        &template.activation_regex,
        MAX_REGEX_CHARS,
    )
}

/// Checks a context template.
///
/// # Errors
/// Returns the first invalid key.
pub fn check_context(template: &ContextTemplate) -> Result<(), TemplateProblem> {
    check_length("name", &template.name, MAX_NAME_CHARS)?;
    check_length("story_string", &template.story_string, MAX_STORY_CHARS)?;
    StoryString::parse(&template.story_string).map_err(|it| ("story_string", it.to_string()))?;
    check_length(
        "example_separator",
        &template.example_separator,
        MAX_SEQUENCE_CHARS,
    )?;
    check_length("chat_start", &template.chat_start, MAX_SEQUENCE_CHARS)
}

/// Checks a system prompt template.
///
/// # Errors
/// Returns the first invalid key.
pub fn check_system_prompt(template: &SystemPromptTemplate) -> Result<(), TemplateProblem> {
    check_length("name", &template.name, MAX_NAME_CHARS)?;
    check_length("content", &template.content, MAX_PROMPT_CHARS)?;
    check_length("post_history", &template.post_history, MAX_PROMPT_CHARS)
}

/// Checks a reasoning template.
///
/// # Errors
/// Returns the first invalid key.
pub fn check_reasoning(template: &ReasoningTemplate) -> Result<(), TemplateProblem> {
    check_length("name", &template.name, MAX_NAME_CHARS)?;
    check_length("prefix", &template.prefix, MAX_TAG_CHARS)?;
    check_length("suffix", &template.suffix, MAX_TAG_CHARS)?;
    check_length("separator", &template.separator, MAX_TAG_CHARS)
}

fn check_length(key: &'static str, text: &str, max: usize) -> Result<(), TemplateProblem> {
    match text.chars().count() <= max {
        true => Ok(()),
        false => Err((key, format!("Must have at most {max} characters."))),
    }
}
