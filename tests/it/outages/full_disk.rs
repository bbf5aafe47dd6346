//! The disk of an SQLite file accepts no writes for a while: it is full or returns I/O errors.
//! Writes get 503, reads work, and nothing that is acknowledged later is lost.

use std::path::Path;

use serde_json::json;

use crate::support::acknowledged_writes::{AcknowledgedWrites, Writer};
use crate::support::backends::TestDatabase;
use crate::support::poll;
use crate::support::small_disk::SmallDisk;
use crate::support::test_space::TestSpace;

async fn open_in(folder: &Path) -> (TestSpace, Writer) {
    let database = TestDatabase::in_folder(folder);
    let space = TestSpace::open_on(database, json!({}), &[], &[]).await;
    let writer = Writer::new(&space.person, space.conversation).await;
    (space, writer)
}

/// Posts until a message is rejected.
async fn post_until_refused(acknowledged: &mut AcknowledgedWrites, writer: &Writer) {
    let text = "A long line. ".repeat(2_000);
    for _ in 0..300 {
        let status = acknowledged.post(writer, &text).await;
        if status != 201 {
            assert_eq!(status, 503);
            return;
        }
    }
    panic!("300 posts were accepted with a full disk");
}

/// Causes a rollback: the same key with another text is rejected with 422.
async fn cause_rollback(writer: &Writer) {
    let person = &writer.person;
    let (status, body) = person
        .post_message(writer.conversation, "Other words.", Some("first"))
        .await;
    assert_eq!(status, 422, "{body}");
}

/// Writes after the failure, kills the server, and finds every acknowledged write in the file.
async fn assert_later_writes_are_kept(
    space: &mut TestSpace,
    writer: &Writer,
    mut acknowledged: AcknowledgedWrites,
) {
    cause_rollback(writer).await;
    for _ in 0..60 {
        assert_eq!(acknowledged.post(writer, "Afterwards").await, 201);
    }
    for _ in 0..3 {
        acknowledged.write_other_kinds(writer).await;
    }
    space.server.kill9();
    let missing = acknowledged.missing(&mut space.facts().await).await;
    assert_eq!(
        missing,
        Vec::<String>::new(),
        "acknowledged writes: {}",
        acknowledged.n_writes()
    );
    space.server.restart().await;
    let missing = acknowledged.missing(&mut space.facts().await).await;
    assert_eq!(
        missing,
        Vec::<String>::new(),
        "acknowledged writes: {}",
        acknowledged.n_writes()
    );
}

async fn assert_not_ready(space: &TestSpace, reason: &str) {
    let (status, body) = space.person.get("/readyz").await;
    assert_eq!(
        (status, &body["writes"]),
        (503, &json!("failing")),
        "{body}"
    );
    assert_eq!(body["error"]["message"], reason, "{body}");
    assert_eq!(space.person.get("/healthz").await.0, 200);
    let messages = format!("/api/conversations/{}/messages", space.conversation);
    assert_eq!(space.person.get(&messages).await.0, 200, "reads succeed");
}

async fn wait_until_ready(space: &TestSpace) {
    poll::until("a write probe succeeds", async || {
        (space.person.get("/readyz").await.0 == 200).then_some(())
    })
    .await;
    let log = poll::until("a log line about the recovery", async || {
        Some(space.server.output()).filter(|it| it.contains("writes succeed again"))
    })
    .await;
    let began = log
        .matches("a write failed, the server is not ready")
        .count();
    let ended = log.matches("writes succeed again").count();
    assert_eq!((began, ended), (1, 1), "one log line each\n{log}");
}

async fn post_first_message(space: &TestSpace) {
    let (status, body) = space
        .person
        .post_message(space.conversation, "First.", Some("first"))
        .await;
    assert_eq!(status, 201, "{body}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_acknowledged_write_is_lost_after_the_disk_was_full() {
    let Some(disk) = SmallDisk::mount(16) else {
        return;
    };
    let (mut space, writer) = open_in(disk.path()).await;
    let mut acknowledged = AcknowledgedWrites::default();
    post_first_message(&space).await;

    disk.fill();
    post_until_refused(&mut acknowledged, &writer).await;
    assert_not_ready(&space, "The disk is full.").await;
    cause_rollback(&writer).await;
    disk.empty();
    wait_until_ready(&space).await;

    assert_later_writes_are_kept(&mut space, &writer, acknowledged).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_acknowledged_write_is_lost_after_a_disk_error() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (mut space, writer) = open_in(folder.path()).await;
    space.server.restart_with_file_limit().await;
    let mut acknowledged = AcknowledgedWrites::default();
    post_first_message(&space).await;

    space.server.limit_files(Some(4096));
    post_until_refused(&mut acknowledged, &writer).await;
    assert_not_ready(&space, "The disk reported an I/O error.").await;
    cause_rollback(&writer).await;
    space.server.limit_files(None);
    wait_until_ready(&space).await;

    assert_later_writes_are_kept(&mut space, &writer, acknowledged).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_stopped_while_writes_fail_keeps_its_acknowledged_writes() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (mut space, writer) = open_in(folder.path()).await;
    space.server.restart_with_file_limit().await;
    let mut acknowledged = AcknowledgedWrites::default();
    post_first_message(&space).await;
    for _ in 0..10 {
        assert_eq!(acknowledged.post(&writer, "Before").await, 201);
    }

    space.server.limit_files(Some(4096));
    post_until_refused(&mut acknowledged, &writer).await;
    space.server.sigterm();
    let exit = space.server.wait_exit().await;

    assert!(exit.success(), "{exit}");
    space.server.restart().await;
    let missing = acknowledged.missing(&mut space.facts().await).await;
    assert_eq!(
        missing,
        Vec::<String>::new(),
        "acknowledged writes: {}",
        acknowledged.n_writes()
    );
}
