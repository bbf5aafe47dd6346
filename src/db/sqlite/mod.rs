//! What only SQLite needs: the locks and permissions of its file, checks and maintenance.

pub mod checkpoint;
pub mod damage;
pub mod file_lock;
pub mod file_permissions;
pub mod instance_lock;
pub mod maintenance;
pub mod ownership;
pub mod segments;
