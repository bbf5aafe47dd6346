//! Fits a prompt into the context window of the model: drops blocks until the rest fits, or refuses
//! the prompt.
//!
//! Example blocks are dropped first, then lore by ascending priority, then the personas that spoke
//! longest ago, except that of the user, then the oldest messages. A preset may keep its examples longer
//! than these. Before that, the personas of other people are limited to a quarter of the window.
//!
//! **Invariant:** system blocks, the newest message and required messages are never dropped; if
//! they alone do not fit, the prompt is refused with the number of excess tokens. A tool result is
//! never kept without its call.

use llm::compatibility::token_factors::TokenFactors;
use tavern::presets::complete_preset::{ExampleMessagesMode, Preset};

use crate::prompt::blocks::{BlockKind, PromptBlock};
use crate::providers::context_window::DEFAULT_CONTEXT_TOKENS;

/// The tokens that a model needs to separate messages, for each message.
pub const MESSAGE_OVERHEAD: i64 = 4;

/// The blocks that must be kept exceed the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The prompt is {over_by} tokens too long for the model, even without history.")]
pub struct ContextOverflow {
    /// The number of excess tokens.
    pub over_by: i64,
}

/// The context window of the model, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextLimits {
    /// The whole window.
    pub context_tokens: i64,
    /// The part reserved for the reply.
    pub response_tokens: i64,
}

impl ContextLimits {
    /// Returns the limits of a preset, with defaults for missing values: a reply gets a sixteenth of the
    /// window, and neither very few nor very many tokens.
    pub fn from_preset(preset: &Preset) -> Self {
        let positive = |it: Option<i64>| it.filter(|it| *it > 0);
        let context_tokens = positive(preset.context_tokens).unwrap_or(DEFAULT_CONTEXT_TOKENS);
        let of_window = (context_tokens / 16).clamp(512, 2_048);
        let max_tokens = preset.max_tokens.map(i64::from);
        Self {
            context_tokens,
            response_tokens: positive(max_tokens).unwrap_or(of_window),
        }
    }

    /// Returns the limits in tokens of our own tokenizer. No text that fits into the model's window exceeds them.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // far below 2^52
    pub fn in_counted_tokens(self, factors: TokenFactors) -> Self {
        let factor = factors.smallest().min(1.0);
        Self {
            context_tokens: (self.context_tokens as f64 / factor) as i64,
            ..self
        }
    }
}

/// Marks further blocks as dropped, until the rest fits into `limit_tokens`. Returns the tokens of the
/// rest.
pub fn fit_blocks(
    blocks: &mut [PromptBlock],
    limit_tokens: i64,
    examples: ExampleMessagesMode,
) -> Result<i64, ContextOverflow> {
    let kept = blocks.iter().filter(|it| !it.dropped);
    let mut total: i64 = kept.map(block_cost).sum();
    for at in eviction_order(blocks, examples) {
        if total <= limit_tokens {
            break;
        }
        total -= drop_whole(blocks, at);
    }
    total -= drop_orphans(blocks);
    if total > limit_tokens {
        let over_by = total - limit_tokens;
        return Err(ContextOverflow { over_by });
    }
    Ok(total)
}

/// Drops a block, and with an example message all others of its dialogue. Returns the tokens that this frees.
fn drop_whole(blocks: &mut [PromptBlock], at: usize) -> i64 {
    let dialogue = blocks[at].example_dialogue;
    let mut freed = 0;
    for (n, block) in blocks.iter_mut().enumerate() {
        let is_part = n == at || dialogue.is_some() && block.example_dialogue == dialogue;
        if is_part && !block.dropped {
            block.dropped = true;
            freed += block_cost(block);
        }
    }
    freed
}

/// Drops the results of dropped calls. Returns the tokens that this frees.
fn drop_orphans(blocks: &mut [PromptBlock]) -> i64 {
    let lines = blocks.iter_mut().filter(|it| it.kind == BlockKind::History);
    let (mut dropped, mut was_dropped) = (0, false);
    for line in lines {
        if was_dropped && !line.dropped && line.payload.answers.is_some() && !line.is_required {
            line.dropped = true;
            dropped += block_cost(line);
        }
        was_dropped = line.dropped;
    }
    dropped
}

/// Returns the blocks that may be dropped, in the order of dropping.
fn eviction_order(blocks: &[PromptBlock], examples: ExampleMessagesMode) -> Vec<usize> {
    let of = |kind: BlockKind| {
        let all = blocks.iter().enumerate();
        let kept = all.filter(move |(_, it)| it.kind == kind && !it.dropped);
        kept.map(|(at, _)| at)
    };
    let mut lore: Vec<usize> = of(BlockKind::Lore).collect();
    lore.sort_by_key(|at| blocks[*at].priority);
    lore.extend(of(BlockKind::Memory));
    lore.extend(droppable_personas(blocks));
    let mut lines: Vec<usize> = of(BlockKind::History).collect();
    lines.pop(); // the newest message is kept
    lines.retain(|at| !blocks[*at].is_required);
    match examples {
        ExampleMessagesMode::AlwaysKeep => lore
            .into_iter()
            .chain(lines)
            .chain(of(BlockKind::Example))
            .collect(),
        _ => of(BlockKind::Example).chain(lore).chain(lines).collect(),
    }
}

/// Returns the personas that may be dropped, in the order of dropping.
fn droppable_personas(blocks: &[PromptBlock]) -> Vec<usize> {
    let all = blocks.iter().enumerate();
    let droppable =
        all.filter(|(_, it)| it.kind == BlockKind::Persona && !it.is_required && !it.dropped);
    let mut places: Vec<usize> = droppable.map(|(at, _)| at).collect();
    places.sort_by_key(|at| blocks[*at].priority);
    places
}

/// Drops the personas that spoke longest ago until the others, without that of the user, have at most a
/// quarter of `limit_tokens`.
pub fn limit_personas(blocks: &mut [PromptBlock], limit_tokens: i64) {
    let places = droppable_personas(blocks);
    let mut total: i64 = places.iter().map(|at| block_cost(&blocks[*at])).sum();
    for at in places {
        if total <= limit_tokens / 4 {
            return;
        }
        blocks[at].dropped = true;
        total -= block_cost(&blocks[at]);
    }
}

/// Returns the cost of a block, in tokens. An upper bound, because adjacent blocks may be merged.
pub fn block_cost(block: &PromptBlock) -> i64 {
    block.tokens + MESSAGE_OVERHEAD
}

#[cfg(test)]
mod tests {
    use base::prompt_role::PromptRole;

    use super::{BlockKind, ContextOverflow, ExampleMessagesMode, PromptBlock, fit_blocks};

    /// Each costs ten tokens.
    fn blocks(kinds: &[BlockKind]) -> Vec<PromptBlock> {
        let block = |kind: &BlockKind| PromptBlock {
            tokens: 6,
            ..PromptBlock::new(*kind, "", PromptRole::System, String::new())
        };
        kinds.iter().map(block).collect()
    }

    const WHOLE: [BlockKind; 7] = [
        BlockKind::Main,
        BlockKind::Example,
        BlockKind::Example,
        BlockKind::History,
        BlockKind::History,
        BlockKind::History,
        BlockKind::PostHistory,
    ];

    fn dropped(limit_tokens: i64) -> Vec<usize> {
        let mut blocks = blocks(&WHOLE);
        let total = fit_blocks(&mut blocks, limit_tokens, ExampleMessagesMode::default())
            .expect("the blocks fit");
        let dropped: Vec<usize> = (0..blocks.len()).filter(|at| blocks[*at].dropped).collect();
        assert_eq!(total, 70 - 10 * i64::try_from(dropped.len()).expect("few"));
        dropped
    }

    #[test]
    fn a_prompt_that_fits_is_unchanged() {
        assert_eq!(dropped(70), [] as [usize; 0]);
        assert_eq!(dropped(1_000), [] as [usize; 0]);
    }

    #[test]
    fn examples_are_dropped_first_and_then_the_oldest_messages() {
        assert_eq!(dropped(69), [1]);
        assert_eq!(dropped(50), [1, 2]);
        assert_eq!(dropped(49), [1, 2, 3]);
        assert_eq!(dropped(30), [1, 2, 3, 4]);
    }

    #[test]
    fn lore_is_dropped_by_priority_after_examples_and_before_messages() {
        let mut blocks = blocks(&[
            BlockKind::Lore,
            BlockKind::Lore,
            BlockKind::Example,
            BlockKind::History,
            BlockKind::History,
        ]);
        (blocks[0].priority, blocks[1].priority) = ((5, 0), (1, 100));
        let order = super::eviction_order(&blocks, ExampleMessagesMode::default());
        let kept = super::eviction_order(&blocks, ExampleMessagesMode::AlwaysKeep);

        assert_eq!(order, [2, 1, 0, 3]);
        assert_eq!(kept, [1, 0, 3, 2]);
    }

    #[test]
    fn other_personas_have_a_quarter_of_the_window_and_those_that_spoke_last_are_kept() {
        let mut blocks = blocks(&[BlockKind::Persona; 4]);
        for (block, seq) in blocks.iter_mut().zip([3, 1, 9, 2]) {
            block.priority = (seq, 0);
        }
        blocks[1].is_required = true; // that of the user

        super::limit_personas(&mut blocks, 80);

        let dropped: Vec<bool> = blocks.iter().map(|it| it.dropped).collect();
        assert_eq!(dropped, [false, false, false, true]);
        let result = fit_blocks(&mut blocks, 15, ExampleMessagesMode::default());
        assert_eq!(result, Ok(10), "only the persona of the user is kept");
    }

    #[test]
    fn a_prompt_is_rejected_if_the_newest_message_and_the_system_blocks_do_not_fit() {
        let result = fit_blocks(&mut blocks(&WHOLE), 18, ExampleMessagesMode::default());

        assert_eq!(result, Err(ContextOverflow { over_by: 12 }));
    }

    #[test]
    fn a_prompt_without_history_can_be_too_long() {
        let result = fit_blocks(
            &mut blocks(&[BlockKind::Main]),
            -5,
            ExampleMessagesMode::default(),
        );

        assert_eq!(result, Err(ContextOverflow { over_by: 15 }));
        assert_eq!(
            fit_blocks(&mut [], 0, ExampleMessagesMode::default()),
            Ok(0)
        );
    }
}
