//! Defines `Samplers`, the optional samplers that only some models support (`top_k`, `min_p`, …),
//! as part of presets and of model requests. The values are not validated here.

use serde::{Deserialize, Serialize};

/// Samplers that only some models support; `None` uses the model's default.
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
}
