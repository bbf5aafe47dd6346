//! Tests background jobs: their result is complete or absent, and another node continues a job
//! whose node is gone.

use base::ids::{ConversationId, UserId};
use leased_jobs::job::Job;
use sea_orm::{ConnectionTrait, DbBackend, EntityTrait, Statement};
use troupe::conversations::audience::viewer::Viewer;
use troupe::conversations::jobs::job;
use troupe::conversations::jobs::job::JobStatus;
use troupe::conversations::{conversation, message};
use troupe::runs::background_jobs::BackgroundJob;
use troupe::runs::engine::RunEngine;
use troupe::runs::error::EngineError;
use troupe::runs::regeneration::{BranchRequest, BranchResult};
use troupe::runs::scheduling::command::CommandError;
use troupe::spaces::membership;

use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::ResponseScript;

/// More messages than a request waits for.
const LONG: i64 = 2_600;
/// In milliseconds.
const HOUR: i64 = 3_600_000;
/// More messages than one transaction copies.
const SHORT: i64 = 400;

/// A conversation with `n` messages; every hundredth has two swipes, every thousandth is hidden.
async fn app_with_messages(backend: TestBackend, n: i64) -> EngineTest {
    add_messages(EngineTest::builder(backend).open().await, n).await
}

async fn add_messages(app: EngineTest, n: i64) -> EngineTest {
    let (conversation, membership) = (app.conversation, app.user.membership);
    let mut facts = app.facts().await;
    for sql in [
        format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {n}) \
             INSERT INTO messages (conversation_id, seq, space_membership_id, role, content, visibility, active_swipe, created_at, rev, token_count, metadata) \
             SELECT {conversation}, i, {membership}, 'user', 'Line number ' || CAST(i AS TEXT), CASE WHEN i % 1000 = 500 THEN 'hidden' ELSE 'normal' END, 0, 0, i, 12, '{{}}' FROM n"
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
    count_text(&app).await;
    app
}

async fn stored_text(app: &EngineTest, id: ConversationId) -> i64 {
    let sql = format!(
        "SELECT CAST(COALESCE((SELECT SUM(octet_length(content)) FROM messages WHERE conversation_id = {id}), 0) \
         + COALESCE((SELECT SUM(octet_length(t.content)) FROM message_swipes t JOIN messages m ON m.id = t.message_id \
         WHERE m.conversation_id = {id}), 0) AS TEXT)"
    );
    app.facts().await.number(&sql).await
}

async fn count_text(app: &EngineTest) {
    let (id, n_bytes) = (app.conversation, stored_text(app, app.conversation).await);
    let sql = format!("UPDATE conversations SET text_bytes = {n_bytes} WHERE id = {id}");
    app.facts().await.execute(&sql).await;
}

async fn user_of(app: &EngineTest) -> UserId {
    let membership = membership::Entity::find_by_id(app.user.membership);
    let membership = membership.one(app.db.reader()).await.unwrap().unwrap();
    membership.user_id.expect("the membership has no user")
}

async fn fork(app: &EngineTest) -> BranchRequest {
    BranchRequest {
        conversation: app.conversation,
        at: app.messages().await.pop().unwrap().id,
        viewer: Viewer::Server,
        title: "Another way".to_owned(),
        user: Some(user_of(app).await),
    }
}

async fn begin(engine: &RunEngine, fork: BranchRequest) -> job::Model {
    match engine
        .begin_branch(fork)
        .await
        .expect("the branch was rejected")
    {
        BranchResult::Job(job) => *job,
        BranchResult::Whole { .. } => panic!("a long branch was made without a job"),
    }
}

async fn job_now(app: &EngineTest, id: &job::Model) -> job::Model {
    let row = job::Entity::find_by_id(id.id).one(app.db.reader()).await;
    row.expect("the query failed").expect("the job is missing")
}

async fn row_of(app: &EngineTest, job: &job::Model) -> Option<conversation::Model> {
    let id = job.conversation_id.expect("the job has no conversation");
    let row = conversation::Entity::find_by_id(id).one(app.db.reader());
    row.await.expect("the query failed")
}

async fn wait_until_ended(app: &EngineTest, job: &job::Model) -> job::Model {
    app.until("the job has ended", async |it| {
        !job_now(it, job).await.needs_work
    })
    .await;
    job_now(app, job).await
}

/// A branch job without a node: the one that began it shuts down immediately.
async fn abandoned(app: &EngineTest) -> job::Model {
    let node = app.another_node();
    node.context().shutdown.draining.cancel();
    let job = begin(&node, fork(app).await).await;
    app.stop(&node).await;
    job
}

async fn texts(app: &EngineTest, id: ConversationId) -> Vec<String> {
    let sql = format!(
        "SELECT CAST(m.seq AS TEXT) || ' ' || m.content || ' ' || CAST((SELECT COUNT(*) FROM message_swipes t WHERE t.message_id = m.id) AS TEXT) AS line \
         FROM messages m WHERE m.conversation_id = {id} AND m.visibility <> 'hidden' ORDER BY m.seq"
    );
    let rows = app.facts().await.rows(&sql).await;
    rows.into_iter().map(|it| format!("{it:?}")).collect()
}

async fn assert_complete(app: &EngineTest, branch: &conversation::Model) {
    let (origin, copy) = (
        texts(app, app.conversation).await,
        texts(app, branch.id).await,
    );
    assert_eq!(origin.len(), copy.len());
    assert_eq!(origin, copy);
    assert!(!branch.is_hidden);
    assert_eq!(branch.text_bytes, stored_text(app, branch.id).await);
}

async fn n_rows(app: &EngineTest, table: &str, id: ConversationId) -> i64 {
    let sql = format!("SELECT CAST(COUNT(*) AS TEXT) FROM {table} WHERE conversation_id = {id}");
    app.facts().await.number(&sql).await
}

on_both! {
    /// Such a heartbeat was written before the clock was set back.
    async fn a_job_with_a_heartbeat_in_the_future_is_continued(backend) {
        let app = app_with_messages(backend, LONG).await;
        let job = abandoned(&app).await;
        let now = app.clock.now();
        let mut facts = app.facts().await;

        for (heartbeat_at, n_continued) in [(now, 0), (now.plus_ms(HOUR), 1)] {
            let set = format!("UPDATE jobs SET heartbeat_at = {} WHERE id = {}", heartbeat_at.0, job.id);
            facts.execute(&set).await;
            let report = app.engine.run_recovery().await.unwrap();
            assert_eq!(report.jobs_continued, n_continued);
        }

        wait_until_ended(&app, &job).await;
        assert_complete(&app, &row_of(&app, &job).await.unwrap()).await;
        app.close_without_events().await;
    }

    async fn a_worker_that_lost_its_job_changes_nothing(backend) {
        let app = app_with_messages(backend, LONG).await;
        let lost = abandoned(&app).await;
        let seen = job_now(&app, &lost).await;
        let (db, now, backend) = (app.db.heartbeat_connection(), app.clock.now(), app.db.backend());

        let claimed = job::claim(db, &seen, "another", now, backend).await.unwrap().expect("the job was not claimed");
        let again = job::claim(db, &seen, "a third", now, backend).await.unwrap();
        let saved = job::save_progress(db, &lost, now, backend).await.unwrap();
        let ended = job::finish(db, &lost, JobStatus::Failed, None, now).await.unwrap();
        job::release(db, &lost).await.unwrap();
        let renewed = job::heartbeat(db, "another", &[lost.id], now, backend).await.unwrap();
        let stolen = job::heartbeat(db, "a third", &[lost.id], now, backend).await.unwrap();

        assert_eq!((claimed.lease, again, saved, ended), (lost.lease + 1, None, false, false));
        assert_eq!(renewed.iter().map(|it| it.lease).collect::<Vec<_>>(), [claimed.lease]);
        assert!(renewed[0].heartbeat_at > seen.heartbeat_at && stolen.is_empty());
        app.close_without_events().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_whose_row_is_locked_delays_no_heartbeat_of_a_run() {
    if !TestBackend::Postgres.is_available() {
        return; // an SQLite transaction locks the whole file, not a row
    }
    // The recovery of a started engine could claim the job first.
    let app = EngineTest::builder(TestBackend::Postgres).not_started();
    let app = add_messages(app.open().await, LONG).await;
    let lost = abandoned(&app).await;
    let seen = job_now(&app, &lost).await;
    let (node, now) = (app.engine.context().node.clone(), app.clock.now());
    let claimed = job::claim(
        app.db.heartbeat_connection(),
        &seen,
        &node,
        now,
        app.db.backend(),
    );
    claimed.await.unwrap().expect("the job was not claimed");
    let mut facts = app.facts().await;
    facts
        .execute(&format!(
            "BEGIN; SELECT 1 FROM jobs WHERE id = {} FOR UPDATE",
            lost.id
        ))
        .await;
    let job = BackgroundJob(app.engine.context().clone());
    let held = [lost.id];
    let renewing = job.renew(&held);
    tokio::pin!(renewing);
    let heartbeat = app.db.heartbeat_connection();

    // The renewal is polled first, so it is waiting for the row when the heartbeat begins.
    let read = tokio::select! {
        biased;
        _ = &mut renewing => panic!("the job was renewed although the row is locked"),
        read = heartbeat.query_one_raw(Statement::from_string(DbBackend::Postgres, "SELECT 1")) => read,
    };

    assert!(read.expect("the connection is blocked").is_some());
    facts.execute("ROLLBACK").await;
    renewing.await.expect("the renewal failed");
    app.close_without_events().await;
}

on_sqlite! {
    async fn a_long_branch_is_created_in_batches_and_complete(backend) {
        let app = app_with_messages(backend, LONG).await;

        let job = begin(&app.engine, fork(&app).await).await;
        let ended = wait_until_ended(&app, &job).await;

        assert_eq!((ended.status, ended.n_done, ended.n_total), (JobStatus::Succeeded, LONG, LONG));
        assert_complete(&app, &row_of(&app, &job).await.unwrap()).await;
        app.close_without_events().await;
    }

    async fn a_branch_of_medium_length_is_complete_in_the_response(backend) {
        let app = app_with_messages(backend, SHORT).await;

        let BranchResult::Whole { row, .. } = app.engine.begin_branch(fork(&app).await).await.unwrap() else {
            panic!("the branch was made by a job");
        };

        assert_complete(&app, &row).await;
        app.close_without_events().await;
    }

    async fn a_job_of_a_lost_node_is_continued_by_another(backend) {
        let app = app_with_messages(backend, LONG).await;
        let job = abandoned(&app).await;
        let branch = row_of(&app, &job).await.unwrap();
        assert!(branch.is_hidden && job_now(&app, &job).await.status == JobStatus::Running);
        assert!(branch.text_bytes > 0, "the branch was not charged before its first batch");

        let report = app.engine.run_recovery().await.unwrap();
        wait_until_ended(&app, &job).await;

        assert_eq!(report.jobs_continued, 1);
        assert_complete(&app, &row_of(&app, &job).await.unwrap()).await;
        app.close_without_events().await;
    }

    async fn a_conversation_being_copied_by_a_job_rejects_commands(backend) {
        let app = app_with_messages(backend, LONG).await;
        let job = abandoned(&app).await;

        let engine = app.engine.clone();
        let hidden = app.user_in_conversation(&engine, job.conversation_id.unwrap());
        let refused = hidden.try_post("Is anyone here?").await;

        assert!(matches!(refused, Err(EngineError::Rejected(CommandError::NotFound))), "{refused:?}");
        app.close_without_events().await;
    }

    async fn a_canceled_branch_leaves_no_rows(backend) {
        let app = app_with_messages(backend, LONG).await;
        let job = abandoned(&app).await;

        assert!(job::cancel(&app.db, job.id, app.clock.now()).await.unwrap());
        assert!(!job::cancel(&app.db, job.id, app.clock.now()).await.unwrap());
        app.engine.run_recovery().await.unwrap();
        let ended = wait_until_ended(&app, &job).await;

        assert_eq!(ended.status, JobStatus::Canceled);
        assert!(row_of(&app, &job).await.is_none());
        assert_eq!(n_rows(&app, "messages", job.conversation_id.unwrap()).await, 0);
        app.close_without_events().await;
    }

    async fn a_user_has_at_most_one_branch_job(backend) {
        let app = app_with_messages(backend, LONG).await;
        abandoned(&app).await;

        let second = app.engine.begin_branch(fork(&app).await).await;

        assert!(matches!(second, Err(EngineError::JobRunning)), "{second:?}");
        app.close_without_events().await;
    }

    async fn a_regenerate_that_needs_a_branch_job_queues_its_run_when_the_job_ends(backend) {
        let app = app_with_messages(backend, LONG).await;
        app.upstream.next(ResponseScript::say("An answer."));
        app.user.post("And?").await;
        app.settle().await;
        let answer = app.messages().await.pop().unwrap();
        app.user.post("Well?").await;
        app.settle().await;

        app.upstream.next(ResponseScript::say("Another answer."));
        let planned = app.engine.regenerate(app.conversation, Some(answer.id), "Eve".to_owned()).await.unwrap();

        assert_ne!(planned.conversation, app.conversation);
        app.until("the reply is stored", async |it| {
            let tail = it.facts().await.timeline(planned.conversation.0).await.pop();
            tail.is_some_and(|line| line.2 == "Another answer.")
        }).await;
        app.wait_until_idle().await;
        app.close_without_events().await;
    }

    async fn a_long_conversation_is_hidden_immediately_and_deleted_in_batches(backend) {
        let app = app_with_messages(backend, LONG).await;
        let user = user_of(&app).await;
        app.facts().await.execute("UPDATE conversations SET tokens_used = 7").await;

        let deletion = app.engine.delete_conversation(app.conversation, user).await.unwrap().unwrap();
        let refused = app.user.try_post("Is anyone here?").await;
        let job = app.engine.wait_for_deletion(deletion).await.unwrap().expect("no job created");

        assert!(matches!(refused, Err(EngineError::Rejected(CommandError::NotFound))), "{refused:?}");
        let ended = wait_until_ended(&app, &job).await;
        assert_eq!((ended.status, ended.n_done), (JobStatus::Succeeded, LONG));
        assert!(row_of(&app, &job).await.is_none());
        assert_eq!(n_rows(&app, "messages", app.conversation).await, 0);
        assert_eq!(app.tokens_used().await, 7, "the space keeps the tokens");
        app.close_without_events().await;
    }

    async fn a_large_space_is_deleted_together_with_its_unfinished_branch(backend) {
        let app = app_with_messages(backend, LONG).await;
        let branch = abandoned(&app).await;
        for _ in 0..30 {
            app.another_conversation().await;
        }
        let user = user_of(&app).await;

        let deletion = app.engine.delete_space(app.space, user).await.unwrap().unwrap();
        let job = app.engine.wait_for_deletion(deletion).await.unwrap().expect("no job created");

        assert_eq!(wait_until_ended(&app, &job).await.status, JobStatus::Succeeded);
        assert_eq!(job_now(&app, &branch).await.status, JobStatus::Canceled);
        let mut facts = app.facts().await;
        for table in ["spaces", "conversations", "messages", "message_swipes", "space_memberships"] {
            let n = facts.number(&format!("SELECT CAST(COUNT(*) AS TEXT) FROM {table}")).await;
            assert_eq!(n, 0, "{table}");
        }
        app.close_without_events().await;
    }

    async fn the_text_size_of_a_conversation_follows_its_changes(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.upstream.next(ResponseScript::say("A first answer."));
        app.user.post("Good evening, 你好.").await;
        app.settle().await;
        for other in ["Second.", "A much longer third answer."] {
            app.upstream.next(ResponseScript::say(other));
            app.engine.regenerate(app.conversation, None, "Eve".to_owned()).await.unwrap();
            app.settle().await;
        }
        let tail: message::Model = app.messages().await.pop().unwrap();

        app.engine.select_swipe(app.scope(), tail.id, (1, None), None).await.unwrap();

        assert_eq!(app.row().await.text_bytes, stored_text(&app, app.conversation).await);
        app.close().await;
    }
}
