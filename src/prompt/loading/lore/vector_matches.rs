//! Finds the vectorized entries of a prompt's lorebooks whose contents are similar to the scanned
//! messages, by the embedding model of the space.
//!
//! Without a model, or if it fails, the prompt is built without these matches; the keys of the entries are
//! scanned anyway.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use recall::quantized_vector::{QuantizedVector, QueryVector};
use serde_json::Value;
use tavern::import_warning::ImportWarning;
use tavern::lorebook::compiled_entry::entry_key;
use tavern::lorebook::decorators;
use tokio::time::timeout;

use crate::db::connect::Db;
use crate::memories::embedding::model_choice::{COSINE_RANGE, EmbeddingChoice};
use crate::memories::embedding::query_embedding::QueryError;
use crate::memories::memory_settings::MemorySettings;
use crate::prompt::context::PromptContext;
use crate::prompt::loading::lore::content_vectors::ContentVectors;
use crate::prompt::loading::memory_loader::newest_chars;

/// The maximum number of entries that are activated by their similarity.
const MAX_MATCHES: usize = 5;
/// The entries that are compared before other tasks of the thread continue.
const YIELD_AFTER: usize = 1_000;
/// How long a prompt waits for the provider, the same as for its memories.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A vectorized entry that may be similar to the messages.
struct Candidate<'a> {
    /// As [`entry_key`] returns it.
    key: String,
    content: &'a str,
}

/// The vectorized entries of a prompt that are similar to its messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimilarEntries {
    /// As [`entry_key`] returns them.
    keys: HashSet<String>,
    /// The number of entries without a vector, which were not compared.
    n_without_vector: usize,
}

impl SimilarEntries {
    /// Adds them to the inputs of their prompt.
    pub fn add_to(self, context: &mut PromptContext) {
        context.lore.external_activations = self.keys;
        let n = self.n_without_vector;
        if n > 0 {
            let sentence = format!(
                "{n} vectorized entries are not embedded yet; until then, only their keys activate them."
            );
            let warning = ImportWarning::new("entries_not_embedded", sentence);
            context.warnings.push(warning.with("n", n));
        }
    }
}

/// Returns the entries that the messages of a prompt activate by their similarity; `settings` are those of
/// the space. Executes no statement if no entry is vectorized.
pub async fn find(
    db: &Db,
    vectors: &ContentVectors,
    context: &PromptContext,
    settings: &Value,
) -> SimilarEntries {
    let mut candidates = candidates(context);
    let text = scanned_text(context);
    if candidates.is_empty() || text.is_empty() {
        return SimilarEntries::default();
    }
    let started = Instant::now();
    let embedded = timeout(TIMEOUT, embed_query(db, vectors, text, settings)).await;
    let (choice, query) = match embedded {
        Ok(Ok(Some(embedded))) => embedded,
        Ok(Ok(None)) => return SimilarEntries::default(),
        Ok(Err(error)) => {
            tracing::debug!(%error, "failed to embed the query; lore entries are found by keys only: {error}");
            return SimilarEntries::default();
        }
        Err(_) => {
            tracing::debug!("timed out embedding the query; lore entries are found by keys only");
            return SimilarEntries::default();
        }
    };
    let n_candidates = candidates.len();
    candidates.truncate(ContentVectors::capacity(query.dimensions()));
    let mut n_without_vector = n_candidates - candidates.len();
    let contents: Vec<&str> = candidates.iter().map(|it| it.content).collect();
    let keys = vectors.keys(&choice, &contents).await;
    let time_left = TIMEOUT.saturating_sub(started.elapsed());
    vectors
        .embed_missing(&choice, &keys, &contents, time_left)
        .await;
    let threshold = MemorySettings::of_space(settings).threshold();
    let mut scored = Vec::new();
    for (at, (candidate, key)) in (1..).zip(candidates.iter().zip(&keys)) {
        match vectors.get(key) {
            Some(vector) => {
                let score = score(&query, &vector).filter(|it| *it >= threshold);
                scored.extend(score.map(|it| (candidate, it)));
            }
            None => n_without_vector += 1,
        }
        if at % YIELD_AFTER == 0 {
            tokio::task::yield_now().await;
        }
    }
    SimilarEntries {
        keys: best_matches(scored),
        n_without_vector,
    }
}

/// Returns the model and the vector of the text; `None`: the space has no model that may be called.
async fn embed_query(
    db: &Db,
    vectors: &ContentVectors,
    text: String,
    settings: &Value,
) -> Result<Option<(EmbeddingChoice, QueryVector)>, QueryError> {
    let choice = EmbeddingChoice::load(db.reader(), settings).await?;
    let Some(choice) = choice.filter(|it| !it.is_paused()) else {
        return Ok(None);
    };
    let embedded = vectors.embedder.embed_texts(&choice, None, vec![text]);
    let query = embedded.await?.into_iter().next();
    Ok(query.map(|it| (choice, QueryVector::new(&it))))
}

/// Returns the keys of the entries with the highest scores.
fn best_matches(mut scored: Vec<(&Candidate<'_>, f32)>) -> HashSet<String> {
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
    candidates.filter(|it| !it.content.is_empty()).collect()
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
/// replaced its model under the same name, or refused the content.
fn score(query: &QueryVector, content: &QuantizedVector) -> Option<f32> {
    if query.dimensions() != content.dimensions() {
        return None;
    }
    let cosine = query.dot(content.codes(), content.factor());
    let (low, high) = COSINE_RANGE;
    Some(((cosine - low) / (high - low)).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use recall::quantized_vector::{QuantizedVector, QueryVector};

    use super::{Candidate, MAX_MATCHES, best_matches, score};

    #[test]
    fn vectors_of_other_dimensions_are_not_compared() {
        let score = |one: &[f32], other: &[f32]| {
            score(&QueryVector::new(one), &QuantizedVector::new(other))
        };

        assert!(score(&[0.6, 0.8], &[0.6, 0.8]).is_some_and(|it| it > 0.99));
        assert_eq!(score(&[1.0, 0.0], &[-1.0, 0.0]), Some(0.0));
        assert_eq!(score(&[1.0, 0.0], &[1.0, 0.0, 0.0]), None);
        assert_eq!(score(&[1.0, 0.0], &[]), None);
    }

    #[test]
    fn the_best_matches_are_chosen_and_of_equal_ones_the_first() {
        let candidates: Vec<Candidate<'_>> = (1..8)
            .map(|n| Candidate {
                key: n.to_string(),
                content: "",
            })
            .collect();
        let scored = candidates.iter().map(|it| match it.key.as_str() {
            "7" => (it, 0.9),
            _ => (it, 0.7),
        });

        let mut best: Vec<String> = best_matches(scored.collect()).into_iter().collect();

        best.sort();
        assert_eq!(best, ["1", "2", "3", "4", "7"]);
        assert_eq!(best.len(), MAX_MATCHES);
    }
}
