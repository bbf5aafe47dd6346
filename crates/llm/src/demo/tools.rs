//! Chooses the tool calls of the demo model and their arguments, and turns the results of its calls
//! into a reply.
//!
//! It calls the tools that it must call, and those that the latest message mentions: a tool is
//! mentioned if the text contains every word of its name, in any order, except verbs such as `get`.

use std::collections::HashSet;

use unicode_segmentation::UnicodeSegmentation;

use crate::demo::{keywords, sample_json};
use crate::request::{Message, Request};
use crate::tool::{Tool, ToolCall, ToolChoice};

/// Maximum length of a repeated result, in characters.
const MAX_REPORT_CHARS: usize = 2_000;

/// Words of tool names that a message need not contain.
const VERBS: [&str; 14] = [
    "call", "check", "do", "fetch", "find", "get", "give", "list", "look", "read", "run", "show",
    "tell", "up",
];

/// Returns the calls to make, without ids; often none.
pub fn choose_calls(request: &Request) -> Vec<ToolCall> {
    let message = keywords::latest_message(request).unwrap_or_default();
    let mentioned: Vec<&Tool> = match has_tool_result(request) {
        true => Vec::new(),
        false => request
            .tools
            .iter()
            .filter(|it| is_mentioned(it, message))
            .collect(),
    };
    let called: Vec<&Tool> = match &request.tool_choice {
        ToolChoice::None => Vec::new(),
        ToolChoice::Auto => mentioned,
        ToolChoice::Required if mentioned.is_empty() => request.tools.iter().take(1).collect(),
        ToolChoice::Required => mentioned,
        ToolChoice::Named(name) => {
            let named = request.tools.iter().filter(|it| it.name == *name);
            named.take(1).collect()
        }
    };
    let max_calls = if request.is_serial { 1 } else { called.len() };
    let call = |tool: &Tool| ToolCall {
        id: String::new(),
        name: tool.name.clone(),
        arguments: sample_arguments(tool, message),
    };
    called.into_iter().take(max_calls).map(call).collect()
}

/// Returns a report of the results of its latest calls, or `None` if the prompt does not end with
/// results.
pub fn report_results(request: &Request) -> Option<String> {
    let of = |message: &Message| {
        let name = &message.answers.as_ref()?.name;
        let outcome: String = message.content.chars().take(MAX_REPORT_CHARS).collect();
        Some(format!("{name} says: {outcome}"))
    };
    let newest = request.messages.iter().rev().map_while(of);
    let mut lines: Vec<String> = newest.collect();
    lines.reverse();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn has_tool_result(request: &Request) -> bool {
    let newest = request.messages.last();
    newest.is_some_and(|it| it.answers.is_some())
}

fn is_mentioned(tool: &Tool, message: &str) -> bool {
    let words = |text: &str| -> HashSet<String> {
        let words = text.split(['_', '-']).flat_map(str::unicode_words);
        words.map(str::to_lowercase).collect()
    };
    let named = words(&tool.name);
    let mut named = named
        .iter()
        .filter(|it| !VERBS.contains(&it.as_str()))
        .peekable();
    let heard = words(message);
    named.peek().is_some() && named.all(|it| heard.contains(it))
}

fn sample_arguments(tool: &Tool, message: &str) -> String {
    let value = sample_json::value(&tool.parameters, message);
    match value.is_object() {
        true => value.to_string(),
        false => "{}".to_owned(),
    }
}
