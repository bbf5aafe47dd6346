//! Defines the statuses and kinds of runs, steps and messages of threads as enums.

#[cfg(feature = "sea-orm")]
use sea_orm::sea_query::StringLen;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Declares enumerations that use the same snake-case word in the database and in JSON.
macro_rules! column_words {
    ($($(#[$of_name:meta])* $name:ident { $($(#[$of_value:meta])* $value:ident),* $(,)? })*) => {$(
        $(#[$of_name])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
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
        pub enum $name { $($(#[$of_value])* $value),* }
    )*};
}

column_words! {
    /// The status of a run of a thread, spelled as in the API.
    ThreadRunStatus {
        Queued,
        InProgress,
        /// Waits for the outputs of tools that the client runs.
        RequiresAction,
        Cancelling,
        Cancelled,
        Failed,
        Completed,
        Incomplete,
        Expired,
    }
    /// The status of a step of a run.
    ThreadRunStepStatus {
        InProgress,
        Cancelled,
        Failed,
        Completed,
        Expired,
    }
    /// What a run does in a step.
    ThreadRunStepKind {
        MessageCreation,
        ToolCalls,
    }
    /// Who wrote a message of a thread.
    ThreadMessageRole {
        User,
        Assistant,
    }
    /// The status of a message of a thread.
    ThreadMessageStatus {
        InProgress,
        /// Cut off, or not finished when its run ended.
        Incomplete,
        Completed,
    }
}

impl ThreadRunStatus {
    /// The statuses of a run that has not ended; a thread has at most one such run.
    pub const ACTIVE: [Self; 4] = [
        Self::Queued,
        Self::InProgress,
        Self::RequiresAction,
        Self::Cancelling,
    ];

    /// Returns whether no other status can follow.
    pub fn is_final(self) -> bool {
        !Self::ACTIVE.contains(&self)
    }
}
