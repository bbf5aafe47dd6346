//! Tests of several answers to one chat completion (`n`).

use serde_json::{Value, json};

use super::chat_client::{
    ask, chunks, complete, complete_with_error, message, send_streamed, stream, with,
};
use super::fixture::V1Fixture;
use super::persona_models::{ada, space};
use crate::support::backends::on_sqlite;
use crate::support::fake_provider::script::ResponseScript;

/// The body of a request for two answers, with the seeds 7 and 8.
fn ask_twice(fields: Value) -> Value {
    with(ask("Hi."), with(json!({ "n": 2, "seed": 7 }), fields))
}

/// The answers of a model: its seed, with its usage.
fn say_seed(body: &Value) -> ResponseScript {
    ResponseScript::stream()
        .role()
        .text(&body["seed"].to_string())
        .finish("stop")
        .usage(7, 3)
        .done()
}

/// Answers the request with the seed 7 with `first`, and others with their seed.
fn fail_first(fixture: &V1Fixture, first: ResponseScript) {
    fixture
        .upstream
        .answer_with(move |body| match body["seed"] == 7 {
            true => first.clone(),
            false => say_seed(body),
        });
}

/// The text of each choice of a stream, by index.
fn texts(chunks: &[Value], n_choices: usize) -> Vec<String> {
    let mut texts = vec![String::new(); n_choices];
    for choice in chunks.iter().filter_map(|it| it["choices"].get(0)) {
        let index = choice["index"].as_u64().unwrap() as usize;
        texts[index].push_str(choice["delta"]["content"].as_str().unwrap_or_default());
    }
    texts
}

on_sqlite! {
    async fn each_choice_has_its_own_call_and_seed_and_the_prompt_is_counted_once(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.answer_with(say_seed);

        let answer = complete(&fixture.program, ask_twice(json!({}))).await;
        let counted = ask_twice(json!({ "stream_options": { "include_usage": true } }));
        let streamed = chunks(&fixture.program, counted).await;

        assert_eq!(fixture.upstream.n_requests(), 4);
        let choices = answer["choices"].as_array().unwrap();
        let found: Vec<Value> = choices.iter().map(|it| json!([it["index"], it["message"]["content"], it["finish_reason"]])).collect();
        assert_eq!(json!(found), json!([[0, "7", "stop"], [1, "8", "stop"]]));
        let usage = &answer["usage"];
        assert_eq!(json!([usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]]), json!([7, 6, 13]));
        let (last, before) = streamed.split_last().unwrap();
        assert_eq!((&last["choices"], &last["usage"]), (&json!([]), usage));
        assert_eq!(texts(before, 2), ["7", "8"]);
        for index in [0, 1] {
            let own: Vec<&Value> = before.iter().map(|it| &it["choices"][0]).filter(|it| it["index"] == index).collect();
            assert_eq!(own[0]["delta"], json!({ "role": "assistant", "content": "" }));
            assert_eq!(own[own.len() - 1]["finish_reason"], "stop");
        }
        assert!(streamed.iter().all(|it| it["id"] == streamed[0]["id"]));
        assert_eq!(fixture.n_rows("responses").await, 0);
        fixture.close().await;
    }

    async fn choices_run_at_the_same_time_and_a_client_that_disconnects_cancels_all_of_them(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.always(ResponseScript::stream().role().text("One").hang());
        let mut reader = stream(&fixture.program, ask_twice(json!({ "n": 4 }))).await;
        fixture.upstream.wait_for_requests(4).await;
        reader.next().await.expect("the stream begins");

        drop(reader);

        for at in 0..4 {
            fixture.upstream.wait_for_disconnect(at).await;
        }
        fixture.close().await;
    }

    async fn choices_that_fail_before_their_first_chunk_are_left_out(backend) {
        let fixture = V1Fixture::open(backend).await;
        fail_first(&fixture, ResponseScript::status(400));

        let answer = complete(&fixture.program, ask_twice(json!({}))).await;
        let streamed = chunks(&fixture.program, ask_twice(json!({}))).await;

        assert_eq!(answer["choices"].as_array().map(Vec::len), Some(1));
        assert_eq!((&answer["choices"][0]["index"], &message(&answer)["content"]), (&json!(1), &json!("8")));
        assert_eq!(texts(&streamed, 2), ["", "8"]);
        fixture.upstream.always(ResponseScript::status(400));
        let all = complete_with_error(&fixture.program, ask_twice(json!({}))).await;
        let streamed = send_streamed(&fixture.program, ask_twice(json!({}))).await;
        assert_eq!(all, (502, "upstream_error".to_owned(), Value::Null));
        assert_eq!(streamed.status(), 502);
        fixture.close().await;
    }

    async fn a_choice_that_fails_later_ends_the_stream_with_its_error(backend) {
        let fixture = V1Fixture::open(backend).await;
        fail_first(&fixture, ResponseScript::stream().role().text("One").reset());

        let answer = complete(&fixture.program, ask_twice(json!({}))).await;
        let (streamed, is_done) = stream(&fixture.program, ask_twice(json!({}))).await.rest().await;

        assert_eq!(answer["choices"].as_array().map(Vec::len), Some(1));
        let (error, before) = streamed.split_last().unwrap();
        assert!(!is_done && error["error"]["type"] == "server_error", "{error}");
        assert_eq!(texts(before, 2), ["One", "8"]);
        let ends = before.iter().filter(|it| it["choices"][0]["finish_reason"].is_string());
        assert_eq!(ends.count(), 1);
        fixture.close().await;
    }

    async fn all_choices_of_a_space_have_the_same_speaker(backend) {
        let fixture = V1Fixture::open(backend).await;
        let order = json!({ "reply_order": "list", "replies_per_turn": "activated" });
        let test_space = fixture.admin.create_space("The stage", order).await;
        let first = ada(&fixture.admin).await;
        let second = fixture.admin.create_character("Bob", None).await;
        for it in [&first, &second] {
            fixture.admin.add_character(&test_space, it).await;
        }

        let body = with(ask("All of you."), json!({ "model": space(&test_space), "n": 3 }));
        let answer = complete(&fixture.program, body).await;

        assert_eq!(fixture.upstream.n_requests(), 3);
        let choices = answer["choices"].as_array().unwrap();
        assert!(choices.iter().all(|it| it["message"]["troupe"]["speaker"] == "Ada"), "{answer}");
        assert_eq!(choices.len(), 3);
        fixture.close().await;
    }

    async fn too_many_choices_are_rejected_before_a_model_is_called(backend) {
        let fixture = V1Fixture::open_with(backend, &[("RESPONSES_MAX_RUNNING", "3")]).await;

        let invalid = complete_with_error(&fixture.program, ask_twice(json!({ "n": 5 }))).await;
        let (status, ..) = complete_with_error(&fixture.program, ask_twice(json!({ "n": 4 }))).await;
        complete(&fixture.program, ask("Hi.")).await;

        assert_eq!(invalid, (400, "invalid_value".to_owned(), json!("n")));
        assert!([429, 503].contains(&status), "{status}");
        assert_eq!(fixture.upstream.n_requests(), 1);
        fixture.close().await;
    }
}
