//! Recalls the memories for a prompt: searches for the message that it replies to, and for the newest
//! messages together.

use std::collections::BTreeMap;

use base::clock::Timestamp;
use sea_orm::DbErr;

use crate::conversations::{branching, conversation};
use crate::db::connect::Db;
use crate::memories::index_cache::MemoryIndexes;
use crate::memories::memory_settings::MemberSwitches;
use crate::memories::prompt_search::{RecallQuery, RecallRequest};
use crate::memories::{memory, prompt_search};
use crate::prompt::context::{PromptContext, RecalledMemories};
use crate::prompt::memory_block::{MemoryLine, RecordedRecall};
use crate::spaces::posts::heard_messages;
use crate::spaces::{membership, space};

/// The number of messages before the newest one that are searched for together with it.
const RECENT_MESSAGES: usize = 3;
/// The maximum length of a text to search for, in characters.
const MAX_QUERY_CHARS: usize = 2_000;

/// Returns the memories for a prompt whose history is loaded; `conversation` is `None` if the history
/// is that of a request, else the conversation and the newest `seq` of the prompt. Executes no statement if nothing was ever remembered in the space, or if the
/// speaker, one of `members`, recalls nothing.
///
/// A failure costs the memories, not the prompt.
pub(super) async fn load(
    db: &Db,
    indexes: &MemoryIndexes,
    context: &PromptContext,
    (space, members): (&space::Model, &[membership::Model]),
    conversation: Option<(&conversation::Model, i64)>,
) -> RecalledMemories {
    let recalls = MemberSwitches::of(members, context.speaker).recall;
    if !recalls || space.memory_version == 0 || context.history.is_empty() {
        return RecalledMemories::default();
    }
    let heard_since = heard_messages::heard_since(members, context.speaker);
    let loaded = try_load(
        db,
        indexes,
        context,
        space.clone(),
        conversation,
        heard_since,
    )
    .await;
    loaded.unwrap_or_else(|error| {
        tracing::debug!(%error, "no memories were recalled: {error}");
        RecalledMemories::default()
    })
}

async fn try_load(
    db: &Db,
    indexes: &MemoryIndexes,
    context: &PromptContext,
    space: space::Model,
    conversation: Option<(&conversation::Model, i64)>,
    heard_since: Option<Timestamp>,
) -> Result<RecalledMemories, DbErr> {
    let lineage = match conversation {
        Some((row, cutoff_seq)) => {
            let mut lineage = branching::load_lineage(db.reader(), row).await?;
            // The prompt ends before several messages: nothing that was learned from them is in it.
            if cutoff_seq < row.last_seq - 1 {
                lineage.insert(row.id, cutoff_seq);
            }
            lineage
        }
        // No branch is an ancestor of a request.
        None => BTreeMap::new(),
    };
    let limits = context.limits();
    let space_id = space.id;
    let request = RecallRequest {
        space,
        // People who inspect a prompt must not see the memories of another person, so a text that is
        // written for a person recalls only those of everyone.
        member: (!context.is_impersonation()).then_some(context.speaker),
        lineage: Some(lineage),
        history: conversation
            .zip(history_start(context))
            .map(|((row, _), it)| (row.id, it)),
        chosen: None,
        queries: queries(context),
        rules: None,
        prompt_tokens: limits.context_tokens - limits.response_tokens,
    };
    let mut result = prompt_search::recall(db, indexes, request).await;
    if let Some(time) = heard_since {
        result
            .retain_heard(db.reader(), context.speaker, time)
            .await?;
    }
    let found: Vec<RecordedRecall> = result.found.iter().map(RecordedRecall::from).collect();
    let recalled = found.iter().filter(|it| it.rank.is_some());
    let ids: Vec<_> = recalled.map(|it| it.memory).collect();
    let rows = match ids.is_empty() {
        true => Vec::new(),
        // The rows, because a memory may have been deleted since the version of the index.
        false => memory::list_in_space(db.reader(), space_id, ids).await?,
    };
    Ok(RecalledMemories {
        lines: rows.iter().map(MemoryLine::from).collect(),
        found,
    })
}

/// Returns the `seq` of the first message that the prompt will contain: where the newest prompt with
/// this limit began. Messages before it are loaded, but the prompt will probably leave them out.
fn history_start(context: &PromptContext) -> Option<i64> {
    let first = context.history.first()?.seq;
    let limits = context.limits();
    let limit_tokens = limits.context_tokens - limits.response_tokens;
    let mut stored = context.history_starts.iter().flatten();
    let newest = stored.find(|it| it.limit_tokens == limit_tokens);
    Some(newest.map_or(first, |it| it.seq.max(first)))
}

/// Returns the newest message, and the newest messages together with the names of their authors.
fn queries(context: &PromptContext) -> Vec<RecallQuery> {
    let first = context.history.len().saturating_sub(RECENT_MESSAGES + 1);
    let messages = &context.history[first..];
    let (names, texts): (Vec<&str>, Vec<&str>) = messages
        .iter()
        .map(|it| (it.name.as_str(), it.text.as_str()))
        .unzip();
    let labelled: Vec<String> = messages
        .iter()
        .map(|it| format!("{}: {}", it.name, it.text))
        .collect();
    let newest = texts.last().map(|it| newest_chars((*it).to_owned()).into());
    let recent = RecallQuery {
        text: newest_chars(texts.join("\n")),
        authors: names.join("\n"),
        embedded: newest_chars(labelled.join("\n")),
    };
    newest.into_iter().chain([recent]).collect()
}

/// Returns the end of a text that is too long for a query, because the newest message is at the end.
pub fn newest_chars(text: String) -> String {
    match text.char_indices().rev().nth(MAX_QUERY_CHARS - 1) {
        Some((at, _)) => text[at..].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_QUERY_CHARS, newest_chars};

    #[test]
    fn the_end_of_a_long_text_is_searched_for() {
        let long = "é".repeat(MAX_QUERY_CHARS) + "!";

        let cut = newest_chars(long);

        assert_eq!(cut.chars().count(), MAX_QUERY_CHARS);
        assert!(cut.ends_with("é!"));
        assert_eq!(newest_chars("short".to_owned()), "short");
    }
}
