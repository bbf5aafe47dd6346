//! Converts the messages of a conversation to prompt blocks, with their roles and, depending on the
//! preset, the names of their authors.
//!
//! **Invariant:** the text of a message is sent unchanged. The author's name is a separate field;
//! the provider's dialect decides how to send it, unless the preset wants names in the text.

use std::collections::HashMap;

use base::prompt_role::PromptRole;
use tavern::presets::complete_preset::NamesBehavior;

use crate::conversations::message;
use crate::prompt::blocks::{BlockKind, BlockOrigin, PromptBlock, RecordedText};
use crate::prompt::context::{HistoryLine, PromptContext};

/// Returns a block for each message that is not empty, oldest first.
pub fn blocks(context: &PromptContext, count: &dyn Fn(&str) -> i64) -> Vec<PromptBlock> {
    let lines = context.history.iter();
    let lines = lines.filter(|it| !it.text.trim().is_empty() || !it.payload.is_empty());
    // Hundreds of messages have few authors.
    let mut name_tokens = HashMap::new();
    let mut count_name = |name| {
        *name_tokens
            .entry(name)
            .or_insert_with_key(|name: &&str| count(name))
    };
    lines
        .map(|line| block(context, line, count, &mut count_name))
        .collect()
}

fn block<'a>(
    context: &PromptContext,
    line: &'a HistoryLine,
    count: &dyn Fn(&str) -> i64,
    count_name: &mut impl FnMut(&'a str) -> i64,
) -> PromptBlock {
    let text_tokens = match line.tokens {
        known if known > 0 => known,
        _ => count(&line.text),
    };
    let name = line.name.trim();
    let names = context.preset.names;
    let wants_name = match names {
        NamesBehavior::Usual | NamesBehavior::InText => true,
        NamesBehavior::InGroups => context.is_group() || context.has_several_users(),
        NamesBehavior::Never => false,
    };
    // A tool call without text needs no name.
    let is_named = wants_name && !name.is_empty() && !line.text.trim().is_empty();
    let is_in_text = is_named && names == NamesBehavior::InText;
    let begins = line.text.trim_start().strip_prefix(name);
    let is_there = begins.is_some_and(|it| it.starts_with(':'));
    let before = match is_in_text && !is_there {
        true => format!("{name}: "),
        false => String::new(),
    };
    let source = RecordedText {
        message: line.message_id,
        swipe: line.swipe,
    };
    let quote = line.quote.as_ref();
    let quoted = quote.map_or("", |it| it.line.as_str());
    let text = format!("{before}{quoted}{}", line.text);
    let quote_tokens = quote.map_or(0, |it| count(&it.line));
    PromptBlock {
        name: (is_named && !is_in_text).then(|| line.name.clone()),
        tokens: text_tokens + quote_tokens + if is_named { count_name(&line.name) } else { 0 },
        origin: BlockOrigin::Message {
            source,
            seq: line.seq,
            before,
            quote: quote.map(|it| it.recorded.clone()),
        },
        payload: line.payload.clone(),
        is_required: line.is_required,
        ..PromptBlock::new(BlockKind::History, &line.name, role(line.role), text)
    }
}

/// A message is sent under the role with which it was written.
fn role(role: message::MessageRole) -> PromptRole {
    match role {
        message::MessageRole::User => PromptRole::User,
        message::MessageRole::Assistant => PromptRole::Assistant,
        message::MessageRole::System => PromptRole::System,
    }
}
