//! Tests that a memory of what was said in two conversations remains until it is gone from both.

use base::ids::{ConversationId, UserId};
use sea_orm::EntityTrait;
use troupe::accounts::user;
use troupe::conversations::message::Visibility;
use troupe::memories::memory_deletion;
use troupe::memories::memory_deletion::DeletionScope;

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
        app.user.post(FACT).await;
        app.settle().await;
        app.learn().await;
        let other = app.another_conversation().await;
        app.user_in_conversation(&app.engine, other)
            .post(FACT)
            .await;
        app.wait_until_idle().await;
        app.learn().await;
        let it = Self { app, other };
        it.assert_remembered().await;
        it
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

    async fn person(&self) -> UserId {
        let found = user::Entity::find().one(self.app.db.reader()).await;
        found.unwrap().unwrap().id
    }

    async fn delete(&self, conversation: ConversationId) {
        let deleted = self
            .app
            .engine
            .delete_conversation(conversation, self.person().await);
        assert!(deleted.await.unwrap().is_some());
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

        it.app.engine.set_visibility(it.app.conversation, said.id, Visibility::Hidden).await.unwrap();
        it.assert_remembered().await;

        it.forget(it.other).await;
        it.assert_forgotten().await;
        it.app.close_without_events().await;
    }
}
