//! The two kinds of database: the SQL, locks and error codes in which they differ, and the
//! classification of errors.

use std::borrow::Cow;

use base::clock::Timestamp;
use base::ids::SpaceId;
use sea_orm::sea_query::{Expr, ExprTrait, IntoColumnRef, Query, SimpleExpr};
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, RuntimeErr, SqlErr};

/// The kind of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// One file, one process.
    Sqlite,
    /// A server, any number of processes.
    Postgres,
}

/// Returns the time that heartbeats and lease checks use: PostgreSQL's own clock, because nodes may
/// disagree about the time; on SQLite, which one process owns, the program's.
pub fn lease_time(backend: Backend, now: Timestamp) -> SimpleExpr {
    match backend {
        Backend::Sqlite => Expr::value(now.0),
        // clock_timestamp(), not now(): now() does not move inside a transaction.
        Backend::Postgres => Expr::cust("(extract(epoch from clock_timestamp()) * 1000)::bigint"),
    }
}

/// Determines which leases have expired.
#[derive(Clone, Copy, Debug)]
pub struct StaleAfter {
    /// Minimum age of the last heartbeat.
    pub after_ms: i64,
    pub backend: Backend,
}

impl StaleAfter {
    /// Returns whether the heartbeat in this column is stale. A heartbeat this far in the future was
    /// written before the clock was set back.
    pub fn condition(&self, heartbeat_at: impl ColumnTrait, now: Timestamp) -> SimpleExpr {
        let clock = || lease_time(self.backend, now);
        let heartbeat = || Expr::col(heartbeat_at);
        let silent = heartbeat().lte(clock().sub(self.after_ms));
        silent.or(heartbeat().gte(clock().add(self.after_ms)))
    }
}

/// Reads the clock that heartbeats and lease checks use. Returns `None` on SQLite, which only one
/// process uses.
///
/// # Errors
/// Returns `DbErr` when the database does not answer.
pub async fn read_lease_time(
    db: &impl ConnectionTrait,
    backend: Backend,
    now: Timestamp,
) -> Result<Option<Timestamp>, DbErr> {
    if backend == Backend::Sqlite {
        return Ok(None);
    }
    let query = Query::select().expr(lease_time(backend, now)).to_owned();
    match db.query_one(&query).await? {
        Some(row) => row.try_get_by_index(0).map(Some),
        None => Ok(None),
    }
}

/// Arbitrary, the same on every node: guards the setup of the installation.
const START_LOCK: i64 = 7_236_451_919;

/// Serializes nodes that start at the same time, until the end of `tx`: rows that do not exist yet
/// cannot be locked. On SQLite the transaction itself is the lock.
pub async fn serialized(tx: &impl ConnectionTrait, backend: Backend) -> Result<(), DbErr> {
    if backend == Backend::Postgres {
        let lock = format!("select pg_advisory_xact_lock({START_LOCK})");
        tx.execute_unprepared(&lock).await?;
    }
    Ok(())
}

/// Added to the id of a space, so that these lock numbers differ from the others.
const SPACE_LOCK_BASE: i64 = 1 << 60;

/// Serializes transactions that count rows of a space before they add one, until the end of `tx`.
/// No row is locked, so other transactions do not wait. On SQLite the transaction itself is the
/// lock.
pub async fn serialized_in_space(
    tx: &impl ConnectionTrait,
    backend: Backend,
    space: SpaceId,
) -> Result<(), DbErr> {
    if backend == Backend::Postgres {
        let lock = format!(
            "select pg_advisory_xact_lock({})",
            SPACE_LOCK_BASE + space.0
        );
        tx.execute_unprepared(&lock).await?;
    }
    Ok(())
}

/// Returns the text under `key` of a JSON document; null if the key is missing.
pub fn json_text(backend: Backend, column: impl IntoColumnRef, key: &str) -> SimpleExpr {
    let column = Expr::col(column);
    match backend {
        Backend::Sqlite => {
            let path = Expr::value(format!("$.{key}"));
            Expr::cust_with_exprs("json_extract(?, ?)", [column, path])
        }
        Backend::Postgres => Expr::cust_with_exprs("($1 ->> $2)", [column, Expr::value(key)]),
    }
}

/// Returns the integer under `key` of a JSON document; null if the key is missing.
pub fn json_number(backend: Backend, column: impl IntoColumnRef, key: &str) -> SimpleExpr {
    let text = json_text(backend, column, key);
    match backend {
        // SQLite already returns a number.
        Backend::Sqlite => text,
        Backend::Postgres => text.cast_as("bigint"),
    }
}

/// Returns the text of a JSON document as a value for a JSON column.
pub fn json_document(backend: Backend, text: &str) -> SimpleExpr {
    match backend {
        Backend::Sqlite => Expr::value(text),
        Backend::Postgres => Expr::value(text).cast_as("jsonb"),
    }
}

/// Returns the number of the current transaction, which has written something; SQLite has none.
pub fn transaction_number(backend: Backend) -> SimpleExpr {
    match backend {
        Backend::Sqlite => Expr::value(0_i64),
        Backend::Postgres => Expr::cust("txid_current()"),
    }
}

/// Returns the status of a transaction as text. On SQLite, which one process owns, everything that
/// can be read is committed.
pub fn transaction_status(backend: Backend, number: i64) -> SimpleExpr {
    match backend {
        Backend::Sqlite => Expr::value("committed"),
        Backend::Postgres => Expr::cust_with_values("txid_status($1)", [number]),
    }
}

/// What the database reported. The web layers, which do not use sea-orm, name it so.
pub type DbError = DbErr;

/// Returns whether the database rolled a transaction back because of another one: a retry may
/// succeed.
pub fn is_rolled_back(error: &(dyn std::error::Error + 'static)) -> bool {
    // A deadlock, or a serialization failure.
    database_code(error).is_some_and(|it| it.len() == 5 && it.starts_with("40"))
}

/// Returns the error code of the database, from anywhere in the chain of causes.
fn database_code<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<Cow<'a, str>> {
    std::iter::successors(Some(error), |it| it.source())
        .filter_map(|it| it.downcast_ref::<RuntimeErr>())
        .find_map(|it| match it {
            RuntimeErr::SqlxError(cause) => cause.as_database_error()?.code(),
            _ => None,
        })
}

/// Returns whether a statement failed because a row with the same unique key exists.
pub fn is_unique_violation(error: &DbErr) -> bool {
    matches!(error.sql_err(), Some(SqlErr::UniqueConstraintViolation(_)))
}

/// Returns whether the row that a statement changes, or refers to, does not exist (any more).
pub fn is_row_missing(error: &DbErr) -> bool {
    match error {
        DbErr::RecordNotUpdated | DbErr::RecordNotFound(_) => true,
        error => matches!(
            error.sql_err(),
            Some(SqlErr::ForeignKeyConstraintViolation(_))
        ),
    }
}

/// Returns whether the error is temporary: the database is unreachable, locked or full.
pub fn is_transient(error: &DbErr) -> bool {
    let cause = match error {
        DbErr::ConnectionAcquire(_) | DbErr::Conn(_) => return true,
        DbErr::Exec(RuntimeErr::SqlxError(cause)) | DbErr::Query(RuntimeErr::SqlxError(cause)) => {
            cause
        }
        _ => return false,
    };
    match cause.as_ref() {
        sqlx::Error::Io(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(error) => error.code().is_some_and(|it| is_transient_code(&it)),
        _ => false,
    }
}

/// Why a write did not reach the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageFailure {
    Full,
    ReadOnly,
    Io,
    /// SQLite only: a page of the file is malformed.
    Damaged,
}

impl StorageFailure {
    /// Returns a sentence for the operator.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Full => "The disk is full.",
            Self::ReadOnly => "The database cannot be written: it is read-only.",
            Self::Io => "The disk reported an I/O error.",
            Self::Damaged => "The database file is damaged.",
        }
    }
}

/// Returns the storage failure in an error or its causes; `None` if there is none.
pub fn storage_failure(error: &(dyn std::error::Error + 'static)) -> Option<StorageFailure> {
    database_code(error).and_then(|code| storage_failure_for_code(&code))
}

fn storage_failure_for_code(code: &str) -> Option<StorageFailure> {
    match (code.len(), code.parse::<u32>()) {
        (..5, Ok(number)) => match number & 0xff {
            8 => Some(StorageFailure::ReadOnly),
            // SQLITE_IOERR, and SQLITE_CANTOPEN: a file next to the database cannot be created.
            10 | 14 => Some(StorageFailure::Io),
            11 | 26 => Some(StorageFailure::Damaged),
            13 => Some(StorageFailure::Full),
            _ => None,
        },
        _ => match code {
            "53100" => Some(StorageFailure::Full),
            "25006" => Some(StorageFailure::ReadOnly),
            "58030" => Some(StorageFailure::Io),
            _ => None,
        },
    }
}

/// PostgreSQL's codes have five characters and a class; SQLite's are numbers, kind in the lowest
/// byte.
fn is_transient_code(code: &str) -> bool {
    match (code.len(), code.parse::<u32>()) {
        // Busy or locked, or a storage failure.
        (..5, Ok(number)) => {
            matches!(number & 0xff, 5 | 6) || storage_failure_for_code(code).is_some()
        }
        // Connection failures, rollbacks, resources, operator intervention, lock timeouts.
        _ => {
            code == "55P03"
                || storage_failure_for_code(code).is_some()
                || ["08", "40", "53", "57"]
                    .iter()
                    .any(|it| code.starts_with(it))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{StorageFailure, is_transient_code, storage_failure_for_code};

    #[test]
    fn storage_failures_are_recognized_by_code_on_both_databases() {
        for (code, failure) in [
            ("13", StorageFailure::Full),
            ("53100", StorageFailure::Full),
            ("8", StorageFailure::ReadOnly),
            ("776", StorageFailure::ReadOnly),
            ("25006", StorageFailure::ReadOnly),
            ("1034", StorageFailure::Io),
            ("58030", StorageFailure::Io),
            ("11", StorageFailure::Damaged),
            ("267", StorageFailure::Damaged),
            ("26", StorageFailure::Damaged),
        ] {
            assert_eq!(storage_failure_for_code(code), Some(failure), "{code}");
        }
        for other in ["1", "5", "19", "2067", "23505", "40001", "57P01"] {
            assert_eq!(storage_failure_for_code(other), None, "{other}");
        }
    }

    #[test]
    fn transient_errors_are_distinguished_from_permanent_ones() {
        for passing in [
            "5", "517", "6", "11", "13", "14", "26", "267", "25006", "58030", "08006", "40001",
            "40P01", "53300", "57014", "57P01", "55P03",
        ] {
            assert!(is_transient_code(passing), "{passing}");
        }
        for wrong in ["1", "19", "787", "2067", "23505", "42601", "22P05", "55000"] {
            assert!(!is_transient_code(wrong), "{wrong}");
        }
    }
}
