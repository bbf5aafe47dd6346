//! Converts the messages of a conversation to prompt blocks, with their roles and, depending on the
//! preset, the names of their authors. The newest pictures are sent to a model that
//! accepts pictures; all others are lines of text after the text of their message.
//!
//! **Invariant:** the text of a message is sent unchanged except by regex scripts, after the marker of a
//! whisper and a quotation.
//! The author's name is a separate field; the provider's dialect decides how to send it, unless the preset
//! wants names in the text.

use std::collections::{HashMap, HashSet};

use base::ids::AttachmentId;
use base::prompt_role::PromptRole;
use tavern::presets::complete_preset::NamesBehavior;

use crate::attachments::picture_text;
use crate::conversations::message;
use crate::prompt::blocks::{BlockKind, BlockOrigin, BlockPicture, PromptBlock, RecordedText};
use crate::prompt::context::{HistoryLine, PromptContext};
use crate::prompt::history::whisper_marker;
use crate::prompt::scripts::script_pass::ScriptPass;

/// The maximum number of pictures that are sent.
const MAX_SENT_PICTURES: usize = 8;

/// Returns a block for each message that is not empty, oldest first, after the scripts.
pub fn blocks(
    context: &PromptContext,
    scripts: &ScriptPass<'_>,
    count: &dyn Fn(&str) -> i64,
) -> Vec<PromptBlock> {
    let is_empty = |it: &HistoryLine, text: &str| {
        text.trim().is_empty() && it.payload.is_empty() && it.pictures.is_empty()
    };
    let lines = context.history.iter();
    let lines: Vec<&HistoryLine> = lines.filter(|it| !is_empty(it, &it.text)).collect();
    let n_lines = lines.len();
    let sent = newest_pictures(context);
    // Hundreds of messages have few authors.
    let mut name_tokens = HashMap::new();
    let mut count_name = |name| {
        *name_tokens
            .entry(name)
            .or_insert_with_key(|name: &&str| count(name))
    };
    let blocks = lines.into_iter().enumerate().filter_map(|(n, line)| {
        let changed = scripts.message(line.role, n_lines - 1 - n, &line.text);
        let text = changed.as_ref().map_or(&line.text, |it| &it.text);
        if is_empty(line, text) {
            return None;
        }
        let tokens = match changed {
            None if line.tokens > 0 => context.token_factors.apply(text, line.tokens),
            _ => count(text),
        };
        let mut block = block(context, line, (text, tokens), count, &mut count_name);
        if let Some(changed) = changed {
            (block.card_use, block.has_summary) = (changed.card_use, changed.has_summary);
        }
        let pictures = pictures(context, line, &sent, count);
        Some(with_pictures(block, pictures))
    });
    blocks.collect()
}

/// Returns the pictures that are sent. The history is dropped from its beginning, so these are also the
/// newest ones of what is kept.
fn newest_pictures(context: &PromptContext) -> HashSet<AttachmentId> {
    if context.picture_cost.is_none() {
        return HashSet::new();
    }
    let lines = context.history.iter().rev();
    let pictures = lines.flat_map(|it| it.pictures.iter().rev());
    pictures.take(MAX_SENT_PICTURES).map(|it| it.id).collect()
}

fn pictures(
    context: &PromptContext,
    line: &HistoryLine,
    sent: &HashSet<AttachmentId>,
    count: &dyn Fn(&str) -> i64,
) -> Vec<BlockPicture> {
    let pictures = line.pictures.iter().map(|picture| {
        let cost = context.picture_cost.filter(|_| sent.contains(&picture.id));
        BlockPicture {
            message_id: line.message_id,
            sent: cost.is_some(),
            tokens: cost.map_or_else(|| count(&picture.text), |it| it.tokens(picture.size)),
            picture: Some(picture.clone()),
        }
    });
    pictures.collect()
}

/// Adds the pictures to the block of their message: those that are not sent as lines of its text.
fn with_pictures(mut block: PromptBlock, pictures: Vec<BlockPicture>) -> PromptBlock {
    let texts = pictures.iter().filter(|it| !it.sent);
    let texts = texts.filter_map(|it| Some(it.picture.as_ref()?.text.as_str()));
    block.text = picture_text::after(block.text, texts);
    block.tokens += pictures.iter().map(|it| it.tokens).sum::<i64>();
    block.pictures = pictures;
    block
}

fn block<'a>(
    context: &PromptContext,
    line: &'a HistoryLine,
    (sent_text, text_tokens): (&str, i64),
    count: &dyn Fn(&str) -> i64,
    count_name: &mut impl FnMut(&'a str) -> i64,
) -> PromptBlock {
    let name = line.name.trim();
    let names = context.preset.names;
    let is_own = line.author == context.speaker;
    let wants_name = match names {
        NamesBehavior::Usual | NamesBehavior::InText => true,
        NamesBehavior::InGroups => context.is_group() || context.has_several_users(),
        NamesBehavior::Never => false,
        NamesBehavior::SpeakerOnly => !is_own,
    };
    // A tool call without text needs no name.
    let has_content = !sent_text.trim().is_empty() || !line.pictures.is_empty();
    // A narrator speaks under no name.
    let is_narrator = line.role == message::MessageRole::System;
    let is_named = wants_name && !is_narrator && !name.is_empty() && has_content;
    let is_in_text =
        is_named && matches!(names, NamesBehavior::InText | NamesBehavior::SpeakerOnly);
    let begins = sent_text.trim_start().strip_prefix(name);
    let is_there = begins.is_some_and(|it| it.starts_with(':'));
    let quote = line.quote.as_ref();
    let marker = whisper_marker::before(line.whisper.as_ref(), quote.is_some());
    let marker_tokens = if marker.is_empty() { 0 } else { count(&marker) };
    let before = match is_in_text && !is_there {
        true => format!("{name}: {marker}"),
        false => marker,
    };
    let source = RecordedText {
        message: line.message_id,
        swipe: line.swipe,
    };
    let quoted = quote.map_or("", |it| it.line.as_str());
    let text = format!("{before}{quoted}{sent_text}");
    let quote_tokens = quote.map_or(0, |it| count(&it.line));
    PromptBlock {
        name: (is_named && !is_in_text).then(|| line.name.clone()),
        tokens: text_tokens
            + marker_tokens
            + quote_tokens
            + if is_named { count_name(&line.name) } else { 0 },
        origin: BlockOrigin::Message {
            source,
            seq: line.seq,
            before,
            quote: quote.map(|it| it.recorded.clone()),
            translated_to: line.translated_to.clone(),
        },
        payload: line.payload.clone(),
        is_required: line.is_required,
        ..PromptBlock::new(BlockKind::History, &line.name, role(context, line), text)
    }
}

/// A message is sent with the role with which it was written. With `SpeakerOnly`, those of other characters are
/// sent with the role of the user.
fn role(context: &PromptContext, line: &HistoryLine) -> PromptRole {
    let is_of_other = line.author != context.speaker && !context.is_impersonation();
    match line.role {
        message::MessageRole::User => PromptRole::User,
        message::MessageRole::Assistant
            if is_of_other && context.preset.names == NamesBehavior::SpeakerOnly =>
        {
            PromptRole::User
        }
        message::MessageRole::Assistant => PromptRole::Assistant,
        message::MessageRole::System => PromptRole::System,
    }
}
