//! Calibrates the estimated token counts of a model with the counts that its provider reports. Each node
//! collects reports on its own; a correction that is recorded in the settings of a provider applies to all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use base::ids::ProviderId;
use llm::compatibility::token_factors::{TokenFactors, Tokenizer};
use llm::provider_options::DETECTED;
use serde::Deserialize;
use serde_json::Value;

use crate::providers::detected::detected_settings::{TOKEN_CORRECTIONS, TOKENIZER};
use crate::providers::provider;

/// The number of replies after which a correction is used.
const MIN_REPLIES: u32 = 5;
/// The minimum weight of a new report in the mean.
const WEIGHT: f64 = 0.1;
/// A correction that differs less from the recorded one is not recorded.
const MIN_DIFFERENCE: f64 = 0.05;
/// The limits of the ratio of a report to its estimate. A report beyond them counts something else than the
/// prompt, and is ignored.
const MIN_RATIO: f64 = 0.3;
const MAX_RATIO: f64 = 4.0;
/// The limits of a correction.
const MIN_CORRECTION: f64 = 0.5;
const MAX_CORRECTION: f64 = 3.0;
/// The maximum number of models whose reports a node keeps.
const MAX_MODELS: usize = 1_000;

/// The key of the factor that an admin has set.
const TOKEN_FACTOR: &str = "token_factor";

/// Returns the token factors of a provider's model.
pub fn factors(row: &provider::Model) -> TokenFactors {
    match row.settings[TOKEN_FACTOR].as_f64() {
        Some(factor) => TokenFactors::uniform(factor),
        None => {
            let factors =
                TokenFactors::of_tokenizer(tokenizer(&row.settings), row.kind, &row.model);
            factors.corrected(correction(row).unwrap_or(1.0))
        }
    }
}

/// Returns the tokenizer that the settings of a provider name.
pub fn tokenizer(settings: &Value) -> Tokenizer {
    Tokenizer::deserialize(&settings[TOKENIZER]).unwrap_or_default()
}

/// Returns the recorded correction of a provider's model, 1 if there is none; `None`: an admin has set the
/// factor.
pub fn correction(row: &provider::Model) -> Option<f64> {
    let recorded = &row.settings[DETECTED][TOKEN_CORRECTIONS][&row.model];
    let is_set = row.settings[TOKEN_FACTOR].is_number();
    (!is_set).then(|| recorded.as_f64().unwrap_or(1.0))
}

/// The reports that a node has collected. Cheap to clone; clones share state.
#[derive(Clone, Debug, Default)]
pub struct TokenCalibration {
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

impl TokenCalibration {
    /// Adds a report. Returns the correction to record, if there are enough reports and it differs from the
    /// recorded one.
    pub fn observe(
        &self,
        provider: ProviderId,
        model: &str,
        tokens: ReportedTokens,
    ) -> Option<f64> {
        let ratio = ratio(tokens.reported, tokens.estimated)?;
        // Beyond these limits a correction would change little, because corrected factors are limited, too.
        let implied = (ratio * tokens.correction).clamp(MIN_CORRECTION, MAX_CORRECTION);
        let mut models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (provider, model.to_owned());
        if models.len() >= MAX_MODELS && !models.contains_key(&key) {
            models.clear();
        }
        let observed = models.entry(key).or_default();
        // The record was dropped with the address or the tokenizer of the provider, so earlier reports are void.
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

    use super::{ReportedTokens, TokenCalibration};

    fn tokens(reported: i64, correction: f64) -> ReportedTokens {
        ReportedTokens {
            reported,
            estimated: 1_000,
            correction,
        }
    }

    fn observe(calibration: &TokenCalibration, model: &str, tokens: ReportedTokens) -> Option<f64> {
        calibration.observe(ProviderId(1), model, tokens)
    }

    #[test]
    fn a_correction_is_known_after_five_replies_and_for_its_model_only() {
        let calibration = TokenCalibration::default();
        for _ in 0..4 {
            assert_eq!(observe(&calibration, "a", tokens(1_200, 1.0)), None);
        }

        let correction = observe(&calibration, "a", tokens(1_200, 1.0));

        assert!(
            correction.is_some_and(|it| (it - 1.2).abs() < 1e-9),
            "{correction:?}"
        );
        assert_eq!(observe(&calibration, "b", tokens(1_200, 1.0)), None);
        // The estimates are right now, so there is nothing to record.
        assert_eq!(observe(&calibration, "a", tokens(1_000, 1.2)), None);
    }

    #[test]
    fn a_dropped_record_resets_the_calibration() {
        let calibration = TokenCalibration::default();
        for _ in 0..5 {
            observe(&calibration, "a", tokens(1_500, 1.0));
        }
        assert_eq!(observe(&calibration, "a", tokens(1_000, 1.5)), None);

        let first_of_other_endpoint = observe(&calibration, "a", tokens(1_000, 1.0));

        assert_eq!(first_of_other_endpoint, None);
        for _ in 0..40 {
            observe(&calibration, "b", tokens(300, 0.5));
        }
        let least = observe(&calibration, "b", tokens(300, 1.1));
        assert!(least.is_some_and(|it| it >= 0.5), "{least:?}");
    }

    #[test]
    fn reports_that_count_something_else_are_ignored() {
        let calibration = TokenCalibration::default();

        let odd = [0, -5, 7, 100_000];
        let recorded = (0..40).find_map(|n| observe(&calibration, "a", tokens(odd[n % 4], 1.0)));

        assert_eq!(recorded, None);
    }

    #[test]
    fn later_reports_change_a_correction_slowly() {
        let calibration = TokenCalibration::default();
        for _ in 0..20 {
            observe(&calibration, "a", tokens(1_500, 1.0));
        }

        let correction = observe(&calibration, "a", tokens(1_000, 1.0));

        assert!(
            correction.is_some_and(|it| (it - 1.45).abs() < 1e-9),
            "{correction:?}"
        );
    }
}
