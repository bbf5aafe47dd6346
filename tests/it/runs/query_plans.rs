//! Tests that frequent queries read no rows that accumulate with history: each names its index, on
//! both databases, over some thousand rows.

use base::ids::{ConversationId, MembershipId, SpaceId, UserId};
use sea_orm::{ConnectionTrait, DbBackend, Statement};
use troupe::accounts::session;
use troupe::conversations::audience::scheduled_messages;
use troupe::conversations::audience::viewer::Viewer;
use troupe::conversations::message::MessageRole;
use troupe::conversations::timeline::TimelinePage;
use troupe::conversations::{conversation, message, newest_messages, timeline, timeline_page};
use troupe::db::backend::StaleAfter;
use troupe::db::reading::page::PageQuery;
use troupe::runs::execution::recovery;
use troupe::runs::reading::history;
use troupe::runs::reading::history::RunQuery;
use troupe::runs::scheduling::space_changes;
use troupe::runs::store::run::RunStatus;
use troupe::runs::store::{due_runs, queue, run, tool_approval};
use troupe::spaces::maintenance::guest_cleanup;
use troupe::spaces::membership;

use crate::support::backends::{TestBackend, on_both};
use crate::support::engine_test::EngineTest;
use crate::support::explaining_connection::ExplainingConnection;

on_both! {
    async fn runs_are_listed_by_status_through_an_index(backend) {
        let app = app_with_history(backend).await;
        let db = ExplainingConnection::new(app.db.heartbeat_connection());
        let backend = app.db.backend();

        for (status, indexes) in [
            (RunStatus::Queued, QUEUED),
            (RunStatus::Running, RUNNING),
            (RunStatus::Failed, &["finished_runs_by_status"]),
            (RunStatus::Succeeded, &["finished_runs_by_status"]),
        ] {
            let wanted = RunQuery { status: Some(status), ..RunQuery::default() };
            let page = PageQuery { limit: 50, after: None, before: None };
            wanted.list(&db, backend, page).await.expect("the query failed");
            db.assert_uses_one_of(indexes);
        }

        app.close_broken().await;
    }

    async fn recovery_queries_read_no_finished_rows(backend) {
        let app = app_with_history(backend).await;
        let db = ExplainingConnection::new(app.db.heartbeat_connection());
        let now = app.clock.now();

        recovery::list_stalled_rounds(&db).await.expect("the query failed");
        let plan = db.take_plans();
        db.assert_is_among(&plan, &["one_active_round_per_conversation"]);
        // Searched by status within a conversation, this index reads no finished row either.
        let by_status = ["runs_of_a_conversation_by_status"];
        db.assert_is_among(&plan, &[QUEUED, &by_status].concat());
        db.assert_is_among(&plan, &[RUNNING, &by_status].concat());

        let stale = StaleAfter { after_ms: 30_000, backend: app.db.backend() };
        queue::list_expired(&db, now, &stale).await.expect("the query failed");
        db.assert_uses_one_of(&["running_runs_by_heartbeat"]);

        app.close_broken().await;
    }

    async fn queries_for_due_runs_read_no_finished_rows(backend) {
        let app = app_with_history(backend).await;
        let db = ExplainingConnection::new(app.db.heartbeat_connection());
        let now = app.clock.now();

        due_runs::list_next_due(&db, &[], 32).await.expect("the query failed");
        assert_reads_unfinished_runs(&db);
        due_runs::list_due_spaces(&db, now, SpaceId(0), 32).await.expect("the query failed");
        assert_reads_unfinished_runs(&db);
        due_runs::list_for_spaces(&db, now, &[], &[app.space], 32).await.expect("the query failed");
        assert_reads_unfinished_runs(&db);
        history::queue_load(&db).await.expect("the query failed");
        assert_reads_unfinished_runs(&db);

        app.close_broken().await;
    }

    async fn queries_for_active_runs_of_a_conversation_read_no_finished_runs(backend) {
        let app = app_with_history(backend).await;
        let db = ExplainingConnection::new(app.db.heartbeat_connection());

        run::find_active(&db, app.conversation).await.expect("the query failed");
        assert_reads_unfinished_runs(&db);
        run::list_active(&db, &[app.conversation]).await.expect("the query failed");
        assert_reads_unfinished_runs(&db);
        tool_approval::list_open(&db, app.conversation, Viewer::Server).await.expect("the query failed");
        assert_reads_unfinished_runs(&db);

        app.close_broken().await;
    }

    async fn the_newest_messages_are_found_through_the_role_index(backend) {
        let app = app_with_history(backend).await;
        let db = ExplainingConnection::new(app.db.heartbeat_connection());
        let row = app.row().await;

        let author = app.user.membership;
        let tail = timeline::new_model(row.id, author, MessageRole::User, String::new(), app.clock.now());
        newest_messages::find(&db, row.id).await.expect("the query failed");
        db.assert_uses_one_of(&["visible_messages_by_role"]);
        let end = message::Model { seq: 2_000, ..tail.clone() };
        scheduled_messages::last_user_message(&db, &end).await.expect("the query failed");
        db.assert_uses_one_of(&["visible_messages_by_role"]);
        timeline::last_speaker(&db, row.id, 2_000).await.expect("the query failed");
        db.assert_uses_one_of(&["visible_messages_by_role"]);
        timeline::speakers_since_last_user_message(&db, &row).await.expect("the query failed");
        db.assert_uses_one_of(&["visible_messages_by_role", "scheduled_messages"]);
        timeline::list_tails(&db, [&conversation::Model { last_seq: 2_000, ..row.clone() }]).await.expect("the query failed");
        db.assert_uses_one_of(&["scheduled_messages"]);
        timeline_page::load_stubs(&db, (row.id, MEMBER), TimelinePage::Newest, 50).await.expect("the query failed");
        db.assert_uses_one_of(&["visible_messages"]);
        timeline_page::load_stubs(&db, (row.id, MEMBER), TimelinePage::After(1_000), 50).await.expect("the query failed");
        db.assert_uses_one_of(&["visible_messages"]);

        app.close_broken().await;
    }

    async fn queries_for_active_members_read_no_removed_members(backend) {
        let app = app_with_history(backend).await;
        let db = ExplainingConnection::new(app.db.heartbeat_connection());

        membership::list_active(&db, app.space).await.expect("the query failed");
        db.assert_uses_one_of(&["active_memberships"]);
        membership::next_position(&db, app.space).await.expect("the query failed");
        db.assert_uses_one_of(&["active_memberships"]);
        guest_cleanup::find_unreferenced(&db, 50).await.expect("the query failed");
        let plan = db.take_plans();
        assert!(plan.contains("removed_guests"), "{plan}");

        app.close_broken().await;
    }

    async fn queries_for_marked_and_active_conversations_read_no_others(backend) {
        let app = app_with_history(backend).await;
        let db = ExplainingConnection::new(app.db.heartbeat_connection());

        space_changes::list_marked(&db, None, (SpaceId(0), ConversationId(0)), 100).await.expect("the query failed");
        db.assert_uses_one_of(&["conversations_that_need_a_step"]);
        space_changes::list_live(&db, app.space).await.expect("the query failed");
        assert_reads_unfinished_runs(&db);

        app.close_broken().await;
    }

    async fn expired_sessions_are_found_through_the_expiry_index(backend) {
        let app = app_with_history(backend).await;
        let db = ExplainingConnection::new(app.db.heartbeat_connection());

        let opened = session::open_in_transaction(&db, UserId(1), "", app.clock.now()).await;

        opened.expect("the query failed");
        db.assert_uses_one_of(&["sessions_by_expiry"]);
        app.close_broken().await;
    }
}

/// Each of these indexes contains queued runs only.
/// A member of the space, for whom whispers of others are left out.
const MEMBER: Viewer = Viewer::Member(MembershipId(1));
const QUEUED: &[&str] = &[
    "one_queued_run_per_conversation",
    "queued_runs_by_due_time",
    "queued_runs_by_space",
];

/// Each of these indexes contains running runs only.
const RUNNING: &[&str] = &[
    "one_running_run_per_conversation",
    "running_runs_by_heartbeat",
];

/// Fails if the last statements read runs through an index that contains finished ones.
#[track_caller]
/// Planning takes ten times as long as the query.
#[tokio::test]
async fn on_postgres_the_query_for_due_runs_is_not_planned_at_each_execution() {
    if !TestBackend::Postgres.is_available() {
        return;
    }
    let app = app_with_history(TestBackend::Postgres).await;
    let db = app.db.heartbeat_connection();

    for _ in 0..3 {
        let due = due_runs::list_next_due(db, &[], 33).await;
        due.expect("the query failed");
    }

    let statistics = "SELECT custom_plans FROM pg_prepared_statements \
        WHERE statement LIKE '%\"conversation_runs\"%LIMIT 33'";
    let statistics = Statement::from_string(DbBackend::Postgres, statistics);
    let row = db.query_one_raw(statistics).await;
    let row = row.expect("the query failed").expect("it is prepared");
    let n_planned: i64 = row.try_get_by_index(0).expect("a number");
    assert_eq!(
        n_planned, 0,
        "it is planned for the values of its parameters"
    );
    app.close_broken().await;
}

fn assert_reads_unfinished_runs(db: &ExplainingConnection<'_>) {
    let plan = db.take_plans();
    let reads = |line: &&str| {
        let is_scan = ["Scan", "SCAN", "SEARCH"]
            .iter()
            .any(|it| line.contains(it));
        is_scan && line.contains("conversation_runs")
    };
    for line in plan.lines().filter(reads) {
        let mut partial = QUEUED.iter().chain(RUNNING);
        // The primary key reads one run; conversation and status read an unfinished one.
        let by_id = [
            "autoindex_conversation_runs",
            "runs_pkey",
            "runs_of_a_conversation_by_status",
        ]
        .iter()
        .any(|it| line.contains(it));
        let is_bounded = by_id || partial.any(|it| line.contains(it));
        assert!(is_bounded, "{line} in\n{plan}");
    }
}

/// A conversation with thousands of messages and finished runs, among other conversations.
async fn app_with_history(backend: TestBackend) -> EngineTest {
    let app = EngineTest::builder(backend).not_started().open().await;
    let uuid = match backend {
        TestBackend::Sqlite => "randomblob(16)",
        TestBackend::Postgres => "gen_random_uuid()",
    };
    let history_sql = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000) \
         INSERT INTO conversations (space_id, title, settings, variables, created_at) \
         SELECT {space}, 'Conversation ' || i, '{{}}', '{{}}', 0 FROM n;
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000) \
         INSERT INTO conversation_runs (id, conversation_id, run_seq, space_id, kind, status, reason, \
           speaker_space_membership_id, created_at, finished_at, debug) \
         SELECT {uuid}, (SELECT min(id) FROM conversations) + i % 10, i, 1, 'user_turn', \
           CASE WHEN i % 50 = 0 THEN 'failed' ELSE 'succeeded' END, 'user_message', \
           {speaker}, i, i, '{{}}' FROM n;
         UPDATE conversations SET last_run_seq = 4000;
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000) \
         INSERT INTO conversation_rounds (id, conversation_id, status, seed, created_at) \
         SELECT {uuid}, (SELECT min(id) FROM conversations) + i % 10, 'finished', i, i FROM n;
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000) \
         INSERT INTO messages (conversation_id, seq, space_membership_id, role, content, visibility, \
           created_at, rev, metadata) \
         SELECT {conversation}, i, {speaker}, \
           CASE WHEN i % 2 = 0 THEN 'user' ELSE 'assistant' END, 'Hello.', 'normal', i, i, '{{}}' FROM n;
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000) \
         INSERT INTO sessions (user_id, token_hash, created_at, last_seen_at, expires_at, user_agent) \
         SELECT (SELECT min(id) FROM users), 'token ' || i, 0, 0, 9000000000000 + i, '' FROM n;
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000) \
         INSERT INTO space_memberships (space_id, kind, role, status, position, cached_display_name, \
           aliases, settings, created_at) \
         SELECT {space}, 'human', CASE WHEN i % 2 = 0 THEN 'guest' ELSE 'member' END, 'removed', i, \
           'Guest ' || i, '[]', '{{}}', 0 FROM n",
        space = app.space.0,
        conversation = app.conversation.0,
        speaker = app.membership("Ada").await.id.0,
    );
    let connection = app.db.heartbeat_connection();
    let inserted = connection.execute_unprepared(&history_sql).await;
    inserted.expect("the history was not inserted");
    newest_messages::refresh(connection, app.conversation)
        .await
        .expect("the query failed");
    if backend == TestBackend::Postgres {
        let analyzed = connection.execute_unprepared("ANALYZE").await;
        analyzed.expect("ANALYZE failed");
    }
    app
}
