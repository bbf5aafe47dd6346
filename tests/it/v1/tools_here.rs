//! Tests of tools that the server runs, over several iterations.

use serde_json::{Value, json};

use super::fixture::{V1Fixture, function, id, kinds, lines, output, text, types};
use crate::support::backends::on_sqlite;
use crate::support::fake_provider::script::ResponseScript;

fn ours() -> Value {
    json!([{ "type": "troupe:time" }, { "type": "troupe:dice" }])
}

on_sqlite! {
    async fn server_side_tool_results_are_output_in_order_and_sent_to_the_model(backend) {
        let stage = V1Fixture::open(backend).await;
        stage.upstream.next(ResponseScript::calls(&[("a", "troupe_time", "{}"), ("b", "troupe_dice", "{\"roll\":\"3d1\"}")]));
        stage.upstream.always(ResponseScript::stream().role().text("Three.").finish("stop").usage(11, 2).done());

        let events = stage.program.stream(json!({ "input": "Roll.", "tools": ours() })).await.rest().await;

        let whole = events.last().unwrap()["response"].clone();
        assert_eq!(kinds(&events), [
            "created", "in_progress", "output_item.added", "output_item.done", "output_item.added", "output_item.done",
            "output_item.added", "content_part.added", "output_text.delta", "output_text.done", "content_part.done",
            "output_item.done", "completed",
        ]);
        assert_eq!(types(&whole), ["troupe:time", "troupe:dice", "message"]);
        assert_eq!(whole["output"][1]["output"], "{\"dice\":[1,1,1],\"added\":0,\"total\":3}");
        assert_eq!((&whole["output"][1]["status"], &whole["output"][1]["error"]), (&json!("completed"), &Value::Null));
        let told = lines(&stage.upstream.body(1));
        assert_eq!(told[1], "assistant||a,b|");
        assert!(told[2].contains("weekday") && told[2].ends_with("|a"));
        assert_eq!(told[3], "tool|{\"dice\":[1,1,1],\"added\":0,\"total\":3}||b");
        assert_eq!((&whole["usage"]["input_tokens"], &whole["usage"]["output_tokens"]), (&json!(18), &json!(5)));
        assert_eq!(stage.program.get(&format!("/responses/{}", id(&whole))).await, (200, whole.clone()));

        let next = json!({ "input": "Again.", "previous_response_id": id(&whole) });
        stage.program.respond(next).await;
        assert_eq!(lines(&stage.upstream.body(2))[1..], [&told[1..], &["assistant|Three.||".to_owned(), "user|Again.||".to_owned()]].concat());
        stage.close().await;
    }

    async fn of_a_mixed_batch_only_the_clients_output_is_asked_for(backend) {
        let stage = V1Fixture::open(backend).await;
        let mut tools = ours();
        tools.as_array_mut().unwrap().push(function("f"));
        stage.upstream.next(ResponseScript::calls(&[("a", "f", "{}"), ("b", "troupe_dice", "{\"roll\":\"1d1\"}")]));

        let first = stage.program.respond(json!({ "input": "Go.", "tools": tools })).await;
        let next = json!({ "input": [output("a", "A")], "previous_response_id": id(&first) });
        let second = stage.program.respond(next).await;

        assert_eq!((&first["status"], types(&first)), (&json!("completed"), vec!["troupe:dice", "function_call"]));
        assert_eq!(stage.upstream.n_requests(), 2);
        assert_eq!(second["status"], "completed");
        assert_eq!(lines(&stage.upstream.body(1))[1], "assistant||b,a|");
        stage.close().await;
    }

    async fn what_fails_or_is_invented_never_fails_the_response(backend) {
        let stage = V1Fixture::open(backend).await;
        let mut tools = ours();
        tools.as_array_mut().unwrap().push(function("f"));
        stage.upstream.next(ResponseScript::calls(&[("a", "troupe_dice", "{\"roll\":\"much\"}"), ("b", "dream", "{}"), ("c", "f", "{\"x"), ("d", "troupe_time", "{")]));
        stage.upstream.reply_with("Well.");

        let response = stage.program.respond(json!({ "input": "Go.", "tools": tools })).await;

        assert_eq!((&response["status"], text(&response)), (&json!("completed"), "Well.".to_owned()));
        assert_eq!(types(&response), ["troupe:dice", "message"]);
        assert!(response["output"][0]["error"].as_str().unwrap().contains("roll"));
        let told = lines(&stage.upstream.body(1));
        assert_eq!(told[1], "assistant||a,b,c,d|");
        assert!(told[2..].iter().all(|it| it.starts_with("tool|Error: ")), "{told:?}");
        stage.close().await;
    }

    async fn rounds_and_calls_have_their_limits(backend) {
        let stage = V1Fixture::open(backend).await;
        stage.upstream.always(ResponseScript::calls(&[("a", "troupe_time", "{}")]));
        let asked = |more: Value| {
            let mut body = json!({ "input": "Go.", "tools": ours() });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            body
        };
        let reason = |it: &Value| it["incomplete_details"]["reason"].as_str().unwrap().to_owned();

        let endless = stage.program.respond(asked(json!({ "tool_choice": "required" }))).await;
        assert_eq!((&endless["status"], reason(&endless)), (&json!("incomplete"), "max_steps".to_owned()));
        assert_eq!((stage.upstream.n_requests(), types(&endless).len()), (10, 9));
        assert_eq!(stage.upstream.body(0)["tool_choice"], "required");
        assert!(stage.upstream.body(1).get("tool_choice").is_none(), "forced once");
        let ids: std::collections::HashSet<&str> = endless["output"].as_array().unwrap().iter().map(|it| it["call_id"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), 9, "a doubled id is replaced");

        let once = stage.program.respond(asked(json!({ "max_tool_calls": 1 }))).await;
        assert_eq!((reason(&once), types(&once)), ("max_tool_calls".to_owned(), vec!["troupe:time"]));
        assert_eq!(once["max_tool_calls"], 1);

        stage.upstream.next(ResponseScript::calls(&[("a", "troupe_time", "{}"), ("b", "troupe_time", "{}")]));
        stage.upstream.reply_with("Late.");
        let serial = stage.program.respond(asked(json!({ "parallel_tool_calls": false }))).await;
        assert_eq!(types(&serial), ["troupe:time", "message"]);
        stage.close().await;
    }

    async fn a_background_response_works_through_its_rounds(backend) {
        let stage = V1Fixture::open(backend).await;
        stage.upstream.next(ResponseScript::calls(&[("a", "troupe_time", "{}")]));
        stage.upstream.reply_with("Noon.");

        let queued = stage.program.respond(json!({ "input": "Go.", "tools": ours(), "background": true })).await;
        let done = stage.wait_for_status(id(&queued), "completed").await;

        assert_eq!(types(&done), ["troupe:time", "message"]);
        let replayed = stage.program.replay(id(&done), None).await.rest().await;
        assert_eq!(replayed.last().unwrap()["response"], done);
        stage.close().await;
    }
}
