//! Chooses the message at which the history of a prompt begins, so that the beginning of a prompt
//! does not change for many turns while a conversation grows. A model API with a prompt cache then
//! processes only its end.
//!
//! The share of the history is the limit of the prompt without the tokens of the other blocks. A
//! history that exceeds its share is cut until a quarter of the share is free, and the conversation stores
//! where it begins. Later prompts begin there, too, until the history exceeds its share again.
//!
//! If a summary covers the messages up to a suitable one, the history begins after it, so that each
//! message is in one of them. When the history uses 85 % of its share, a summary of the older messages
//! is requested, so that the next cut leaves half of the share.
//!
//! A history has at most 200 messages, too, whatever the model accepts: more are cut to 150.
//!
//! **Invariant:** a stored start is used only if the history from it on fits, and fills at least half
//! of the share, or an eighth if a summary ends before it, or has as many messages as a cut leaves. So a
//! prompt with a larger share (another speaker, a larger limit) does not lose messages that fit.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The maximum number of messages of a history.
pub const MAX_MESSAGES: usize = 200;
/// The number of messages that remain when more are cut.
const KEPT_MESSAGES: usize = 150;
/// A history that begins where a summary ends has at least this many messages, or fills a part of its
/// share.
const MIN_MESSAGES_AFTER_SUMMARY: usize = 25;
/// A conversation stores at most this many starts: different limits and speakers need different ones.
const MAX_STARTS: usize = 8;
/// A history that begins where a summary ends uses at least the share divided by this.
const MIN_SHARE_AFTER_SUMMARY: i64 = 8;
/// A history with fewer tokens is not summarized: a summary needs as much.
const MIN_SUMMARIZED_SHARE: i64 = 256;
/// Fewer messages are not summarized, so that long messages do not cause a summary with each reply.
const MIN_SUMMARIZED_MESSAGES: i64 = 6;

/// Where the history of prompts with this limit begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryStart {
    /// The maximum number of tokens of a prompt.
    pub limit_tokens: i64,
    /// The `seq` of its first message.
    pub seq: i64,
}

/// A message and its number of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageCost {
    pub seq: i64,
    pub tokens: i64,
}

/// Reads the starts that a conversation stores, the newest first; invalid values are ignored.
pub fn parse_starts(stored: &Value) -> Vec<HistoryStart> {
    Vec::deserialize(stored).unwrap_or_default()
}

/// Returns the starts to store after a prompt has chosen a new one.
pub fn with_start(stored: &Value, new: HistoryStart) -> Value {
    let others = parse_starts(stored).into_iter().filter(|it| *it != new);
    let starts: Vec<HistoryStart> = std::iter::once(new)
        .chain(others)
        .take(MAX_STARTS)
        .collect();
    serde_json::json!(starts)
}

/// Returns the `seq` of the first message of a history, or `None` if all of `messages` fit. `messages`
/// are ascending and without gaps up to the newest; `stored` are the starts for this limit, the newest
/// first; `summary_ends` are the last messages that versions of a summary cover, the newest first.
pub fn choose_start(
    messages: &[MessageCost],
    share: i64,
    stored: &[i64],
    summary_ends: &[i64],
) -> Option<i64> {
    let is_loaded = |seq: i64| messages.first().is_some_and(|it| it.seq <= seq);
    let is_usable = |seq: &&i64| {
        let (least_tokens, least_messages) = match summary_ends.contains(&(**seq - 1)) {
            true => (share / MIN_SHARE_AFTER_SUMMARY, MIN_MESSAGES_AFTER_SUMMARY),
            false => (share / 2, KEPT_MESSAGES),
        };
        let (tokens, count) = size_from(messages, **seq);
        let fits = tokens <= share && count <= MAX_MESSAGES;
        is_loaded(**seq) && fits && (tokens >= least_tokens || count >= least_messages)
    };
    if let Some(seq) = stored.iter().find(is_usable) {
        return Some(*seq);
    }
    let (tokens, count) = size_from(messages, i64::MIN);
    if tokens <= share && count <= MAX_MESSAGES {
        return None;
    }
    // The summary that leaves the most messages and frees a part of the share.
    let leaves_room = |seq: &i64| {
        let (tokens, count) = size_from(messages, *seq);
        let has_room = tokens <= share / 8 * 7 && count <= KEPT_MESSAGES;
        let is_enough =
            tokens >= share / MIN_SHARE_AFTER_SUMMARY || count >= MIN_MESSAGES_AFTER_SUMMARY;
        is_loaded(*seq) && has_room && is_enough
    };
    let after_summaries = summary_ends.iter().rev().map(|it| it + 1);
    after_summaries
        .into_iter()
        .find(leaves_room)
        .or_else(|| newest_that_fit(newest(messages, KEPT_MESSAGES), share / 4 * 3))
}

/// Returns the last message to summarize if the messages after `goal_seq`, whose summary was not
/// requested yet, nearly fill the share, or are nearly too many. The next cut then leaves half of them.
pub fn find_goal(messages: &[MessageCost], share: i64, goal_seq: i64) -> Option<i64> {
    let (tokens, count) = size_from(messages, goal_seq + 1);
    let is_nearly_full = tokens > share / 20 * 17 || count > MAX_MESSAGES / 20 * 17;
    if share < MIN_SUMMARIZED_SHARE || !is_nearly_full {
        return None;
    }
    let first_kept = newest_that_fit(newest(messages, MAX_MESSAGES / 2), share / 2)?;
    let goal = messages
        .iter()
        .map(|it| it.seq)
        .rfind(|it| *it < first_kept);
    goal.filter(|it| *it >= goal_seq + MIN_SUMMARIZED_MESSAGES)
}

/// Returns the tokens and the number of the messages from `seq` on.
fn size_from(messages: &[MessageCost], seq: i64) -> (i64, usize) {
    let kept = messages.iter().filter(|it| it.seq >= seq);
    kept.fold((0, 0), |(tokens, count), it| {
        (tokens + it.tokens, count + 1)
    })
}

fn newest(messages: &[MessageCost], max_messages: usize) -> &[MessageCost] {
    &messages[messages.len().saturating_sub(max_messages)..]
}

/// Returns the first of the newest messages that together have at most this many tokens; the newest
/// message if even that one exceeds the limit.
fn newest_that_fit(messages: &[MessageCost], max_tokens: i64) -> Option<i64> {
    let mut total = 0;
    let fitting = messages.iter().rev().take_while(|it| {
        total += it.tokens;
        total <= max_tokens
    });
    let newest = messages.last();
    fitting.last().or(newest).map(|it| it.seq)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        HistoryStart, MAX_STARTS, MessageCost, choose_start, find_goal, parse_starts, with_start,
    };

    /// The messages from 1 to `last`, of ten tokens each.
    fn messages(last: i64) -> Vec<MessageCost> {
        let message = |seq| MessageCost { seq, tokens: 10 };
        (1..=last).map(message).collect()
    }

    #[test]
    fn a_history_that_fits_is_whole() {
        assert_eq!(choose_start(&messages(10), 100, &[], &[]), None);
        assert_eq!(choose_start(&[], 100, &[], &[]), None);
    }

    #[test]
    fn a_history_that_does_not_fit_is_cut_to_three_quarters_of_its_share() {
        assert_eq!(choose_start(&messages(41), 400, &[], &[]), Some(12));
    }

    #[test]
    fn a_stored_start_is_kept_until_the_history_does_not_fit() {
        assert_eq!(choose_start(&messages(51), 400, &[12], &[]), Some(12));
        assert_eq!(choose_start(&messages(52), 400, &[12], &[]), Some(23));
    }

    #[test]
    fn a_stored_start_that_leaves_half_of_the_share_empty_is_discarded() {
        assert_eq!(choose_start(&messages(41), 400, &[22], &[]), Some(22));
        assert_eq!(choose_start(&messages(41), 400, &[23], &[]), Some(12));
    }

    #[test]
    fn the_newest_usable_start_is_kept() {
        assert_eq!(
            choose_start(&messages(41), 400, &[39, 20, 12], &[]),
            Some(20)
        );
    }

    #[test]
    fn the_newest_message_is_kept_even_if_it_does_not_fit() {
        assert_eq!(choose_start(&messages(5), 7, &[], &[]), Some(5));
        assert_eq!(choose_start(&messages(5), -10, &[], &[]), Some(5));
    }

    #[test]
    fn a_history_that_is_cut_begins_where_a_summary_ends() {
        let start = |ends: &[i64]| choose_start(&messages(41), 400, &[], ends);

        assert_eq!(start(&[20]), Some(21));
        assert_eq!(start(&[30, 20, 2]), Some(21), "2 would leave no room");
        assert_eq!(start(&[39]), Some(12), "39 would leave nearly nothing");
        assert_eq!(choose_start(&messages(41), 400, &[36], &[35]), Some(36));
        assert_eq!(choose_start(&messages(41), 400, &[36], &[]), Some(12));
    }

    #[test]
    fn a_summary_is_requested_once_when_the_share_is_nearly_full() {
        assert_eq!(find_goal(&messages(34), 400, 0), None);
        assert_eq!(find_goal(&messages(35), 400, 0), Some(15));
        assert_eq!(find_goal(&messages(40), 400, 15), None);
        assert_eq!(find_goal(&messages(50), 400, 15), Some(30));
        assert_eq!(
            find_goal(&messages(1), 4, 0),
            None,
            "the newest message stays"
        );
    }

    #[test]
    fn a_history_of_too_many_messages_is_cut_and_keeps_its_start_for_fifty_more() {
        let start = |last, stored: &[i64]| choose_start(&messages(last), 1_000_000, stored, &[]);

        assert_eq!(start(200, &[]), None);
        assert_eq!(start(201, &[]), Some(52), "150 remain");
        for last in 202..=251 {
            assert_eq!(start(last, &[52]), Some(52), "{last}");
        }
        assert_eq!(start(252, &[52]), Some(103));
    }

    #[test]
    fn too_many_messages_are_summarized_before_they_are_cut() {
        assert_eq!(find_goal(&messages(170), 1_000_000, 0), None);
        assert_eq!(find_goal(&messages(171), 1_000_000, 0), Some(71));
        assert_eq!(find_goal(&messages(200), 1_000_000, 71), None);
        let start = |last, stored: &[i64]| choose_start(&messages(last), 1_000_000, stored, &[71]);
        assert_eq!(start(201, &[]), Some(72));
        assert_eq!(start(271, &[72]), Some(72));
    }

    #[test]
    fn the_newest_starts_are_stored_once_each() {
        let start = |seq| HistoryStart {
            limit_tokens: 100,
            seq,
        };
        let mut stored = json!({});
        for seq in (1..=10).chain([5]) {
            stored = with_start(&stored, start(seq));
        }

        let starts = parse_starts(&stored);
        assert_eq!(starts.len(), MAX_STARTS);
        assert_eq!(starts[..2], [start(5), start(10)]);
        assert_eq!(starts.iter().filter(|it| it.seq == 5).count(), 1);
    }
}
