//! Defines `Samplers`, the optional samplers that only some models support (`top_k`, `min_p`, …),
//! as part of presets and of model requests. The values are not validated here.

use serde::{Deserialize, Serialize};

/// Samplers that only some models support; `None` uses the model's default. The names are those of
/// presets; a backend may have other ones, and those after the seed only for local models.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Samplers {
    pub top_k: Option<u32>,
    pub min_p: Option<f64>,
    pub top_a: Option<f64>,
    pub typical_p: Option<f64>,
    pub frequency_penalty: Option<f64>,
    pub presence_penalty: Option<f64>,
    pub repetition_penalty: Option<f64>,
    /// Requests reproducible output; unlike the seed of the demo model, a user sets it.
    pub seed: Option<u32>,
    /// The number of tokens that the repetition penalty covers.
    pub repetition_range: Option<i64>,
    pub repetition_slope: Option<f64>,
    pub tfs: Option<f64>,
    /// 0: DRY is off.
    pub dry_multiplier: Option<f64>,
    pub dry_base: Option<f64>,
    pub dry_allowed_length: Option<i64>,
    pub dry_penalty_last_n: Option<i64>,
    pub dry_sequence_breakers: Option<Vec<String>>,
    pub xtc_threshold: Option<f64>,
    /// 0: XTC is off.
    pub xtc_probability: Option<f64>,
    /// 0: Mirostat is off.
    pub mirostat_mode: Option<i64>,
    pub mirostat_tau: Option<f64>,
    pub mirostat_eta: Option<f64>,
    /// 0: dynamic temperature is off.
    pub dynatemp_range: Option<f64>,
    pub dynatemp_exponent: Option<f64>,
    pub smoothing_factor: Option<f64>,
    pub top_n_sigma: Option<f64>,
    /// Texts that the model must not write.
    pub banned_strings: Option<Vec<String>>,
    /// A GBNF grammar of the reply.
    pub grammar: Option<String>,
}
