//! Tests of tools that the server runs, over several iterations.

use serde_json::{Value, json};

use super::fixture::{V1Fixture, function, id, kinds, lines, output, text, types};
use crate::support::backends::on_sqlite;
use crate::support::fake_provider::script::ResponseScript;

fn server_tools() -> Value {
    json!([{ "type": "troupe:time" }, { "type": "troupe:dice" }])
}

on_sqlite! {
    async fn server_side_tool_results_are_output_in_order_and_sent_to_the_model(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::calls(&[("a", "troupe_time", "{}"), ("b", "troupe_dice", "{\"roll\":\"3d1\"}")]));
        fixture.upstream.always(ResponseScript::stream().role().text("Three.").finish("stop").usage(11, 2).done());

        let events = fixture.program.stream(json!({ "input": "Roll.", "tools": server_tools() })).await.rest().await;

        let whole = events.last().unwrap()["response"].clone();
        assert_eq!(kinds(&events), [
            "created", "in_progress", "output_item.added", "output_item.done", "output_item.added", "output_item.done",
            "output_item.added", "content_part.added", "output_text.delta", "output_text.done", "content_part.done",
            "output_item.done", "completed",
        ]);
        assert_eq!(types(&whole), ["troupe:time", "troupe:dice", "message"]);
        assert_eq!(whole["output"][1]["output"], "{\"dice\":[1,1,1],\"added\":0,\"total\":3}");
        assert_eq!((&whole["output"][1]["status"], &whole["output"][1]["error"]), (&json!("completed"), &Value::Null));
        let prompt = lines(&fixture.upstream.body(1));
        assert_eq!(prompt[1], "assistant||a,b|");
        assert!(prompt[2].contains("weekday") && prompt[2].ends_with("|a"));
        assert_eq!(prompt[3], "tool|{\"dice\":[1,1,1],\"added\":0,\"total\":3}||b");
        assert_eq!((&whole["usage"]["input_tokens"], &whole["usage"]["output_tokens"]), (&json!(18), &json!(5)));
        assert_eq!(fixture.program.get(&format!("/responses/{}", id(&whole))).await, (200, whole.clone()));

        let next = json!({ "input": "Again.", "previous_response_id": id(&whole) });
        fixture.program.respond(next).await;
        assert_eq!(lines(&fixture.upstream.body(2))[1..], [&prompt[1..], &["assistant|Three.||".to_owned(), "user|Again.||".to_owned()]].concat());
        fixture.close().await;
    }

    async fn of_mixed_calls_only_the_function_of_the_client_is_left_open(backend) {
        let fixture = V1Fixture::open(backend).await;
        let mut tools = server_tools();
        tools.as_array_mut().unwrap().push(function("f"));
        fixture.upstream.next(ResponseScript::calls(&[("a", "f", "{}"), ("b", "troupe_dice", "{\"roll\":\"1d1\"}")]));

        let first = fixture.program.respond(json!({ "input": "Go.", "tools": tools })).await;
        let next = json!({ "input": [output("a", "A")], "previous_response_id": id(&first) });
        let second = fixture.program.respond(next).await;

        assert_eq!((&first["status"], types(&first)), (&json!("completed"), vec!["troupe:dice", "function_call"]));
        assert_eq!(fixture.upstream.n_requests(), 2);
        assert_eq!(second["status"], "completed");
        assert_eq!(lines(&fixture.upstream.body(1))[1], "assistant||b,a|");
        fixture.close().await;
    }

    async fn a_failed_or_unknown_tool_call_does_not_fail_the_response(backend) {
        let fixture = V1Fixture::open(backend).await;
        let mut tools = server_tools();
        tools.as_array_mut().unwrap().push(function("f"));
        fixture.upstream.next(ResponseScript::calls(&[("a", "troupe_dice", "{\"roll\":\"much\"}"), ("b", "dream", "{}"), ("c", "f", "{\"x"), ("d", "troupe_time", "{")]));
        fixture.upstream.reply_with("Well.");

        let response = fixture.program.respond(json!({ "input": "Go.", "tools": tools })).await;

        assert_eq!((&response["status"], text(&response)), (&json!("completed"), "Well.".to_owned()));
        assert_eq!(types(&response), ["troupe:dice", "message"]);
        assert!(response["output"][0]["error"].as_str().unwrap().contains("Dice look like"));
        let prompt = lines(&fixture.upstream.body(1));
        assert_eq!(prompt[1], "assistant||a,b,c,d|");
        assert!(prompt[2..].iter().all(|it| it.starts_with("tool|Error: ")), "{prompt:?}");
        fixture.close().await;
    }

    async fn iterations_and_tool_calls_are_limited(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.always(ResponseScript::calls(&[("a", "troupe_time", "{}")]));
        let request = |more: Value| {
            let mut body = json!({ "input": "Go.", "tools": server_tools() });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            body
        };
        let reason = |it: &Value| it["incomplete_details"]["reason"].as_str().unwrap().to_owned();

        let endless = fixture.program.respond(request(json!({ "tool_choice": "required" }))).await;
        assert_eq!((&endless["status"], reason(&endless)), (&json!("incomplete"), "max_steps".to_owned()));
        assert_eq!((fixture.upstream.n_requests(), types(&endless).len()), (10, 9));
        assert_eq!(fixture.upstream.body(0)["tool_choice"], "required");
        assert!(
            fixture.upstream.body(1).get("tool_choice").is_none(),
            "the tool choice was forced twice",
        );
        let ids: std::collections::HashSet<&str> = endless["output"].as_array().unwrap().iter().map(|it| it["call_id"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), 9, "a duplicate call id was not replaced");

        let once = fixture.program.respond(request(json!({ "max_tool_calls": 1 }))).await;
        assert_eq!((reason(&once), types(&once)), ("max_tool_calls".to_owned(), vec!["troupe:time"]));
        assert_eq!(once["max_tool_calls"], 1);

        fixture.upstream.next(ResponseScript::calls(&[("a", "troupe_time", "{}"), ("b", "troupe_time", "{}")]));
        fixture.upstream.reply_with("Late.");
        let serial =
            fixture.program.respond(request(json!({ "parallel_tool_calls": false }))).await;
        assert_eq!(types(&serial), ["troupe:time", "message"]);
        fixture.close().await;
    }

    async fn a_background_response_runs_all_its_iterations(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::calls(&[("a", "troupe_time", "{}")]));
        fixture.upstream.reply_with("Noon.");

        let queued = fixture.program.respond(json!({ "input": "Go.", "tools": server_tools(), "background": true })).await;
        let done = fixture.wait_for_status(id(&queued), "completed").await;

        assert_eq!(types(&done), ["troupe:time", "message"]);
        let replayed = fixture.program.replay(id(&done), None).await.rest().await;
        assert_eq!(replayed.last().unwrap()["response"], done);
        fixture.close().await;
    }
}
