//! Databases for tests, and the macros that run a test on SQLite, on PostgreSQL or on both.

use std::path::Path;
use std::{env, thread};

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};
use tempfile::TempDir;
use tokio::sync::OnceCell;
use troupe::db::connect::{Db, DbOptions};
use uuid::Uuid;

/// The file name of an SQLite database.
const SQLITE_FILE: &str = "troupe.db";

/// The database that a test runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestBackend {
    Sqlite,
    Postgres,
}

impl TestBackend {
    /// Every backend that is available on this machine. `bin/test` requires both.
    pub fn all() -> Vec<TestBackend> {
        [TestBackend::Sqlite, TestBackend::Postgres]
            .into_iter()
            .filter(|backend| backend.is_available())
            .collect()
    }

    /// Returns whether it is available. A required PostgreSQL that is missing is a failure.
    pub fn is_available(self) -> bool {
        let is_available = self == TestBackend::Sqlite || postgres_url().is_some();
        let is_required = env::var("TROUPE_REQUIRE_POSTGRES").is_ok_and(|value| value == "1");
        assert!(
            is_available || !is_required,
            "TROUPE_REQUIRE_POSTGRES=1, but TROUPE_TEST_POSTGRES_URL is not set"
        );
        is_available
    }
}

fn postgres_url() -> Option<String> {
    env::var("TROUPE_TEST_POSTGRES_URL")
        .ok()
        .filter(|url| !url.is_empty())
}

/// An empty database of one test; removed on drop.
pub struct TestDatabase {
    backend: TestBackend,
    url: String,
    /// The folder of the SQLite file, removed on drop.
    folder: Option<TempDir>,
    /// The name of the PostgreSQL database, dropped with this value.
    name: Option<String>,
}

/// Creates an empty database that no other test uses.
pub async fn fresh_database(backend: &TestBackend) -> TestDatabase {
    match backend {
        TestBackend::Sqlite => fresh_sqlite(),
        TestBackend::Postgres => fresh_postgres().await,
    }
}

fn fresh_sqlite() -> TestDatabase {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let url = sqlite_url(&folder.path().join(SQLITE_FILE));
    TestDatabase {
        backend: TestBackend::Sqlite,
        url,
        folder: Some(folder),
        name: None,
    }
}

/// Creates a database with all tables and no rows. It is a copy of a template that is migrated once
/// per test process, because a migration takes longer than most tests.
pub async fn migrated_database(backend: &TestBackend) -> TestDatabase {
    match backend {
        TestBackend::Sqlite => {
            static TEMPLATE: OnceCell<TestDatabase> = OnceCell::const_new();
            let template = TEMPLATE.get_or_init(|| migrate(fresh_sqlite())).await;
            let database = fresh_sqlite();
            let file = |it: &TestDatabase| it.folder().expect("a file").join(SQLITE_FILE);
            std::fs::copy(file(template), file(&database)).expect("the template can be copied");
            database
        }
        TestBackend::Postgres => {
            static TEMPLATE: OnceCell<String> = OnceCell::const_new();
            let template = TEMPLATE
                .get_or_init(async || {
                    let mut template = migrate(fresh_postgres().await).await;
                    // It is needed until the process ends, so it is never dropped.
                    template.name.take().expect("the template has a name")
                })
                .await;
            // Twice as fast as the default, which also writes the copy to the write-ahead log. Needs
            // PostgreSQL 15.
            postgres_from(&format!(" TEMPLATE {template} STRATEGY FILE_COPY")).await
        }
    }
}

/// Applies all migrations and closes all connections: PostgreSQL copies only a database without
/// sessions, and SQLite then has all data in one file.
async fn migrate(database: TestDatabase) -> TestDatabase {
    let options = DbOptions {
        url: database.url().to_owned(),
        synchronous_full: false,
    };
    let db = Db::connect(&options).await.expect("the template opens");
    db.migrate()
        .await
        .expect("an empty database can be migrated");
    db.close().await;
    database
}

fn sqlite_url(file: &Path) -> String {
    format!("sqlite://{}?mode=rwc", file.display())
}

async fn fresh_postgres() -> TestDatabase {
    postgres_from("").await
}

/// `template`: the `TEMPLATE` clause of `CREATE DATABASE`, or an empty string.
async fn postgres_from(template: &str) -> TestDatabase {
    let admin = postgres_url().expect("TROUPE_TEST_POSTGRES_URL is set");
    let name = format!("troupe_{}", Uuid::new_v4().simple());
    run_on_postgres(&admin, &format!("CREATE DATABASE {name}{template}"))
        .await
        .expect("the test account may create databases");
    let url = with_database(&admin, &name);
    TestDatabase {
        backend: TestBackend::Postgres,
        url,
        folder: None,
        name: Some(name),
    }
}

/// Replaces the database name in a URL and keeps its host and parameters.
fn with_database(url: &str, name: &str) -> String {
    let (address, parameters) = url
        .split_once('?')
        .map_or((url, None), |(address, rest)| (address, Some(rest)));
    let host_from = address.find("://").map_or(0, |at| at + 3);
    let host_to = address[host_from..]
        .find('/')
        .map_or(address.len(), |at| host_from + at);
    let parameters = parameters
        .map(|rest| format!("?{rest}"))
        .unwrap_or_default();
    format!("{}/{name}{parameters}", &address[..host_to])
}

async fn run_on_postgres(url: &str, sql: &str) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(&mut connection)
        .await?;
    connection.close().await
}

impl TestDatabase {
    /// A database of a PostgreSQL server that the test itself started.
    pub fn of_a_server(url: String) -> TestDatabase {
        TestDatabase {
            backend: TestBackend::Postgres,
            url,
            folder: None,
            name: None,
        }
    }

    /// An SQLite file in a folder that the test removes itself.
    pub fn in_folder(folder: &Path) -> TestDatabase {
        TestDatabase {
            backend: TestBackend::Sqlite,
            url: sqlite_url(&folder.join("troupe.db")),
            folder: None,
            name: None,
        }
    }

    pub fn backend(&self) -> TestBackend {
        self.backend
    }

    /// The value of `DATABASE_URL`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The folder of the SQLite file; a server may also keep its data there.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(TempDir::path)
    }
}

impl Drop for TestDatabase {
    /// Best effort: `bin/test` removes its whole PostgreSQL server at the end.
    fn drop(&mut self) {
        let (Some(name), Some(admin)) = (self.name.take(), postgres_url()) else {
            return;
        };
        let drop_it = move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .ok()?;
            runtime
                .block_on(run_on_postgres(
                    &admin,
                    &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"),
                ))
                .ok()
        };
        // A runtime cannot be entered twice on one thread, and tests drop this inside of one.
        let _ = thread::spawn(drop_it).join();
    }
}

/// Defines a module with the tests `sqlite` and `postgres` of a rule; the latter gets the
/// attributes in brackets.
macro_rules! backend_tests {
    (
        [$($postgres:meta)?]
        $(#[$meta:meta])* async fn $name:ident($backend:ident) $body:block
    ) => {
        $(#[$meta])*
        mod $name {
            // Uses the imports of the surrounding file.
            #[allow(unused_imports)]
            use super::*;

            async fn rule($backend: $crate::support::backends::TestBackend) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                rule($crate::support::backends::TestBackend::Sqlite).await;
            }

            $(#[$postgres])?
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                if !$crate::support::backends::TestBackend::Postgres.is_available() {
                    eprintln!("not run: TROUPE_TEST_POSTGRES_URL is not set");
                    return;
                }
                rule($crate::support::backends::TestBackend::Postgres).await;
            }
        }
    };
}

/// Runs each rule on SQLite and on PostgreSQL: for a rule whose result depends on the database
/// (locks, isolation, commits, SQL text, how a value is stored).
macro_rules! on_both {
    ($($(#[$meta:meta])* async fn $name:ident($backend:ident) $body:block)+) => {$(
        $crate::support::backends::backend_tests! {
            []
            $(#[$meta])* async fn $name($backend) $body
        }
    )+};
}

/// Runs each rule on SQLite, and with `bin/test --slow` on PostgreSQL too: for every other rule.
// Unused in the browser and chaos tests, which include this file.
#[allow(unused_macros)]
macro_rules! on_sqlite {
    ($($(#[$meta:meta])* async fn $name:ident($backend:ident) $body:block)+) => {$(
        $crate::support::backends::backend_tests! {
            [ignore = "independent of the database: runs with bin/test --slow"]
            $(#[$meta])* async fn $name($backend) $body
        }
    )+};
}

pub(crate) use backend_tests;
pub(crate) use on_both;
pub(crate) use on_sqlite;

#[cfg(test)]
mod tests {
    use super::{fresh_database, migrated_database, with_database};
    use crate::support::database_facts::DatabaseFacts;

    #[test]
    fn a_database_url_keeps_its_host_and_its_parameters() {
        assert_eq!(
            with_database("postgres://me@host:5/one?sslmode=disable", "two"),
            "postgres://me@host:5/two?sslmode=disable"
        );
        assert_eq!(
            with_database("postgres://me@host", "two"),
            "postgres://me@host/two"
        );
    }

    on_both! {
        async fn a_migrated_database_has_the_tables_and_shares_no_row(backend) {
            let one = migrated_database(&backend).await;
            let two = migrated_database(&backend).await;
            let add = "INSERT INTO users (username, username_key, display_name, created_at) VALUES ('ann', 'ann', 'Ann', 0)";

            DatabaseFacts::open(&one).await.execute(add).await;

            let count = "SELECT CAST(count(*) AS TEXT) FROM users";
            assert_eq!(DatabaseFacts::open(&one).await.number(count).await, 1);
            assert_eq!(DatabaseFacts::open(&two).await.number(count).await, 0);
        }

        async fn two_tests_never_share_a_database(backend) {
            let one = fresh_database(&backend).await;
            let two = fresh_database(&backend).await;
            assert_ne!(one.url(), two.url());

            let rows = DatabaseFacts::open(&one).await.rows("SELECT '1', NULL").await;
            assert_eq!(rows, [[Some("1".to_owned()), None]]);
        }
    }
}
