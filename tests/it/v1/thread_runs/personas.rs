//! Tests of runs whose model is a character or a space.

use serde_json::json;

use super::support::{ThreadClient, text_of};
use crate::support::backends::on_sqlite;
use crate::support::fake_provider::script::ResponseScript;
use crate::v1::fixture::{V1Fixture, id, prompt_texts};
use crate::v1::persona_models::{ada, space};

on_sqlite! {
    async fn a_character_answers_with_its_card_and_is_named_in_the_message(backend) {
        let fixture = V1Fixture::open(backend).await;
        let character = ada(&fixture.admin).await;
        fixture.upstream.always(ResponseScript::say("Ada: Hello there."));
        let model = format!("character:{}", character["id"]);
        let client = ThreadClient::new(&fixture.program, json!({ "model": model }), &["Hi."]).await;

        let run = client.run_until(json!({}), "completed").await;

        assert_eq!(run["model"], json!(model));
        let message = client.messages().await.remove(1);
        assert_eq!(text_of(&message), "Hello there.");
        assert_eq!((&message["metadata"]["speaker"], &message["metadata"]["speaker_id"]), (&json!("Ada"), &json!(model)));
        assert!(prompt_texts(&fixture.upstream.body(0)).concat().contains("Ada"));
        fixture.close().await;
    }

    async fn a_space_chooses_who_answers_and_nothing_of_it_changes(backend) {
        let fixture = V1Fixture::open(backend).await;
        let test_space = fixture.admin.create_space("The stage", json!({ "reply_order": "natural" })).await;
        for character in [ada(&fixture.admin).await, fixture.admin.create_character("Bob", None).await] {
            fixture.admin.add_character(&test_space, &character).await;
        }
        let client = ThreadClient::new(&fixture.program, json!({ "model": space(&test_space) }), &["What do you say, Bob?"]).await;
        let n_messages = fixture.n_rows("messages").await;

        let run = client.run_until(json!({}), "completed").await;

        let steps = client.steps(id(&run)).await;
        let speaker = &steps[0]["step_details"]["message_creation"]["troupe"];
        assert_eq!((&speaker["speaker"], &speaker["chosen_because"]), (&json!("Bob"), &json!("mentioned \"Bob\"")));
        assert_eq!(client.messages().await[1]["metadata"]["speaker"], "Bob");
        assert_eq!(fixture.n_rows("messages").await, n_messages);
        fixture.close().await;
    }
}
