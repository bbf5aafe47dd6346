//! Learns from the token counts that providers report by how much the estimates of a model's tokens are
//! wrong. Each node learns on its own; what is recorded in the settings of a provider applies to all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use base::ids::ProviderId;
use llm::compatibility::token_scale::{TokenScale, Tokenizer};
use llm::provider_options::DETECTED;
use serde::Deserialize;
use serde_json::Value;

use crate::providers::detected::detected_settings::{TOKEN_CORRECTIONS, TOKENIZER};
use crate::providers::provider;

/// The number of replies after which a correction is used.
const MIN_REPLIES: u32 = 5;
/// The weight of a new reply after that.
const WEIGHT: f64 = 0.1;
/// A correction that differs less from the recorded one is not recorded.
const MIN_DIFFERENCE: f64 = 0.05;
/// A report further from the estimate counts other things than the prompt.
const MIN_RATIO: f64 = 0.3;
const MAX_RATIO: f64 = 4.0;
/// The limits of a correction.
const MIN_CORRECTION: f64 = 0.5;
const MAX_CORRECTION: f64 = 3.0;
/// The maximum number of models that a node remembers.
const MAX_MODELS: usize = 1_000;

/// The key of the factor that an admin has set.
const TOKEN_FACTOR: &str = "token_factor";

/// Returns how the tokens of a provider's model are counted.
pub fn scale(row: &provider::Model) -> TokenScale {
    match row.settings[TOKEN_FACTOR].as_f64() {
        Some(factor) => TokenScale::uniform(factor),
        None => {
            let factors = TokenScale::of_tokenizer(tokenizer(&row.settings), row.kind, &row.model);
            factors.corrected(correction(row).unwrap_or(1.0))
        }
    }
}

/// Returns the tokenizer that the settings of a provider name.
pub fn tokenizer(settings: &Value) -> Tokenizer {
    Tokenizer::deserialize(&settings[TOKENIZER]).unwrap_or_default()
}

/// Returns the recorded correction of these counts, 1 if there is none; `None`: an admin has set the factor.
pub fn correction(row: &provider::Model) -> Option<f64> {
    let learned = &row.settings[DETECTED][TOKEN_CORRECTIONS][&row.model];
    let is_set = row.settings[TOKEN_FACTOR].is_number();
    (!is_set).then(|| learned.as_f64().unwrap_or(1.0))
}

/// What a node has learned. Cheap to clone; clones share state.
#[derive(Clone, Debug, Default)]
pub struct TokenLearning {
    models: Arc<Mutex<HashMap<(ProviderId, String), Observed>>>,
}

/// The reports of one model.
#[derive(Clone, Copy, Debug)]
struct Observed {
    n_replies: u32,
    /// The correction that was recorded at the last report.
    recorded: f64,
    /// The mean of the corrections that the reports imply.
    mean: f64,
}

/// The tokens of one prompt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReportedTokens {
    pub reported: i64,
    /// Our estimate, with `correction` applied.
    pub estimated: i64,
    /// The recorded correction; 1 if there is none.
    pub correction: f64,
}

impl TokenLearning {
    /// Adds a report. Returns the correction to record, if it is known well and differs from the recorded
    /// one.
    pub fn observe(
        &self,
        provider: ProviderId,
        model: &str,
        tokens: ReportedTokens,
    ) -> Option<f64> {
        let ratio = ratio(tokens.reported, tokens.estimated)?;
        // Beyond these limits the factors of the text are at their own.
        let implied = (ratio * tokens.correction).clamp(MIN_CORRECTION, MAX_CORRECTION);
        let mut models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (provider, model.to_owned());
        if models.len() >= MAX_MODELS && !models.contains_key(&key) {
            models.clear();
        }
        let observed = models.entry(key).or_default();
        // The record is dropped with the address of the provider: another endpoint may count differently.
        if tokens.correction == 1.0 && observed.recorded != 1.0 {
            *observed = Observed::default();
        }
        observed.recorded = tokens.correction;
        observed.add(implied);
        let differs = (observed.mean / tokens.correction - 1.0).abs() > MIN_DIFFERENCE;
        (observed.n_replies >= MIN_REPLIES && differs).then_some(observed.mean)
    }
}

impl Default for Observed {
    fn default() -> Self {
        Self {
            n_replies: 0,
            recorded: 1.0,
            mean: 0.0,
        }
    }
}

impl Observed {
    fn add(&mut self, implied: f64) {
        self.n_replies = self.n_replies.saturating_add(1);
        let weight = (1.0 / f64::from(self.n_replies)).max(WEIGHT);
        self.mean += (implied - self.mean) * weight;
    }
}

#[allow(clippy::cast_precision_loss)] // far below 2^52
fn ratio(reported: i64, estimated: i64) -> Option<f64> {
    let ratio = reported as f64 / estimated.max(1) as f64;
    (MIN_RATIO..=MAX_RATIO).contains(&ratio).then_some(ratio)
}

#[cfg(test)]
mod tests {
    use base::ids::ProviderId;

    use super::{ReportedTokens, TokenLearning};

    fn tokens(reported: i64, correction: f64) -> ReportedTokens {
        ReportedTokens {
            reported,
            estimated: 1_000,
            correction,
        }
    }

    fn observe(learning: &TokenLearning, model: &str, tokens: ReportedTokens) -> Option<f64> {
        learning.observe(ProviderId(1), model, tokens)
    }

    #[test]
    fn a_correction_is_known_after_five_replies_and_for_its_model_only() {
        let learning = TokenLearning::default();
        for _ in 0..4 {
            assert_eq!(observe(&learning, "a", tokens(1_200, 1.0)), None);
        }

        let correction = observe(&learning, "a", tokens(1_200, 1.0));

        assert!(
            correction.is_some_and(|it| (it - 1.2).abs() < 1e-9),
            "{correction:?}"
        );
        assert_eq!(observe(&learning, "b", tokens(1_200, 1.0)), None);
        // The estimates are right now, so there is nothing to record.
        assert_eq!(observe(&learning, "a", tokens(1_000, 1.2)), None);
    }

    #[test]
    fn a_dropped_record_forgets_what_was_learned_before() {
        let learning = TokenLearning::default();
        for _ in 0..5 {
            observe(&learning, "a", tokens(1_500, 1.0));
        }
        assert_eq!(observe(&learning, "a", tokens(1_000, 1.5)), None);

        let first_of_other_endpoint = observe(&learning, "a", tokens(1_000, 1.0));

        assert_eq!(first_of_other_endpoint, None);
        for _ in 0..40 {
            observe(&learning, "b", tokens(300, 0.5));
        }
        let least = observe(&learning, "b", tokens(300, 1.1));
        assert!(least.is_some_and(|it| it >= 0.5), "{least:?}");
    }

    #[test]
    fn reports_that_count_something_else_are_ignored() {
        let learning = TokenLearning::default();

        let odd = [0, -5, 7, 100_000];
        let learned = (0..40).find_map(|n| observe(&learning, "a", tokens(odd[n % 4], 1.0)));

        assert_eq!(learned, None);
    }

    #[test]
    fn later_reports_change_a_correction_slowly() {
        let learning = TokenLearning::default();
        for _ in 0..20 {
            observe(&learning, "a", tokens(1_500, 1.0));
        }

        let correction = observe(&learning, "a", tokens(1_000, 1.0));

        assert!(
            correction.is_some_and(|it| (it - 1.45).abs() < 1e-9),
            "{correction:?}"
        );
    }
}
