//! Access to the database (an SQLite file or PostgreSQL), the only authoritative copy of all data:
//! connections, transactions, migrations and health.

pub mod backend;
pub mod clock_offset;
pub mod commit_verification;
pub mod connect;
pub mod connection_checks;
pub mod database_id;
pub mod health;
pub mod id_list;
pub mod metrics;
pub mod migrate;
pub mod probe;
pub mod reading;
pub mod retry_wait;
pub mod sqlite;
pub mod string_enum;
pub mod write;
