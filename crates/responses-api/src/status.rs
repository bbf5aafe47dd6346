//! Defines the statuses of responses and of their items as enums.

#[cfg(feature = "sea-orm")]
use sea_orm::sea_query::StringLen;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The status of a response, spelled as in the API. The last four are final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(
    feature = "sea-orm",
    derive(sea_orm::EnumIter, sea_orm::DeriveActiveEnum),
    sea_orm(
        rs_type = "String",
        db_type = "String(StringLen::N(32))",
        rename_all = "snake_case"
    )
)]
#[serde(rename_all = "snake_case")]
pub enum ResponseStatus {
    Queued,
    InProgress,
    Completed,
    Incomplete,
    Failed,
    Cancelled,
}

impl ResponseStatus {
    /// Returns whether no other status can follow.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::InProgress)
    }
}

/// The status of an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ItemStatus {
    #[default]
    InProgress,
    Completed,
    /// Cut off, or not finished when the response ended.
    Incomplete,
}
