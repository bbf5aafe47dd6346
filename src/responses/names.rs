//! The ids of this surface: a prefix, `_`, and the 32 digits of a UUIDv7 made here. Nobody reads
//! anything out of them, and no database is asked for one.

use uuid::Uuid;

/// A response.
pub const RESPONSE: &str = "resp";
/// A message item.
pub const MESSAGE: &str = "msg";
/// A reasoning item.
pub const REASONING: &str = "rs";
/// A compaction item.
pub const COMPACTION: &str = "cmp";
/// A conversation of items.
pub const CONVERSATION: &str = "conv";

/// A new id, greater than every one this process made before with this prefix.
pub fn mint(prefix: &str) -> String {
    format!("{prefix}_{}", Uuid::now_v7().simple())
}
