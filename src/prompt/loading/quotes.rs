//! Adds to the history of a prompt the lines that quote the messages which its messages answer.

use std::sync::Arc;

use base::ids::MessageId;
use sea_orm::{ConnectionTrait, DbErr};

use crate::conversations::annotations::{quote, quoted_message};
use crate::conversations::message::MessageRole;
use crate::prompt::blocks::{RecordedQuote, RecordedText};
use crate::prompt::context::{HistoryLine, HistoryQuote};
use crate::prompt::loading::history_filter::HistoryFilter;
use crate::prompt::loading::history_query::HistoryMessage;

/// Adds the quotations of people's messages to `lines`, which are the lines of `history`. A message that is
/// hidden, excluded from prompts, out of character, or a whisper that the speaker did not hear is not quoted.
///
/// # Errors
/// Returns the database error if the query fails.
pub async fn add(
    db: &impl ConnectionTrait,
    history: &[Arc<HistoryMessage>],
    lines: &mut [HistoryLine],
    filter: &HistoryFilter,
) -> Result<(), DbErr> {
    let targets = history.iter().filter_map(|it| quoted_id(it));
    let targets: Vec<MessageId> = targets.collect();
    let quoted = quoted_message::load(db, targets).await?;
    for (message, line) in history.iter().zip(lines) {
        let target = quoted_id(message).and_then(|it| quoted.get(&it));
        let shown = target.filter(|it| filter.accepts_quoted(it));
        line.quote = shown.map(|it| HistoryQuote {
            line: quote::prompt_line(&it.author_name, &it.beginning),
            recorded: RecordedQuote {
                source: RecordedText {
                    message: it.id,
                    swipe: it.active_swipe,
                },
                name: it.author_name.clone(),
            },
            audience: it.audience.clone(),
        });
    }
    Ok(())
}

/// Returns the message that a person has quoted. What a character's reply answers is known from the order
/// of the messages.
fn quoted_id(message: &HistoryMessage) -> Option<MessageId> {
    message
        .reply_to_message_id
        .filter(|_| message.role == MessageRole::User)
}
