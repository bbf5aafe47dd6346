//! Tests what a run stores in addition to its text: variables set by macros, and the prompt that
//! was sent.

use sea_orm::{EntityTrait, PaginatorTrait};
use serde_json::json;
use troupe::conversations::audience::viewer::Viewer;
use troupe::conversations::conversation;
use troupe::prompt::blocks::BlockKind;
use troupe::prompt::record::{run_prompt, sent_prompt_loader};
use troupe::prompt::space_variable;
use troupe::runs::conversation_start::NewConversation;
use troupe::runs::reading::prompt_preview;
use troupe::runs::store::run::RunStatus;

use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::fixtures;

/// Ada's card counts her runs, in the conversation and in the space.
async fn counting(backend: TestBackend) -> EngineTest {
    let app = EngineTest::builder(backend).open().await;
    let text = "{{incvar::turns}} of {{char}}, {{incglobalvar::all}} of all.";
    let ada = app.membership("Ada").await;
    fixtures::set_card_field(&app.db, ada, "description", text).await;
    app
}

async fn counted(app: &EngineTest) -> (serde_json::Value, Option<String>) {
    let of_space = space_variable::load_for_space(app.db.reader(), app.space).await;
    let of_space = of_space.unwrap().remove("all");
    (app.row().await.variables["macros"].clone(), of_space)
}

on_sqlite! {
    async fn variables_set_by_macros_persist_between_runs(backend) {
        let app = counting(backend).await;

        for text in ["One.", "Two."] {
            app.user.post(text).await;
            app.settle().await;
        }

        assert_eq!(counted(&app).await, (json!({"turns": "2"}), Some("2".to_owned())));
        let prompt = app.upstream.body(1)["messages"][0]["content"].to_string();
        assert!(prompt.contains("2 of Ada, 2 of all."), "{prompt}");
        app.close().await;
    }

    async fn a_failed_run_and_a_preview_store_no_variables(backend) {
        let app = counting(backend).await;
        app.upstream.next(ResponseScript::status(401));
        app.user.post("One.").await;
        app.settle().await;
        let ada = app.membership("Ada").await.id;
        let look = prompt_preview::load(app.engine.context(), app.conversation, (ada, Viewer::Server), None);
        look.await.unwrap().unwrap().1.unwrap();

        assert_eq!(app.only_run().await.status, RunStatus::Failed);
        assert_eq!(counted(&app).await, (json!(null), None));
        app.close().await;
    }

    async fn variables_set_by_a_greeting_are_stored_once(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.set_greeting("Ada", "{{setvar::hat::red}}{{incglobalvar::rooms}}Welcome.").await;
        let new = || NewConversation {
            title: None,
            kind: conversation::ConversationKind::Root,
            parent: None,
        };

        let made = app.engine.create_conversation(app.space, new()).await.unwrap();
        app.engine.create_conversation(app.space, new()).await.unwrap();

        assert_eq!((made.last_seq, &made.variables["macros"]), (1, &json!({"hat": "red"})));
        let of_space = space_variable::load_for_space(app.db.reader(), app.space).await.unwrap();
        assert_eq!(of_space.get("rooms").map(String::as_str), Some("2"), "once for each greeting");
        let ada = app.membership("Ada").await.id;
        app.engine.insert_greetings(ada).await.unwrap();
        let of_space = space_variable::load_for_space(app.db.reader(), app.space).await.unwrap();
        assert_eq!(of_space["rooms"], "3", "the first conversation had no greeting");
        app.engine.insert_greetings(ada).await.unwrap();
        let of_space = space_variable::load_for_space(app.db.reader(), app.space).await.unwrap();
        assert_eq!(of_space["rooms"], "3", "a repeated greeting set the variable");
        app.close().await;
    }

    async fn macros_in_user_messages_set_no_variables(backend) {
        let app = counting(backend).await;

        app.user.post("{{setvar::turns::99}}{{setglobalvar::all::99}}").await;
        app.settle().await;

        assert_eq!(counted(&app).await, (json!({"turns": "1"}), Some("1".to_owned())));
        app.close().await;
    }

    async fn a_stored_prompt_shows_the_current_text_of_its_messages(backend) {
        let app = counting(backend).await;
        app.user.post("Hi.").await;
        app.settle().await;
        let run = app.only_run().await.id;
        let message = app.messages().await[0].id;

        let (record, texts) = sent_prompt_loader::load_for_run(app.db.reader(), app.space, run, Viewer::Server).await.unwrap().unwrap();
        let blocks = record.into_blocks(&texts);
        let said: Vec<_> = blocks.iter().filter(|it| it.kind == BlockKind::History).collect();
        assert_eq!((said.len(), said[0].text.as_str(), said[0].is_changed), (1, "Hi.", false));
        assert!(blocks.iter().any(|it| it.text.contains("1 of Ada")));

        let hidden = troupe::conversations::message::Visibility::Hidden;
        app.engine.set_visibility(app.scope(), message, hidden).await.unwrap();
        let (record, texts) = sent_prompt_loader::load_for_run(app.db.reader(), app.space, run, Viewer::Server).await.unwrap().unwrap();
        let blocks = record.into_blocks(&texts);
        let said = blocks.iter().find(|it| it.kind == BlockKind::History).unwrap();
        assert_eq!((said.text.as_str(), said.is_changed), ("", true));
        app.close().await;
    }

    async fn only_the_newest_prompts_of_a_conversation_are_kept(backend) {
        let app = counting(backend).await;
        let n_turns = run_prompt::MAX_KEPT as usize + run_prompt::PRUNE_INTERVAL as usize;
        // The last run deletes older prompts when it is queued, and stores its own one later.
        let n_deleted = run_prompt::PRUNE_INTERVAL as usize - 1;
        let count = async || run_prompt::Entity::find().count(app.db.reader()).await.unwrap() as usize;
        for n in 1..=n_turns {
            app.user.post("On.").await;
            app.settle().await;
            if n == n_turns - 1 {
                assert_eq!(count().await, n, "older prompts are deleted together");
            }
        }

        let runs = app.runs().await;
        assert_eq!((count().await, runs.len()), (n_turns - n_deleted, n_turns));
        let load = async |n: usize| sent_prompt_loader::load_for_run(app.db.reader(), app.space, runs[n].id, Viewer::Server).await.unwrap();
        assert!(load(n_deleted - 1).await.is_none());
        assert!(load(n_deleted).await.is_some());
        app.close().await;
    }

    async fn prompts_are_deleted_although_some_run_numbers_reach_no_end(backend) {
        let app = EngineTest::builder(backend)
            .rules(|it| it.user_turn_debounce_ms = 500)
            .open()
            .await;
        let limit = run_prompt::MAX_KEPT + run_prompt::PRUNE_INTERVAL.unsigned_abs();
        app.user.post("On.").await;
        for _ in 0..=limit {
            app.clock.advance_ms(500);
            app.settle().await;
            // The second post queues the run again, under the next number: all ends are odd.
            app.user.post("On.").await;
            app.user.post("And on.").await;
        }

        let n_ended = app.runs().await.len() as u64 - 1;
        let n_prompts = run_prompt::Entity::find().count(app.db.reader()).await.unwrap();
        assert!(n_ended > limit && n_prompts <= limit, "{n_prompts} prompts of {n_ended} runs");
        app.close().await;
    }
}
