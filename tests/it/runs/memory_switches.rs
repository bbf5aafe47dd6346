//! Tests of the memory that is off for one member or one message: nothing is learned from it, and nothing
//! is recalled for it.

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use troupe::conversations::audience::viewer::Viewer;
use troupe::conversations::message::Visibility;
use troupe::memories::memory_deletion;
use troupe::memories::memory_deletion::DeletionScope;
use troupe::runs::error::EngineError;
use troupe::runs::reading::prompt_preview;
use troupe::runs::scheduling::command::CommandError;

use super::memories::{FACT, QUESTION};
use super::memory_extraction::{answer, made};
use crate::support::backends::{TestBackend, on_both};
use crate::support::engine_test::EngineTest;
use crate::support::poll;
use crate::support::summary_fixture::{LONG, has_word, open_summaries};

const OTHER_FACT: &str = "My cat is called Comet, and she fears the old lighthouse.";

impl EngineTest {
    /// Sets the switches of a member.
    async fn switch_member(&self, name: &str, memory: Value) {
        self.change_membership(name, |it| it.settings = json!({ "memory": memory }))
            .await;
    }

    /// Switches the memory of the message with this `seq`.
    async fn switch_message(&self, seq: usize, remember: bool) {
        let id = self.messages().await[seq - 1].id;
        let switched = self.engine.set_remembered(self.scope(), id, remember).await;
        assert_eq!(switched.expect("it is switched").remember, remember);
    }

    async fn say_and_settle(&self, text: &str) {
        self.user.post(text).await;
        self.settle().await;
    }
}

on_both! {
    async fn nothing_is_learned_from_a_member_while_its_learning_is_off(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.switch_member("Eve", json!({"learn": false})).await;
        app.say_and_settle(FACT).await;
        app.learn().await;

        app.switch_member("Eve", json!({"learn": true})).await;
        app.say_and_settle(OTHER_FACT).await;
        app.learn().await;

        let remembered: Vec<bool> = app.messages().await.iter().map(|it| it.is_remembered).collect();
        assert_eq!(remembered, [false, true, true, true], "also the replies of Ada");
        assert_eq!(app.memories().await, [format!("Eve: {OTHER_FACT}")]);
        app.close_without_events().await;
    }

    async fn a_waiting_message_is_not_learned_from_after_its_author_switched_learning_off(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.say_and_settle(FACT).await;

        app.switch_member("Eve", json!({"learn": false})).await;

        assert_eq!(app.learn().await, 1);
        assert_eq!(app.memories().await, Vec::<String>::new());
        app.close_without_events().await;
    }

    async fn what_a_model_made_from_a_member_is_dropped_if_it_was_switched_off_meanwhile(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.with_fact().await;

        let script = answer(&[made("Pixel is a dog.", &[1])]);
        let switch_off = async || app.switch_member("Eve", json!({"learn": false})).await;
        app.learn_while(script, &CancellationToken::new(), switch_off).await.unwrap();

        assert_eq!(app.memories().await, Vec::<String>::new());
        app.close_without_events().await;
    }

    async fn nothing_is_recalled_for_a_speaker_whose_recall_is_off(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.say_and_settle(FACT).await;
        app.learn().await;
        assert!(app.recalls_fact_elsewhere().await);

        app.switch_member("Ada", json!({"recall": false})).await;
        assert!(!app.recalls_fact_elsewhere().await);

        app.switch_member("Ada", json!({"learn": false})).await;
        assert!(app.recalls_fact_elsewhere().await, "only learning is off");
        app.close_without_events().await;
    }

    async fn nothing_is_recalled_for_the_copilot_of_a_person_whose_recall_is_off(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.say_and_settle(FACT).await;
        app.learn().await;
        app.change_rules(|it| it.settings = json!({"memory": {"threshold": 0.1}})).await;
        let (conversation, n_before) = (app.another_conversation().await, app.upstream.n_requests());
        app.user_in_conversation(&app.engine, conversation).post(QUESTION).await;
        app.upstream.wait_for_requests(n_before + 1).await;
        app.wait_until_idle().await;
        let prompt = async || {
            let eve = app.user.membership;
            let prompt = prompt_preview::load(app.engine.context(), conversation, (eve, Viewer::Server), None).await;
            format!("{:?}", prompt.unwrap().expect("a prompt").1.expect("it fits").messages)
        };
        assert!(prompt().await.contains("Pixel"));

        app.switch_member("Eve", json!({"recall": false})).await;

        assert!(!prompt().await.contains("Pixel"));
        assert!(app.recalls_fact_elsewhere().await, "Ada recalls it");
        app.close_without_events().await;
    }

    async fn what_was_learned_from_a_message_is_deleted_until_its_memory_is_on_again(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.say_and_settle(FACT).await;
        app.learn().await;

        app.switch_message(1, false).await;
        assert_eq!(app.memories().await, Vec::<String>::new());
        assert!(!app.recalls_fact_elsewhere().await);
        app.learn().await;
        assert_eq!(app.memories().await, Vec::<String>::new(), "it was learned again");

        app.switch_message(1, true).await;
        assert!(app.recalls_fact_elsewhere().await);
        app.close_without_events().await;
    }

    async fn a_message_is_learned_from_once_its_memory_is_on(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.say_and_settle(FACT).await;
        app.switch_message(1, false).await;
        app.learn().await;
        assert_eq!(app.memories().await, Vec::<String>::new());

        app.switch_message(1, true).await;

        assert_eq!(app.learn().await, 1);
        assert_eq!(app.memories().await, [format!("Eve: {FACT}")]);
        app.close_without_events().await;
    }

    async fn an_excluded_message_whose_memory_is_off_stays_forgotten_when_it_is_included(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.say_and_settle(FACT).await;
        app.learn().await;
        let said = app.messages().await[0].id;
        app.switch_message(1, false).await;

        app.engine.set_visibility(app.scope(), said, Visibility::Excluded).await.unwrap();
        app.engine.set_visibility(app.scope(), said, Visibility::Normal).await.unwrap();

        assert_eq!(app.memories().await, Vec::<String>::new());
        app.close_without_events().await;
    }

    async fn a_memory_with_another_source_is_made_again_without_the_message(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.with_fact().await;
        app.say_and_settle(OTHER_FACT).await;
        app.upstream.next(answer(&[made("Pixel and Comet.", &[1, 3])]));
        app.learn().await;
        assert_eq!(app.memories().await, ["Pixel and Comet."]);

        app.switch_message(1, false).await;
        assert_eq!(app.memories().await, Vec::<String>::new());
        let n_before = app.upstream.n_requests();
        app.upstream.next(answer(&[made("Comet.", &[1])]));
        app.learn().await;

        let request = app.upstream.body(n_before)["messages"][1]["content"].to_string();
        assert!(request.contains("Comet, and she") && !request.contains("Pixel, and he"), "{request}");
        assert_eq!(app.memories().await.len(), 1);
        app.close_without_events().await;
    }

    async fn a_hidden_message_cannot_be_switched(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.say_and_settle(FACT).await;
        let said = app.messages().await[0].id;
        app.engine.set_visibility(app.scope(), said, Visibility::Hidden).await.unwrap();

        let refused = app.engine.set_remembered(app.scope(), said, false).await;

        assert!(matches!(refused, Err(EngineError::Rejected(CommandError::NotFound))));
        app.close_without_events().await;
    }

    async fn a_message_whose_memory_is_off_is_in_no_new_summary(backend) {
        let app = open_summaries(backend).await;
        app.talk(LONG).await;
        assert!(has_word(&app.in_use().await.content, "W1"));
        let said = app.message_of("W1 ").await;

        app.engine.set_remembered(app.scope(), said.id, false).await.unwrap();
        app.summarize().await;

        let after = app.in_use().await;
        assert!(after.is_usable && !has_word(&after.content, "W1") && has_word(&after.content, "W2"));
        app.close_without_events().await;
    }

    async fn a_forgotten_member_is_not_learned_from_until_it_is_switched_on(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.say_and_settle(FACT).await;
        let eve = app.user.membership;

        memory_deletion::delete(&app.db, app.space, DeletionScope::Member(eve), app.clock.now()).await.unwrap();

        let row = app.membership("Eve").await;
        assert_eq!(row.settings["memory"], json!({"learn": false}));
        app.say_and_settle(OTHER_FACT).await;
        app.learn().await;
        assert_eq!(app.memories().await, Vec::<String>::new());
        app.switch_member("Eve", json!({})).await;
        app.say_and_settle("My horse is called Blaze, and he loves the old mill.").await;
        app.learn().await;
        assert_eq!(app.memories().await.len(), 1);
        app.close_without_events().await;
    }
}

/// Another transaction has locked the space and switches a member off.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_stored_of_a_member_that_is_switched_off_in_the_meantime() {
    if !TestBackend::Postgres.is_available() {
        return; // SQLite has one writer
    }
    let app = EngineTest::builder(TestBackend::Postgres).open().await;
    app.say_and_settle(FACT).await;
    let mut other = app.facts().await;
    let mut facts = app.facts().await;

    other
        .execute(&format!(
            "BEGIN; UPDATE spaces SET unattributed_tokens = 1 WHERE id = {}; \
             UPDATE space_memberships SET settings = '{{\"memory\": {{\"learn\": false}}}}' WHERE id = {}",
            app.space, app.user.membership
        ))
        .await;
    app.clock.advance_ms(30_000);
    let job = app.learning();
    let learning = tokio::spawn(async move { job.run_due().await });
    poll::until("the memories wait for the space", async || {
        let waiting = facts.rows("SELECT '1' FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").await;
        (!waiting.is_empty()).then_some(())
    })
    .await;
    other.execute("COMMIT").await;

    assert_eq!(learning.await.unwrap().unwrap(), 1);
    assert_eq!(app.memories().await, Vec::<String>::new());
    app.close_without_events().await;
}
