//! Tests of tools that the client runs: functions, custom tools, the shell.

use serde_json::{Value, json};

use super::fixture::{V1Fixture, function, id, kinds, lines, output, text, types};
use crate::support::backends::on_sqlite;
use crate::support::database_facts::DatabaseFacts;
use crate::support::fake_provider::script::ResponseScript;

on_sqlite! {
    async fn a_function_is_called_and_its_output_leads_to_the_final_text(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::calls(&[("call_1", "weather", "{\"x\":1}")]));
        fixture.upstream.reply_with("It rains.");
        let tools = json!([function("weather")]);

        let first = fixture.program.respond(json!({ "input": "Weather?", "tools": tools })).await;
        let next = json!({ "input": [output("call_1", "rain")], "previous_response_id": id(&first), "tools": tools });
        let second = fixture.program.respond(next).await;

        assert_eq!((&first["status"], types(&first)), (&json!("completed"), vec!["function_call"]));
        let call = &first["output"][0];
        assert_eq!((&call["name"], &call["arguments"], &call["call_id"]), (&json!("weather"), &json!("{\"x\":1}"), &json!("call_1")));
        assert_eq!(call["status"], "completed");
        assert_eq!(first["tools"][0]["strict"], Value::Null);
        assert_eq!(fixture.upstream.body(0)["tools"][0]["function"]["name"], "weather");
        assert_eq!((second["status"].as_str(), text(&second)), (Some("completed"), "It rains.".to_owned()));
        assert_eq!(lines(&fixture.upstream.body(1)), ["user|Weather?||", "assistant||call_1|", "tool|rain||call_1"]);
        assert_eq!(fixture.program.get(&format!("/responses/{}", id(&first))).await, (200, first));
        fixture.close().await;
    }

    async fn interleaved_calls_become_two_items_and_outputs_match_their_calls(backend) {
        let fixture = V1Fixture::open(backend).await;
        let interleaved = ResponseScript::stream().role().text("Let me see.")
            .call(0, "a", "f").arguments(0, "{\"x\"").call(1, "b", "g").arguments(1, "{\"x\":")
            .arguments(0, ":1}").arguments(1, "2}").finish("tool_calls").usage(1, 1).done();
        fixture.upstream.next(interleaved);
        let tools = json!([function("f"), function("g")]);

        let events = fixture.program.stream(json!({ "input": "Go.", "tools": tools })).await.rest().await;
        let whole = events.last().unwrap()["response"].clone();
        let input = json!([output("b", "B"), output("a", "A")]);
        fixture.program.respond(json!({ "input": input, "previous_response_id": id(&whole), "tools": tools })).await;

        assert_eq!(kinds(&events)[7..], [
            "output_item.done",
            "output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done",
            "output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done",
            "completed",
        ]);
        assert_eq!(types(&whole), ["message", "function_call", "function_call"]);
        assert_eq!((&events[8]["item"]["arguments"], &events[9]["output_index"]), (&json!(""), &json!(1)));
        for (at, arguments) in [(1, "{\"x\":1}"), (2, "{\"x\":2}")] {
            assert_eq!(whole["output"][at]["arguments"], arguments);
            assert_eq!(events[4 + 4 * at + 1]["delta"], arguments);
            assert_eq!(events[4 + 4 * at + 2]["arguments"], arguments);
            assert_eq!(events[4 + 4 * at + 3]["item"], whole["output"][at]);
        }
        assert_eq!(lines(&fixture.upstream.body(1)), ["user|Go.||", "assistant|Let me see.|a,b|", "tool|A||a", "tool|B||b"]);
        fixture.close().await;
    }

    async fn one_call_is_answered_differently_in_two_branches(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::calls(&[("a", "f", "{}")]));
        let first = fixture.program.respond(json!({ "input": "Go.", "tools": [function("f")] })).await;
        let answer = |with: &str| json!({ "input": [output("a", with)], "previous_response_id": id(&first) });

        fixture.program.respond(answer("left")).await;
        fixture.program.respond(answer("right")).await;

        assert_eq!(lines(&fixture.upstream.body(1))[2], "tool|left||a");
        assert_eq!(lines(&fixture.upstream.body(2))[2], "tool|right||a");
        assert!(fixture.upstream.body(2).get("tools").is_none(), "the tools were inherited");
        fixture.close().await;
    }

    async fn a_tool_choice_is_sent_to_the_model_and_echoed(backend) {
        let fixture = V1Fixture::open(backend).await;
        let tools = json!([function("f"), function("g")]);
        let named = json!({ "type": "function", "name": "f" });
        let allowed = json!({ "type": "allowed_tools", "mode": "required", "tools": [named] });
        let sent = json!({ "type": "function", "function": { "name": "f" } });

        for (at, (choice, expected)) in [(json!("none"), json!("none")), (json!("required"), json!("required")), (named.clone(), sent), (allowed, json!("required"))].into_iter().enumerate() {
            let response = fixture.program.respond(json!({ "input": "Go.", "tools": tools, "tool_choice": choice })).await;
            assert_eq!(response["tool_choice"], choice);
            assert_eq!(fixture.upstream.body(at)["tool_choice"], expected);
        }
        assert_eq!(fixture.upstream.body(3)["tools"].as_array().unwrap().len(), 1);
        let unknown = json!({ "type": "function", "name": "h" });
        let undeclared = fixture.program.respond_with_error(json!({ "input": "Go.", "tools": tools, "tool_choice": unknown })).await;
        assert_eq!(undeclared, (400, "invalid_value".into(), json!("tool_choice.name")));
        fixture.close().await;
    }

    async fn calls_of_custom_tools_and_the_shell_are_returned_to_the_client(backend) {
        let fixture = V1Fixture::open(backend).await;
        let sql = json!({ "type": "custom", "name": "sql", "format": { "type": "grammar", "syntax": "lark", "definition": "start: QUERY" } });
        let tools = json!([sql, { "type": "local_shell" }]);
        fixture.upstream.next(ResponseScript::calls(&[("a", "sql", "{\"input\":\"SELECT 1\"}"), ("b", "local_shell", "{\"command\":[\"ls\",\"-l\"]}")]));

        let events = fixture.program.stream(json!({ "input": "Go.", "tools": tools })).await.rest().await;
        let whole = events.last().unwrap()["response"].clone();
        let outputs = json!([
            { "type": "custom_tool_call_output", "call_id": "a", "output": "1" },
            { "type": "local_shell_call_output", "id": "b", "output": "x" },
        ]);
        fixture.program.respond(json!({ "input": outputs, "previous_response_id": id(&whole) })).await;

        assert_eq!(kinds(&events)[2..], [
            "output_item.added", "custom_tool_call_input.delta", "custom_tool_call_input.done", "output_item.done",
            "output_item.added", "output_item.done", "completed",
        ]);
        assert_eq!((&events[3]["delta"], &events[4]["input"]), (&json!("SELECT 1"), &json!("SELECT 1")));
        assert_eq!(whole["output"][0]["input"], "SELECT 1");
        assert_eq!(whole["output"][1]["action"]["command"], json!(["ls", "-l"]));
        assert_eq!(whole["tools"][0]["format"], sql["format"]);
        let declared = fixture.upstream.body(0)["tools"][0]["function"].clone();
        assert!(declared["description"].as_str().unwrap().contains("start: QUERY"));
        assert_eq!(lines(&fixture.upstream.body(1)), ["user|Go.||", "assistant||a,b|", "tool|1||a", "tool|x||b"]);
        fixture.close().await;
    }

    async fn tool_calls_work_without_storing_anything(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::calls(&[("a", "canary", "{\"x\":1}")]));
        fixture.upstream.reply_with("It sings.");
        let tools = json!([function("canary")]);
        let asked = json!({ "role": "user", "content": "Where is it?" });

        let first = fixture.program.respond(json!({ "input": [asked], "tools": tools, "store": false })).await;
        let input = json!([asked, first["output"][0], output("a", "in the canary cage")]);
        let events = fixture.program.stream(json!({ "input": input, "tools": tools, "store": false })).await.rest().await;

        assert_eq!(text(&events.last().unwrap()["response"]), "It sings.");
        assert_eq!(lines(&fixture.upstream.body(1)), ["user|Where is it?||", "assistant||a|", "tool|in the canary cage||a"]);
        let everything = DatabaseFacts::open(&fixture.app.database).await.everything().await;
        assert!(!everything.iter().any(|it| it.contains("canary")));
        assert_eq!(fixture.n_rows("response_items").await, 0);
        fixture.close().await;
    }

    async fn an_open_call_in_an_api_conversation_needs_its_output_before_other_input(backend) {
        let fixture = V1Fixture::open(backend).await;
        let (_, conversation) = fixture.program.post("/conversations", json!({})).await;
        fixture.upstream.next(ResponseScript::calls(&[("a", "f", "{}")]));
        let body = json!({ "input": "Go.", "conversation": conversation["id"], "tools": [function("f")], "background": true });
        let first = fixture.program.respond(body).await;
        let first = fixture.wait_for_status(id(&first), "completed").await;
        let next = |input: Value| json!({ "input": input, "conversation": conversation["id"] });

        assert_eq!(types(&first), ["function_call"]);
        assert_eq!(fixture.program.respond_with_error(next(json!("And?"))).await.1, "missing_tool_output");
        let second = fixture.program.respond(next(json!([output("a", "A")]))).await;
        assert_eq!(second["status"], "completed");
        assert_eq!(lines(&fixture.upstream.body(1)), ["user|Go.||", "assistant||a|", "tool|A||a"]);
        let replayed = fixture.program.replay(id(&first), None).await.rest().await;
        assert_eq!(replayed.last().unwrap()["response"], first);
        fixture.close().await;
    }

    async fn a_truncated_call_needs_no_output(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::stream().call(0, "a", "f").arguments(0, "{\"x").finish("length").usage(1, 1).done());

        let first = fixture.program.respond(json!({ "input": "Go.", "tools": [function("f")] })).await;
        let second = fixture.program.respond(json!({ "input": "Again.", "previous_response_id": id(&first) })).await;

        assert_eq!((&first["status"], &first["output"][0]["status"]), (&json!("incomplete"), &json!("incomplete")));
        assert_eq!(second["status"], "completed");
        assert_eq!(lines(&fixture.upstream.body(1)), ["user|Go.||", "user|Again.||"]);
        fixture.close().await;
    }
}
