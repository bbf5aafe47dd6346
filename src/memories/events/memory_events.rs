//! The WebSocket events of the memory. They are not durable and have no `rev`: after a gap, a client
//! reads the memories and summaries again.

use base::clock::Timestamp;
use base::ids::{ConversationId, MemoryId, SpaceId};
use realtime::envelope::Event;
use serde::Serialize;
use utoipa::ToSchema;

use crate::memories::memory::MemoryView;
use crate::memories::summaries::summary::SummaryView;

/// A memory was created, changed or restored.
#[derive(Debug, Serialize, ToSchema)]
pub struct MemoryUpdated {
    pub space_id: SpaceId,
    pub memory: MemoryView,
}

/// A memory was deleted.
#[derive(Debug, Serialize, ToSchema)]
pub struct MemoryDeleted {
    pub space_id: SpaceId,
    pub memory_id: MemoryId,
}

/// Many memories were deleted at once, or memories and summaries were forgotten.
#[derive(Debug, Serialize, ToSchema)]
pub struct MemoriesForgotten {
    pub space_id: SpaceId,
    /// How many of them the recipients could see.
    pub count: u64,
}

/// The state of the background work on the memories of a space.
#[derive(Debug, Serialize, ToSchema)]
pub struct MemoryStateChanged {
    pub space_id: SpaceId,
    /// Whether prompts recall memories by words and local vectors only.
    pub degraded: bool,
    /// When the node that sent this event calls the provider again after failures.
    pub breaker_until: Option<Timestamp>,
    /// Queued and running tasks.
    pub pending: u64,
    /// Tasks that are not retried.
    pub failed: u64,
    /// Whether many memories were changed at once, so that the list must be read again.
    pub reload: bool,
}

/// A summary was written, changed or restored, or is out of date.
#[derive(Debug, Serialize, ToSchema)]
pub struct SummaryUpdated {
    pub conversation_id: ConversationId,
    pub summary: SummaryView,
}

impl Event for MemoryUpdated {
    fn name(&self) -> &'static str {
        "memory_updated"
    }
}

impl Event for MemoryDeleted {
    fn name(&self) -> &'static str {
        "memory_deleted"
    }
}

impl Event for MemoriesForgotten {
    fn name(&self) -> &'static str {
        "memories_forgotten"
    }
}

impl Event for MemoryStateChanged {
    fn name(&self) -> &'static str {
        "memory_state"
    }
}

impl Event for SummaryUpdated {
    fn name(&self) -> &'static str {
        "summary_updated"
    }
}
