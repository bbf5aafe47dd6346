//! Tests of the commands of the binary, and of when the server starts or fails to start.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;

use crate::support::backends::{TestBackend, TestDatabase, fresh_database};
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::{HttpClient, expect};
use crate::support::process::Server;

fn troupe(folder: &Path, env: &[(&str, &str)], arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_troupe"))
        .env_clear()
        .current_dir(folder)
        .envs(env.iter().copied())
        .args(arguments)
        .output()
        .expect("the binary can be started")
}

fn output_text(output: &Output) -> String {
    let both = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8(both).expect("the output is UTF-8")
}

fn env_for(database: &TestDatabase) -> Vec<(&'static str, String)> {
    vec![
        ("DATABASE_URL", database.url().to_owned()),
        ("TROUPE_SECRET_KEY", "5e".repeat(32)),
    ]
}

fn as_str_pairs<'a>(env: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
    env.iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect()
}

#[test]
fn only_a_build_with_the_feature_contains_fail_points() {
    let binary = env!("CARGO_BIN_EXE_troupe");
    let contains = |word: &str| {
        let status = Command::new("grep").args(["-qF", word, binary]).status();
        status.expect("grep can be started").success()
    };

    assert!(
        contains("TROUPE_BIND"),
        "strings of the code are not found in {binary}"
    );
    for word in ["FAILPOINTS", "exec.after_claim", "write.after_commit"] {
        assert_eq!(contains(word), cfg!(feature = "failpoints"), "{word}");
    }
}

#[test]
fn an_invalid_setting_prevents_the_start_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        (
            "TROUPE_BIND",
            "nowhere",
            "TROUPE_BIND is \"nowhere\", but must be",
        ),
        ("REDIS_URL", "redis://127.0.0.1", "REDIS_URL"),
        (
            "DATABASE_URL",
            "postgres://127.0.0.1/x",
            "TROUPE_SECRET_KEY",
        ),
        ("RUST_LOG", "a=b=c", "RUST_LOG"),
        (
            "TROUPE_LLM_BASE_URL",
            "http://127.0.0.1:1/v1",
            "TROUPE_LLM_MODEL",
        ),
    ];

    for (name, value, expected) in cases {
        let output = troupe(folder.path(), &[(name, value)], &[]);
        assert!(!output.status.success(), "{name}");
        assert!(
            output_text(&output).contains(expected),
            "{}",
            output_text(&output)
        );
    }
}

#[test]
fn settings_are_read_from_a_file_too() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(".env"), "TROUPE_WORKERS=many\n").unwrap();

    let output = troupe(folder.path(), &[], &["check"]);

    assert!(
        output_text(&output).contains("TROUPE_WORKERS is \"many\""),
        "{}",
        output_text(&output)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_succeeds_after_migrate() {
    for backend in TestBackend::all() {
        let folder = tempfile::tempdir().unwrap();
        let database = fresh_database(&backend).await;
        let env = env_for(&database);
        let env = as_str_pairs(&env);

        let before = troupe(folder.path(), &env, &["check"]);
        let migrated = troupe(folder.path(), &env, &["migrate"]);
        let after = troupe(folder.path(), &env, &["check"]);

        let (succeeds, line) = match backend {
            TestBackend::Sqlite => (true, "does not exist yet; the first start creates it"),
            TestBackend::Postgres => (false, "wrong migrations:"),
        };
        assert_eq!(before.status.success(), succeeds);
        assert!(
            output_text(&before).contains(line),
            "{}",
            output_text(&before)
        );
        assert!(migrated.status.success(), "{}", output_text(&migrated));
        assert!(after.status.success(), "{}", output_text(&after));
        assert!(
            output_text(&after).contains("ok    migrations: all applied"),
            "{}",
            output_text(&after)
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forgotten_password_is_replaced_and_every_session_ends() {
    let database = fresh_database(&TestBackend::Sqlite).await;
    let server = Server::start(&database, &[]).await;
    let admin = HttpClient::set_up(&server.url(), "admin").await;
    let env = env_for(&database);

    let output = troupe(
        server.folder(),
        &as_str_pairs(&env),
        &["reset-password", "ADMIN"],
    );

    assert!(output.status.success(), "{}", output_text(&output));
    let text = output_text(&output);
    let password = text.trim().rsplit(' ').next().unwrap();
    assert_eq!(admin.get("/api/session").await.0, 401);
    let body = json!({"username": "admin", "password": password});
    expect(
        200,
        HttpClient::new(&server.url())
            .post("/api/session", body)
            .await,
    );
    let unknown_user = troupe(
        server.folder(),
        &as_str_pairs(&env),
        &["reset-password", "nobody"],
    );
    assert!(!unknown_user.status.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sqlite_file_is_used_by_only_one_server() {
    let database = fresh_database(&TestBackend::Sqlite).await;
    let server = Server::start(&database, &[]).await;
    let env = env_for(&database);
    let mut env = as_str_pairs(&env);
    env.push(("TROUPE_BIND", "127.0.0.1:0"));

    let second = troupe(server.folder(), &env, &["serve"]);

    assert!(!second.status.success());
    assert!(
        output_text(&second).contains("in use by another troupe process"),
        "{}",
        output_text(&second)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stored_key_that_cannot_be_decrypted_prevents_the_start() {
    let database = fresh_database(&TestBackend::Sqlite).await;
    let mut server = Server::start(&database, &[]).await;
    let admin = HttpClient::set_up(&server.url(), "admin").await;
    let body = json!({"name": "x", "base_url": "http://127.0.0.1:1/v1", "model": "m", "api_key": "sk-planted"});
    expect(201, admin.post("/api/providers", body).await);
    server.kill9();
    let env = [
        ("DATABASE_URL", database.url().to_owned()),
        (
            "TROUPE_SECRET_KEY",
            "another secret, not that one".to_owned(),
        ),
    ];

    let output = troupe(server.folder(), &as_str_pairs(&env), &["serve"]);

    assert!(!output.status.success());
    assert!(
        output_text(&output).contains("cannot be decrypted")
            && output_text(&output).contains("TROUPE_SECRET_KEY"),
        "{}",
        output_text(&output)
    );
    assert!(!output_text(&output).contains("planted"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_provider_from_the_environment_is_the_default_at_every_start() {
    let database = fresh_database(&TestBackend::Sqlite).await;
    let env = [
        ("TROUPE_LLM_BASE_URL", "http://127.0.0.1:1/v1"),
        ("TROUPE_LLM_API_KEY", "sk-planted"),
        ("TROUPE_LLM_MODEL", "one"),
    ];
    let mut server = Server::start(&database, &env).await;
    server.kill9();
    server.set_env("TROUPE_LLM_MODEL", "two");

    server.launch().await;

    server.wait_ready().await;
    let admin = HttpClient::set_up(&server.url(), "admin").await;
    let list = expect(200, admin.get("/api/providers").await);
    let all: Vec<_> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            (
                it["name"].as_str().unwrap(),
                it["model"].as_str().unwrap(),
                it["is_default"].as_bool().unwrap(),
                it["has_api_key"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        all,
        [
            ("Demo", "demo", false, false),
            ("environment", "two", true, true)
        ]
    );
    let mut facts = DatabaseFacts::open(&database).await;
    let keys = facts.rows("SELECT api_key FROM llm_providers").await;
    assert!(!format!("{keys:?}").contains("planted"));
    assert!(!server.output().contains("planted"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_server_shuts_down_cleanly_on_sigterm() {
    let database = fresh_database(&TestBackend::Sqlite).await;
    let mut server = Server::start(&database, &[]).await;

    server.sigterm();

    let exit = server.wait_exit().await;
    assert!(exit.success(), "{exit}\n{}", server.output());
    assert!(
        server.output().contains("shutdown complete"),
        "{}",
        server.output()
    );
}
