//! Failures of the command line: one clear sentence on standard error, an exit code for scripts,
//! and no changes.

use std::path::Path;

use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::timeout;

use crate::support::backends::{TestBackend, fresh_database};
use crate::support::poll;
use crate::support::process::Server;

/// The result of a finished command.
struct CommandOutput {
    ok: bool,
    stdout: String,
    stderr: String,
}

/// Runs the binary in a folder with only these settings until it exits.
async fn troupe(folder: &Path, arguments: &[&str], env: &[(&str, &str)]) -> CommandOutput {
    let mut command = Command::new(env!("CARGO_BIN_EXE_troupe"));
    command
        .args(arguments)
        .env_clear()
        .envs(env.iter().copied())
        .current_dir(folder)
        .kill_on_drop(true);
    let ended = timeout(poll::DEADLINE, command.output())
        .await
        .expect("the command exits in time")
        .expect("the binary can be started");
    let text = |bytes| String::from_utf8(bytes).expect("the output is UTF-8");
    CommandOutput {
        ok: ended.status.success(),
        stdout: text(ended.stdout),
        stderr: text(ended.stderr),
    }
}

impl CommandOutput {
    /// Asserts that the command failed and that its one line of standard error contains all words.
    fn failed_with(&self, words: &[&str]) {
        assert!(!self.ok, "the command succeeded: {}", self.stdout);
        let line = self.stderr.trim_end();
        assert_eq!(line.lines().count(), 1, "expected one line: {line}");
        assert!(line.starts_with("troupe: "), "{line}");
        for word in words {
            assert!(line.contains(word), "{word:?} is not in: {line}");
        }
    }
}

fn empty_folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder can be created")
}

#[tokio::test]
async fn check_reports_for_each_component_whether_it_works() {
    let folder = empty_folder();
    troupe(folder.path(), &["migrate"], &[]).await;
    let redis = [("REDIS_URL", "redis://127.0.0.1:9")];

    let valid = troupe(folder.path(), &["check"], &[]).await;
    let invalid = troupe(folder.path(), &["check"], &redis).await;

    assert!(valid.ok, "{}{}", valid.stdout, valid.stderr);
    for part in ["settings", "database", "migrations", "provider"] {
        assert!(
            valid.stdout.contains(&format!("ok    {part}: ")),
            "{}",
            valid.stdout
        );
    }
    assert!(!invalid.ok);
    assert!(
        invalid.stdout.contains("wrong settings: REDIS_URL"),
        "{}",
        invalid.stdout
    );
    assert!(
        invalid.stdout.contains("wrong redis: "),
        "{}",
        invalid.stdout
    );
    assert!(
        invalid.stdout.contains("ok    database: "),
        "{}",
        invalid.stdout
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_reports_that_the_model_does_not_answer() {
    let database = fresh_database(&TestBackend::Sqlite).await;
    let model = [
        ("TROUPE_LLM_BASE_URL", "http://127.0.0.1:9/v1"),
        ("TROUPE_LLM_MODEL", "any"),
    ];
    let server = Server::start(&database, &model).await;
    let secret = "5e".repeat(32);
    let env = [
        ("DATABASE_URL", database.url()),
        ("TROUPE_SECRET_KEY", &secret),
    ];

    let ended = troupe(server.folder(), &["check"], &env).await;

    assert!(!ended.ok);
    assert!(
        ended.stdout.contains("ok    database: "),
        "{}",
        ended.stdout
    );
    assert!(
        ended.stdout.contains("wrong provider: "),
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.contains("does not answer"), "{}", ended.stdout);
}

#[tokio::test]
async fn the_password_of_an_unknown_user_cannot_be_reset() {
    let folder = empty_folder();
    troupe(folder.path(), &["migrate"], &[]).await;

    let ended = troupe(folder.path(), &["reset-password", "ann"], &[]).await;

    ended.failed_with(&["no user", "ann"]);
}

#[tokio::test]
async fn an_invalid_setting_is_named_with_its_value_and_the_allowed_values() {
    let invalid = [
        ("RUN_HEARTBEAT_MS", "abc", "integer"),
        ("TROUPE_BIND", "here", "address and a port"),
        ("TROUPE_PUBLIC_URL", "troupe.example", "https://"),
        ("TROUPE_OPEN_REGISTRATION", "maybe", "true or false"),
        ("SQLITE_SYNCHRONOUS", "off", "full or normal"),
        ("LOG_FORMAT", "xml", "pretty or json"),
    ];

    for (name, got, expected) in invalid {
        let folder = empty_folder();
        let env = [("TROUPE_BIND", "127.0.0.1:0"), (name, got)];
        for arguments in [&["serve"][..], &["check"][..], &[][..]] {
            let ended = troupe(folder.path(), arguments, &env).await;
            ended.failed_with(&[name, got, expected]);
        }
        assert!(!folder.path().join("data").exists(), "files were created");
    }
}

#[tokio::test]
async fn redis_with_sqlite_is_rejected_before_anything_starts() {
    let folder = empty_folder();
    let env = [
        ("TROUPE_BIND", "127.0.0.1:0"),
        ("REDIS_URL", "redis://127.0.0.1"),
    ];

    let ended = troupe(folder.path(), &[], &env).await;

    ended.failed_with(&["REDIS_URL", "SQLite", "PostgreSQL"]);
    assert!(!folder.path().join("data").exists(), "files were created");
}

#[tokio::test]
async fn postgres_without_a_secret_is_refused_and_its_password_is_not_shown() {
    let folder = empty_folder();
    let env = [("DATABASE_URL", "postgres://troupe:hush@127.0.0.1/troupe")];

    let ended = troupe(folder.path(), &[], &env).await;

    ended.failed_with(&["TROUPE_SECRET_KEY", "16 characters"]);
    assert!(!ended.stderr.contains("hush"), "{}", ended.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_start_in_the_same_folder_fails_and_the_first_server_continues() {
    let mut server = Server::fresh();
    server.launch().await;
    let env = [("TROUPE_BIND", "127.0.0.1:0")];

    for arguments in [&[][..], &["migrate"][..]] {
        let ended = troupe(server.folder(), arguments, &env).await;
        ended.failed_with(&["troupe.db", "in use by another troupe process"]);
    }

    server.wait_ready().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_in_use_is_named_in_the_error() {
    let mut server = Server::fresh();
    server.launch().await;
    let folder = empty_folder();
    let address = server.url().replace("http://", "");

    let ended = troupe(folder.path(), &[], &[("TROUPE_BIND", &address)]).await;

    ended.failed_with(&["TROUPE_BIND", &address]);
}
