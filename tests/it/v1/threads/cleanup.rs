//! Tests which rows of assistants and threads the regular cleanup deletes.

use serde_json::json;

use super::support::{
    clean_up, complete_run, create_assistant, create_thread, insert_run, objects, texts, user,
};
use crate::support::backends::on_both;
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::expect;
use crate::v1::fixture::{V1Fixture, id};

on_both! {
    async fn a_thread_is_deleted_when_it_has_not_changed_for_the_retention_time(backend) {
        let fixture = V1Fixture::open(backend).await;
        let old = create_thread(&fixture, &["old"]).await;
        let in_use = create_thread(&fixture, &["in use"]).await;
        let recent = create_thread(&fixture, &["recent"]).await;
        insert_run(&fixture, &in_use, "run_1").await;
        let mut facts = DatabaseFacts::open(&fixture.app.database).await;
        let age = format!("UPDATE threads SET updated_at = 0 WHERE id <> '{recent}'");
        facts.execute(&age).await;

        clean_up(&fixture).await;

        assert_eq!(fixture.program.get(&format!("/threads/{old}")).await.0, 404);
        assert_eq!(texts(&fixture, &recent).await, ["recent"]);
        assert_eq!(texts(&fixture, &in_use).await, ["in use"]);
        assert_eq!(fixture.n_rows("thread_messages").await, 2);
        complete_run(&fixture, "run_1").await;
        clean_up(&fixture).await;
        assert_eq!(fixture.program.get(&format!("/threads/{in_use}")).await.0, 404);
        assert_eq!(fixture.n_rows("thread_runs").await, 0);
        drop(facts);
        fixture.close().await;
    }

    async fn every_change_of_a_thread_restarts_its_retention_time(backend) {
        let fixture = V1Fixture::open(backend).await;
        let thread = create_thread(&fixture, &["a", "b"]).await;
        let path = format!("/threads/{thread}");
        let messages = objects(&fixture, &format!("{path}/messages")).await;
        let (first, second) = (id(&messages[1]), id(&messages[0]));
        let noted = json!({ "metadata": { "a": "b" } });
        let mut facts = DatabaseFacts::open(&fixture.app.database).await;

        for n in 0..4 {
            // Within the retention time, so that a cleanup in between changes nothing.
            let one_ms_ago = fixture.app.app.clock.now().0 - 1;
            facts.execute(&format!("UPDATE threads SET updated_at = {one_ms_ago}")).await;
            let changed = match n {
                0 => fixture.program.post(&path, noted.clone()).await,
                1 => fixture.program.post(&format!("{path}/messages"), user("c")).await,
                2 => fixture.program.post(&format!("{path}/messages/{first}"), noted.clone()).await,
                _ => fixture.program.delete(&format!("{path}/messages/{second}")).await,
            };
            expect(200, changed);
            let unchanged = format!("threads WHERE updated_at = {one_ms_ago}");
            assert_eq!(fixture.n_rows(&unchanged).await, 0, "change {n}");
        }
        drop(facts);
        fixture.close().await;
    }

    async fn deleted_texts_are_removed_at_once_and_their_rows_later(backend) {
        let fixture = V1Fixture::open(backend).await;
        let thread = create_thread(&fixture, &["a secret"]).await;
        let path = format!("/threads/{thread}/messages");
        let message = objects(&fixture, &path).await.remove(0);
        let assistant = create_assistant(&fixture, json!({ "instructions": "a secret" })).await;

        expect(200, fixture.program.delete(&format!("{path}/{}", id(&message))).await);
        expect(200, fixture.program.delete(&format!("/assistants/{}", id(&assistant))).await);

        assert_eq!(fixture.n_rows("thread_messages WHERE CAST(content AS TEXT) LIKE '%secret%'").await, 0);
        assert_eq!(fixture.n_rows("assistants WHERE instructions LIKE '%secret%'").await, 0);
        clean_up(&fixture).await;
        assert_eq!(fixture.n_rows("thread_messages").await, 1, "the cursor of a page was deleted");
        let mut facts = DatabaseFacts::open(&fixture.app.database).await;
        for table in ["thread_messages", "assistants"] {
            facts.execute(&format!("UPDATE {table} SET deleted_at = 0")).await;
        }
        clean_up(&fixture).await;
        assert_eq!(fixture.n_rows("thread_messages").await, 0);
        assert_eq!(fixture.n_rows("assistants").await, 0);
        drop(facts);
        fixture.close().await;
    }

    async fn a_deleted_thread_is_removed_after_its_run(backend) {
        let fixture = V1Fixture::open(backend).await;
        let (one, two) = (create_thread(&fixture, &["a"]).await, create_thread(&fixture, &["b"]).await);
        insert_run(&fixture, &two, "run_1").await;
        for thread in [&one, &two] {
            expect(200, fixture.program.delete(&format!("/threads/{thread}")).await);
        }

        clean_up(&fixture).await;
        let of_one = format!("threads WHERE id = '{one}'");
        assert_eq!(fixture.n_rows(&of_one).await, 0);
        complete_run(&fixture, "run_1").await;
        clean_up(&fixture).await;

        for table in ["threads", "thread_messages", "thread_runs"] {
            assert_eq!(fixture.n_rows(table).await, 0, "{table}");
        }
        fixture.close().await;
    }
}
