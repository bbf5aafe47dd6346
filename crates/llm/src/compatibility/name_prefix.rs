//! The name of a speaker in front of a text, for APIs and messages without a field for it.

use base::prompt_role::PromptRole;

use crate::request::Message;

/// Returns the text with its speaker. A name on a system message only distinguishes examples.
pub fn text_with_name(message: &Message) -> String {
    let name = message.name.as_deref().map(str::trim).unwrap_or_default();
    match name.is_empty() || message.role == PromptRole::System {
        true => message.content.clone(),
        false => add(name, &message.content),
    }
}

/// Prefixes a text with its speaker's name, unless it already begins with it.
pub fn add(name: &str, content: &str) -> String {
    let start: String = content
        .trim_start()
        .chars()
        .take(name.chars().count() + 1)
        .collect();
    if start.to_lowercase() == format!("{name}:").to_lowercase() {
        content.to_owned()
    } else {
        format!("{name}: {content}")
    }
}
