//! Keeps the newest messages of conversations for their next prompts.
//!
//! **Invariant:** an entry is used only for a conversation whose row has the `rev` of the entry, and
//! contains each change of its messages up to this `rev`. A step that appends messages moves the
//! entry from the `rev` before the step to the one after it; a step that changes an existing message
//! removes it. Each change of a message increments `rev` in the same transaction, on whichever node
//! it is made. A message that is edited after the claim may be in the prompt with its new text, as
//! without the cache.
//!
//! An entry contains the whispers of all audiences. Each prompt gets those that its speaker heard, and as
//! many messages as can fit of these.

use std::sync::Arc;

use base::ids::ConversationId;
use moka::sync::Cache;
use sea_orm::{ConnectionTrait, DbErr};

use crate::conversations::message::Visibility;
use crate::conversations::{conversation, message};
use crate::memory_limited_cache::memory_limited_cache;
use crate::prompt::budget::{ContextLimits, MESSAGE_OVERHEAD};
use crate::prompt::history::history_window::MAX_MESSAGES;
use crate::prompt::loading::history_filter::HistoryFilter;
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
    /// Returns the newest messages up to `cutoff_seq` that can fit, and one more, ascending, of those that
    /// the filter accepts. Reads them from the database if they are not known.
    pub async fn load(
        &self,
        db: &impl ConnectionTrait,
        row: &conversation::Model,
        cutoff_seq: i64,
        limits: ContextLimits,
        filter: &HistoryFilter,
    ) -> Result<Vec<Arc<HistoryMessage>>, DbErr> {
        let part = HistoryPart {
            cutoff_seq,
            available_tokens: limits.context_tokens - limits.response_tokens,
            filter: *filter,
        };
        if let Some(known) = self.find(row, &part) {
            #[cfg(feature = "failpoints")]
            assert_current(db, row, &known, &part).await?;
            return Ok(known);
        }
        let mut found: Vec<_> = part.load(db, row.id).await?;
        // Without the messages before a character joined, the others would be incomplete.
        if cutoff_seq >= row.last_seq && filter.heard_since.is_none() {
            self.store(row, &part, found.clone());
        }
        found.retain(|it| it.is_accepted_by(filter));
        Ok(found)
    }

    /// Returns `None` if the messages are not known.
    fn find(
        &self,
        row: &conversation::Model,
        part: &HistoryPart,
    ) -> Option<Vec<Arc<HistoryMessage>>> {
        let entry = self.entries.get(&row.id)?;
        match entry.rev == row.rev {
            true => entry.fitting(part),
            false => None,
        }
    }

    /// Keeps the messages that were loaded for a prompt that may contain all messages of `row`.
    fn store(
        &self,
        row: &conversation::Model,
        part: &HistoryPart,
        messages: Vec<Arc<HistoryMessage>>,
    ) {
        let accepted = messages.iter().filter(|it| it.is_accepted_by(&part.filter));
        let tokens: Vec<i64> = accepted.map(|it| n_tokens(it)).collect();
        let entry = CachedHistory {
            rev: row.rev,
            last_seq: row.last_seq,
            is_whole: !part.is_exceeded_by(tokens.iter().sum(), tokens.len()),
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
    fn fitting(&self, part: &HistoryPart) -> Option<Vec<Arc<HistoryMessage>>> {
        let mut total = 0;
        let end = self
            .messages
            .partition_point(|it| it.seq <= part.cutoff_seq);
        let newest_first = self.messages[..end].iter().rev();
        let mut found = Vec::new();
        for it in newest_first.filter(|it| it.is_accepted_by(&part.filter)) {
            found.push(it.clone());
            total += n_tokens(it);
            if part.is_exceeded_by(total, found.len()) {
                break;
            }
        }
        let is_exceeded = part.is_exceeded_by(total, found.len());
        let is_complete = is_exceeded || self.is_whole || self.is_unheard(part);
        found.reverse();
        is_complete.then_some(found)
    }

    /// Returns whether the speaker heard nothing before these messages.
    fn is_unheard(&self, part: &HistoryPart) -> bool {
        let first = self.messages.first();
        first.is_some_and(|it| !part.filter.heard(it.created_at))
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
            let is_sendable =
                it.visibility == Visibility::Normal && !it.is_ooc && !it.is_for_people;
            if is_sendable && !is_known {
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

/// The part of a conversation that a prompt may contain.
struct HistoryPart {
    cutoff_seq: i64,
    available_tokens: i64,
    filter: HistoryFilter,
}

impl HistoryPart {
    /// Returns whether these are more messages than can fit.
    fn is_exceeded_by(&self, n_tokens: i64, n_messages: usize) -> bool {
        n_tokens > self.available_tokens || n_messages > MAX_MESSAGES
    }

    /// Reads its messages, and whispers that others heard, from the database.
    async fn load(
        &self,
        db: &impl ConnectionTrait,
        id: ConversationId,
    ) -> Result<Vec<Arc<HistoryMessage>>, DbErr> {
        let (cutoff_seq, available_tokens) = (self.cutoff_seq, self.available_tokens);
        let found =
            history_query::load_history(db, id, cutoff_seq, available_tokens, &self.filter).await?;
        Ok(found.into_iter().map(Arc::new).collect())
    }
}

/// Compares what the cache returned with the database, unless the conversation has changed since.
#[cfg(feature = "failpoints")]
async fn assert_current(
    db: &impl ConnectionTrait,
    row: &conversation::Model,
    known: &[Arc<HistoryMessage>],
    part: &HistoryPart,
) -> Result<(), DbErr> {
    let mut current = part.load(db, row.id).await?;
    current.retain(|it| it.is_accepted_by(&part.filter));
    let now = conversation::find_visible(db, row.id).await?;
    if now.is_some_and(|it| it.rev == row.rev) {
        assert_eq!(known, current, "the history is not current");
    }
    Ok(())
}

fn n_tokens(message: &HistoryMessage) -> i64 {
    message.token_count + MESSAGE_OVERHEAD
}

#[cfg(test)]
#[path = "history_cache_tests.rs"]
mod tests;
