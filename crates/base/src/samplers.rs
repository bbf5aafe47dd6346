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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repetition_range: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repetition_slope: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tfs: Option<f64>,
    /// 0: DRY is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_multiplier: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_base: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_allowed_length: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_penalty_last_n: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_sequence_breakers: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xtc_threshold: Option<f64>,
    /// 0: XTC is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xtc_probability: Option<f64>,
    /// 0: Mirostat is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirostat_mode: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirostat_tau: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirostat_eta: Option<f64>,
    /// 0: dynamic temperature is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dynatemp_range: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dynatemp_exponent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smoothing_factor: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_n_sigma: Option<f64>,
    /// Texts that the model must not write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub banned_strings: Option<Vec<String>>,
    /// A GBNF grammar of the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grammar: Option<String>,
}
