//! Tests what a character remembers: no whisper is learned, and with `remembers_only_what_it_heard` its
//! prompts contain only what was said since it joined.

use serde_json::json;
use troupe::spaces::posts::heard_messages::ONLY_HEARD;
use troupe::spaces::space::ReplyOrder;

use super::memories::{FACT, QUESTION};
use crate::support::backends::on_both;
use crate::support::engine_test::{EngineTest, TestUser};

impl EngineTest {
    /// Makes a character that joins now and remembers only what it hears.
    async fn joins_now(&self, name: &str) {
        let now = self.clock.now();
        self.change_membership(name, |it| {
            it.settings = json!({ONLY_HEARD: true});
            it.created_at = now;
        })
        .await;
    }

    /// Returns the requests for replies, oldest first; the memory may learn from the same model meanwhile.
    fn sent(&self) -> Vec<String> {
        let requests = (0..self.upstream.n_requests()).map(|it| self.upstream.body(it).to_string());
        let is_for_reply = |it: &String| !it.contains("You maintain the long-term memory");
        requests.filter(is_for_reply).collect()
    }

    fn newest_sent(&self) -> String {
        self.sent().pop().expect("a reply was requested")
    }

    /// Posts a question in another conversation, and returns what is sent for the reply.
    async fn sent_for_question(&self, person: &TestUser) -> String {
        let n_before = self.sent().len();
        person.post(QUESTION).await;
        self.until("a reply is requested", async |app| {
            app.sent().len() > n_before
        })
        .await;
        self.wait_until_idle().await;
        self.newest_sent()
    }
}

on_both! {
    async fn a_whisper_is_not_learned(backend) {
        let app = EngineTest::builder(backend).rules(|it| it.reply_order = ReplyOrder::Manual).open().await;
        let ada = app.membership("Ada").await.id;
        app.user.whisper(FACT, ada).await;

        app.learn().await;
        assert_eq!(app.memories().await, Vec::<String>::new());

        app.user.post(FACT).await;
        app.learn().await;
        assert_eq!(app.memories().await, [format!("Eve: {FACT}")]);
        app.close_without_events().await;
    }

    async fn a_character_that_remembers_only_what_it_heard_knows_nothing_older(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post("The old word.").await;
        app.settle().await;
        let old = app.messages().await[0].id;
        app.clock.advance_ms(1_000);
        app.joins_now("Ada").await;

        app.user.reply("The new word.", old).await;
        app.settle().await;
        let sent = app.newest_sent();
        assert!(sent.contains("The new word.") && !sent.contains("The old word."), "{sent}");
        app.user.post("The next word.").await;
        app.settle().await;
        let sent = app.newest_sent();
        assert!(sent.contains("The new word.") && !sent.contains("The old word."), "{sent}");

        app.change_membership("Ada", |it| it.settings = json!({})).await;
        app.user.post("The last word.").await;
        app.settle().await;
        assert!(app.newest_sent().contains("The old word."));
        app.close().await;
    }

    async fn it_recalls_only_memories_of_what_it_heard(backend) {
        let app = EngineTest::builder(backend).rules(|it| it.reply_order = ReplyOrder::Manual).open().await;
        app.user.post(FACT).await;
        app.learn().await;
        app.clock.advance_ms(1_000);
        app.joins_now("Ada").await;
        let room = app.another_conversation().await;
        let eve = app.user_in_conversation(&app.engine, room);
        app.change_rules(|it| it.reply_order = ReplyOrder::List).await;

        let sent = app.sent_for_question(&eve).await;
        assert!(!sent.contains(FACT), "{sent}");

        app.change_membership("Ada", |it| it.settings = json!({})).await;
        let sent = app.sent_for_question(&eve).await;
        assert!(sent.contains(FACT), "{sent}");
        app.close_without_events().await;
    }
}
