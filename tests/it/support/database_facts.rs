//! Queries the database directly, so that tests can compare it with the server's responses and
//! events.
//!
//! The same SQL for both databases: every column is cast to text, and ids of runs and rounds are
//! 32 hexadecimal digits.

use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::PgConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection, Row};

use crate::support::backends::{TestBackend, TestDatabase};

/// One row, with every column as text.
pub type TextRow = Vec<Option<String>>;

/// A separate read connection to the database of a server.
pub enum DatabaseFacts {
    Sqlite(Box<SqliteConnection>),
    Postgres(Box<PgConnection>),
}

impl DatabaseFacts {
    /// Connects; the file or the database must exist.
    pub async fn open(database: &TestDatabase) -> DatabaseFacts {
        match database.backend() {
            TestBackend::Sqlite => {
                let options =
                    SqliteConnectOptions::from_str(database.url()).expect("the URL is valid");
                let options = options.busy_timeout(Duration::from_secs(10));
                let connection = SqliteConnection::connect_with(&options)
                    .await
                    .expect("the SQLite file can be opened");
                DatabaseFacts::Sqlite(Box::new(connection))
            }
            TestBackend::Postgres => {
                let connection = PgConnection::connect(database.url())
                    .await
                    .expect("the test database answers");
                DatabaseFacts::Postgres(Box::new(connection))
            }
        }
    }

    /// Returns the rows of a SELECT whose columns are all text.
    pub async fn rows(&mut self, sql: &str) -> Vec<TextRow> {
        let query = AssertSqlSafe(sql.to_owned());
        let outcome = match self {
            DatabaseFacts::Sqlite(connection) => sqlx::query(query)
                .fetch_all(connection.as_mut())
                .await
                .map(|rows| rows.iter().map(columns).collect()),
            DatabaseFacts::Postgres(connection) => sqlx::query(query)
                .fetch_all(connection.as_mut())
                .await
                .map(|rows| rows.iter().map(columns).collect()),
        };
        outcome.unwrap_or_else(|error| panic!("{error}\nin: {sql}"))
    }

    /// Executes SQL that writes, for tests of the checks themselves.
    pub async fn execute(&mut self, sql: &str) {
        let query = AssertSqlSafe(sql.to_owned());
        let outcome = match self {
            DatabaseFacts::Sqlite(connection) => sqlx::raw_sql(query)
                .execute(connection.as_mut())
                .await
                .map(|_| ()),
            DatabaseFacts::Postgres(connection) => sqlx::raw_sql(query)
                .execute(connection.as_mut())
                .await
                .map(|_| ()),
        };
        outcome.unwrap_or_else(|error| panic!("{error}\nin: {sql}"));
    }

    /// Returns every row of every table as text, in order.
    pub async fn everything(&mut self) -> Vec<String> {
        let tables = match self {
            DatabaseFacts::Sqlite(_) => {
                "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
            }
            DatabaseFacts::Postgres(_) => {
                "SELECT CAST(tablename AS TEXT) FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
            }
        };
        let mut all = Vec::new();
        for table in self.rows(tables).await {
            let table = word(&table[0]);
            let row = self.whole_row(&table).await;
            let rows = self
                .rows(&format!("SELECT {row} FROM {table} ORDER BY 1"))
                .await;
            all.extend(rows.iter().map(|it| format!("{table}: {}", word(&it[0]))));
        }
        all
    }

    /// Returns the SQL expression for a row of a table as one text.
    async fn whole_row(&mut self, table: &str) -> String {
        if let DatabaseFacts::Postgres(_) = self {
            return format!("CAST({table} AS TEXT)");
        }
        let columns = format!("SELECT name FROM pragma_table_info('{table}')");
        let columns = self.rows(&columns).await;
        let each = columns
            .iter()
            .map(|it| format!("quote(\"{}\")", word(&it[0])));
        each.collect::<Vec<_>>().join(" || ', ' || ")
    }

    /// Disables foreign keys on this connection.
    pub async fn ignore_parents(&mut self) {
        match self {
            DatabaseFacts::Sqlite(_) => self.execute("PRAGMA foreign_keys = OFF").await,
            DatabaseFacts::Postgres(_) => {
                self.execute("SET session_replication_role = replica").await
            }
        }
    }

    /// Returns the number in the first row of a SELECT of one text column, or 0 if there is no row.
    pub async fn number(&mut self, sql: &str) -> i64 {
        let rows = self.rows(sql).await;
        let first = rows
            .first()
            .and_then(|row| row.first())
            .and_then(|column| column.as_deref());
        first.map_or(0, |text| {
            text.parse()
                .unwrap_or_else(|_| panic!("not a number: {text}\nin: {sql}"))
        })
    }

    /// Returns the SQL expression for the id of a run or a round.
    pub fn hex(&self, column: &str) -> String {
        match self {
            DatabaseFacts::Sqlite(_) => format!("lower(hex({column}))"),
            DatabaseFacts::Postgres(_) => format!("replace(CAST({column} AS TEXT), '-', '')"),
        }
    }

    /// Returns the SQL expression for any other column.
    pub fn text(&self, column: &str) -> String {
        format!("CAST({column} AS TEXT)")
    }

    /// Returns the `FROM` item that lists the slots of the rounds `r`; each slot is the JSON document
    /// `s.value`.
    pub fn slots(&self) -> &'static str {
        match self {
            DatabaseFacts::Sqlite(_) => "json_each(r.slots) s",
            DatabaseFacts::Postgres(_) => "jsonb_array_elements(r.slots) s",
        }
    }

    /// Returns `(seq, role, content)` of every message that is not hidden.
    pub async fn timeline(&mut self, conversation: i64) -> Vec<(i64, String, String)> {
        let sql = format!(
            "SELECT CAST(seq AS TEXT), role, content FROM messages \
             WHERE conversation_id = {conversation} AND visibility <> 'hidden' ORDER BY messages.seq"
        );
        let rows = self.rows(&sql).await;
        rows.into_iter()
            .map(|row| (number(&row[0]), word(&row[1]), word(&row[2])))
            .collect()
    }

    /// Returns every run of a conversation, oldest first.
    pub async fn runs(&mut self, conversation: i64) -> Vec<RunFact> {
        let sql = format!(
            "SELECT {}, kind, status, CAST(attempt AS TEXT) FROM conversation_runs \
             WHERE conversation_id = {conversation} ORDER BY created_at, id",
            self.hex("id")
        );
        let rows = self.rows(&sql).await;
        let run = |row: TextRow| RunFact {
            id: word(&row[0]),
            kind: word(&row[1]),
            status: word(&row[2]),
            attempt: number(&row[3]),
        };
        rows.into_iter().map(run).collect()
    }
}

/// The columns of a run that tests compare.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFact {
    pub id: String,
    pub kind: String,
    pub status: String,
    pub attempt: i64,
}

fn columns<R: Row>(row: &R) -> TextRow
where
    usize: sqlx::ColumnIndex<R>,
    Option<String>: for<'r> sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
{
    (0..row.len())
        .map(|at| {
            row.try_get(at)
                .unwrap_or_else(|error| panic!("column {at} is not text: {error}"))
        })
        .collect()
}

/// Returns a column that must not be NULL.
pub fn word(column: &Option<String>) -> String {
    column.clone().expect("the column is not NULL")
}

/// Returns a number that must not be NULL.
pub fn number(column: &Option<String>) -> i64 {
    word(column).parse().expect("the column is a number")
}
