//! Sentences about people that the users post, the memories that the model makes from them, and what
//! is stored of both in the end.

use serde_json::{Value, json};

use crate::record::{Post, StoredFact};
use crate::support::database_facts::DatabaseFacts;
use crate::support::fake_provider::script::ResponseScript;
use crate::text_keys;

/// One of this many posts of a user is a sentence about a person.
pub const EVERY: usize = 4;
/// The maximum number of memories in one answer.
const MAX_MEMORIES: usize = 10;
/// The beginning of the instructions of a request to extract memories.
const EXTRACTION: &str = "You maintain the long-term memory of a chat.";
/// The beginnings of the instructions of requests for summaries.
const SUMMARIES: [&str; 2] = ["You summarize a part of", "You maintain the summary of"];
/// The text after the key in a sentence and in each memory of it, so that no key is the beginning
/// of another one.
const MARK: &str = " keeps a boat";
/// The text after `MARK` in a memory that the model made.
const EXTRACTED: &str = ", says answer ";

/// The messages with a key. Messages of branches are clones without a key of their own.
const MESSAGES: &str = "SELECT client_id, content, visibility FROM messages \
    WHERE client_id IS NOT NULL AND origin_message_id IS NULL";
const MEMORIES: &str = "SELECT content FROM memories WHERE deleted_at IS NULL";
const UNFINISHED: &str =
    "SELECT CAST(count(*) AS TEXT) FROM memory_tasks WHERE kind IN ('extract', 'summarize')";

/// Returns a sentence that becomes a memory also without a model.
pub fn sentence(key: &str) -> String {
    format!("The member {key}{MARK} in our old harbor and loves it.")
}

/// Returns the key of a sentence or of a memory that was made from it.
fn key_in(text: &str) -> Option<&str> {
    let (before, _) = text.split_once(MARK)?;
    before.rsplit(' ').next()
}

/// Returns the answer to a request to extract memories: one memory for each sentence; `None` for another
/// request. Each answer has a number, so that a message that is learned from twice has two memories.
pub fn extraction(request: &Value, n: usize) -> Option<ResponseScript> {
    let system = request["messages"][0]["content"].as_str()?;
    if !system.starts_with(EXTRACTION) {
        return None;
    }
    let text = request["messages"][1]["content"].as_str()?;
    let (_, messages) = text.split_once("<messages>")?;
    let lines = messages
        .lines()
        .filter_map(|it| serde_json::from_str::<Value>(it).ok());
    let made = lines.filter_map(|it| {
        let key = key_in(it["text"].as_str()?)?;
        Some(json!({
            "kind": "preference", "content": format!("{key}{MARK}{EXTRACTED}{n}."), "importance": 0.5,
            "about": null, "owner": null, "replaces": null, "sources": [it["n"]],
        }))
    });
    let made: Vec<Value> = made.collect();
    // An answer that cannot contain all of them is not used: the messages become snippets.
    Some(match made.len() > MAX_MEMORIES {
        true => ResponseScript::say("There are too many."),
        false => ResponseScript::say(&json!({ "memories": made }).to_string()),
    })
}

/// Returns the answer to a request for a summary; `None` for another request. The summary repeats the
/// whispers in the request, so that a prompt with a summary shows from which messages it was made.
pub fn summary(request: &Value, n: usize) -> Option<ResponseScript> {
    let system = request["messages"][0]["content"].as_str()?;
    if !SUMMARIES.iter().any(|it| system.starts_with(it)) {
        return None;
    }
    let whispers = text_keys::whispers_in(request["messages"][1]["content"].as_str()?);
    let whispers = whispers.iter().map(|it| text_keys::whisper(it, "."));
    let text = format!(
        "They talked, says summary {n}. {}",
        whispers.collect::<Vec<_>>().join(" ")
    );
    Some(ResponseScript::say(&json!({ "summary": text }).to_string()))
}

/// Makes the waiting tasks due and queues the failed ones again, as "Learn now" does. Returns how many tasks
/// are left.
pub async fn hasten(facts: &mut DatabaseFacts) -> i64 {
    let sql = "UPDATE memory_tasks SET status = 'queued', run_after = 0, \
        attempt = CASE WHEN status = 'failed' THEN 0 ELSE attempt END \
        WHERE status = 'failed' OR (status = 'queued' AND run_after > 0)";
    facts.execute(sql).await;
    facts.number(UNFINISHED).await
}

/// Returns the sentences that were posted and stored, or acknowledged, with the number of their memories.
pub async fn read(facts: &mut DatabaseFacts, posts: &[Post]) -> Vec<StoredFact> {
    let messages = facts.rows(MESSAGES).await;
    let memories = facts.rows(MEMORIES).await;
    let memories: Vec<(&str, bool)> = memories
        .iter()
        .map(|it| column(it, 0))
        .filter_map(|it| Some((key_in(it)?, it.contains(EXTRACTED))))
        .collect();
    let sentences = posts.iter().filter(|it| it.content == sentence(&it.key));
    let found = sentences.filter_map(|post| {
        let row = messages.iter().find(|it| column(it, 0) == post.key);
        let is_acknowledged = post.acknowledged().is_some();
        if row.is_none() && !is_acknowledged {
            return None;
        }
        let made = memories.iter().filter(|it| it.0 == post.key);
        Some(StoredFact {
            key: post.key.clone(),
            is_acknowledged,
            is_shown: row
                .is_none_or(|it| column(it, 1) == post.content && column(it, 2) == "normal"),
            n_memories: made.clone().count(),
            n_extracted: made.filter(|it| it.1).count(),
        })
    });
    found.collect()
}

fn column(row: &[Option<String>], at: usize) -> &str {
    row[at].as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{key_in, sentence, summary};

    #[test]
    fn a_key_is_found_in_the_sentence_the_snippet_and_the_memory() {
        let snippet = format!("Bace: {}", sentence("c1-12"));

        assert_eq!(key_in(&sentence("c1-12")), Some("c1-12"));
        assert_eq!(key_in(&snippet), Some("c1-12"));
        assert_eq!(key_in("c1-12 keeps a boat, says answer 7."), Some("c1-12"));
        assert_eq!(key_in("c1-12 says something of its own"), None);
    }

    #[test]
    fn only_a_request_for_a_summary_gets_one() {
        let request = |system: &str| json!({"messages": [{"role": "system", "content": system}, {"role": "user", "content": "{}"}]});

        assert!(summary(&request("You summarize a part of a talk."), 1).is_some());
        assert!(summary(&request("You maintain the summary of a talk."), 1).is_some());
        assert!(summary(&request("You are Ada."), 1).is_none());
    }
}
