//! Tests that no log level prints a secret, and that the database contains secrets only as hashes.

use serde_json::{Value, json};

use crate::support::backends::{fresh_database, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::{HttpClient, expect, id, token_of};
use crate::support::poll;
use crate::support::process::Server;

/// Tables and those of their columns that could contain a secret.
const TABLES: &[(&str, &[&str])] = &[
    ("users", &["username", "display_name", "password_hash"]),
    ("sessions", &["token_hash", "user_agent"]),
    ("api_keys", &["name", "key_hash", "prefix"]),
    ("invites", &["token_hash"]),
];

on_sqlite! {
    async fn no_secret_is_in_the_log_at_trace_level_or_in_the_database(backend) {
        let database = fresh_database(&backend).await;
        let mut server = Server::start(&database, &[("RUST_LOG", "trace")]).await;
        let base = server.url();
        let ann = HttpClient::set_up(&base, "ann").await;
        let key = expect(201, ann.post("/api/api_keys", json!({"name": "k"})).await);
        let invite = ann.invite(1, json!({"role": "guest"})).await;
        let revoked = ann.invite(1, json!({"role": "guest"})).await;
        expect(204, ann.delete(&format!("/api/invites/{}", id(&revoked))).await);
        for token in [token_of(&invite), token_of(&revoked), "planted-guess"] {
            HttpClient::new(&base).get(&format!("/api/join/{token}")).await;
        }
        HttpClient::new(&base).get(&format!("/join?{}", token_of(&invite))).await;
        let (zoe, _) = HttpClient::join_by_link(&base, token_of(&invite), "Zoe").await;
        let body = json!({"username": "ben", "password": "planted horse", "display_name": "Ben", "invite_token": token_of(&invite)});
        expect(201, HttpClient::new(&base).post("/api/users", body).await);
        let wrong = json!({"username": "ben", "password": "planted and wrong"});
        expect(401, HttpClient::new(&base).post("/api/session", wrong).await);

        let text = |it: &Value| it.as_str().unwrap().to_owned();
        let cookie = |it: &HttpClient| it.cookie().split_once('=').unwrap().1.to_owned();
        let secrets = [
            text(&key["key"]),
            text(&invite["token"]),
            text(&revoked["token"]),
            cookie(&ann),
            cookie(&zoe),
            "correct horse battery".to_owned(),
            "planted horse".to_owned(),
            "planted and wrong".to_owned(),
            "planted-guess".to_owned(),
        ];
        server.sigterm();
        server.wait_exit().await;
        poll::until("the last line of the log", async || server.output().contains("shutdown complete").then_some(())).await;
        let log = server.output();
        assert!(log.contains("TRACE") || log.contains("DEBUG"), "the log has no debug lines: {} lines", log.lines().count());
        for secret in &secrets {
            let line = log.lines().find(|it| it.contains(secret));
            assert_eq!(line, None, "{secret} is in the log");
        }
        let mut facts = DatabaseFacts::open(&database).await;
        for (table, columns) in TABLES {
            let rows = facts.rows(&format!("SELECT {} FROM {table}", columns.join(", "))).await;
            assert!(!rows.is_empty(), "{table}");
            let rows = format!("{rows:?}");
            for secret in &secrets {
                assert!(!rows.contains(secret.as_str()), "{secret} is in {table}");
            }
        }
    }
}
