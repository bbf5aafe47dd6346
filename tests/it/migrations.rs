//! The tables go forward and back on both databases, and leave nothing behind.

use futures::future::join_all;
use migration::Migrator;
use migration::MigratorTrait;
use sea_orm::Database;
use troupe::db::connect::Db;

use crate::support::backends::Backend;
use crate::support::backends::fresh_database;
use crate::support::backends::on_both;
use crate::support::blueprint::connect;
use crate::support::facts::Facts;
use crate::support::facts::word;

on_both! {
    async fn every_step_goes_forward_and_back(backend) {
        let database = fresh_database(&backend).await;
        let connection = Database::connect(database.url()).await.expect("the test database answers");
        let mut facts = Facts::open(&database).await;

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
        let mut facts = Facts::open(&database).await;

        let guards = match backend {
            Backend::Sqlite => "SELECT sql FROM sqlite_master WHERE type = 'index' AND sql LIKE '%UNIQUE%WHERE%' ORDER BY name",
            Backend::Postgres => "SELECT indexdef FROM pg_indexes WHERE indexdef LIKE '%UNIQUE%WHERE%' ORDER BY indexname",
        };
        let guards: Vec<String> = facts.rows(guards).await.iter().map(|row| word(&row[0])).collect();

        for name in ["one_running_run_per_conversation", "one_queued_run_per_conversation", "one_active_round_per_conversation", "one_message_per_run"] {
            assert!(guards.iter().any(|guard| guard.contains(name)), "{name} is missing in {guards:?}");
        }
    }
}

/// On SQLite the lock beside the file keeps a second process from getting this far.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_start_at_once_on_an_empty_database_bring_it_up_to_date_together() {
    if !Backend::Postgres.is_given() {
        eprintln!("no PostgreSQL is given: not tested");
        return;
    }
    for _ in 0..5 {
        let database = fresh_database(&Backend::Postgres).await;
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

async fn tables(facts: &mut Facts, backend: Backend) -> Vec<String> {
    let sql = match backend {
        Backend::Sqlite => {
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name"
        }
        Backend::Postgres => {
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
