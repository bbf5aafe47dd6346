//! Operations on the SQLite file: locks, permissions, the check for damage, checkpoints and merges
//! of the search index.

pub mod checkpoint;
pub mod damage;
pub mod file_lock;
pub mod file_permissions;
pub mod instance_lock;
pub mod maintenance;
pub mod ownership;
pub mod segments;
