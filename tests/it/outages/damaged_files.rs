//! A damaged page in an SQLite file: a stopped file is rejected at the start, and a running server
//! accepts no more writes. The file itself is not changed.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::support::backends::TestDatabase;
use crate::support::poll;
use crate::support::process::Server;
use crate::support::test_space::TestSpace;

const PAGE: usize = 4096;

fn file_in(folder: &Path) -> PathBuf {
    folder.join("troupe.db")
}

async fn output_of_rejected_start(database: &TestDatabase) -> String {
    let mut server = Server::prepare(database, &[]);
    server.spawn();
    let exit = server.wait_exit().await;
    assert!(!exit.success(), "the server started\n{}", server.output());
    // The last output of a process may arrive after its exit.
    poll::until("the reason in the log", async || {
        Some(server.output()).filter(|it| it.contains("troupe: "))
    })
    .await
}

/// Opens a space whose messages fill whole pages.
async fn space_with_long_messages(folder: &Path) -> TestSpace {
    let space = TestSpace::open_on(TestDatabase::in_folder(folder), json!({}), &[], &[]).await;
    for _ in 0..8 {
        space.post(&"0123456789abcdef".repeat(3_000)).await;
    }
    space
}

/// Stops without the clean-stop mark; all data is in the main file and every page is in use.
async fn stop_uncleanly(space: &mut TestSpace) {
    space.server.kill9();
    let mut facts = space.facts().await;
    // Damage to an unused page would have no effect.
    facts.execute("VACUUM").await;
    facts.execute("PRAGMA wal_checkpoint(TRUNCATE)").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_file_with_a_damaged_page_is_rejected_and_left_unchanged() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = file_in(folder.path());
    let mut space = space_with_long_messages(folder.path()).await;
    stop_uncleanly(&mut space).await;
    let undamaged = fs::read(&file).expect("the file is readable");
    let n_pages = undamaged.len() / PAGE;
    assert!(n_pages > 62, "{n_pages} pages");

    let mut accepted = Vec::new();
    for n in 0..31 {
        let page = n * n_pages / 31;
        let mut damaged = undamaged.clone();
        damaged[page * PAGE..(page + 1) * PAGE]
            .iter_mut()
            .for_each(|it| *it ^= 0x5a);
        fs::write(&file, &damaged).expect("the file is writable");
        let output = output_of_rejected_start(&space.database).await;
        if !output.contains("is damaged") {
            accepted.push((page, output));
        }
        assert!(
            fs::read(&file).expect("the file is readable") == damaged,
            "page {page}"
        );
    }
    assert_eq!(accepted, []);

    fs::write(&file, &undamaged).expect("the file is writable");
    space.server.restart().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_to_a_file_in_use_blocks_writes_but_not_reads() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = file_in(folder.path());
    let mut space = space_with_long_messages(folder.path()).await;
    // Restarts, so that the pages are in the file and in no cache.
    space.server.sigterm();
    assert!(space.server.wait_exit().await.success());
    space.server.restart().await;

    break_long_messages(&file);
    let messages = format!("/api/conversations/{}/messages", space.conversation);
    assert_eq!(space.person.get(&messages).await.0, 503);

    let (status, body) = space.person.get("/readyz").await;
    assert_eq!(
        (status, &body["writes"]),
        (503, &json!("damaged")),
        "{body}"
    );
    let (status, body) = space
        .person
        .post("/api/spaces", json!({"name": "No more"}))
        .await;
    assert_eq!(status, 503, "{body}");
    assert_eq!(
        space.person.get("/api/spaces").await.0,
        200,
        "undamaged data is readable"
    );
    space.server.sigterm();
    assert!(space.server.wait_exit().await.success());
    let output = output_of_rejected_start(&space.database).await;
    assert!(output.contains("is damaged"), "{output}");
}

/// Long texts are stored in chains of pages; each chain now leads to a page that does not exist.
fn break_long_messages(file: &Path) {
    use std::os::unix::fs::FileExt;
    let bytes = fs::read(file).expect("the file is readable");
    let filler = "0123456789abcdef".repeat(8);
    let open = fs::OpenOptions::new()
        .write(true)
        .open(file)
        .expect("the file is writable");
    let mut n_broken = 0;
    for (page, content) in bytes.chunks(PAGE).enumerate() {
        let is_long_text = String::from_utf8_lossy(&content[64..1024]).contains(&filler);
        let has_next_page = content[..4] != [0; 4] && content[..2] == [0; 2];
        if is_long_text && has_next_page {
            open.write_all_at(&[0x7f; 4], (page * PAGE) as u64)
                .expect("the file is writable");
            n_broken += 1;
        }
    }
    assert!(n_broken > 20, "{n_broken} pages");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_database_file_next_to_a_secret_key_is_rejected() {
    let mut server = Server::fresh();
    server.launch().await;
    server.wait_ready().await;
    server.sigterm();
    assert!(server.wait_exit().await.success());
    let file = server.folder().join("data/troupe.db");
    fs::write(&file, "").expect("the file is writable");

    server.spawn();
    let exit = server.wait_exit().await;

    assert!(!exit.success());
    poll::until("the reason in the log", async || {
        server.output().contains("is empty, but").then_some(())
    })
    .await;
    assert_eq!(fs::metadata(&file).expect("the file exists").len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permissions_of_the_data_folder_are_restricted_at_each_start() {
    use std::os::unix::fs::PermissionsExt;
    let mut server = Server::fresh();
    server.launch().await;
    server.wait_ready().await;
    server.kill9();
    let data = server.folder().join("data");
    let names = ["troupe.db", "troupe.db-wal", "troupe.db-shm", "secret.key"];
    let widen = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
            .expect("the permissions can be set");
    };
    widen(&data, 0o755);
    names.iter().for_each(|name| widen(&data.join(name), 0o644));

    server.launch().await;
    server.wait_ready().await;

    let mode = |path: &Path| {
        fs::metadata(path)
            .expect("the file exists")
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode(&data), 0o700);
    for name in names {
        assert_eq!(mode(&data.join(name)), 0o600, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_server_on_the_file_is_rejected_through_links_and_without_the_lock_file() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let space =
        TestSpace::open_on(TestDatabase::in_folder(folder.path()), json!({}), &[], &[]).await;
    let file = file_in(folder.path());
    let (hard, symbolic) = (folder.path().join("hard"), folder.path().join("symbolic"));
    for folder in [&hard, &symbolic] {
        fs::create_dir(folder).expect("the folder can be created");
    }
    fs::hard_link(&file, file_in(&hard)).expect("a hard link can be made");
    std::os::unix::fs::symlink(&file, file_in(&symbolic)).expect("a symbolic link can be made");
    let _ = fs::remove_file(folder.path().join("troupe.db.lock"));

    for folder in [folder.path(), &hard, &symbolic] {
        let output = output_of_rejected_start(&TestDatabase::in_folder(folder)).await;
        assert!(
            output.contains("in use by another troupe process"),
            "{output}"
        );
    }
    space.post("The first one goes on.").await;
}
