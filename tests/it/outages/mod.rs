//! What a whole server does while something it stands on gives way: its database is away, or has no
//! connection left for it, or the machine has no time for it, or its disk takes no writes
//! or damages its file.

pub mod damaged_files;
pub mod database_unavailable;
pub mod failed_commits;
pub mod full_disk;
pub mod no_connection_left;
pub mod slow_node;
