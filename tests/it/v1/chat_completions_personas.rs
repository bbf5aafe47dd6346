//! Tests of chat completions by characters and spaces.

use serde_json::json;

use super::chat_client::{ask, chunks, complete, complete_with_error, message, text_of, with};
use super::fixture::V1Fixture;
use super::persona_models::{ada, character, space, written};
use crate::support::backends::on_sqlite;
use crate::support::fake_provider::script::ResponseScript;

on_sqlite! {
    async fn a_character_answers_with_its_card_and_lore_and_is_named(backend) {
        let fixture = V1Fixture::open(backend).await;
        let ada = ada(&fixture.admin).await;
        fixture.upstream.always(ResponseScript::say("Ada: The engine computes."));
        let messages = json!({ "model": character(&ada), "messages": [
            { "role": "system", "content": "It rains." },
            { "role": "user", "name": "Eve", "content": "What is the engine?" },
        ] });

        let answer = complete(&fixture.program, messages.clone()).await;
        let streamed = chunks(&fixture.program, messages).await;

        let speaker = json!({ "speaker": "Ada", "speaker_id": character(&ada), "chosen_because": "asked for" });
        assert_eq!((&message(&answer)["content"], &message(&answer)["troupe"]), (&json!("The engine computes."), &speaker));
        assert_eq!(answer["model"], json!(character(&ada)));
        assert_eq!(streamed[0]["choices"][0]["delta"]["troupe"], speaker);
        assert_eq!(text_of(&streamed), "The engine computes.");
        let prompt = written(&fixture.upstream.body(0));
        for part in ["mathematician", "brass", "It rains.", "What is the engine?"] {
            assert!(prompt.contains(part), "{part}: {prompt}");
        }
        assert!(prompt.find("mathematician") < prompt.find("It rains."));
        let logprobs = with(ask("Hi."), json!({ "model": character(&ada), "logprobs": true }));
        let refused = complete_with_error(&fixture.program, logprobs).await;
        assert_eq!(refused, (400, "unsupported_parameter".to_owned(), json!("logprobs")));
        fixture.close().await;
    }

    async fn only_the_first_of_several_speakers_answers_and_the_next_request_chooses_again(backend) {
        let fixture = V1Fixture::open(backend).await;
        let order = json!({ "reply_order": "list", "replies_per_turn": "activated" });
        let test_space = fixture.admin.create_space("The stage", order).await;
        let first = ada(&fixture.admin).await;
        let second = fixture.admin.create_character("Bob", None).await;
        for it in [&first, &second] {
            fixture.admin.add_character(&test_space, it).await;
        }
        fixture.upstream.reply_with("I begin.");
        let (messages, memories) = (fixture.n_rows("messages").await, fixture.n_rows("memories").await);

        let answer = complete(&fixture.program, with(ask("All of you."), json!({ "model": space(&test_space) }))).await;
        let next = json!({ "model": space(&test_space), "messages": [
            { "role": "user", "content": "All of you." }, message(&answer), { "role": "user", "content": "Go on." },
        ] });
        let after = complete(&fixture.program, next).await;

        assert_eq!(fixture.upstream.n_requests(), 2);
        assert_eq!(message(&answer)["troupe"]["speaker"], "Ada");
        assert!(message(&answer)["troupe"]["membership_id"].is_number());
        assert!(message(&after)["troupe"]["speaker"].is_string());
        assert_eq!(fixture.n_rows("messages").await, messages);
        assert_eq!(fixture.n_rows("memories").await, memories);
        assert_eq!(fixture.n_rows("responses").await, 0);
        fixture.close().await;
    }
}
