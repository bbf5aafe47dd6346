//! The migrations run up and down on both databases and leave nothing behind.

use std::process::{Child, Command, Stdio};
use std::time::Instant;

use futures::future::join_all;
use migration::{Migrator, MigratorTrait};
use sea_orm::{ConnectionTrait, Database, DatabaseConnection, Statement, TransactionTrait};
use troupe::db::connect::Db;

use crate::support::backends::{TestBackend, TestDatabase, fresh_database, on_both};
use crate::support::database_facts::{DatabaseFacts, word};
use crate::support::engine_test_builder::connect;
use crate::support::poll;

on_both! {
    async fn every_migration_can_be_applied_and_reverted(backend) {
        let database = fresh_database(&backend).await;
        let connection = Database::connect(database.url()).await.expect("the test database is reachable");
        let mut facts = DatabaseFacts::open(&database).await;

        Migrator::up(&connection, None).await.expect("all migrations are applied");
        let first = tables(&mut facts, backend).await;
        Migrator::down(&connection, None).await.expect("all migrations are reverted");
        let between = tables(&mut facts, backend).await;
        Migrator::up(&connection, None).await.expect("all migrations are applied again");

        assert!(first.iter().any(|table| table == "conversation_runs"), "{first:?}");
        assert_eq!(between, ["seaql_migrations"], "a reverted migration left tables");
        assert_eq!(tables(&mut facts, backend).await, first);
    }

    async fn unique_indexes_allow_one_queued_and_one_running_run_per_conversation(backend) {
        let database = fresh_database(&backend).await;
        let connection = Database::connect(database.url()).await.expect("the test database is reachable");
        Migrator::up(&connection, None).await.expect("all migrations are applied");
        let mut facts = DatabaseFacts::open(&database).await;

        let indexes = match backend {
            TestBackend::Sqlite => "SELECT sql FROM sqlite_master WHERE type = 'index' AND sql LIKE '%UNIQUE%WHERE%' ORDER BY name",
            TestBackend::Postgres => "SELECT indexdef FROM pg_indexes WHERE indexdef LIKE '%UNIQUE%WHERE%' ORDER BY indexname",
        };
        let indexes: Vec<String> = facts.rows(indexes).await.iter().map(|row| word(&row[0])).collect();

        for name in ["one_running_run_per_conversation", "one_queued_run_per_conversation", "one_active_round_per_conversation", "one_message_per_run"] {
            assert!(indexes.iter().any(|index| index.contains(name)), "{name} is missing in {indexes:?}");
        }
    }

    async fn deleting_a_run_finds_its_messages_by_an_index(backend) {
        let database = fresh_database(&backend).await;
        let connection = Database::connect(database.url()).await.expect("the test database is reachable");
        Migrator::up(&connection, None).await.expect("all migrations are applied");

        // The statement that both databases run for each deleted run. An empty table is scanned
        // unless that is disabled.
        let unlink =
            "UPDATE messages SET conversation_run_id = NULL WHERE conversation_run_id =";
        let (explain, column) = match backend {
            TestBackend::Sqlite => (format!("EXPLAIN QUERY PLAN {unlink} x'00'"), "detail"),
            TestBackend::Postgres => {
                let disable_scans = format!("ALTER DATABASE {} SET enable_seqscan = off", name_of(&database));
                connection
                    .execute_unprepared(&disable_scans)
                    .await
                    .expect("the setting is changed");
                (format!("EXPLAIN {unlink} gen_random_uuid()"), "QUERY PLAN")
            }
        };
        let fresh = Database::connect(database.url())
            .await
            .expect("the test database is reachable");
        let explain = Statement::from_string(fresh.get_database_backend(), explain);
        let plan = fresh.query_all_raw(explain).await.expect("EXPLAIN succeeds");

        let plan: Vec<String> = plan.iter().map(|row| row.try_get("", column).expect("the column is text")).collect();
        assert!(plan.join(" ").contains("messages_of_a_run"), "{plan:?}");
    }

    async fn every_foreign_key_except_the_listed_ones_has_an_index(backend) {
        let database = fresh_database(&backend).await;
        let connection = Database::connect(database.url()).await.expect("the test database is reachable");
        Migrator::up(&connection, None).await.expect("all migrations are applied");
        let mut facts = DatabaseFacts::open(&database).await;

        let without_index = match backend {
            TestBackend::Sqlite => WITHOUT_INDEX_ON_SQLITE,
            TestBackend::Postgres => WITHOUT_INDEX_ON_POSTGRES,
        };
        let without_index: Vec<String> = facts.rows(without_index).await.iter().map(|row| word(&row[0])).collect();

        assert_eq!(without_index, ALLOWED_WITHOUT_INDEX, "deleting a referenced row scans the tables of these columns");
    }

    // The kill may happen at any moment: the next start must find or complete a valid schema.
    async fn a_killed_migration_leaves_complete_steps(backend) {
        let complete = fresh_database(&backend).await;
        let started = Instant::now();
        wait_for_success(start_migration(&complete));
        let duration = started.elapsed();
        let expected = schema(&complete).await;
        let mut n_killed = 0;
        for n in 1..=KILLS {
            let database = fresh_database(&backend).await;
            let mut process = start_migration(&database);
            tokio::time::sleep(duration * n / KILLS).await;
            n_killed += usize::from(matches!(process.try_wait(), Ok(None)));
            process.kill().expect("the process can be killed");
            process.wait().expect("the process has exited");

            wait_for_success(start_migration(&database));

            assert_eq!(
                schema(&database).await,
                expected,
                "killed after {n}/{KILLS} of {duration:?}"
            );
        }
        assert!(n_killed > 0, "every migration ended before it could be killed");
    }
}

/// PostgreSQL ends the last statement of a killed process, which may commit a step.
#[tokio::test]
async fn a_migration_waits_for_the_last_statement_of_a_killed_one() {
    if !TestBackend::Postgres.is_available() {
        return; // an SQLite transaction ends with its process
    }
    let database = fresh_database(&TestBackend::Postgres).await;
    wait_for_success(start_migration(&database));
    let connection = Database::connect(database.url()).await;
    let connection = connection.expect("the test database is unreachable");
    revert_from("m20261126_000072_roster_revisions", &connection).await;
    let reader = connection.begin().await.expect("BEGIN failed");
    // This step alters this table.
    let locked = reader.execute_unprepared("LOCK TABLE spaces IN ACCESS SHARE MODE");
    locked.await.expect("LOCK failed");

    let mut killed = start_migration(&database);
    wait_for_lock(&database, "relation").await;
    killed.kill().expect("the process could not be killed");
    killed.wait().expect("the process could not be awaited");
    let next = start_migration(&database);
    wait_for_lock(&database, "advisory").await;

    reader.rollback().await.expect("ROLLBACK failed");
    wait_for_success(next);
}

/// Reverts this migration and all later ones.
pub async fn revert_from(step: &str, connection: &DatabaseConnection) {
    let steps = Migrator::migrations();
    let n_later = steps.iter().rev().take_while(|it| it.name() != step);
    let n_later = u32::try_from(n_later.count()).expect("the number of migrations fits into u32");
    let reverted = Migrator::down(connection, Some(n_later + 1)).await;
    reverted.expect("the migrations are reverted");
}

/// Waits until a statement waits for a lock of this type.
async fn wait_for_lock(database: &TestDatabase, kind: &str) {
    let mut facts = DatabaseFacts::open(database).await;
    let waiting = format!(
        "SELECT CAST(pid AS TEXT) FROM pg_locks WHERE NOT granted AND locktype = '{kind}' \
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    );
    poll::until("a statement waits for the lock", async || {
        (!facts.rows(&waiting).await.is_empty()).then_some(())
    })
    .await;
}

/// References without an index. Only admins delete providers, and memberships are few.
const ALLOWED_WITHOUT_INDEX: &[&str] = &["space_memberships.llm_provider_id"];

/// An index is usable if the column comes first and the index omits no row with a reference.
const WITHOUT_INDEX_ON_POSTGRES: &str = "\
    SELECT c.conrelid::regclass || '.' || a.attname FROM pg_constraint c \
    JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1] \
    WHERE c.contype = 'f' AND NOT EXISTS (SELECT 1 FROM pg_index i \
      WHERE i.indrelid = c.conrelid AND i.indkey[0] = c.conkey[1] AND (i.indpred IS NULL \
        OR pg_get_expr(i.indpred, i.indrelid) = '(' || a.attname || ' IS NOT NULL)')) \
    ORDER BY 1";

const WITHOUT_INDEX_ON_SQLITE: &str = "\
    SELECT t.name || '.' || f.\"from\" FROM sqlite_master t, pragma_foreign_key_list(t.name) f \
    WHERE t.type = 'table' AND NOT EXISTS (SELECT 1 FROM pragma_index_list(t.name) i \
      JOIN pragma_index_info(i.name) c LEFT JOIN sqlite_master m ON m.name = i.name \
      WHERE c.seqno = 0 AND c.name = f.\"from\" \
        AND (NOT i.partial OR m.sql LIKE '%WHERE \"' || f.\"from\" || '\" IS NOT NULL')) \
    ORDER BY 1";

fn name_of(database: &TestDatabase) -> &str {
    database
        .url()
        .rsplit('/')
        .next()
        .expect("the URL ends with a database name")
}

/// The number of moments of a migration at which the process is killed.
const KILLS: u32 = 8;

fn start_migration(database: &TestDatabase) -> Child {
    let folder = std::env::temp_dir();
    let mut command = Command::new(env!("CARGO_BIN_EXE_troupe"));
    command.env_clear().current_dir(folder).arg("migrate");
    command.env("DATABASE_URL", database.url());
    command.env("TROUPE_SECRET_KEY", "5e".repeat(32));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("the binary can be started")
}

fn wait_for_success(mut process: Child) {
    let ended = process.wait().expect("the process has exited");
    assert!(ended.success(), "the migration failed: {ended}");
}

/// Returns every column, index and constraint, and the applied migrations.
async fn schema(database: &TestDatabase) -> Vec<String> {
    let mut facts = DatabaseFacts::open(database).await;
    let queries: &[&str] = match database.backend() {
        TestBackend::Sqlite => &[
            "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_master ORDER BY 1",
            "SELECT version FROM seaql_migrations ORDER BY 1",
        ],
        TestBackend::Postgres => &[
            "SELECT concat(table_name, '.', column_name, ' ', data_type, ' ', is_nullable, ' ', column_default) \
             FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1",
            "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1",
            "SELECT concat(conname, ' ', pg_get_constraintdef(oid)) FROM pg_constraint \
             WHERE connamespace = 'public'::regnamespace ORDER BY 1",
            "SELECT CAST(version AS TEXT) FROM seaql_migrations ORDER BY 1",
        ],
    };
    let mut schema = Vec::new();
    for query in queries {
        let rows = facts.rows(query).await;
        schema.extend(rows.iter().map(|row| word(&row[0])));
    }
    schema
}

/// On SQLite, the lock next to the file stops a second process before this point.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_start_concurrently_on_an_empty_database_all_succeed() {
    if !TestBackend::Postgres.is_available() {
        eprintln!("skipped: PostgreSQL is not configured");
        return;
    }
    for _ in 0..5 {
        let database = fresh_database(&TestBackend::Postgres).await;
        let mut nodes = Vec::new();
        for _ in 0..4 {
            nodes.push(connect(database.url()).await);
        }

        let results = join_all(nodes.iter().map(Db::migrate)).await;

        assert!(results.iter().all(Result::is_ok), "{results:?}");
        for node in nodes {
            assert_eq!(node.missing_migrations().await, Ok(0));
            node.close().await;
        }
    }
}

async fn tables(facts: &mut DatabaseFacts, backend: TestBackend) -> Vec<String> {
    let sql = match backend {
        TestBackend::Sqlite => {
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name"
        }
        TestBackend::Postgres => {
            "SELECT CAST(tablename AS TEXT) FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename"
        }
    };
    facts
        .rows(sql)
        .await
        .iter()
        .map(|row| word(&row[0]))
        .collect()
}
