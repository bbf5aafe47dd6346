//! The database, SQLite in a file or PostgreSQL: the only authoritative copy of all data.

pub mod backend;
pub mod checkpoint;
pub mod clock_offset;
pub mod commit_verification;
pub mod connect;
pub mod connection_checks;
pub mod damage;
pub mod database_id;
pub mod file_lock;
pub mod file_permissions;
pub mod health;
pub mod instance_lock;
pub mod maintenance;
pub mod metrics;
pub mod migrate;
pub mod ownership;
pub mod page;
pub mod probe;
pub mod read_pool;
pub mod retry;
pub mod segments;
pub mod slices;
pub mod string_enum;
pub mod write;
