//! Finds the vectorized entries of a prompt's lorebooks whose contents are similar to the scanned
//! messages, by the embedding model of the space.
//!
//! Without a model, or if it fails, the prompt is built without these matches; the keys of the entries are
//! scanned anyway.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tavern::lorebook::compiled_entry::entry_key;
use tavern::lorebook::decorators;
use tokio::time::timeout;

use crate::db::connect::Db;
use crate::memories::embedding::model_choice::{COSINE_RANGE, EmbeddingChoice};
use crate::memories::embedding::query_embedding::QueryError;
use crate::memories::memory_settings::MemorySettings;
use crate::prompt::context::PromptContext;
use crate::prompt::loading::lore::content_vectors::{ContentVectors, VectorKey};
use crate::prompt::loading::memory_loader::newest_chars;

/// The maximum number of entries that are activated by their similarity.
const MAX_MATCHES: usize = 5;
/// The maximum number of entries that are compared: the first ones by precedence.
const MAX_ENTRIES: usize = 2_000;
/// How long a prompt waits for the provider, the same as for its memories.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A vectorized entry that may be similar to the messages.
struct Candidate<'a> {
    /// As [`entry_key`] returns it.
    key: String,
    content: &'a str,
}

/// Returns the keys of the entries that the messages of a prompt activate by their similarity; `settings` are
/// those of the space. Executes no statement if no entry is vectorized.
pub async fn find(
    db: &Db,
    vectors: &ContentVectors,
    context: &PromptContext,
    settings: &Value,
) -> HashSet<String> {
    let candidates = candidates(context);
    let text = scanned_text(context);
    if candidates.is_empty() || text.is_empty() {
        return HashSet::new();
    }
    let started = Instant::now();
    let embedded = timeout(TIMEOUT, embed_query(db, vectors, text, settings)).await;
    let (choice, query) = match embedded {
        Ok(Ok(Some(embedded))) => embedded,
        Ok(Ok(None)) => return HashSet::new(),
        Ok(Err(error)) => {
            tracing::debug!(%error, "failed to embed the query; lore entries are found by keys only: {error}");
            return HashSet::new();
        }
        Err(_) => {
            tracing::debug!("timed out embedding the query; lore entries are found by keys only");
            return HashSet::new();
        }
    };
    let contents: Vec<&str> = candidates.iter().map(|it| it.content).collect();
    let keys = vectors.keys(&choice, &contents);
    let time_left = TIMEOUT.saturating_sub(started.elapsed());
    vectors
        .embed_missing(&choice, &keys, &contents, time_left)
        .await;
    let threshold = MemorySettings::of_space(settings).threshold();
    best_matches(&candidates, &keys, |key| {
        let score = score(&query, &vectors.get(key)?)?;
        (score >= threshold).then_some(score)
    })
}

/// Returns the model and the vector of the text; `None`: the space has no model that may be called.
async fn embed_query(
    db: &Db,
    vectors: &ContentVectors,
    text: String,
    settings: &Value,
) -> Result<Option<(EmbeddingChoice, Arc<[f32]>)>, QueryError> {
    let choice = EmbeddingChoice::load(db.reader(), settings).await?;
    let Some(choice) = choice.filter(|it| !it.is_paused()) else {
        return Ok(None);
    };
    let embedded = vectors.embedder.embed_texts(&choice, None, vec![text]);
    let query = embedded.await?.into_iter().next();
    Ok(query.map(|it| (choice, it)))
}

/// Returns the keys of the entries with the highest scores; `score` returns `None` for an entry that is no
/// match.
fn best_matches(
    candidates: &[Candidate<'_>],
    keys: &[VectorKey],
    score: impl Fn(&VectorKey) -> Option<f32>,
) -> HashSet<String> {
    let scored = candidates.iter().zip(keys);
    let scored = scored.filter_map(|(it, key)| Some((it, score(key)?)));
    let mut scored: Vec<(&Candidate<'_>, f32)> = scored.collect();
    // The sort is stable: of entries with equal scores, the first by precedence is kept.
    scored.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let best = scored.into_iter().take(MAX_MATCHES);
    best.map(|(it, _)| it.key.clone()).collect()
}

/// Returns the enabled vectorized entries with a content, by precedence.
fn candidates(context: &PromptContext) -> Vec<Candidate<'_>> {
    let books = context.lore.lorebooks.iter();
    let entries = books.flat_map(|book| book.entries.iter().map(move |it| (book, it)));
    let vectorized = entries.filter(|(_, it)| it.is_vectorized && it.enabled);
    let candidates = vectorized.map(|(book, it)| Candidate {
        key: entry_key(&book.key, &it.key),
        content: decorators::split(&it.content).1.trim(),
    });
    let with_content = candidates.filter(|it| !it.content.is_empty());
    with_content.take(MAX_ENTRIES).collect()
}

/// Returns the scanned messages with the names of their authors, as they are embedded for memories.
fn scanned_text(context: &PromptContext) -> String {
    let spoken = context.history.iter().rev();
    let spoken = spoken.filter(|it| !it.text.trim().is_empty());
    let newest = spoken.take(context.lore.settings.scan_depth);
    let mut lines: Vec<String> = newest
        .map(|it| format!("{}: {}", it.name, it.text))
        .collect();
    lines.reverse();
    newest_chars(lines.join("\n"))
}

/// Returns the score of two vectors of length 1, from 0 to 1; `None` if their dimensions differ: the provider
/// replaced its model under the same name.
fn score(one: &[f32], other: &[f32]) -> Option<f32> {
    if one.len() != other.len() {
        return None;
    }
    let cosine: f32 = one.iter().zip(other).map(|(a, b)| a * b).sum();
    let (low, high) = COSINE_RANGE;
    Some(((cosine - low) / (high - low)).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::{Candidate, MAX_MATCHES, best_matches, score};

    #[test]
    fn vectors_of_other_dimensions_are_not_compared() {
        assert_eq!(score(&[0.6, 0.8], &[0.6, 0.8]), Some(1.0));
        assert_eq!(score(&[1.0, 0.0], &[-1.0, 0.0]), Some(0.0));
        assert_eq!(score(&[1.0, 0.0], &[1.0, 0.0, 0.0]), None);
    }

    #[test]
    fn the_best_matches_are_chosen_and_of_equal_ones_the_first() {
        let candidates: Vec<Candidate<'_>> = (0..8)
            .map(|n| Candidate {
                key: n.to_string(),
                content: "",
            })
            .collect();
        let keys: Vec<_> = (0..8).map(|n| [n; 32]).collect();

        let best = best_matches(&candidates, &keys, |key| match key[0] {
            7 => Some(0.9),
            0 => None,
            _ => Some(0.7),
        });

        let mut best: Vec<String> = best.into_iter().collect();
        best.sort();
        assert_eq!(best, ["1", "2", "3", "4", "7"]);
        assert_eq!(best.len(), MAX_MATCHES);
    }
}
