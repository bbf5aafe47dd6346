//! Defines the parts of a stored prompt: a block, or in short form a message of the history. What several
//! messages have in common is stored once, as a style.

use base::ids::MessageId;
use serde::{Deserialize, Serialize};

use crate::prompt::blocks::RecordedText;
use crate::prompt::record::recorded_block::RecordedBlock;

/// The maximum number of styles; messages with another style are stored as whole blocks.
const MAX_STYLES: usize = 64;

/// A part of the prompt, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RecordedPiece {
    Block(RecordedBlock),
    Message(RecordedMessage),
}

/// A block with the text of a message. It is stored as an array, because a prompt may have hundreds:
/// the index of its style, its tokens, the message and the swipe.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedMessage(usize, i64, MessageId, i64);

impl RecordedPiece {
    pub(super) fn source(&self) -> Option<RecordedText> {
        match *self {
            Self::Block(RecordedBlock { source, .. }) => source,
            Self::Message(RecordedMessage(_, _, message, swipe)) => {
                Some(RecordedText { message, swipe })
            }
        }
    }

    pub(super) fn style(&self) -> Option<usize> {
        match *self {
            Self::Block(_) => None,
            Self::Message(RecordedMessage(style, ..)) => Some(style),
        }
    }

    pub(super) fn language<'a>(&'a self, styles: &'a [RecordedBlock]) -> Option<&'a str> {
        let block = match self {
            Self::Block(block) => block,
            Self::Message(RecordedMessage(style, ..)) => styles.get(*style)?,
        };
        block.translated_to.as_deref()
    }

    pub(super) fn quoted(&self) -> Option<RecordedText> {
        match self {
            Self::Block(block) => block.quote.as_ref().map(|it| it.source),
            Self::Message(_) => None,
        }
    }

    pub(super) fn message_mut(&mut self) -> Option<&mut MessageId> {
        match self {
            Self::Block(block) => block.source.as_mut().map(|it| &mut it.message),
            Self::Message(RecordedMessage(_, _, message, _)) => Some(message),
        }
    }

    /// Returns the whole block; `None` if its style is missing, which only an edited file causes.
    pub(super) fn into_block(self, styles: &[RecordedBlock]) -> Option<RecordedBlock> {
        let source = self.source();
        match self {
            Self::Block(block) => Some(block),
            Self::Message(RecordedMessage(style, tokens, ..)) => Some(RecordedBlock {
                tokens,
                source,
                ..styles.get(style)?.clone()
            }),
        }
    }
}

/// Returns the short form of a block with a message; adds its style to `styles` if it is new.
pub(super) fn to_piece(block: RecordedBlock, styles: &mut Vec<RecordedBlock>) -> RecordedPiece {
    // A block with a quotation or a picture has no style in common with others.
    let source = match block.source {
        Some(source) if block.quote.is_none() && block.pictures.is_empty() => source,
        _ => return RecordedPiece::Block(block),
    };
    let tokens = block.tokens;
    let style = RecordedBlock {
        tokens: 0,
        source: None,
        ..block
    };
    let index = match styles.iter().position(|it| *it == style) {
        Some(known) => known,
        None if styles.len() == MAX_STYLES => {
            return RecordedPiece::Block(RecordedBlock {
                tokens,
                source: Some(source),
                ..style
            });
        }
        None => {
            styles.push(style);
            styles.len() - 1
        }
    };
    RecordedPiece::Message(RecordedMessage(index, tokens, source.message, source.swipe))
}
