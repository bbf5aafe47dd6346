//! Tests of chains of responses: immutable, with any number of branches.

use futures::future::join_all;
use serde_json::{Value, json};

use super::fixture::{V1Fixture, id, prompt_lines, prompt_texts, text};
use crate::support::backends::on_sqlite;
use crate::support::fake_provider::script::ResponseScript;

fn after(previous: &Value, input: &str) -> Value {
    json!({ "input": input, "previous_response_id": id(previous) })
}

on_sqlite! {
    async fn each_turn_is_in_the_prompt_once_in_order_and_instructions_are_not_inherited(backend) {
        let fixture = V1Fixture::open(backend).await;
        let n = std::sync::atomic::AtomicUsize::new(0);
        fixture.upstream.answer_with(move |_| ResponseScript::say(&format!("reply{}", n.fetch_add(1, std::sync::atomic::Ordering::Relaxed))));
        let input = json!([{ "role": "system", "content": "rule" }, { "role": "user", "content": "one" }]);
        let first =
            fixture.program.respond(json!({ "input": input, "instructions": "once" })).await;
        let second = fixture.program.respond(after(&first, "two")).await;

        let third = fixture.program.respond(after(&second, "three")).await;

        assert_eq!(prompt_texts(&fixture.upstream.body(0)), ["once", "rule", "one"]);
        assert_eq!(prompt_texts(&fixture.upstream.body(2)), ["rule", "one", "reply0", "two", "reply1", "three"]);
        assert_eq!(third["previous_response_id"], second["id"]);
        assert_eq!(third["instructions"], Value::Null);
        fixture.close().await;
    }

    async fn any_number_of_responses_may_continue_one_response(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.answer_with(|body| ResponseScript::say(&prompt_lines(body).pop().unwrap().1));
        let first = fixture.program.respond(json!({ "input": "root" })).await;

        let branches = (0..20).map(|it| fixture.program.respond(after(&first, &format!("branch{it}"))));
        let branches = join_all(branches).await;

        for (at, branch) in branches.iter().enumerate() {
            assert_eq!(text(branch), format!("branch{at}"));
        }
        for at in 1..21 {
            assert_eq!(prompt_texts(&fixture.upstream.body(at)).len(), 3);
        }
        fixture.close().await;
    }

    async fn a_deleted_response_is_not_found_but_its_items_stay_in_the_chain(backend) {
        let fixture = V1Fixture::open(backend).await;
        let first = fixture.program.respond(json!({ "input": "one" })).await;
        let second = fixture.program.respond(after(&first, "two")).await;
        let path = format!("/responses/{}", id(&first));

        let (status, deleted) = fixture.program.delete(&path).await;

        assert_eq!((status, &deleted["deleted"], &deleted["object"]), (200, &json!(true), &json!("response.deleted")));
        assert_eq!(fixture.program.get(&path).await.0, 404);
        assert_eq!(fixture.program.delete(&path).await.0, 404);
        assert_eq!(fixture.program.respond_with_error(after(&first, "x")).await.1, "previous_response_not_found");
        let third = fixture.program.respond(after(&second, "three")).await;
        assert_eq!(prompt_texts(&fixture.upstream.body(2)), ["one", "Hello.", "two", "Hello.", "three"]);
        for response in [&second, &third] {
            fixture.program.delete(&format!("/responses/{}", id(response))).await;
        }
        assert_eq!(fixture.n_rows("responses").await, 0, "a deleted response still has a row");
        assert_eq!(fixture.n_rows("response_items").await, 0);
        fixture.close().await;
    }

    async fn an_unfinished_or_failed_response_cannot_be_continued(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::status(400));
        let failed = fixture.program.respond(json!({ "input": "one" })).await;
        let gate = fixture.upstream.gate();
        let mut stream = fixture.program.stream(json!({ "input": "two" })).await;
        let running = stream.until("response.in_progress").await[0]["response"].clone();

        assert_eq!(fixture.program.respond_with_error(after(&failed, "x")).await.1, "previous_response_not_usable");
        assert_eq!(fixture.program.respond_with_error(after(&running, "x")).await.1, "previous_response_in_progress");
        assert_eq!(fixture.program.respond_with_error(json!({ "input": "x", "previous_response_id": "resp_0" })).await.1, "previous_response_not_found");
        gate.open();
        stream.rest().await;
        fixture.close().await;
    }

    async fn input_items_come_in_pages_newest_first(backend) {
        let fixture = V1Fixture::open(backend).await;
        let input: Vec<Value> = (0..7).map(|it| json!({ "role": "user", "content": it.to_string() })).collect();
        let response = fixture.program.respond(json!({ "input": input })).await;
        let path = format!("/responses/{}/input_items", id(&response));

        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let (_, page) = fixture.program.get(&format!("{path}?limit=2{after}")).await;
            seen.extend(page["data"].as_array().unwrap().iter().map(|it| it["content"][0]["text"].as_str().unwrap().to_owned()));
            after = format!("&after={}", page["last_id"].as_str().unwrap());
            if page["has_more"] == false {
                break;
            }
        }

        assert_eq!(seen, ["6", "5", "4", "3", "2", "1", "0"]);
        for limit in [0, 101] {
            assert_eq!(fixture.program.get(&format!("{path}?limit={limit}")).await.0, 400);
        }
        fixture.close().await;
    }
}
