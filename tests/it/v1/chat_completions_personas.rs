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

    async fn a_speaker_uses_the_tools_that_its_space_allows_and_the_answer_does_not_contain_them(backend) {
        let fixture = V1Fixture::open(backend).await;
        let tools = json!({ "dice": "allowed", "memory": "allowed", "time": "with_approval" });
        let test_space = fixture.admin.create_space("The table", json!({ "settings": { "tools": tools } })).await;
        let ada = ada(&fixture.admin).await;
        fixture.admin.add_character(&test_space, &ada).await;
        let roll = ResponseScript::calls(&[("a", "troupe_dice", "{\"roll\":\"3d1\"}"), ("b", "troupe_memory", "{\"action\":\"search\",\"query\":\"dog\"}")]);
        fixture.upstream.answer_with(move |body| match body["messages"].as_array().unwrap().last() {
            Some(last) if last["role"] == "tool" => ResponseScript::say("Three."),
            _ => roll.clone(),
        });
        let names = |at: usize| -> Vec<String> {
            let body = fixture.upstream.body(at);
            let tools = body["tools"].as_array().into_iter().flatten();
            tools.map(|it| it["function"]["name"].as_str().unwrap().to_owned()).collect()
        };
        let body = with(ask("Roll."), json!({ "model": space(&test_space) }));

        let answer = complete(&fixture.program, body.clone()).await;
        let streamed = chunks(&fixture.program, body.clone()).await;

        assert_eq!((&message(&answer)["content"], &answer["choices"][0]["finish_reason"]), (&json!("Three."), &json!("stop")));
        assert!(message(&answer).get("tool_calls").is_none(), "{answer}");
        assert_eq!(text_of(&streamed), "Three.");
        assert!(streamed.iter().all(|it| it["choices"][0]["delta"].get("tool_calls").is_none()));
        assert_eq!(names(0), ["troupe_dice", "troupe_memory"]);
        let results = fixture.upstream.body(1)["messages"].to_string();
        assert!(results.contains("total") && !results.contains("Error"), "{results}");
        let n_calls = fixture.upstream.n_requests();
        fixture.upstream.reply_with("No.");
        let none = with(body, json!({ "tool_choice": "none" }));
        complete(&fixture.program, none).await;
        complete(&fixture.program, with(ask("Roll."), json!({ "model": character(&ada) }))).await;
        complete(&fixture.program, ask("Roll.")).await;
        for at in 0..3 {
            assert_eq!(names(n_calls + at), Vec::<String>::new(), "{at}");
        }
        fixture.close().await;
    }
}
