//! The migrations run up and down on both databases and leave nothing behind.

use std::process::{Child, Command, Stdio};
use std::time::Instant;

use futures::future::join_all;
use migration::{Migrator, MigratorTrait};
use sea_orm::{ConnectionTrait, Database, Statement};
use troupe::db::connect::Db;

use crate::support::backends::{TestBackend, TestDatabase, fresh_database, on_both};
use crate::support::database_facts::{DatabaseFacts, word};
use crate::support::engine_test_builder::connect;

on_both! {
    async fn every_step_goes_forward_and_back(backend) {
        let database = fresh_database(&backend).await;
        let connection = Database::connect(database.url()).await.expect("the test database answers");
        let mut facts = DatabaseFacts::open(&database).await;

        Migrator::up(&connection, None).await.expect("every step goes forward");
        let first = tables(&mut facts, backend).await;
        Migrator::down(&connection, None).await.expect("every step goes back");
        let between = tables(&mut facts, backend).await;
        Migrator::up(&connection, None).await.expect("and forward again");

        assert!(first.iter().any(|table| table == "conversation_runs"), "{first:?}");
        assert_eq!(between, ["seaql_migrations"], "a step back leaves nothing of its own");
        assert_eq!(tables(&mut facts, backend).await, first);
    }

    async fn a_conversation_has_one_place_for_a_queued_and_one_for_a_running_run(backend) {
        let database = fresh_database(&backend).await;
        let connection = Database::connect(database.url()).await.expect("the test database answers");
        Migrator::up(&connection, None).await.expect("every step goes forward");
        let mut facts = DatabaseFacts::open(&database).await;

        let guards = match backend {
            TestBackend::Sqlite => "SELECT sql FROM sqlite_master WHERE type = 'index' AND sql LIKE '%UNIQUE%WHERE%' ORDER BY name",
            TestBackend::Postgres => "SELECT indexdef FROM pg_indexes WHERE indexdef LIKE '%UNIQUE%WHERE%' ORDER BY indexname",
        };
        let guards: Vec<String> = facts.rows(guards).await.iter().map(|row| word(&row[0])).collect();

        for name in ["one_running_run_per_conversation", "one_queued_run_per_conversation", "one_active_round_per_conversation", "one_message_per_run"] {
            assert!(guards.iter().any(|guard| guard.contains(name)), "{name} is missing in {guards:?}");
        }
    }

    async fn the_newest_messages_of_conversations_that_exist_are_stored(backend) {
        let database = fresh_database(&backend).await;
        let connection = Database::connect(database.url()).await.expect("the test database answers");
        Migrator::up(&connection, None).await.expect("every step goes forward");
        let newest = "m20261123_000054_store_newest_messages";
        let steps = Migrator::migrations();
        let n_later = steps.iter().rev().take_while(|step| step.name() != newest).count();
        let n_later = u32::try_from(n_later).expect("few steps") + 1;
        Migrator::down(&connection, Some(n_later)).await.expect("the steps go back");
        connection.execute_unprepared(MESSAGES_THAT_EXIST).await.expect("they can be inserted");

        Migrator::up(&connection, None).await.expect("the step goes forward");

        let mut facts = DatabaseFacts::open(&database).await;
        let stored = "SELECT CAST(last_speaker_membership_id AS TEXT), CAST(last_assistant_seq AS TEXT), \
            CAST(last_user_seq AS TEXT) FROM conversations ORDER BY id";
        let stored = facts.rows(stored).await;
        let text = |it: &str| Some(it.to_owned());
        assert_eq!(stored, [vec![text("2"), text("3"), text("4")], vec![None, None, None]]);
    }

    async fn a_run_that_goes_finds_its_messages_without_reading_all(backend) {
        let database = fresh_database(&backend).await;
        let connection = Database::connect(database.url()).await.expect("the test database answers");
        Migrator::up(&connection, None).await.expect("every step goes forward");

        // The statement that both databases run for each deleted run. An empty table is scanned
        // unless that is disabled.
        let forget = "UPDATE messages SET conversation_run_id = NULL WHERE conversation_run_id =";
        let (explain, column) = match backend {
            TestBackend::Sqlite => (format!("EXPLAIN QUERY PLAN {forget} x'00'"), "detail"),
            TestBackend::Postgres => {
                let forbid = format!("ALTER DATABASE {} SET enable_seqscan = off", name_of(&database));
                connection.execute_unprepared(&forbid).await.expect("it is ours");
                (format!("EXPLAIN {forget} gen_random_uuid()"), "QUERY PLAN")
            }
        };
        let fresh = Database::connect(database.url()).await.expect("the test database answers");
        let explain = Statement::from_string(fresh.get_database_backend(), explain);
        let plan = fresh.query_all_raw(explain).await.expect("it is explained");

        let plan: Vec<String> = plan.iter().map(|row| row.try_get("", column).expect("it is text")).collect();
        assert!(plan.join(" ").contains("messages_of_a_run"), "{plan:?}");
    }

    async fn what_goes_with_something_else_is_found_without_reading_all(backend) {
        let database = fresh_database(&backend).await;
        let connection = Database::connect(database.url()).await.expect("the test database answers");
        Migrator::up(&connection, None).await.expect("every step goes forward");
        let mut facts = DatabaseFacts::open(&database).await;

        let sought = match backend {
            TestBackend::Sqlite => SOUGHT_ON_SQLITE,
            TestBackend::Postgres => SOUGHT_ON_POSTGRES,
        };
        let sought: Vec<String> = facts.rows(sought).await.iter().map(|row| word(&row[0])).collect();

        assert_eq!(sought, READ_WHOLE, "each of these has its table read whole for each row that goes");
    }

    // The kill may happen at any moment: the next start must find or complete a whole schema.
    async fn a_killed_migration_leaves_complete_steps(backend) {
        let whole = fresh_database(&backend).await;
        let begun = Instant::now();
        finish(migrates(&whole));
        let takes = begun.elapsed();
        let wanted = schema(&whole).await;
        let mut n_killed = 0;
        for n in 1..=KILLS {
            let database = fresh_database(&backend).await;
            let mut process = migrates(&database);
            tokio::time::sleep(takes * n / KILLS).await;
            n_killed += usize::from(matches!(process.try_wait(), Ok(None)));
            process.kill().expect("it is ours");
            process.wait().expect("it is ours");

            finish(migrates(&database));

            assert_eq!(schema(&database).await, wanted, "killed after {n}/{KILLS} of {takes:?}");
        }
        assert!(n_killed > 0, "each was done before it could be killed");
    }
}

/// Two conversations: one with visible and hidden messages of each role, and one without messages.
const MESSAGES_THAT_EXIST: &str = "\
    INSERT INTO spaces (id, name, description, settings, created_at) VALUES (1, 'Inn', '', '{}', 0); \
    INSERT INTO space_memberships (id, space_id, kind, cached_display_name, aliases, settings, created_at) \
      VALUES (1, 1, 'human', 'Eve', '[]', '{}', 0), (2, 1, 'character', 'Ada', '[]', '{}', 0), \
        (3, 1, 'character', 'Bob', '[]', '{}', 0); \
    INSERT INTO conversations (id, space_id, title, settings, variables, created_at) \
      VALUES (1, 1, 'On stage', '{}', '{}', 0), (2, 1, 'Empty', '{}', '{}', 0); \
    INSERT INTO messages (conversation_id, seq, space_membership_id, role, content, visibility, created_at, rev, metadata) \
      VALUES (1, 1, 1, 'user', 'a', 'normal', 0, 1, '{}'), (1, 2, 3, 'assistant', 'b', 'normal', 0, 1, '{}'), \
        (1, 3, 2, 'assistant', 'c', 'excluded', 0, 1, '{}'), (1, 4, 1, 'user', 'd', 'normal', 0, 1, '{}'), \
        (1, 5, 3, 'assistant', 'e', 'hidden', 0, 1, '{}'), (1, 6, 1, 'user', 'f', 'hidden', 0, 1, '{}'), \
        (1, 7, 1, 'system', 'g', 'normal', 0, 1, '{}')";

/// References without an index. Only admins delete providers, and memberships are few.
const READ_WHOLE: &[&str] = &["space_memberships.llm_provider_id"];

/// An index is usable if the column comes first and the index omits no row with a reference.
const SOUGHT_ON_POSTGRES: &str = "\
    SELECT c.conrelid::regclass || '.' || a.attname FROM pg_constraint c \
    JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1] \
    WHERE c.contype = 'f' AND NOT EXISTS (SELECT 1 FROM pg_index i \
      WHERE i.indrelid = c.conrelid AND i.indkey[0] = c.conkey[1] AND (i.indpred IS NULL \
        OR pg_get_expr(i.indpred, i.indrelid) = '(' || a.attname || ' IS NOT NULL)')) \
    ORDER BY 1";

const SOUGHT_ON_SQLITE: &str = "\
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
        .expect("a URL ends with a name")
}

/// At how many moments of a migration the process is killed.
const KILLS: u32 = 8;

fn migrates(database: &TestDatabase) -> Child {
    let folder = std::env::temp_dir();
    let mut command = Command::new(env!("CARGO_BIN_EXE_troupe"));
    command.env_clear().current_dir(folder).arg("migrate");
    command.env("DATABASE_URL", database.url());
    command.env("TROUPE_SECRET_KEY", "5e".repeat(32));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("the binary can be started")
}

fn finish(mut process: Child) {
    let ended = process.wait().expect("it is ours");
    assert!(ended.success(), "the next start ends with {ended}");
}

/// Returns every column, index and constraint, and the applied migrations.
async fn schema(database: &TestDatabase) -> Vec<String> {
    let mut facts = DatabaseFacts::open(database).await;
    let questions: &[&str] = match database.backend() {
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
    for question in questions {
        let rows = facts.rows(question).await;
        schema.extend(rows.iter().map(|row| word(&row[0])));
    }
    schema
}

/// On SQLite, the lock next to the file stops a second process before this point.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_start_at_once_on_an_empty_database_bring_it_up_to_date_together() {
    if !TestBackend::Postgres.is_available() {
        eprintln!("no PostgreSQL is given: not tested");
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
