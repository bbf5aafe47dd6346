//! Tests that a memory of what was said in two conversations remains until it is gone from both.

use base::ids::{ConversationId, UserId};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};
use tokio_util::sync::CancellationToken;
use troupe::accounts::user;
use troupe::conversations::audience::viewer::Viewer;
use troupe::conversations::message;
use troupe::conversations::message::{MessageRole, Visibility};
use troupe::memories::memory_deletion;
use troupe::memories::memory_deletion::DeletionScope;
use troupe::runs::engine::RunEngine;

use super::memory_extraction::{answer, made};
use crate::support::backends::{TestBackend, on_both};
use crate::support::engine_test::EngineTest;

const FACT: &str = "My dog is called Pixel, and he loves the old lighthouse.";

/// A fact that was said in the first conversation and then in another one.
struct RepeatedFact {
    app: EngineTest,
    other: ConversationId,
}

impl RepeatedFact {
    async fn open(backend: TestBackend) -> Self {
        let app = EngineTest::builder(backend).open().await;
        app.learn_fact_in(app.conversation).await;
        let other = app.another_conversation().await;
        Self { app, other }.repeat().await
    }

    /// Opens a fixture whose other conversation is a branch.
    async fn open_in_branch(backend: TestBackend) -> Self {
        let app = EngineTest::builder(backend).open().await;
        app.learn_fact_in(app.conversation).await;
        let other = app.branch_at_end().await;
        Self { app, other }.repeat().await
    }

    async fn repeat(self) -> Self {
        self.app.learn_fact_in(self.other).await;
        self.assert_remembered().await;
        self
    }

    async fn assert_remembered(&self) {
        assert_eq!(self.app.memories().await, [format!("Eve: {FACT}")]);
    }

    async fn assert_forgotten(&self) {
        assert_eq!(self.app.memories().await, Vec::<String>::new());
    }

    async fn forget(&self, conversation: ConversationId) {
        let scope = DeletionScope::Conversation(conversation);
        let now = self.app.clock.now();
        memory_deletion::delete(&self.app.db, self.app.space, scope, now)
            .await
            .unwrap();
    }

    async fn delete(&self, conversation: ConversationId) {
        let is_deleted = self.app.delete_with(&self.app.engine, conversation);
        assert!(is_deleted.await);
    }

    /// Hides or restores the message that says the fact in a conversation.
    async fn show(&self, conversation: ConversationId, visibility: Visibility) {
        let said = message::Entity::find()
            .filter(message::Column::ConversationId.eq(conversation))
            .filter(message::Column::Content.eq(FACT))
            .order_by_desc(message::Column::Seq)
            .one(self.app.db.reader());
        let said = said.await.unwrap().expect("the message").id;
        let engine = &self.app.engine;
        let changed = engine
            .set_visibility((conversation, Viewer::Server), said, visibility)
            .await;
        changed.expect("the message is changed");
    }
}

impl EngineTest {
    async fn learn_fact_in(&self, conversation: ConversationId) {
        let person = self.user_in_conversation(&self.engine, conversation);
        person.post(FACT).await;
        self.until("the fact has a reply", async |app| {
            let newest = message::Entity::find()
                .filter(message::Column::ConversationId.eq(conversation))
                .order_by_desc(message::Column::Seq)
                .one(app.db.reader());
            newest.await.unwrap().expect("a message").role == MessageRole::Assistant
        })
        .await;
        self.wait_until_idle().await;
        self.learn().await;
    }

    async fn branch_at_end(&self) -> ConversationId {
        let last = self.messages().await.pop().expect("a message").id;
        let branch = self.engine.branch(self.conversation, last, String::new());
        branch.await.expect("a branch").id
    }

    /// Deletes a conversation. Returns whether it was deleted.
    async fn delete_with(&self, engine: &RunEngine, conversation: ConversationId) -> bool {
        let found = user::Entity::find().one(self.db.reader()).await;
        let person: UserId = found.unwrap().expect("a user").id;
        let deleted = engine.delete_conversation(conversation, person).await;
        deleted.expect("the database answers").is_some()
    }

    /// Hides the conversation as a long one; no node executes the job that deletes it.
    async fn begin_long_deletion(&self) {
        let is_long = format!(
            "UPDATE conversations SET text_bytes = 1000000 WHERE id = {}",
            self.conversation
        );
        self.facts().await.execute(&is_long).await;
        let node = self.another_node();
        node.context().shutdown.draining.cancel();
        assert!(self.delete_with(&node, self.conversation).await);
    }
}

on_both! {
    async fn a_memory_of_two_conversations_remains_until_both_are_forgotten(backend) {
        let it = RepeatedFact::open(backend).await;

        it.forget(it.app.conversation).await;
        it.assert_remembered().await;

        it.forget(it.other).await;
        it.assert_forgotten().await;
        it.app.close_without_events().await;
    }

    async fn what_was_forgotten_is_no_source_any_more(backend) {
        let it = RepeatedFact::open(backend).await;

        it.forget(it.other).await;
        it.assert_remembered().await;
        it.forget(it.app.conversation).await;

        it.assert_forgotten().await;
        it.app.close_without_events().await;
    }

    async fn a_memory_of_two_conversations_remains_until_both_are_deleted(backend) {
        let it = RepeatedFact::open(backend).await;

        it.delete(it.app.conversation).await;
        it.assert_remembered().await;

        it.delete(it.other).await;
        it.assert_forgotten().await;
        it.app.close_without_events().await;
    }

    async fn a_memory_remains_when_its_message_of_one_conversation_is_deleted(backend) {
        let it = RepeatedFact::open(backend).await;
        let said = it.app.messages().await.remove(0);

        it.app.engine.set_visibility(it.app.scope(), said.id, Visibility::Hidden).await.unwrap();
        it.assert_remembered().await;

        it.forget(it.other).await;
        it.assert_forgotten().await;
        it.app.close_without_events().await;
    }

    async fn a_restored_message_is_a_source_again(backend) {
        let it = RepeatedFact::open(backend).await;
        it.show(it.app.conversation, Visibility::Hidden).await;
        it.show(it.app.conversation, Visibility::Normal).await;

        it.delete(it.other).await;
        it.assert_remembered().await;

        it.delete(it.app.conversation).await;
        it.assert_forgotten().await;
        it.app.close_without_events().await;
    }

    async fn a_memory_whose_messages_are_all_deleted_is_restored_with_one_of_them(backend) {
        let it = RepeatedFact::open(backend).await;
        it.show(it.app.conversation, Visibility::Hidden).await;
        it.show(it.other, Visibility::Hidden).await;
        it.assert_forgotten().await;

        it.show(it.app.conversation, Visibility::Normal).await;
        it.assert_remembered().await;

        it.delete(it.other).await;
        it.assert_remembered().await;
        it.app.close_without_events().await;
    }

    async fn a_restored_message_is_a_source_of_what_was_learned_again_meanwhile(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.learn_fact_in(app.conversation).await;
        let other = app.another_conversation().await;
        let it = RepeatedFact { app, other };
        it.show(it.app.conversation, Visibility::Hidden).await;
        let it = it.repeat().await;

        it.show(it.app.conversation, Visibility::Normal).await;
        it.delete(it.other).await;

        it.assert_remembered().await;
        it.app.close_without_events().await;
    }

    async fn a_memory_that_a_branch_kept_is_recalled_elsewhere_once_its_message_is_restored(backend) {
        let it = RepeatedFact::open_in_branch(backend).await;
        it.show(it.app.conversation, Visibility::Hidden).await;
        it.assert_remembered().await;
        assert!(!it.app.recalls_fact_elsewhere().await, "only the branch says it");

        it.show(it.app.conversation, Visibility::Normal).await;

        assert!(it.app.recalls_fact_elsewhere().await);
        it.app.close_without_events().await;
    }

    async fn a_conversation_that_is_not_deleted_keeps_its_memories(backend) {
        let it = RepeatedFact::open(backend).await;
        it.app.branch_at_end().await;

        let is_deleted = it.app.delete_with(&it.app.engine, it.app.conversation).await;

        assert!(!is_deleted, "it has a branch");
        let named = "SELECT CAST(conversation_id AS TEXT) FROM memories";
        assert_eq!(it.app.facts().await.number(named).await, it.app.conversation.0);
        it.app.close_without_events().await;
    }

    async fn what_a_long_conversation_said_that_is_being_deleted_can_be_learned_elsewhere(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.learn_fact_in(app.conversation).await;
        app.begin_long_deletion().await;
        assert_eq!(app.memories().await, Vec::<String>::new());

        let other = app.another_conversation().await;
        app.learn_fact_in(other).await;

        assert_eq!(app.memories().await, [format!("Eve: {FACT}")]);
        app.close_without_events().await;
    }

    async fn nothing_is_stored_of_a_conversation_that_was_hidden_meanwhile(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.with_fact().await;

        let script = answer(&[made("Pixel is a dog.", &[1])]);
        let delete = async || app.begin_long_deletion().await;
        app.learn_while(script, &CancellationToken::new(), delete).await.unwrap();

        let n = "SELECT CAST(count(*) AS TEXT) FROM memories WHERE deleted_at IS NULL";
        assert_eq!(app.facts().await.number(n).await, 0);
        app.close_without_events().await;
    }
}
