//! Fits the stored history of a prompt into its share: drops the messages before its start, inserts the
//! summary that replaces them, and requests a new one before the share is full.

use base::prompt_role::PromptRole;
use tavern::presets::complete_preset::ExampleMessagesMode;

use crate::prompt::blocks::{BlockKind, BlockOrigin, PromptBlock, RecordedSummary};
use crate::prompt::budget::block_cost;
use crate::prompt::context::PromptContext;
use crate::prompt::history::history_window::{HistoryStart, MessageCost, choose_start, find_goal};
use crate::prompt::history::summary_block;
use crate::prompt::history::summary_block::{FittedSummary, PromptSummaries};

/// A summary uses at most the share of the history divided by this.
const SUMMARY_SHARE: i64 = 4;

/// The least share of the history, as a divisor of the limit: lore and examples that leave less are
/// dropped for it.
const MIN_SHARE: i64 = 4;

/// What the run stores if it succeeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryEffects {
    /// Where the history begins, if no earlier prompt began there.
    pub new_start: Option<HistoryStart>,
    /// The last message to summarize, if a new summary is needed soon.
    pub summary_goal: Option<i64>,
}

/// Drops the messages before the start of a stored history, and the example messages of a history that
/// is cut, unless the preset keeps them; inserts the block of the summary. Does nothing for a history
/// that is not stored.
///
/// Example messages stay out while the history is cut: to drop them one by one while the history grows
/// would change the beginning of the prompt each time.
pub fn fit_history(
    blocks: &mut Vec<PromptBlock>,
    context: &PromptContext,
    limit_tokens: i64,
    count: &dyn Fn(&str) -> i64,
) -> HistoryEffects {
    let Some(stored) = &context.history_starts else {
        return HistoryEffects::default();
    };
    let keeps_examples = context.preset.examples == ExampleMessagesMode::AlwaysKeep;
    let is_optional = |it: &PromptBlock| it.kind == BlockKind::Example && !keeps_examples;
    let is_other =
        |it: &&PromptBlock| it.kind != BlockKind::History && !is_optional(it) && !it.dropped;
    let others: i64 = blocks.iter().filter(is_other).map(block_cost).sum();
    let max_summary = (limit_tokens - others) / SUMMARY_SHARE;
    let none = PromptSummaries::default();
    let summaries = context.summaries.as_ref().unwrap_or(&none);
    let share = limit_tokens - others - summaries.largest_block(max_summary, count);
    let share = share.max(limit_tokens / MIN_SHARE);
    let messages: Vec<MessageCost> = blocks.iter().filter_map(message_cost).collect();
    let of_limit = stored.iter().filter(|it| it.limit_tokens == limit_tokens);
    let of_limit: Vec<i64> = of_limit.map(|it| it.seq).collect();
    let ends: Vec<i64> = summaries.versions.iter().map(|it| it.to_seq).collect();
    let start = choose_start(&messages, share, &of_limit, &ends);
    if let Some(seq) = start {
        for block in blocks.iter_mut() {
            let is_older = message_cost(block).is_some_and(|it| it.seq < seq);
            block.dropped = is_older || is_optional(block);
        }
    }
    if let Some(block) = summary(summaries, start, max_summary, count) {
        let first = blocks.iter().position(|it| it.kind == BlockKind::History);
        blocks.insert(first.unwrap_or(blocks.len()), block);
    }
    let is_new = |seq: &i64| !of_limit.contains(seq);
    HistoryEffects {
        new_start: start
            .filter(is_new)
            .map(|seq| HistoryStart { limit_tokens, seq }),
        summary_goal: context
            .summaries
            .as_ref()
            .and_then(|it| find_goal(&messages, share, it.goal_seq)),
    }
}

fn message_cost(block: &PromptBlock) -> Option<MessageCost> {
    match block.origin {
        BlockOrigin::Message { seq, .. } => Some(MessageCost {
            seq,
            tokens: block_cost(block),
        }),
        _ => None,
    }
}

/// Returns the block of the summary: the pinned facts, and the text of a version if the history is cut.
/// A block of which nothing fits is dropped.
fn summary(
    summaries: &PromptSummaries,
    start: Option<i64>,
    max_tokens: i64,
    count: &dyn Fn(&str) -> i64,
) -> Option<PromptBlock> {
    let version = start.and_then(|it| summary_block::choose(&summaries.versions, it));
    let FittedSummary {
        text,
        n_facts_left_out,
    } = summaries.render_within(version, max_tokens, count);
    if text.is_none() && n_facts_left_out == 0 {
        return None;
    }
    let source = RecordedSummary {
        version: version.map(|it| it.id),
        facts: summaries.facts_version,
        n_facts_left_out,
    };
    let dropped = text.is_none();
    let text = text.unwrap_or_default();
    Some(PromptBlock {
        tokens: count(&text),
        dropped,
        n_facts_left_out,
        origin: BlockOrigin::Summary(source),
        ..PromptBlock::new(BlockKind::Summary, "Summary", PromptRole::System, text)
    })
}
