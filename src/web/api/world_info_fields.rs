//! The World Info settings of a space, and their ranges.

use serde::Deserialize;
use utoipa::ToSchema;

use crate::web::api::setting_checks::require_range;
use crate::web::error::ApiResult;

/// World Info settings.
#[derive(Deserialize, ToSchema)]
#[schema(as = WorldInfo)]
pub struct WorldInfoFields {
    #[schema(minimum = 0, maximum = 1_000)]
    scan_depth: Option<i64>,
    #[schema(minimum = 0, maximum = 100)]
    token_budget_percent: Option<i64>,
    #[serde(rename = "recursive")]
    _recursive: Option<bool>,
    #[serde(rename = "case_sensitive")]
    _case_sensitive: Option<bool>,
    #[serde(rename = "whole_words")]
    _whole_words: Option<bool>,
    #[serde(rename = "ascii_words")]
    _ascii_words: Option<bool>,
    /// In tokens; 0: only the percentage applies.
    #[schema(minimum = 0, maximum = 10_000_000)]
    token_budget_cap: Option<i64>,
    /// The maximum number of passes: the first one and those for recursion, so 1 means no recursion.
    /// 0: until no further entry is activated, but at most 10. With `min_activations` it is ignored.
    #[schema(minimum = 0, maximum = 10)]
    max_steps: Option<i64>,
    #[schema(minimum = 0, maximum = 1_000)]
    min_activations: Option<i64>,
    #[schema(minimum = 0, maximum = 1_000)]
    min_activations_depth: Option<i64>,
    #[serde(rename = "include_names")]
    _include_names: Option<bool>,
    #[serde(rename = "group_scoring")]
    _group_scoring: Option<bool>,
    #[serde(rename = "insertion_strategy")]
    _insertion_strategy: Option<InsertionStrategy>,
}

/// Which lore is inserted first when not all of it fits.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = LoreInsertionStrategy)]
enum InsertionStrategy {
    SortedEvenly,
    CharacterLoreFirst,
    GlobalLoreFirst,
}

impl WorldInfoFields {
    /// Checks the ranges.
    ///
    /// # Errors
    /// Returns 422 with the name of the field.
    pub fn validate(&self) -> ApiResult<()> {
        require_range("world_info.scan_depth", self.scan_depth, 0, 1_000)?;
        let percent = self.token_budget_percent;
        require_range("world_info.token_budget_percent", percent, 0, 100)?;
        let cap = self.token_budget_cap;
        require_range("world_info.token_budget_cap", cap, 0, 10_000_000)?;
        require_range("world_info.max_steps", self.max_steps, 0, 10)?;
        let least = self.min_activations;
        require_range("world_info.min_activations", least, 0, 1_000)?;
        let furthest = self.min_activations_depth;
        require_range("world_info.min_activations_depth", furthest, 0, 1_000)
    }
}
