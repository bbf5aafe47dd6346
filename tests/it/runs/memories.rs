//! Tests that something said in one conversation is recalled in another one of the space, until it is
//! deleted or forgotten.

use std::time::Duration;

use base::ids::ConversationId;
use troupe::conversations::message::Visibility;
use troupe::db::reading::page::PageQuery;
use troupe::memories::learning::learning_job::LearningJob;
use troupe::memories::learning::message_learning::LearningServices;
use troupe::memories::memory::MemoryFilter;
use troupe::memories::memory_deletion::DeletionScope;
use troupe::memories::models::memory_models::MemoryModels;
use troupe::memories::tasks::task_queue;
use troupe::memories::tasks::task_queue::TaskQueue;
use troupe::memories::{memory, memory_deletion};
use troupe::spaces::space::ReplyOrder;

use crate::support::backends::{on_both, on_sqlite};
use crate::support::engine_test::{EngineTest, edit_of};

pub const FACT: &str = "My dog is called Pixel, and he loves the old lighthouse.";
pub const QUESTION: &str = "Do you remember how my dog is called?";

impl EngineTest {
    /// Returns what a worker needs.
    pub fn learning_services(&self) -> LearningServices {
        let context = self.engine.context();
        LearningServices {
            db: self.db.clone(),
            clock: self.clock.clone(),
            models: MemoryModels::new(
                self.db.clone(),
                context.models.clone(),
                context.settings.call_limits,
            ),
            indexes: context.prompt_caches.memories.clone(),
            events: context.memory_events.clone(),
            node: "node-learning".into(),
            heartbeat: Duration::from_secs(5),
            stale_after: Duration::from_secs(30),
        }
    }

    /// Returns the job that executes the tasks of the memory.
    pub fn learning(&self) -> LearningJob {
        LearningJob::new(
            self.learning_services(),
            self.engine.context().shutdown.clone(),
        )
    }

    /// Learns from everything that was said. Returns the number of tasks.
    pub async fn learn(&self) -> usize {
        self.clock.advance_ms(30_000);
        self.learning()
            .run_due()
            .await
            .expect("the database answers")
    }

    /// Returns the contents of all memories of everyone and of characters, in alphabetical order.
    pub async fn memories(&self) -> Vec<String> {
        let page = PageQuery {
            limit: 100,
            after: None,
            before: None,
        };
        let filter = MemoryFilter::default();
        let found = memory::list_for_space(self.db.reader(), self.space, &filter, page);
        let mut contents: Vec<_> = found
            .await
            .unwrap()
            .data
            .into_iter()
            .map(|it| it.content)
            .collect();
        contents.sort();
        contents
    }

    /// Asks in another conversation, and returns whether the prompt contains the fact.
    pub async fn recalls_fact_elsewhere(&self) -> bool {
        let conversation = self.another_conversation().await;
        self.recalls_fact_in(conversation).await
    }

    async fn recalls_fact_in(&self, conversation: ConversationId) -> bool {
        let n_before = self.upstream.n_requests();
        self.user_in_conversation(&self.engine, conversation)
            .post(QUESTION)
            .await;
        self.upstream.wait_for_requests(n_before + 1).await;
        self.wait_until_idle().await;
        let sent = self.upstream.body(n_before).to_string();
        assert!(sent.contains(QUESTION), "{sent}");
        sent.contains("Pixel")
    }

    async fn delete_memories(&self, scope: DeletionScope) {
        let deleted = memory_deletion::delete(&self.db, self.space, scope, self.clock.now());
        assert_eq!(deleted.await.unwrap().len(), 1);
    }
}

on_both! {
    async fn what_was_said_in_one_conversation_is_recalled_in_another_one(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post(FACT).await;
        app.settle().await;
        assert!(!app.recalls_fact_elsewhere().await, "it was recalled before it was learned");

        assert_eq!(app.learn().await, 2, "one task for each conversation");

        assert_eq!(app.memories().await, [format!("Eve: {FACT}")]);
        assert!(app.recalls_fact_elsewhere().await);
        app.close_without_events().await;
    }

    async fn a_message_is_learned_from_once(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post(FACT).await;
        app.settle().await;
        app.learn().await;
        app.user.post("Good night.").await;
        app.settle().await;

        app.learn().await;

        assert_eq!(app.memories().await.len(), 1);
        assert_eq!(app.learn().await, 0, "a task was left");
        assert_eq!(app.row().await.unlearned_from_seq, None);
        app.close_without_events().await;
    }

    async fn ten_messages_are_learned_from_at_once(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post(FACT).await;
        app.settle().await;
        assert_eq!(app.learning().run_due().await.unwrap(), 0, "two messages do not wait");

        for _ in 0..4 {
            app.user.post("Go on.").await;
            app.settle().await;
        }

        assert_eq!(app.learning().run_due().await.unwrap(), 1);
        assert_eq!(app.memories().await.len(), 1);
        app.close_without_events().await;
    }

    async fn a_deleted_message_is_forgotten_until_it_is_restored(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post(FACT).await;
        app.settle().await;
        app.learn().await;
        let said = app.messages().await[0].id;
        assert!(app.recalls_fact_elsewhere().await);

        app.engine.set_visibility(app.scope(), said, Visibility::Hidden).await.unwrap();
        assert!(!app.recalls_fact_elsewhere().await, "a deleted message was recalled");

        app.engine.set_visibility(app.scope(), said, Visibility::Normal).await.unwrap();
        assert!(app.recalls_fact_elsewhere().await);
        app.close_without_events().await;
    }

    async fn an_edited_message_is_learned_from_again(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.upstream.reply_with(&format!("I know. {FACT}"));
        app.user.post("Tell me.").await;
        app.settle().await;
        app.learn().await;
        let reply = app.messages().await.pop().expect("a reply");
        let edited = "I know. Your cat is called Comet, and she fears the old lighthouse.";

        app.engine.edit_message(app.scope(), edit_of(&reply, edited)).await.unwrap();
        assert_eq!(app.memories().await, Vec::<String>::new(), "the old text is remembered");
        app.learn().await;

        let memories = app.memories().await;
        assert!(memories.len() == 1 && memories[0].ends_with(edited), "{memories:?}");
        app.close_without_events().await;
    }

    async fn a_memory_that_a_person_deleted_is_in_no_prompt(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post(FACT).await;
        app.settle().await;
        app.learn().await;
        assert!(app.recalls_fact_elsewhere().await);
        let id = memory::select_for_space(app.space).one(app.db.reader()).await.unwrap().unwrap().id;
        let said = app.messages().await[0].id;

        app.delete_memories(DeletionScope::Memory(id)).await;

        assert!(!app.recalls_fact_elsewhere().await);
        // Restoring its message does not bring it back.
        app.engine.set_visibility(app.scope(), said, Visibility::Hidden).await.unwrap();
        app.engine.set_visibility(app.scope(), said, Visibility::Normal).await.unwrap();
        app.learn().await;
        assert_eq!(app.memories().await, Vec::<String>::new());
        app.close_without_events().await;
    }

    async fn a_space_keeps_its_maximum_of_memories(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.change_rules(|it| it.settings = serde_json::json!({"memory": {"max_memories": 2}})).await;
        for n in 1..=4 {
            app.user.post(&format!("{FACT} This is the story number {n} about him.")).await;
            app.settle().await;
        }
        app.learn().await;
        assert_eq!(app.memories().await.len(), 4);
        let said = app.messages().await[0].id;
        let mut facts = app.facts().await;
        facts.execute("UPDATE memories SET importance = 0.95 WHERE content LIKE '%number 4%'").await;

        app.learning().purge().await.unwrap();

        let kept = app.memories().await;
        assert!(kept.len() == 2 && kept[0].contains("number 3") && kept[1].contains("number 4"), "{kept:?}");
        // Restoring a message does not bring its memory back.
        app.engine.set_visibility(app.scope(), said, Visibility::Hidden).await.unwrap();
        app.engine.set_visibility(app.scope(), said, Visibility::Normal).await.unwrap();
        assert_eq!(app.memories().await, kept);
        app.close_without_events().await;
    }

    async fn what_is_forgotten_is_in_no_table_and_no_prompt_record(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post(FACT).await;
        app.settle().await;
        app.learn().await;
        assert!(app.recalls_fact_elsewhere().await);

        app.delete_memories(DeletionScope::All).await;

        assert!(!app.recalls_fact_elsewhere().await);
        let mut facts = app.facts().await;
        for table in ["memories", "memory_sources", "memory_vectors"] {
            let n = facts.number(&format!("SELECT CAST(count(*) AS TEXT) FROM {table}")).await;
            assert_eq!(n, 0, "{table}");
        }
        let records = "SELECT CAST(count(*) AS TEXT) FROM run_prompts WHERE CAST(record AS TEXT) LIKE '%Pixel%'";
        assert_eq!(facts.number(records).await, 0);
        app.close_without_events().await;
    }

    async fn the_memories_of_a_deleted_conversation_are_recalled_nowhere(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post(FACT).await;
        app.settle().await;
        app.learn().await;
        assert!(app.recalls_fact_elsewhere().await);

        app.delete_conversation().await;

        assert!(!app.recalls_fact_elsewhere().await);
        app.close_without_events().await;
    }

    async fn a_space_whose_memory_is_off_neither_learns_nor_recalls(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post(FACT).await;
        app.settle().await;
        app.learn().await;

        app.change_rules(|it| it.settings = serde_json::json!({"memory": {"enabled": false}})).await;

        assert!(!app.recalls_fact_elsewhere().await);
        assert_eq!(app.learn().await, 0, "a message was learned from");
        app.close_without_events().await;
    }

    async fn a_task_of_a_dead_worker_is_done_by_another_one(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post(FACT).await;
        app.settle().await;
        app.facts().await.execute(
            "UPDATE memory_tasks SET status = 'running', worker_id = 'dead', lease = 1, attempt = 1, \
             heartbeat_at = 1, from_seq = 1, to_seq = 2",
        ).await;

        assert_eq!(app.learn().await, 1);

        assert_eq!(app.memories().await.len(), 1);
        app.close_without_events().await;
    }

    async fn a_worker_that_is_too_late_leaves_newer_messages_to_their_task(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post("Good night.").await;
        app.settle().await;
        app.clock.advance_ms(30_000);
        let services = app.learning_services();
        let due = task_queue::list_due(app.db.reader(), TaskQueue::Learning, app.clock.now(), &services.stale(), [], 16).await.unwrap();
        services.claim(due[0].clone()).await.unwrap().expect("the task was not claimed");
        app.user.post(FACT).await;
        app.settle().await;

        assert!(services.claim(due[0].clone()).await.unwrap().is_none());

        assert_eq!(app.row().await.unlearned_from_seq, Some(3));
        app.user.post("Good night.").await;
        app.learn().await;
        assert_eq!(app.memories().await.len(), 1);
        app.close_without_events().await;
    }

    async fn the_old_text_of_an_excluded_message_does_not_come_back_with_it(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.upstream.reply_with(&format!("I know. {FACT}"));
        app.user.post("Tell me.").await;
        app.settle().await;
        app.learn().await;
        let reply = app.messages().await.pop().expect("a reply");
        app.engine.set_visibility(app.scope(), reply.id, Visibility::Excluded).await.unwrap();
        app.engine.edit_message(app.scope(), edit_of(&reply, "I know nothing.")).await.unwrap();

        app.engine.set_visibility(app.scope(), reply.id, Visibility::Normal).await.unwrap();

        assert_eq!(app.memories().await, Vec::<String>::new());
        app.close_without_events().await;
    }

    async fn what_was_forgotten_while_its_message_was_deleted_is_not_restored(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post(FACT).await;
        app.settle().await;
        app.learn().await;
        let said = app.messages().await[0].id;
        app.engine.set_visibility(app.scope(), said, Visibility::Hidden).await.unwrap();
        app.delete_memories(DeletionScope::All).await;

        app.engine.set_visibility(app.scope(), said, Visibility::Normal).await.unwrap();

        assert_eq!(app.memories().await, Vec::<String>::new());
        app.close_without_events().await;
    }

    async fn what_was_said_before_everything_was_forgotten_is_not_learned_later(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post(FACT).await;
        app.settle().await;

        let forgotten = memory_deletion::delete(&app.db, app.space, DeletionScope::All, app.clock.now());
        assert_eq!(forgotten.await.unwrap().len(), 0);

        assert_eq!(app.learn().await, 0);
        app.user.post("My cat is called Comet, and she fears the old lighthouse.").await;
        app.settle().await;
        app.learn().await;
        let memories = app.memories().await;
        assert!(memories.len() == 1 && memories[0].contains("Comet"), "{memories:?}");
        app.close_without_events().await;
    }

    async fn a_memory_of_the_history_of_a_prompt_is_not_repeated(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post(FACT).await;
        app.settle().await;
        app.learn().await;

        app.user.post(QUESTION).await;
        app.settle().await;

        let sent = app.upstream.body(app.upstream.n_requests() - 1).to_string();
        assert_eq!(sent.matches("Pixel").count(), 1, "{sent}");
        app.close_without_events().await;
    }
}

on_sqlite! {
    async fn messages_beyond_the_limit_are_not_learned_from_and_are_counted(backend) {
        let app = EngineTest::builder(backend)
            .rules(|it| it.reply_order = ReplyOrder::Manual)
            .open()
            .await;
        for n in 0..258 {
            app.user.post(&format!("Line {n}.")).await;
        }
        app.settle().await;

        app.learn().await;

        let metrics = &app.engine.context().prompt_caches.memories.metrics;
        assert_eq!(metrics.dropped.get(), 2);
        app.close_without_events().await;
    }
}
