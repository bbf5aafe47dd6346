//! Tests background jobs: their result is complete or absent, and another node continues a job
//! whose node is gone.

use base::ids::{ConversationId, UserId};
use sea_orm::EntityTrait;
use troupe::conversations::jobs::job;
use troupe::conversations::jobs::job::JobStatus;
use troupe::conversations::{conversation, message};
use troupe::runs::engine::RunEngine;
use troupe::runs::error::EngineError;
use troupe::runs::message_versions::{BranchRequest, BranchResult};
use troupe::runs::scheduling::command::CommandError;
use troupe::spaces::membership;

use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::ResponseScript;

/// More messages than a request waits for.
const LONG: i64 = 2_600;
/// More messages than one transaction copies.
const SHORT: i64 = 400;

/// A conversation with `n` messages; every hundredth has two swipes, every thousandth is hidden.
async fn room_of(backend: TestBackend, n: i64) -> EngineTest {
    let room = EngineTest::builder(backend).open().await;
    let (conversation, seat) = (room.conversation, room.user.membership);
    let mut facts = room.facts().await;
    for sql in [
        format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {n}) \
             INSERT INTO messages (conversation_id, seq, space_membership_id, role, content, visibility, active_swipe, created_at, rev, token_count, metadata) \
             SELECT {conversation}, i, {seat}, 'user', 'Line number ' || CAST(i AS TEXT), CASE WHEN i % 1000 = 500 THEN 'hidden' ELSE 'normal' END, 0, 0, i, 12, '{{}}' FROM n"
        ),
        format!(
            "INSERT INTO message_swipes (message_id, position, content, metadata) \
             SELECT id, p.position, content, '{{}}' FROM messages CROSS JOIN (SELECT 0 AS position UNION SELECT 1) p \
             WHERE conversation_id = {conversation} AND seq % 100 = 0"
        ),
        format!(
            "UPDATE conversations SET last_seq = {n}, last_user_seq = {n}, rev = {n} WHERE id = {conversation}"
        ),
    ] {
        facts.execute(&sql).await;
    }
    count_text(&room).await;
    room
}

async fn stored_text(room: &EngineTest, id: ConversationId) -> i64 {
    let sql = format!(
        "SELECT CAST(COALESCE((SELECT SUM(octet_length(content)) FROM messages WHERE conversation_id = {id}), 0) \
         + COALESCE((SELECT SUM(octet_length(t.content)) FROM message_swipes t JOIN messages m ON m.id = t.message_id \
         WHERE m.conversation_id = {id}), 0) AS TEXT)"
    );
    room.facts().await.number(&sql).await
}

async fn count_text(room: &EngineTest) {
    let (id, n_bytes) = (
        room.conversation,
        stored_text(room, room.conversation).await,
    );
    let sql = format!("UPDATE conversations SET text_bytes = {n_bytes} WHERE id = {id}");
    room.facts().await.execute(&sql).await;
}

async fn user_of(room: &EngineTest) -> UserId {
    let seat = membership::Entity::find_by_id(room.user.membership);
    let seat = seat.one(room.db.reader()).await.unwrap().unwrap();
    seat.user_id.expect("a person")
}

async fn fork(room: &EngineTest) -> BranchRequest {
    BranchRequest {
        conversation: room.conversation,
        at: room.messages().await.pop().unwrap().id,
        title: "Another way".to_owned(),
        user: Some(user_of(room).await),
    }
}

async fn begin(engine: &RunEngine, fork: BranchRequest) -> job::Model {
    match engine.begin_branch(fork).await.expect("it begins") {
        BranchResult::Job(job) => *job,
        BranchResult::Whole { .. } => panic!("a long branch is a job"),
    }
}

async fn job_now(room: &EngineTest, id: &job::Model) -> job::Model {
    let row = job::Entity::find_by_id(id.id).one(room.db.reader()).await;
    row.expect("the database answers").expect("the job")
}

async fn row_of(room: &EngineTest, job: &job::Model) -> Option<conversation::Model> {
    let id = job.conversation_id.expect("a conversation");
    let row = conversation::Entity::find_by_id(id).one(room.db.reader());
    row.await.expect("the database answers")
}

async fn ends(room: &EngineTest, job: &job::Model) -> job::Model {
    room.until("the job has ended", async |it| {
        !job_now(it, job).await.needs_work
    })
    .await;
    job_now(room, job).await
}

/// A branch job without a node: the one that began it shuts down immediately.
async fn abandoned(room: &EngineTest) -> job::Model {
    let node = room.another_node();
    node.context().shutdown.draining.cancel();
    let job = begin(&node, fork(room).await).await;
    room.stop(&node).await;
    job
}

async fn texts(room: &EngineTest, id: ConversationId) -> Vec<String> {
    let sql = format!(
        "SELECT CAST(m.seq AS TEXT) || ' ' || m.content || ' ' || CAST((SELECT COUNT(*) FROM message_swipes t WHERE t.message_id = m.id) AS TEXT) AS line \
         FROM messages m WHERE m.conversation_id = {id} AND m.visibility <> 'hidden' ORDER BY m.seq"
    );
    let rows = room.facts().await.rows(&sql).await;
    rows.into_iter().map(|it| format!("{it:?}")).collect()
}

async fn is_whole(room: &EngineTest, branch: &conversation::Model) {
    let (origin, copy) = (
        texts(room, room.conversation).await,
        texts(room, branch.id).await,
    );
    assert_eq!(origin.len(), copy.len());
    assert_eq!(origin, copy);
    assert!(!branch.is_hidden);
    assert_eq!(branch.text_bytes, stored_text(room, branch.id).await);
}

async fn n_rows(room: &EngineTest, table: &str, id: ConversationId) -> i64 {
    let sql = format!("SELECT CAST(COUNT(*) AS TEXT) FROM {table} WHERE conversation_id = {id}");
    room.facts().await.number(&sql).await
}

on_both! {
    async fn a_worker_that_lost_its_job_changes_nothing(backend) {
        let room = room_of(backend, LONG).await;
        let lost = abandoned(&room).await;
        let seen = job_now(&room, &lost).await;
        let (db, now, dialect) = (room.db.heartbeat_connection(), room.clock.now(), room.db.backend());

        let claimed = job::claim(db, &seen, "another", now, dialect).await.unwrap().expect("it was released");
        let again = job::claim(db, &seen, "a third", now, dialect).await.unwrap();
        let saved = job::save_progress(db, &lost, now, dialect).await.unwrap();
        let ended = job::finish(db, &lost, JobStatus::Failed, None, now).await.unwrap();
        job::release(db, &lost).await.unwrap();
        let renewed = job::heartbeat(db, "another", &[lost.id], now, dialect).await.unwrap();
        let stolen = job::heartbeat(db, "a third", &[lost.id], now, dialect).await.unwrap();

        assert_eq!((claimed.lease, again, saved, ended), (lost.lease + 1, None, false, false));
        assert_eq!(renewed.iter().map(|it| it.lease).collect::<Vec<_>>(), [claimed.lease]);
        assert!(renewed[0].heartbeat_at > seen.heartbeat_at && stolen.is_empty());
        room.close_without_events().await;
    }
}

on_sqlite! {
    async fn a_long_branch_is_made_in_batches_and_is_whole(backend) {
        let room = room_of(backend, LONG).await;

        let job = begin(&room.engine, fork(&room).await).await;
        let ended = ends(&room, &job).await;

        assert_eq!((ended.status, ended.n_done, ended.n_total), (JobStatus::Succeeded, LONG, LONG));
        is_whole(&room, &row_of(&room, &job).await.unwrap()).await;
        room.close_without_events().await;
    }

    async fn a_branch_of_middle_length_is_whole_in_the_answer(backend) {
        let room = room_of(backend, SHORT).await;

        let BranchResult::Whole { row, .. } = room.engine.begin_branch(fork(&room).await).await.unwrap() else {
            panic!("the request waits for it");
        };

        is_whole(&room, &row).await;
        room.close_without_events().await;
    }

    async fn a_job_of_a_lost_node_is_continued_by_another(backend) {
        let room = room_of(backend, LONG).await;
        let job = abandoned(&room).await;
        let branch = row_of(&room, &job).await.unwrap();
        assert!(branch.is_hidden && job_now(&room, &job).await.status == JobStatus::Running);
        assert!(branch.text_bytes > 0, "it is charged before its first batch");

        let report = room.engine.run_recovery().await.unwrap();
        ends(&room, &job).await;

        assert_eq!(report.jobs_continued, 1);
        is_whole(&room, &row_of(&room, &job).await.unwrap()).await;
        room.close_without_events().await;
    }

    async fn a_conversation_that_a_job_fills_rejects_commands(backend) {
        let room = room_of(backend, LONG).await;
        let job = abandoned(&room).await;

        let engine = room.engine.clone();
        let hidden = room.user_in_conversation(&engine, job.conversation_id.unwrap());
        let refused = hidden.try_post("Is anyone here?").await;

        assert!(matches!(refused, Err(EngineError::Rejected(CommandError::NotFound))), "{refused:?}");
        room.close_without_events().await;
    }

    async fn a_canceled_branch_leaves_nothing(backend) {
        let room = room_of(backend, LONG).await;
        let job = abandoned(&room).await;

        assert!(job::cancel(&room.db, job.id, room.clock.now()).await.unwrap());
        assert!(!job::cancel(&room.db, job.id, room.clock.now()).await.unwrap());
        room.engine.run_recovery().await.unwrap();
        let ended = ends(&room, &job).await;

        assert_eq!(ended.status, JobStatus::Canceled);
        assert!(row_of(&room, &job).await.is_none());
        assert_eq!(n_rows(&room, "messages", job.conversation_id.unwrap()).await, 0);
        room.close_without_events().await;
    }

    async fn a_person_has_one_branch_job(backend) {
        let room = room_of(backend, LONG).await;
        abandoned(&room).await;

        let second = room.engine.begin_branch(fork(&room).await).await;

        assert!(matches!(second, Err(EngineError::JobRunning)), "{second:?}");
        room.close_without_events().await;
    }

    async fn a_regenerate_that_branches_for_long_queues_its_run_when_the_branch_is_whole(backend) {
        let room = room_of(backend, LONG).await;
        room.upstream.next(ResponseScript::say("An answer."));
        room.user.post("And?").await;
        room.settle().await;
        let answer = room.messages().await.pop().unwrap();
        room.user.post("Well?").await;
        room.settle().await;

        room.upstream.next(ResponseScript::say("Another answer."));
        let planned = room.engine.regenerate(room.conversation, Some(answer.id), "Eve".to_owned()).await.unwrap();

        assert_ne!(planned.conversation, room.conversation);
        room.until("it is written", async |it| {
            let tail = it.facts().await.timeline(planned.conversation.0).await.pop();
            tail.is_some_and(|line| line.2 == "Another answer.")
        }).await;
        room.wait_until_idle().await;
        room.close_without_events().await;
    }

    async fn a_long_conversation_is_gone_at_once_and_deleted_in_batches(backend) {
        let room = room_of(backend, LONG).await;
        let user = user_of(&room).await;

        let deletion = room.engine.delete_conversation(room.conversation, user).await.unwrap().unwrap();
        let refused = room.user.try_post("Is anyone here?").await;
        let job = room.engine.wait_for_deletion(deletion).await.unwrap().expect("a job");

        assert!(matches!(refused, Err(EngineError::Rejected(CommandError::NotFound))), "{refused:?}");
        let ended = ends(&room, &job).await;
        assert_eq!((ended.status, ended.n_done), (JobStatus::Succeeded, LONG));
        assert!(row_of(&room, &job).await.is_none());
        assert_eq!(n_rows(&room, "messages", room.conversation).await, 0);
        room.close_without_events().await;
    }

    async fn a_long_space_is_deleted_with_a_branch_that_is_being_made(backend) {
        let room = room_of(backend, LONG).await;
        let branch = abandoned(&room).await;
        for _ in 0..30 {
            room.another_conversation().await;
        }
        let user = user_of(&room).await;

        let deletion = room.engine.delete_space(room.space, user).await.unwrap().unwrap();
        let job = room.engine.wait_for_deletion(deletion).await.unwrap().expect("a job");

        assert_eq!(ends(&room, &job).await.status, JobStatus::Succeeded);
        assert_eq!(job_now(&room, &branch).await.status, JobStatus::Canceled);
        let mut facts = room.facts().await;
        for table in ["spaces", "conversations", "messages", "message_swipes", "space_memberships"] {
            let n = facts.number(&format!("SELECT CAST(COUNT(*) AS TEXT) FROM {table}")).await;
            assert_eq!(n, 0, "{table}");
        }
        room.close_without_events().await;
    }

    async fn the_text_of_a_conversation_is_counted_as_it_changes(backend) {
        let room = EngineTest::builder(backend).open().await;
        room.upstream.next(ResponseScript::say("A first answer."));
        room.user.post("Good evening, 你好.").await;
        room.settle().await;
        for other in ["Second.", "A much longer third answer."] {
            room.upstream.next(ResponseScript::say(other));
            room.engine.regenerate(room.conversation, None, "Eve".to_owned()).await.unwrap();
            room.settle().await;
        }
        let tail: message::Model = room.messages().await.pop().unwrap();

        room.engine.select_swipe(room.conversation, tail.id, 1, None).await.unwrap();

        assert_eq!(room.row().await.text_bytes, stored_text(&room, room.conversation).await);
        room.close().await;
    }
}
