//! Defines how a preset arranges a prompt for the prompt caches of providers, which process only what
//! follows the equal beginning of an earlier prompt.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How a prompt is arranged for prompt caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PresetCacheLayout)]
#[serde(rename_all = "snake_case")]
pub enum CacheLayout {
    /// World Info is sent at the position of each entry.
    #[default]
    AsListed,
    /// World Info that is not Constant is not sent around the character and the example messages, but
    /// among the messages, at depth 4.
    StableFirst,
}
