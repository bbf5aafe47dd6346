//! Tests of tasks of the memory that fail for good, and of those that people request.

use serde_json::json;
use troupe::conversations::conversation;
use troupe::memories::memory_deletion;
use troupe::memories::memory_deletion::DeletionScope;
use troupe::memories::tasks::learning_request::RequestedMessages;
use troupe::memories::tasks::task_queue::TaskCounts;
use troupe::memories::tasks::{learning_request, summarizing_task, task_queue};

use crate::support::backends::on_both;
use crate::support::engine_test::EngineTest;

const FACT: &str = "My dog is called Pixel, and he loves the old lighthouse.";
const OTHER_FACT: &str = "My cat is called Comet, and she fears the old lighthouse.";

impl EngineTest {
    async fn task_counts(&self) -> TaskCounts {
        let counted = task_queue::count_for_space(self.db.reader(), self.space);
        counted.await.expect("the database answers")
    }

    /// Changes the tasks of the memory as if the server had stopped during this attempt.
    async fn abandon_tasks(&self, attempt: i64) {
        let sql = format!(
            "UPDATE memory_tasks SET status = 'running', worker_id = 'dead', lease = lease + 1, \
             attempt = {attempt}, heartbeat_at = 1"
        );
        self.facts().await.execute(&sql).await;
    }

    async fn request_learning_now(&self, requested: RequestedMessages) -> bool {
        let now = self.clock.now();
        let done = learning_request::request_now(&self.db, self.conversation, requested, now).await;
        done.expect("the database answers")
    }

    /// Makes the task for the first two messages fail for good.
    async fn fail_first_task(&self) {
        self.user.post(FACT).await;
        self.settle().await;
        let mut facts = self.facts().await;
        for change in [
            "UPDATE memory_tasks SET from_seq = 1, to_seq = 2",
            "UPDATE conversations SET unlearned_from_seq = NULL",
        ] {
            facts.execute(change).await;
        }
        self.abandon_tasks(5).await;
        assert_eq!(self.learn().await, 0, "a sixth attempt");
    }

    /// Adds this many messages of the user, without facts, to a conversation with two messages.
    async fn add_messages(&self, n: i64) {
        let (id, last) = (self.conversation, n + 2);
        let mut facts = self.facts().await;
        for change in [
            format!(
                "WITH RECURSIVE n(i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < {last}) \
                 INSERT INTO messages (conversation_id, seq, space_membership_id, role, content, visibility, \
                 active_swipe, created_at, rev, token_count, metadata) \
                 SELECT conversation_id, i, space_membership_id, 'user', 'Yes.', 'normal', 0, created_at, \
                 rev, 1, '{{}}' FROM n CROSS JOIN messages WHERE conversation_id = {id} AND seq = 1"
            ),
            format!(
                "UPDATE conversations SET last_seq = {last}, last_user_seq = {last} WHERE id = {id}"
            ),
        ] {
            facts.execute(&change).await;
        }
    }

    async fn request_summary(&self) {
        let (id, now) = (self.conversation, self.clock.now());
        let requested = self.db.write(move |tx| {
            Box::pin(async move {
                let row = conversation::lock(tx, id).await?.expect("a conversation");
                summarizing_task::request(tx, &row, now).await
            })
        });
        let requested: Result<(), sea_orm::DbErr> = requested.await;
        requested.expect("the database answers");
    }
}

on_both! {
    async fn a_task_whose_server_stopped_five_times_has_failed(backend) {
        let app = EngineTest::builder(backend).open().await;

        app.fail_first_task().await;

        let counts = app.task_counts().await;
        assert_eq!((counts.queued, counts.failed), (0, 1));
        let error = app.facts().await.rows("SELECT error FROM memory_tasks").await;
        assert_eq!(error[0][0].as_deref(), Some("The server stopped while it executed this task."));
        assert_eq!(app.memories().await, Vec::<String>::new());
        app.close_without_events().await;
    }

    async fn the_messages_of_a_failed_task_are_learned_from_with_the_next_ones(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.fail_first_task().await;
        app.user.post(OTHER_FACT).await;
        app.settle().await;

        assert_eq!(app.learn().await, 2);

        let both = [format!("Eve: {OTHER_FACT}"), format!("Eve: {FACT}")];
        assert_eq!(app.memories().await, both);
        let counts = app.task_counts().await;
        assert_eq!((counts.queued, counts.failed), (0, 0));
        app.close_without_events().await;
    }

    async fn a_failed_task_gets_one_attempt_each_time_its_conversation_is_learned_from(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.fail_first_task().await;
        app.user.post(OTHER_FACT).await;
        app.settle().await;
        app.clock.advance_ms(30_000);
        let services = app.learning_services();
        let claimed = app.claim_task().await;
        services.learn(claimed, &Default::default()).await.expect("it is learned from");

        // The failed task is queued; its server stops again.
        let failed = app.claim_task().await;
        assert_eq!((failed.attempt, failed.from_seq), (5, Some(1)));
        app.abandon_tasks(failed.attempt).await;

        assert_eq!(app.learn().await, 0);
        assert_eq!(app.task_counts().await.failed, 1);
        app.close_without_events().await;
    }

    async fn a_summary_whose_server_stopped_five_times_is_replaced_by_the_next_request(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.request_summary().await;
        app.abandon_tasks(5).await;
        app.learn().await;
        assert_eq!(app.task_counts().await.failed, 1);

        app.request_summary().await;

        let counts = app.task_counts().await;
        assert_eq!((counts.queued, counts.failed), (1, 0));
        app.close_without_events().await;
    }

    async fn a_request_makes_the_waiting_task_due_and_adds_none(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post(FACT).await;
        app.settle().await;
        assert_eq!(app.learning().run_due().await.unwrap(), 0, "two messages wait");

        for requested in [RequestedMessages::Unlearned, RequestedMessages::Range(1, 2)] {
            assert!(app.request_learning_now(requested).await);
            assert_eq!(app.task_counts().await.queued, 1);
        }

        assert_eq!(app.learning().run_due().await.unwrap(), 1);
        assert_eq!(app.memories().await, [format!("Eve: {FACT}")]);
        app.close_without_events().await;
    }

    async fn a_request_tries_a_failed_task_again_and_adds_none(backend) {
        for requested in [RequestedMessages::Unlearned, RequestedMessages::Range(1, 2)] {
            let app = EngineTest::builder(backend).open().await;
            app.fail_first_task().await;

            assert!(app.request_learning_now(requested).await);

            let counts = app.task_counts().await;
            assert_eq!((counts.queued, counts.failed), (1, 0));
            assert_eq!(app.learning().run_due().await.unwrap(), 1);
            assert_eq!(app.memories().await, [format!("Eve: {FACT}")]);
            app.close_without_events().await;
        }
    }

    async fn messages_are_learned_from_again_only_if_all_are_learned_from(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post(FACT).await;
        app.settle().await;
        app.learn().await;
        let facts = &mut app.facts().await;
        facts.execute("DELETE FROM memories").await;
        app.user.post(OTHER_FACT).await;
        app.settle().await;

        assert!(app.request_learning_now(RequestedMessages::Unlearned).await);
        app.learning().run_due().await.unwrap();
        assert_eq!(app.memories().await, [format!("Eve: {OTHER_FACT}")]);

        for _ in 0..2 {
            assert!(app.request_learning_now(RequestedMessages::Unlearned).await);
            assert_eq!(app.task_counts().await.queued, 1);
        }
        app.learning().run_due().await.unwrap();
        assert_eq!(app.memories().await, [format!("Eve: {OTHER_FACT}"), format!("Eve: {FACT}")]);
        app.close_without_events().await;
    }

    async fn a_message_is_counted_as_left_out_once_and_only_by_the_worker_that_holds_the_task(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post(FACT).await;
        app.settle().await;
        app.add_messages(300).await;
        let services = app.learning_services();
        let n_dropped = || services.indexes.metrics.dropped.get();

        let lost = app.claim_task().await;
        app.abandon_tasks(lost.attempt).await;
        services.learn(lost, &Default::default()).await.expect("nothing is stored");
        assert_eq!(n_dropped(), 0);
        assert_eq!(app.learn().await, 1);
        assert_eq!(n_dropped(), 302 - 256);

        assert!(app.request_learning_now(RequestedMessages::Unlearned).await);
        let range = app.facts().await.rows("SELECT CAST(from_seq AS TEXT), CAST(to_seq AS TEXT) FROM memory_tasks").await;
        assert_eq!((range[0][0].as_deref(), range[0][1].as_deref()), (Some("47"), Some("302")));
        assert_eq!(app.learning().run_due().await.unwrap(), 1);
        assert_eq!(n_dropped(), 302 - 256);
        app.close_without_events().await;
    }

    async fn a_range_leaves_newer_messages_to_their_task(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post(FACT).await;
        app.settle().await;
        app.learn().await;
        app.facts().await.execute("DELETE FROM memories").await;
        app.user.post(OTHER_FACT).await;
        app.settle().await;

        assert!(app.request_learning_now(RequestedMessages::Range(1, 2)).await);
        assert_eq!(app.learning().run_due().await.unwrap(), 1);
        assert_eq!(app.memories().await, [format!("Eve: {FACT}")]);

        assert!(app.request_learning_now(RequestedMessages::Range(1, 4)).await);
        assert_eq!(app.learning().run_due().await.unwrap(), 2);
        assert_eq!(app.memories().await, [format!("Eve: {OTHER_FACT}"), format!("Eve: {FACT}")]);
        app.close_without_events().await;
    }

    async fn what_a_forgotten_member_said_is_not_learned_from_once_it_is_switched_on(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.fail_first_task().await;
        let eve = DeletionScope::Member(app.user.membership);

        memory_deletion::delete(&app.db, app.space, eve, app.clock.now()).await.unwrap();

        let remembered: Vec<bool> = app.messages().await.iter().map(|it| it.is_remembered).collect();
        assert_eq!(remembered, [false, true], "others said the second message");
        app.change_membership("Eve", |it| it.settings = json!({})).await;
        app.user.post(OTHER_FACT).await;
        app.settle().await;
        app.learn().await;
        assert_eq!(app.memories().await, [format!("Eve: {OTHER_FACT}")]);
        app.close_without_events().await;
    }
}
