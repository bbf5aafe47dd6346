//! Tests of what the model of a run sees: the thread in order, earlier calls, hidden and last messages.

use serde_json::{Value, json};

use super::support::{ThreadClient, function, user};
use crate::support::backends::{on_both, on_sqlite};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::http_client::expect;
use crate::v1::chat_client::{PATH, with};
use crate::v1::fixture::{V1Fixture, id, lines};

on_both! {
    async fn the_second_run_sees_the_whole_thread_once_in_order_with_earlier_calls(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::calls(&[("call_1", "look", "{}"), ("call_2", "look", "{}")]));
        fixture.upstream.next(ResponseScript::say("I looked."));
        let client = ThreadClient::new(&fixture.program, json!({ "tools": [function("look")] }), &["Look."]).await;
        let run = client.run_until(json!({}), "requires_action").await;
        let run = run["id"].as_str().unwrap();
        expect(200, client.submit(run, &[("call_2", "two"), ("call_1", "one")]).await);
        client.wait_for(run, "completed").await;
        expect(200, client.say("And now?").await);

        client.run_until(json!({}), "completed").await;

        let calls = ["user|Look.||", "assistant||call_1,call_2|", "tool|one||call_1", "tool|two||call_2"];
        assert_eq!(lines(&fixture.upstream.body(1)), calls);
        let all = [&calls[..], &["assistant|I looked.||", "user|And now?||"]].concat();
        assert_eq!(lines(&fixture.upstream.body(2)), all);
        fixture.close().await;
    }

    async fn a_hidden_message_is_in_no_list_and_no_later_run(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::calls(&[("call_1", "look", "{}")]));
        let client = ThreadClient::new(&fixture.program, json!({ "tools": [function("look")] }), &["Hi."]).await;
        let hidden = with(user("Psst."), json!({ "hidden": true }));
        let more = json!({ "additional_messages": [user("Shown."), hidden] });

        let run = client.run_until(more, "requires_action").await;
        let run = run["id"].as_str().unwrap();
        expect(200, client.submit(run, &[("call_1", "done")]).await);
        client.wait_for(run, "completed").await;
        client.run_until(json!({}), "completed").await;

        assert_eq!(client.texts().await, ["Hi.", "Shown.", "Hello.", "Hello."]);
        let first = ["user|Hi.||", "user|Shown.||", "user|Psst.||"];
        assert_eq!(lines(&fixture.upstream.body(0)), first);
        let resumed = [&first[..], &["assistant||call_1|", "tool|done||call_1"]].concat();
        assert_eq!(lines(&fixture.upstream.body(1)), resumed);
        let later = ["user|Hi.||", "user|Shown.||", "assistant||call_1|", "tool|done||call_1", "assistant|Hello.||"];
        assert_eq!(lines(&fixture.upstream.body(2)), later);
        fixture.close().await;
    }
}

on_sqlite! {
    async fn a_truncation_strategy_selects_the_last_messages(backend) {
        let fixture = V1Fixture::open(backend).await;
        let client = ThreadClient::new(&fixture.program, json!({}), &["One.", "Two.", "Three."]).await;
        let strategy = json!({ "type": "last_messages", "last_messages": 2 });

        client.run_until(json!({ "truncation_strategy": strategy }), "completed").await;

        assert_eq!(lines(&fixture.upstream.body(0)), ["user|Two.||", "user|Three.||"]);
        fixture.close().await;
    }

    async fn a_response_a_chat_and_a_run_send_the_same_request_to_the_model(backend) {
        let fixture = V1Fixture::open(backend).await;
        let picture = "data:image/png;base64,iVBORw0KGgo=";
        let function = json!({ "name": "f", "description": "Adds.", "parameters": { "type": "object", "properties": {} } });
        let tools = json!([{ "type": "function", "function": function }]);
        let schema = json!({ "name": "s", "schema": { "type": "object" }, "strict": true });
        let limits = json!({ "temperature": 0.5, "top_p": 0.25, "tool_choice": "auto" });
        let image = json!({ "type": "image_url", "image_url": { "url": picture } });
        let format = json!({ "type": "json_schema", "json_schema": schema });
        let messages = json!([
            { "role": "user", "content": [{ "type": "text", "text": "Look." }, image] },
            { "role": "assistant", "content": "Done." },
            { "role": "user", "content": "Thanks." },
        ]);
        let chat = with(json!({
            "model": "scripted", "tools": tools, "max_completion_tokens": 50, "reasoning_effort": "low", "response_format": format,
            "messages": [
                { "role": "system", "content": "Be kind." }, messages[0], messages[1], messages[2],
            ],
        }), limits.clone());
        let response = with(json!({
            "tools": [with(json!({ "type": "function" }), function)], "max_output_tokens": 50, "store": false, "reasoning": { "effort": "low" },
            "instructions": "Be kind.", "text": { "format": with(json!({ "type": "json_schema" }), schema) },
            "input": [
                { "role": "user", "content": [{ "type": "input_text", "text": "Look." }, { "type": "input_image", "image_url": picture }] },
                { "role": "assistant", "content": "Done." },
                { "role": "user", "content": "Thanks." },
            ],
        }), limits.clone());
        let client = ThreadClient::new(&fixture.program, json!({ "instructions": "Be kind." }), &[]).await;
        for message in messages.as_array().unwrap() {
            expect(200, fixture.program.post(&client.path("/messages"), message.clone()).await);
        }
        let settings = json!({ "tools": tools, "max_completion_tokens": 50, "reasoning_effort": "low", "response_format": format });

        expect(200, fixture.program.post(PATH, chat).await);
        fixture.program.respond(response).await;
        client.run_until(with(settings, limits), "completed").await;

        let sent = |at: usize| -> Value { fixture.upstream.body(at) };
        assert_eq!(sent(0)["reasoning_effort"], "low");
        assert_eq!(sent(0).to_string(), sent(1).to_string());
        assert_eq!(sent(0).to_string(), sent(2).to_string());
        fixture.close().await;
    }

    async fn a_conversation_with_tool_calls_is_the_same_request_in_all_three_apis(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::calls(&[("call_1", "look", "{}"), ("call_2", "look", r#"{"at":"é"}"#)]));
        let tools = json!([function("look")]);
        let client = ThreadClient::new(&fixture.program, json!({ "tools": tools }), &["Look."]).await;
        let run = client.run_until(json!({}), "requires_action").await;
        let run = id(&run);
        expect(200, client.submit(run, &[("call_1", "one"), ("call_2", "two")]).await);
        client.wait_for(run, "completed").await;
        let call = |id: &str, arguments: &str| {
            json!({ "id": id, "type": "function", "function": { "name": "look", "arguments": arguments } })
        };
        let chat = json!({ "model": "scripted", "tools": tools, "messages": [
            user("Look."),
            { "role": "assistant", "content": null, "tool_calls": [call("call_1", "{}"), call("call_2", r#"{"at":"é"}"#)] },
            { "role": "tool", "tool_call_id": "call_1", "content": "one" },
            { "role": "tool", "tool_call_id": "call_2", "content": "two" },
        ] });
        let tool = with(json!({ "type": "function" }), tools[0]["function"].clone());
        let response = json!({ "tools": [tool], "store": false, "input": [
            user("Look."),
            { "type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}" },
            { "type": "function_call", "call_id": "call_2", "name": "look", "arguments": r#"{"at":"é"}"# },
            { "type": "function_call_output", "call_id": "call_1", "output": "one" },
            { "type": "function_call_output", "call_id": "call_2", "output": "two" },
        ] });

        expect(200, fixture.program.post(PATH, chat).await);
        fixture.program.respond(response).await;

        let sent = |at: usize| fixture.upstream.body(at).to_string();
        assert_eq!(sent(1), sent(2));
        assert_eq!(sent(1), sent(3));
        fixture.close().await;
    }
}
