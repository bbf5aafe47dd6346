//! A COMMIT fails in the database: everything that is acknowledged afterwards is stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr};
use serde_json::json;
use troupe::db::connect::Db;

use crate::support::acknowledged_writes::{AcknowledgedWrites, Writer};
use crate::support::app::TestApp;
use crate::support::backends::{TestBackend, on_both};
use crate::support::database_facts::DatabaseFacts;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{HttpClient, root_of};
use crate::support::poll;
use crate::support::test_space::model_env;

/// Makes the COMMIT of the transaction fail. On SQLite the transaction is already rolled back, as
/// after a disk error; PostgreSQL rejects it because of a deferred constraint.
async fn make_commit_fail(tx: &DatabaseTransaction) -> Result<(), DbErr> {
    let statements = match tx.get_database_backend() {
        sea_orm::DbBackend::Sqlite => "ROLLBACK",
        _ => {
            "CREATE TEMPORARY TABLE twice (id int UNIQUE DEFERRABLE INITIALLY DEFERRED); INSERT INTO twice VALUES (1), (1)"
        }
    };
    tx.execute_unprepared(statements).await.map(drop)
}

async fn fail_a_commit(db: &Db) {
    let failed: Result<(), DbErr> = db.write(|tx| Box::pin(make_commit_fail(tx))).await;
    failed.expect_err("the COMMIT fails");
}

async fn roll_back(db: &Db) {
    let refused: Result<(), DbErr> = db
        .write(|_| Box::pin(async { Err(DbErr::Custom("refused".to_owned())) }))
        .await;
    refused.expect_err("the write is rolled back");
}

/// Marks the writing connection with a state that ends with the connection.
async fn mark_connection(db: &Db) {
    let marked: Result<(), DbErr> = db
        .write(|tx| {
            Box::pin(async move {
                let mark = "CREATE TEMPORARY TABLE connection_mark (id int)";
                tx.execute_unprepared(mark).await.map(drop)
            })
        })
        .await;
    marked.expect("the connection works");
}

/// Returns whether the next transactions still use the marked connection.
async fn is_marked(db: &Db) -> bool {
    for _ in 0..30 {
        let found: Result<(), DbErr> = db
            .write(|tx| {
                Box::pin(async move {
                    let mark = "SELECT id FROM connection_mark";
                    tx.execute_unprepared(mark).await.map(drop)
                })
            })
            .await;
        if found.is_ok() {
            return true;
        }
    }
    false
}

on_both! {
    async fn after_a_failed_commit_every_acknowledged_write_is_in_the_database(backend) {
        let upstream = FakeProvider::start().await;
        let base_url = upstream.base_url();
        let app = TestApp::start_with(backend, &model_env(&base_url)).await;
        let ann = HttpClient::set_up(&app.base, "ann").await;
        let space = ann.create_space("Stage", json!({})).await;
        let writer = Writer::new(&ann, root_of(&space)).await;
        let mut facts = DatabaseFacts::open(&app.database).await;
        let mut acknowledged = AcknowledgedWrites::default();

        fail_a_commit(&app.app.db).await;
        roll_back(&app.app.db).await;
        for _ in 0..20 {
            assert_eq!(acknowledged.post(&writer, "After the failure").await, 201);
            assert_eq!(acknowledged.missing(&mut facts).await, Vec::<String>::new());
        }
        for _ in 0..3 {
            acknowledged.write_other_kinds(&writer).await;
        }

        assert_eq!(acknowledged.n_writes(), 20 + 3 * 4);
        assert_eq!(acknowledged.missing(&mut facts).await, Vec::<String>::new());
        drop(facts);
        app.close().await;
    }

    async fn a_failed_commit_makes_the_server_not_ready_until_a_write_probe_succeeds(backend) {
        let app = TestApp::start(backend).await;
        let ann = HttpClient::set_up(&app.base, "ann").await;

        fail_a_commit(&app.app.db).await;
        let (status, body) = ann.get("/readyz").await;

        assert_eq!(status, 503, "{body}");
        assert_eq!(body["writes"], "failing", "{body}");
        assert_eq!(body["database"], "connected", "{body}");
        assert_eq!(body["error"]["message"], "A COMMIT failed.", "{body}");
        assert_eq!(ann.get("/healthz").await.0, 200);
        poll::until("a write probe succeeds", async || {
            let (status, body) = ann.get("/readyz").await;
            (status == 200 && body["writes"] == "working").then_some(())
        })
        .await;
        app.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sqlite_connection_after_a_failed_commit_is_never_reused() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let db = &app.app.db;
    mark_connection(db).await;
    assert!(is_marked(db).await, "the connection is marked");

    fail_a_commit(db).await;

    assert!(!is_marked(db).await);
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_connection_after_a_failed_commit_is_closed() {
    if !TestBackend::Postgres.is_available() {
        eprintln!("not run: TROUPE_TEST_POSTGRES_URL is not set");
        return;
    }
    let app = TestApp::start(TestBackend::Postgres).await;
    let mut facts = DatabaseFacts::open(&app.database).await;
    let pid = Arc::new(AtomicI32::new(0));

    let seen = pid.clone();
    let failed: Result<(), DbErr> = app
        .app
        .db
        .write(move |tx| {
            Box::pin(async move {
                let query = sea_orm::Statement::from_string(
                    tx.get_database_backend(),
                    "SELECT pg_backend_pid()",
                );
                if let Some(row) = tx.query_one_raw(query).await? {
                    seen.store(row.try_get_by_index(0)?, Ordering::SeqCst);
                }
                make_commit_fail(tx).await
            })
        })
        .await;
    failed.expect_err("the COMMIT fails");

    let pid = pid.load(Ordering::SeqCst);
    assert_ne!(pid, 0);
    poll::until("the connection is closed", async || {
        let alive = format!("SELECT '1' FROM pg_stat_activity WHERE pid = {pid}");
        facts.rows(&alive).await.is_empty().then_some(())
    })
    .await;
    app.close().await;
}

/// SQLite rejects the COMMIT and keeps the transaction open; the ROLLBACK then succeeds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_after_a_rejected_commit_is_closed_even_if_its_rollback_succeeds() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let db = &app.app.db;
    mark_connection(db).await;

    let failed: Result<(), DbErr> = db
        .write(|tx| {
            Box::pin(async move {
                let orphan = "PRAGMA defer_foreign_keys = ON; \
                    INSERT INTO sessions (user_id, token_hash, created_at, last_seen_at, expires_at) \
                    SELECT 987654, 'x', 1, 1, 1";
                tx.execute_unprepared(orphan).await.map(drop)
            })
        })
        .await;
    failed.expect_err("the COMMIT is rejected");

    assert!(!is_marked(db).await);
    app.close().await;
}
