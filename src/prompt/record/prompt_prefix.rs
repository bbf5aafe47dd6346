//! How much of a prompt equals the beginning of the previous prompt of the same conversation and model:
//! a provider with a prompt cache processes only the rest.

use base::ids::{ConversationId, RunId};
use llm::tokens;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::prompt::budget::MESSAGE_OVERHEAD;
use crate::prompt::record::recorded_block::RecordedBlock;
use crate::prompt::record::run_prompt;
use crate::prompt::record::sent_prompt::SentPrompt;

/// The number of earlier prompts among which one of the same model is searched: the members of a space
/// may have different models.
const MAX_SEARCHED: u64 = 8;

/// The part of a prompt that equals the beginning of the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = PromptPrefix)]
pub struct PromptPrefix {
    /// The tokens of the equal blocks, and of the equal beginning of the next one.
    pub equal_tokens: i64,
    pub total_tokens: i64,
    /// The run of the previous prompt.
    pub previous_run_id: RunId,
}

/// Returns how much of a prompt equals the beginning of the newest stored one before it with the same
/// model; `before`: only runs with a lower `run_seq`. `None`: no such prompt is stored.
///
/// # Errors
/// Returns the database error if a query fails.
pub async fn load(
    db: &impl ConnectionTrait,
    conversation: ConversationId,
    before: Option<i64>,
    prompt: &SentPrompt,
) -> Result<Option<PromptPrefix>, DbErr> {
    let run_seq = || Expr::cust(run_prompt::RUN_SEQ);
    let mut earlier = run_prompt::Entity::find()
        .filter(run_prompt::Column::ConversationId.eq(conversation))
        .order_by(run_seq(), sea_orm::Order::Desc)
        .limit(MAX_SEARCHED);
    if let Some(before) = before {
        earlier = earlier.filter(run_seq().lt(before));
    }
    let earlier = earlier.all(db).await?;
    let previous = earlier.iter().find(|it| it.record.model == prompt.model);
    Ok(previous.map(|it| PromptPrefix::new(prompt, &it.record, it.run_id)))
}

impl PromptPrefix {
    fn new(prompt: &SentPrompt, previous: &SentPrompt, previous_run_id: RunId) -> Self {
        // A text completion counts its whole text, which may have fewer tokens than its blocks together.
        let equal = Ord::min(equal_tokens(prompt, previous), prompt.total_tokens);
        Self {
            equal_tokens: equal,
            total_tokens: prompt.total_tokens,
            previous_run_id,
        }
    }
}

/// Returns the tokens of the leading blocks of a prompt that are equal in another one, and of the equal
/// beginning of the next block. A message that was edited has another number of tokens, as a rule.
pub fn equal_tokens(prompt: &SentPrompt, other: &SentPrompt) -> i64 {
    let mut total = 0;
    for (block, other) in prompt.sent_blocks().zip(other.sent_blocks()) {
        if is_equal(&block, &other) {
            total += block.tokens + MESSAGE_OVERHEAD;
        } else {
            return total + equal_beginning(&block, &other);
        }
    }
    total
}

/// Returns whether both blocks are sent as the same text. The label is not sent.
fn is_equal(block: &RecordedBlock, other: &RecordedBlock) -> bool {
    let sent = |it: &RecordedBlock| RecordedBlock {
        label: String::new(),
        ..it.clone()
    };
    sent(block) == sent(other)
}

/// Returns the tokens of the text with which both blocks begin.
fn equal_beginning(block: &RecordedBlock, other: &RecordedBlock) -> i64 {
    if (block.role, &block.name, block.source) != (other.role, &other.name, other.source) {
        return 0;
    }
    let pairs = block.text.char_indices().zip(other.text.chars());
    let differs = |((_, one), two): &((usize, char), char)| one != two;
    let end = pairs.into_iter().find(differs).map(|((at, _), _)| at);
    let end = end.unwrap_or(block.text.len().min(other.text.len()));
    let (whole, equal) = (
        tokens::count(&block.text),
        tokens::count(&block.text[..end]),
    );
    // The block states its tokens for the model, so they are divided in the ratio of our own counts.
    block
        .tokens
        .saturating_mul(equal)
        .checked_div(whole)
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use base::ids::{MessageId, RunId};
    use base::prompt_role::PromptRole;

    use llm::tokens;

    use super::{PromptPrefix, equal_tokens};
    use crate::prompt::blocks::{BlockKind, PromptBlock, RecordedText};
    use crate::prompt::record::recorded_block::{RecordedBlock, to_recorded_block};
    use crate::prompt::record::recorded_piece::RecordedPiece;
    use crate::prompt::record::sent_prompt::SentPrompt;

    fn text(kind: BlockKind, text: &str) -> RecordedBlock {
        let block = PromptBlock {
            tokens: 10,
            ..PromptBlock::new(kind, "label", PromptRole::System, text.to_owned())
        };
        to_recorded_block(&block, "")
    }

    fn message(id: i64) -> RecordedBlock {
        RecordedBlock {
            source: Some(RecordedText {
                message: MessageId(id),
                swipe: 0,
            }),
            ..text(BlockKind::History, "")
        }
    }

    fn prompt(blocks: &[RecordedBlock]) -> SentPrompt {
        SentPrompt {
            pieces: blocks.iter().cloned().map(RecordedPiece::Block).collect(),
            ..SentPrompt::default()
        }
    }

    #[test]
    fn equal_blocks_are_counted_up_to_the_first_difference() {
        let main = text(BlockKind::Main, "You are Ada.");
        let before = prompt(&[
            main.clone(),
            message(1),
            message(2),
            text(BlockKind::GroupNudge, "Write."),
        ]);
        let longer = prompt(&[
            main.clone(),
            message(1),
            message(2),
            message(3),
            text(BlockKind::GroupNudge, "Write."),
        ]);
        let moved = prompt(&[main.clone(), message(2), message(3)]);

        assert_eq!(equal_tokens(&longer, &before), 3 * 14);
        assert_eq!(equal_tokens(&moved, &before), 14);
        assert_eq!(equal_tokens(&before, &before), 4 * 14);
        assert_eq!(equal_tokens(&prompt(&[]), &before), 0);
    }

    #[test]
    fn the_equal_beginning_of_a_text_is_counted_and_its_label_is_not_compared() {
        let one = text(BlockKind::Main, "You are Ada. It is Monday.");
        let other = text(BlockKind::Main, "You are Ada. It is Friday.");
        let renamed = RecordedBlock {
            label: "Other".to_owned(),
            ..one.clone()
        };
        let of_user = RecordedBlock {
            role: PromptRole::User,
            ..other.clone()
        };

        let count =
            |it: RecordedBlock| equal_tokens(&prompt(std::slice::from_ref(&one)), &prompt(&[it]));

        assert_eq!(count(renamed), 14);
        let equal = tokens::count("You are Ada. It is ");
        let whole = tokens::count("You are Ada. It is Monday.");
        assert_eq!(count(other), 10 * equal / whole);
        assert_eq!(count(of_user), 0);
    }

    #[test]
    fn dropped_blocks_are_not_compared() {
        let dropped = RecordedBlock {
            dropped: true,
            ..text(BlockKind::Example, "An example.")
        };

        let (with, without) = (prompt(&[dropped, message(1)]), prompt(&[message(1)]));

        assert_eq!(equal_tokens(&with, &without), 14);
    }

    #[test]
    fn no_more_tokens_are_equal_than_the_prompt_has() {
        let completion = SentPrompt {
            total_tokens: 20,
            ..prompt(&[message(1), message(2)])
        };

        let prefix = PromptPrefix::new(&completion, &completion, RunId::new());

        assert_eq!((prefix.equal_tokens, prefix.total_tokens), (20, 20));
    }
}
