//! Where SQLite and PostgreSQL differ in what we ask of them.

use crate::clock::Timestamp;
use crate::db::connect::Dialect;
use sea_orm::DbErr;
use sea_orm::SqlErr;
use sea_orm::sea_query::Expr;
use sea_orm::sea_query::SimpleExpr;

/// The instant that heartbeats and stale checks use: PostgreSQL's own clock, since nodes may
/// disagree about the time; on SQLite, which one process owns, the program's.
pub fn lease_clock(dialect: Dialect, now: Timestamp) -> SimpleExpr {
    match dialect {
        Dialect::Sqlite => Expr::value(now.0),
        // clock_timestamp(), not now(): that stands still inside a transaction.
        Dialect::Postgres => Expr::cust("(extract(epoch from clock_timestamp()) * 1000)::bigint"),
    }
}

/// Whether a statement failed because a row with the same unique key exists.
pub fn is_unique_violation(error: &DbErr) -> bool {
    matches!(error.sql_err(), Some(SqlErr::UniqueConstraintViolation(_)))
}
