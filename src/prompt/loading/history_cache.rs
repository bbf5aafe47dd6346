//! Keeps the newest messages of conversations for their next prompts.
//!
//! **Invariant:** an entry is used only for a conversation whose row has the `rev` of the entry, and
//! contains each change of its messages up to this `rev`. A step that appends messages moves the
//! entry from the `rev` before the step to the one after it; a step that changes an existing message
//! removes it. Each change of a message increments `rev` in the same transaction, on whichever node
//! it is made. A message that is edited after the claim may be in the prompt with its new text, as
//! without the cache.

use std::sync::Arc;

use base::ids::ConversationId;
use moka::sync::Cache;
use sea_orm::{ConnectionTrait, DbErr};

use crate::conversations::message::Visibility;
use crate::conversations::{conversation, message};
use crate::memory_limited_cache::memory_limited_cache;
use crate::prompt::budget::MESSAGE_OVERHEAD;
use crate::prompt::context::ContextLimits;
use crate::prompt::loading::history_query;
use crate::prompt::loading::history_query::HistoryMessage;

/// The approximate memory of all entries.
const MAX_BYTES: u64 = 32 * 1024 * 1024;
/// The approximate memory of a message without its text.
const MESSAGE_BYTES: usize = 200;
/// An entry is removed when it has more than twice the messages that were loaded, and this many
/// more. The next prompt loads it again, without those that no longer fit.
const MAX_NEW_MESSAGES: usize = 20;

/// The cache. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct HistoryCache {
    entries: Cache<ConversationId, Arc<CachedHistory>>,
}

/// The newest messages of a conversation that a prompt may contain.
#[derive(Debug)]
struct CachedHistory {
    rev: i64,
    last_seq: i64,
    /// Ascending.
    messages: Vec<Arc<HistoryMessage>>,
    /// Whether these are all messages, so that no older one can fit.
    is_whole: bool,
    max_messages: usize,
}

impl Default for HistoryCache {
    /// Creates an empty cache.
    fn default() -> Self {
        let n_bytes = |_: &ConversationId, entry: &Arc<CachedHistory>| {
            let texts = entry.messages.iter().map(|it| it.content.len());
            texts.map(|it| MESSAGE_BYTES + it).sum()
        };
        Self {
            entries: memory_limited_cache(MAX_BYTES, n_bytes),
        }
    }
}

impl HistoryCache {
    /// Returns the newest messages up to `cutoff_seq` that can fit, and one more, ascending. Reads them
    /// from the database if they are not known.
    pub async fn load(
        &self,
        db: &impl ConnectionTrait,
        row: &conversation::Model,
        cutoff_seq: i64,
        limits: ContextLimits,
    ) -> Result<Vec<Arc<HistoryMessage>>, DbErr> {
        let available_tokens = limits.context_tokens - limits.response_tokens;
        if let Some(known) = self.find(row, cutoff_seq, available_tokens) {
            #[cfg(feature = "failpoints")]
            assert_current(db, row, &known, (cutoff_seq, available_tokens)).await?;
            return Ok(known);
        }
        let found = history_query::load_history(db, row.id, cutoff_seq, available_tokens).await?;
        let found: Vec<_> = found.into_iter().map(Arc::new).collect();
        if cutoff_seq >= row.last_seq {
            self.store(row, available_tokens, found.clone());
        }
        Ok(found)
    }

    /// Returns `None` if the messages are not known.
    fn find(
        &self,
        row: &conversation::Model,
        cutoff_seq: i64,
        available_tokens: i64,
    ) -> Option<Vec<Arc<HistoryMessage>>> {
        let entry = self.entries.get(&row.id)?;
        match entry.rev == row.rev {
            true => entry.fitting(cutoff_seq, available_tokens),
            false => None,
        }
    }

    /// Keeps the messages that were loaded for a prompt that may contain all messages of `row`.
    fn store(
        &self,
        row: &conversation::Model,
        available_tokens: i64,
        messages: Vec<Arc<HistoryMessage>>,
    ) {
        let total: i64 = messages.iter().map(|it| n_tokens(it)).sum();
        let entry = CachedHistory {
            rev: row.rev,
            last_seq: row.last_seq,
            is_whole: total <= available_tokens,
            max_messages: 2 * messages.len() + MAX_NEW_MESSAGES,
            messages,
        };
        self.entries.insert(row.id, Arc::new(entry));
    }

    /// Applies a committed step: `row` is the conversation after it, `rev_before` its `rev` before,
    /// and `written` are the appended and changed messages.
    pub fn apply_step<'a>(
        &self,
        row: &conversation::Model,
        rev_before: i64,
        written: impl Iterator<Item = &'a message::Model>,
    ) {
        let Some(entry) = self.entries.get(&row.id) else {
            return;
        };
        if entry.rev == row.rev {
            return;
        }
        let next = (entry.rev == rev_before).then(|| entry.after_step(row, written));
        match next.flatten() {
            Some(next) => self.entries.insert(row.id, Arc::new(next)),
            None => self.entries.invalidate(&row.id),
        }
    }
}

impl CachedHistory {
    fn fitting(&self, cutoff_seq: i64, available_tokens: i64) -> Option<Vec<Arc<HistoryMessage>>> {
        let mut total = 0;
        let end = self.messages.partition_point(|it| it.seq <= cutoff_seq);
        let first_too_long = self.messages[..end].iter().rposition(|it| {
            total += n_tokens(it);
            total > available_tokens
        });
        match first_too_long {
            Some(first) => Some(self.messages[first..end].to_vec()),
            None if self.is_whole => Some(self.messages[..end].to_vec()),
            None => None,
        }
    }

    /// Returns `None` if an existing message was changed, or there are too many new ones.
    fn after_step<'a>(
        &self,
        row: &conversation::Model,
        written: impl Iterator<Item = &'a message::Model>,
    ) -> Option<Self> {
        let mut messages = self.messages.clone();
        for it in written {
            if it.seq <= self.last_seq {
                return None;
            }
            // If the messages were loaded after this commit, they contain it already.
            let is_known = messages.last().is_some_and(|last| last.seq >= it.seq);
            if it.visibility == Visibility::Normal && !it.is_ooc && !is_known {
                messages.push(Arc::new(HistoryMessage::from(it)));
            }
        }
        (messages.len() <= self.max_messages).then_some(Self {
            rev: row.rev,
            last_seq: row.last_seq,
            messages,
            is_whole: self.is_whole,
            max_messages: self.max_messages,
        })
    }
}

/// Compares what the cache returned with the database, unless the conversation has changed since.
#[cfg(feature = "failpoints")]
async fn assert_current(
    db: &impl ConnectionTrait,
    row: &conversation::Model,
    known: &[Arc<HistoryMessage>],
    (cutoff_seq, available_tokens): (i64, i64),
) -> Result<(), DbErr> {
    let current = history_query::load_history(db, row.id, cutoff_seq, available_tokens).await?;
    let now = conversation::find_visible(db, row.id).await?;
    if now.is_some_and(|it| it.rev == row.rev) {
        let known: Vec<HistoryMessage> = known.iter().map(|it| (**it).clone()).collect();
        assert_eq!(known, current, "the history is not current");
    }
    Ok(())
}

fn n_tokens(message: &HistoryMessage) -> i64 {
    message.token_count + MESSAGE_OVERHEAD
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base::clock::Timestamp;
    use base::ids::{MembershipId, MessageId};

    use super::{CachedHistory, MESSAGE_OVERHEAD};
    use crate::conversations::message::MessageRole;
    use crate::prompt::loading::history_query::HistoryMessage;

    /// Creates an entry with the messages 11 to 15 of 10 tokens each.
    fn entry(is_whole: bool) -> CachedHistory {
        let message = |seq| HistoryMessage {
            id: MessageId(seq),
            seq,
            space_membership_id: MembershipId(1),
            persona_id: None,
            persona_name: None,
            role: MessageRole::User,
            content: "Hi.".to_owned(),
            active_swipe: 0,
            reply_to_message_id: None,
            has_attachments: false,
            created_at: Timestamp(0),
            token_count: 10 - MESSAGE_OVERHEAD,
        };
        CachedHistory {
            rev: 1,
            last_seq: 15,
            messages: (11..=15).map(|seq| Arc::new(message(seq))).collect(),
            is_whole,
            max_messages: 100,
        }
    }

    fn seqs(entry: &CachedHistory, cutoff_seq: i64, available_tokens: i64) -> Option<Vec<i64>> {
        let found = entry.fitting(cutoff_seq, available_tokens)?;
        Some(found.iter().map(|it| it.seq).collect())
    }

    #[test]
    fn the_newest_messages_that_fit_and_one_more_are_found() {
        let entry = entry(false);
        assert_eq!(seqs(&entry, 99, 30), Some(vec![12, 13, 14, 15]));
        assert_eq!(seqs(&entry, 99, 39), Some(vec![12, 13, 14, 15]));
        assert_eq!(seqs(&entry, 99, 0), Some(vec![15]));
        assert_eq!(seqs(&entry, 13, 20), Some(vec![11, 12, 13]));
    }

    #[test]
    fn nothing_is_found_if_an_older_message_could_fit() {
        assert_eq!(seqs(&entry(false), 99, 50), None);
        assert_eq!(seqs(&entry(false), 12, 30), None);
    }

    #[test]
    fn a_whole_conversation_fits_any_window() {
        let all = Some(vec![11, 12, 13, 14, 15]);
        assert_eq!(seqs(&entry(true), 99, 50), all);
        assert_eq!(seqs(&entry(true), 99, 1_000), all);
        assert_eq!(seqs(&entry(true), 10, 1_000), Some(vec![]));
    }
}
