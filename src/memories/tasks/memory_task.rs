//! Table `memory_tasks`: the pending background work of the memory.
//!
//! **Invariant:** a task is inserted in the transaction that makes it necessary, and deleted in the one that
//! stores its result, under the lease of its worker. So its result is stored once, even if the server stops
//! in between.

use base::clock::Timestamp;
use base::ids::{ConversationId, MemoryTaskId, SpaceId};
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::entity::prelude::*;

use crate::db::string_enum::string_enum;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "memory_tasks")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: MemoryTaskId,
    pub kind: MemoryTaskKind,
    pub space_id: SpaceId,
    pub conversation_id: Option<ConversationId>,
    /// The first and the last message: set when it is claimed for the first time, or when it is
    /// inserted for these messages only.
    pub from_seq: Option<i64>,
    pub to_seq: Option<i64>,
    pub status: MemoryTaskStatus,
    pub attempt: i64,
    pub run_after: Timestamp,
    pub worker_id: Option<String>,
    /// The fencing number, which increases with each claim.
    pub lease: i64,
    pub heartbeat_at: Option<Timestamp>,
    pub error: Option<String>,
    pub created_at: Timestamp,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

string_enum! {
    /// What a task does.
    MemoryTaskKind { Extract, Embed, Summarize, Refresh }
    /// A task that succeeded has no row.
    MemoryTaskStatus { Queued, Running, Failed }
}

impl ActiveModel {
    /// Returns a new task of a space.
    pub fn queued(
        kind: MemoryTaskKind,
        space: SpaceId,
        run_after: Timestamp,
        now: Timestamp,
    ) -> Self {
        Self {
            id: NotSet,
            kind: Set(kind),
            space_id: Set(space),
            conversation_id: Set(None),
            from_seq: Set(None),
            to_seq: Set(None),
            status: Set(MemoryTaskStatus::Queued),
            attempt: Set(0),
            run_after: Set(run_after),
            worker_id: Set(None),
            lease: Set(0),
            heartbeat_at: Set(None),
            error: Set(None),
            created_at: Set(now),
        }
    }
}
