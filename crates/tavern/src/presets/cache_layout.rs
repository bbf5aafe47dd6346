//! Defines how a preset arranges a prompt for prompt caches: a provider with one processes only what follows
//! the beginning that a prompt shares with an earlier one.

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
    /// World Info that is not Constant is sent in the chat at depth 4 instead of around the character
    /// definitions and the example messages.
    StableFirst,
}
