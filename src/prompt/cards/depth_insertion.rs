//! Inserts blocks among the message blocks of a prompt, by their depth: the number of messages that
//! follow them. Also collects those that are no entries of the preset.

use base::prompt_role::PromptRole;
use tavern::presets::complete_preset::DEFAULT_ORDER;

use crate::prompt::blocks::{BlockKind, PromptBlock};
use crate::prompt::sections::Sections;

/// The number of messages after the memories, so that the prompt before them stays the same while a
/// conversation grows.
const MEMORY_DEPTH: usize = 4;

/// A block with a depth.
#[derive(Clone, Debug)]
pub struct Injection {
    /// The number of messages after it; 0: after all of them.
    pub depth: usize,
    /// At the same depth, the lower order comes first.
    pub order: i64,
    pub block: PromptBlock,
}

/// Inserts all blocks at their depths. At one depth they are sorted by order, then by role
/// (assistant, user, system), then stably. Blocks with equal order and role become one message.
///
/// A block whose depth is between a tool call and its results comes before the call, because APIs
/// require the results directly after it.
pub fn insert(lines: Vec<PromptBlock>, mut injections: Vec<Injection>) -> Vec<PromptBlock> {
    let n_lines = lines.len();
    for it in &mut injections {
        it.depth = depth_outside_calls(&lines, it.depth);
    }
    injections.sort_by_key(|it| {
        (
            std::cmp::Reverse(it.depth),
            it.order,
            role_rank(it.block.role),
        )
    });
    let mut waiting = injections.into_iter().peekable();
    let mut blocks = Vec::with_capacity(n_lines);
    let mut lines = lines.into_iter();
    for n_following in (0..=n_lines).rev() {
        let mut before = None;
        while let Some(it) = waiting.next_if(|it| it.depth == n_following) {
            let key = (it.order, it.block.role);
            let joins = before == Some(key);
            before = Some(key);
            blocks.push(PromptBlock { joins, ..it.block });
        }
        blocks.extend(lines.next());
    }
    blocks
}

/// Returns the nearest depth, at least this one if there are that many lines, at which no result of a
/// tool call follows.
fn depth_outside_calls(lines: &[PromptBlock], depth: usize) -> usize {
    let mut before = lines.len() - depth.min(lines.len());
    let is_result = |it: &PromptBlock| it.payload.answers.is_some();
    while before > 0 && lines.get(before).is_some_and(is_result) {
        before -= 1;
    }
    lines.len() - before
}

/// Returns the rank of a role at one depth: the lower one comes first.
pub fn role_rank(role: PromptRole) -> u8 {
    match role {
        PromptRole::Assistant => 0,
        PromptRole::User => 1,
        PromptRole::System => 2,
    }
}

/// Returns the blocks inserted among the messages in addition to preset entries: depth prompts of
/// cards, personas, lore, memories, and the author's note last, where its influence is strongest.
pub fn card_injections(sections: &Sections<'_>, note: Vec<PromptBlock>) -> Vec<Injection> {
    let usual = |depth, block| Injection {
        depth,
        order: DEFAULT_ORDER,
        block,
    };
    let cards = sections.cards.depth_prompts.iter().map(|it| {
        let role = match it.prompt.role.as_str() {
            "user" => PromptRole::User,
            "assistant" => PromptRole::Assistant,
            _ => PromptRole::System,
        };
        let text = it.prompt.prompt.clone();
        let block = PromptBlock {
            card_use: sections.card_text,
            has_summary: sections.have_cards_summary,
            ..PromptBlock::new(BlockKind::DepthPrompt, &it.owner, role, text)
        };
        usual(it.prompt.depth, block)
    });
    let personas = sections.deep_personas().into_iter();
    let personas = personas.map(|(placement, block)| {
        let role = placement.role;
        let depth = usize::try_from(placement.depth).unwrap_or_default();
        usual(depth, PromptBlock { role, ..block })
    });
    let lore = sections.lore.depth_blocks().into_iter();
    let lore = lore.map(|(depth, block)| usual(depth, block));
    let memories = sections.memories();
    let memories = memories.map(|it| usual(MEMORY_DEPTH, it));
    let depth = sections.context.note.depth;
    let note = note.into_iter().map(|it| usual(depth, it));
    let before_note = cards.chain(personas).chain(lore).chain(memories);
    before_note.chain(note).collect()
}

#[cfg(test)]
mod tests {
    use base::prompt_role::PromptRole;

    use super::{Injection, insert};
    use crate::prompt::blocks::{BlockKind, PromptBlock, to_messages};

    fn lines() -> Vec<PromptBlock> {
        let line = |text: &str| PromptBlock {
            name: Some("Bob".into()),
            ..PromptBlock::new(BlockKind::History, "Bob", PromptRole::User, text.into())
        };
        ["1", "2", "3"].map(line).to_vec()
    }

    fn at(depth: usize, order: i64, role: PromptRole, text: &str) -> Injection {
        Injection {
            depth,
            order,
            block: PromptBlock::new(BlockKind::Entry, "", role, text.into()),
        }
    }

    fn texts(injections: Vec<Injection>) -> Vec<String> {
        let sent = to_messages(&insert(lines(), injections)).into_iter();
        sent.map(|it| it.content).collect()
    }

    #[test]
    fn a_depth_counts_the_messages_that_follow() {
        let system = |depth, text| at(depth, 100, PromptRole::System, text);

        let texts = texts(vec![
            system(0, "end"),
            system(1, "one"),
            system(3, "all"),
            system(99, "far"),
        ]);

        assert_eq!(texts, ["all\nfar", "1", "2", "one", "3", "end"]);
    }

    #[test]
    fn at_one_depth_blocks_are_sorted_by_order_and_then_role() {
        let texts = texts(vec![
            at(1, 100, PromptRole::System, "system"),
            at(1, 100, PromptRole::User, "user"),
            at(1, 100, PromptRole::Assistant, "assistant"),
            at(1, 200, PromptRole::Assistant, "late"),
            at(1, 1, PromptRole::System, "early"),
        ]);

        assert_eq!(
            texts,
            [
                "1",
                "2",
                "early",
                "assistant",
                "user",
                "system",
                "late",
                "3"
            ]
        );
    }

    #[test]
    fn equal_blocks_are_merged_in_their_original_order() {
        let texts = texts(vec![
            at(0, 100, PromptRole::User, "a"),
            at(0, 100, PromptRole::User, "b"),
            at(0, 101, PromptRole::User, "c"),
        ]);

        assert_eq!(texts, ["1", "2", "3", "a\nb", "c"]);
    }
}
