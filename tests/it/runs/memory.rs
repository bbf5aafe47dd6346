//! Tests what a run stores in addition to its text: variables set by macros, and the prompt that
//! was sent.

use sea_orm::{EntityTrait, PaginatorTrait};
use serde_json::json;
use troupe::conversations::conversation;
use troupe::prompt::blocks::BlockKind;
use troupe::prompt::loading::{run_prompt, space_variable};
use troupe::prompt::record::sent_prompt;
use troupe::runs::conversation_start::NewConversation;
use troupe::runs::execution::preparation;
use troupe::runs::store::run::RunStatus;

use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::fixtures;

/// Ada's card counts her runs, in the conversation and in the space.
async fn counting(backend: TestBackend) -> EngineTest {
    let room = EngineTest::builder(backend).open().await;
    let text = "{{incvar::turns}} of {{char}}, {{incglobalvar::all}} of all.";
    let ada = room.membership("Ada").await;
    fixtures::set_card_field(&room.db, ada, "description", text).await;
    room
}

async fn counted(room: &EngineTest) -> (serde_json::Value, Option<String>) {
    let of_space = space_variable::load_for_space(room.db.reader(), room.space).await;
    let of_space = of_space.unwrap().remove("all");
    (room.row().await.variables["macros"].clone(), of_space)
}

on_sqlite! {
    async fn what_macros_set_is_remembered_from_turn_to_turn(backend) {
        let room = counting(backend).await;

        for text in ["One.", "Two."] {
            room.user.post(text).await;
            room.settle().await;
        }

        assert_eq!(counted(&room).await, (json!({"turns": "2"}), Some("2".to_owned())));
        let told = room.upstream.body(1)["messages"][0]["content"].to_string();
        assert!(told.contains("2 of Ada, 2 of all."), "{told}");
        room.close().await;
    }

    async fn a_turn_that_fails_or_is_only_looked_at_is_forgotten(backend) {
        let room = counting(backend).await;
        room.upstream.next(ResponseScript::status(401));
        room.user.post("One.").await;
        room.settle().await;
        let ada = room.membership("Ada").await.id;
        let look = preparation::preview(room.engine.context(), room.conversation, ada, None);
        look.await.unwrap().unwrap().1.unwrap();

        assert_eq!(room.only_run().await.status, RunStatus::Failed);
        assert_eq!(counted(&room).await, (json!(null), None));
        room.close().await;
    }

    async fn what_a_greeting_sets_is_stored_with_it_once(backend) {
        let room = EngineTest::builder(backend).open().await;
        room.set_greeting("Ada", "{{setvar::hat::red}}{{incglobalvar::rooms}}Welcome.").await;
        let new = || NewConversation {
            title: None,
            kind: conversation::ConversationKind::Root,
            parent: None,
        };

        let made = room.engine.create_conversation(room.space, new()).await.unwrap();
        room.engine.create_conversation(room.space, new()).await.unwrap();

        assert_eq!((made.last_seq, &made.variables["macros"]), (1, &json!({"hat": "red"})));
        let of_space = space_variable::load_for_space(room.db.reader(), room.space).await.unwrap();
        assert_eq!(of_space.get("rooms").map(String::as_str), Some("2"), "once for each greeting");
        let ada = room.membership("Ada").await.id;
        room.engine.insert_greetings(ada).await.unwrap();
        let of_space = space_variable::load_for_space(room.db.reader(), room.space).await.unwrap();
        assert_eq!(of_space["rooms"], "3", "she had not greeted in the first conversation");
        room.engine.insert_greetings(ada).await.unwrap();
        let of_space = space_variable::load_for_space(room.db.reader(), room.space).await.unwrap();
        assert_eq!(of_space["rooms"], "3", "who has greeted sets nothing again");
        room.close().await;
    }

    async fn chat_text_sets_nothing(backend) {
        let room = counting(backend).await;

        room.user.post("{{setvar::turns::99}}{{setglobalvar::all::99}}").await;
        room.settle().await;

        assert_eq!(counted(&room).await, (json!({"turns": "1"}), Some("1".to_owned())));
        room.close().await;
    }

    async fn what_was_sent_is_kept_and_reads_as_its_messages_do_now(backend) {
        let room = counting(backend).await;
        room.user.post("Hi.").await;
        room.settle().await;
        let run = room.only_run().await.id;
        let message = room.messages().await[0].id;

        let (record, texts) = sent_prompt::load_for_run(room.db.reader(), run).await.unwrap().unwrap();
        let blocks = record.into_blocks(|it| texts.get(it));
        let said: Vec<_> = blocks.iter().filter(|it| it.kind == BlockKind::History).collect();
        assert_eq!((said.len(), said[0].text.as_str(), said[0].is_changed), (1, "Hi.", false));
        assert!(blocks.iter().any(|it| it.text.contains("1 of Ada")));

        let hidden = troupe::conversations::message::Visibility::Hidden;
        room.engine.set_visibility(room.conversation, message, hidden).await.unwrap();
        let (record, texts) = sent_prompt::load_for_run(room.db.reader(), run).await.unwrap().unwrap();
        let blocks = record.into_blocks(|it| texts.get(it));
        let said = blocks.iter().find(|it| it.kind == BlockKind::History).unwrap();
        assert_eq!((said.text.as_str(), said.is_changed), ("", true));
        room.close().await;
    }

    async fn of_a_conversation_the_newest_prompts_are_kept(backend) {
        let room = counting(backend).await;
        let n_turns = run_prompt::MAX_KEPT + 3;
        for _ in 0..n_turns {
            room.user.post("On.").await;
            room.settle().await;
        }

        let kept = run_prompt::Entity::find().count(room.db.reader()).await.unwrap();
        let runs = room.runs().await;
        assert_eq!((kept, runs.len() as u64), (run_prompt::MAX_KEPT, n_turns));
        let oldest = sent_prompt::load_for_run(room.db.reader(), runs[0].id).await.unwrap();
        assert!(oldest.is_none());
        assert!(sent_prompt::load_for_run(room.db.reader(), runs[3].id).await.unwrap().is_some());
        room.close().await;
    }
}
