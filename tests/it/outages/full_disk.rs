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
    let room = TestSpace::open_on(database, json!({}), &[], &[]).await;
    let writer = Writer::new(&room.person, room.conversation).await;
    (room, writer)
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
    panic!("300 posts fit on a full disk");
}

/// Causes a rollback: the same key with another text is rejected with 422.
async fn have_one_rolled_back(writer: &Writer) {
    let person = &writer.person;
    let (status, told) = person
        .post_message(writer.conversation, "Other words.", Some("first"))
        .await;
    assert_eq!(status, 422, "{told}");
}

/// Writes after the failure, kills the server, and finds every acknowledged write in the file.
async fn go_on_and_lose_nothing(
    room: &mut TestSpace,
    writer: &Writer,
    mut acknowledged: AcknowledgedWrites,
) {
    have_one_rolled_back(writer).await;
    for _ in 0..60 {
        assert_eq!(acknowledged.post(writer, "Afterwards").await, 201);
    }
    for _ in 0..3 {
        acknowledged.write_other_kinds(writer).await;
    }
    room.server.kill9();
    let missing = acknowledged.missing(&mut room.facts().await).await;
    assert_eq!(
        missing,
        Vec::<String>::new(),
        "of {}",
        acknowledged.n_writes()
    );
    room.server.restart().await;
    let missing = acknowledged.missing(&mut room.facts().await).await;
    assert_eq!(
        missing,
        Vec::<String>::new(),
        "of {}",
        acknowledged.n_writes()
    );
}

async fn is_not_ready(room: &TestSpace, reason: &str) {
    let (status, told) = room.person.get("/readyz").await;
    assert_eq!(
        (status, &told["writes"]),
        (503, &json!("failing")),
        "{told}"
    );
    assert_eq!(told["error"]["message"], reason, "{told}");
    assert_eq!(room.person.get("/healthz").await.0, 200);
    let messages = format!("/api/conversations/{}/messages", room.conversation);
    assert_eq!(room.person.get(&messages).await.0, 200, "reads answer");
}

async fn is_ready_again(room: &TestSpace) {
    poll::until("a write probe succeeds", async || {
        (room.person.get("/readyz").await.0 == 200).then_some(())
    })
    .await;
    let said = poll::until("the log says so", async || {
        Some(room.server.output()).filter(|it| it.contains("writes succeed again"))
    })
    .await;
    let began = said
        .matches("a write failed, the server is not ready")
        .count();
    let ended = said.matches("writes succeed again").count();
    assert_eq!((began, ended), (1, 1), "one line each\n{said}");
}

async fn post_the_first(room: &TestSpace) {
    let (status, told) = room
        .person
        .post_message(room.conversation, "First.", Some("first"))
        .await;
    assert_eq!(status, 201, "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_was_full_loses_no_later_acknowledged_write() {
    let Some(disk) = SmallDisk::mount(16) else {
        return;
    };
    let (mut room, writer) = open_in(disk.path()).await;
    let mut acknowledged = AcknowledgedWrites::default();
    post_the_first(&room).await;

    disk.fill();
    post_until_refused(&mut acknowledged, &writer).await;
    is_not_ready(&room, "The disk is full.").await;
    have_one_rolled_back(&writer).await;
    disk.empty();
    is_ready_again(&room).await;

    go_on_and_lose_nothing(&mut room, &writer, acknowledged).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_of_the_disk_loses_no_later_acknowledged_write() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (mut room, writer) = open_in(folder.path()).await;
    room.server.restart_with_file_limit().await;
    let mut acknowledged = AcknowledgedWrites::default();
    post_the_first(&room).await;

    room.server.limit_files(Some(4096));
    post_until_refused(&mut acknowledged, &writer).await;
    is_not_ready(&room, "The disk reported an I/O error.").await;
    have_one_rolled_back(&writer).await;
    room.server.limit_files(None);
    is_ready_again(&room).await;

    go_on_and_lose_nothing(&mut room, &writer, acknowledged).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_asked_to_end_while_writes_fail_ends_and_keeps_what_it_acknowledged() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (mut room, writer) = open_in(folder.path()).await;
    room.server.restart_with_file_limit().await;
    let mut acknowledged = AcknowledgedWrites::default();
    post_the_first(&room).await;
    for _ in 0..10 {
        assert_eq!(acknowledged.post(&writer, "Before").await, 201);
    }

    room.server.limit_files(Some(4096));
    post_until_refused(&mut acknowledged, &writer).await;
    room.server.sigterm();
    let exit = room.server.wait_exit().await;

    assert!(exit.success(), "{exit}");
    room.server.restart().await;
    let missing = acknowledged.missing(&mut room.facts().await).await;
    assert_eq!(
        missing,
        Vec::<String>::new(),
        "of {}",
        acknowledged.n_writes()
    );
}
