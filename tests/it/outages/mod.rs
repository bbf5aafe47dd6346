//! Tests of outages: the database is unavailable or has no free connections, the machine is
//! overloaded, or the disk is full or damages the file.

pub mod damaged_files;
pub mod database_unavailable;
pub mod failed_commits;
pub mod full_disk;
pub mod no_connection_left;
pub mod slow_node;
