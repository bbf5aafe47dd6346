//! Tests of chat completions: answers and streams, parameters, pictures, what is ignored, failures.

use serde_json::{Value, json};

use super::chat_client::{
    PATH, ask, chunks, complete, complete_with_error, message, send_streamed, stream, text_of, with,
};
use super::fixture::{V1Fixture, lines};
use crate::support::backends::on_sqlite;
use crate::support::database_facts::DatabaseFacts;
use crate::support::fake_provider::script::ResponseScript;

fn begun() -> ResponseScript {
    ResponseScript::stream().role().words("One two three ")
}

on_sqlite! {
    async fn an_answer_and_its_stream_have_the_same_text_and_nothing_is_stored(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.always(ResponseScript::stream().role().words("The canary sings.").finish("stop").usage(7, 3).done());

        let answer = complete(&fixture.program, ask("Where is my canary?")).await;
        let plain = chunks(&fixture.program, ask("Where is my canary?")).await;
        let asked = with(ask("Where is my canary?"), json!({ "stream_options": { "include_usage": true } }));
        let counted = chunks(&fixture.program, asked).await;

        assert_eq!(answer["object"], "chat.completion");
        assert!(answer["id"].as_str().unwrap().starts_with("chatcmpl-"));
        assert_eq!(message(&answer)["content"], "The canary sings.");
        assert_eq!(answer["choices"][0]["finish_reason"], "stop");
        assert_eq!((&answer["usage"]["prompt_tokens"], &answer["usage"]["total_tokens"]), (&json!(7), &json!(10)));
        assert_eq!((text_of(&plain), text_of(&counted)), ("The canary sings.".to_owned(), "The canary sings.".to_owned()));
        assert_eq!(plain[0]["choices"][0]["delta"], json!({ "role": "assistant", "content": "" }));
        let last = plain.last().unwrap();
        assert_eq!((&last["choices"][0]["delta"], &last["choices"][0]["finish_reason"]), (&json!({}), &json!("stop")));
        assert!(plain.iter().all(|it| it["id"] == plain[0]["id"] && it.get("usage").is_none()));
        let (usage, before) = counted.split_last().unwrap();
        assert_eq!((&usage["choices"], &usage["usage"]), (&json!([]), &answer["usage"]));
        assert!(before.iter().all(|it| it["usage"] == Value::Null));
        let everything = DatabaseFacts::open(&fixture.app.database).await.everything().await;
        assert!(!everything.iter().any(|it| it.contains("canary")));
        assert_eq!(fixture.n_rows("responses").await, 0);
        fixture.close().await;
    }

    async fn a_chat_and_a_response_send_the_same_prompt_to_the_model(backend) {
        let fixture = V1Fixture::open(backend).await;
        let picture = "data:image/png;base64,iVBORw0KGgo=";
        let function = json!({ "name": "f", "description": "Adds.", "parameters": { "type": "object", "properties": {} } });
        let limits = json!({ "temperature": 0.5, "top_p": 0.25, "presence_penalty": 0.5, "tool_choice": "auto" });
        let chat = with(json!({
            "tools": [{ "type": "function", "function": function }], "max_completion_tokens": 50,
            "messages": [
                { "role": "system", "content": "Be kind." },
                { "role": "user", "content": [{ "type": "text", "text": "Look." }, { "type": "image_url", "image_url": { "url": picture } }] },
                { "role": "assistant", "content": "One moment.", "tool_calls": [
                    { "id": "a", "type": "function", "function": { "name": "f", "arguments": "{\"x\":1}" } },
                    { "id": "b", "type": "function", "function": { "name": "f", "arguments": "{}" } },
                ] },
                { "role": "tool", "tool_call_id": "b", "content": "B" },
                { "role": "tool", "tool_call_id": "a", "content": "A" },
                { "role": "assistant", "content": "Done." },
                { "role": "user", "content": "Thanks." },
            ],
        }), limits.clone());
        let response = with(json!({
            "tools": [with(json!({ "type": "function" }), function)], "max_output_tokens": 50, "store": false,
            "input": [
                { "role": "system", "content": "Be kind." },
                { "role": "user", "content": [{ "type": "input_text", "text": "Look." }, { "type": "input_image", "image_url": picture }] },
                { "role": "assistant", "content": "One moment." },
                { "type": "function_call", "call_id": "a", "name": "f", "arguments": "{\"x\":1}" },
                { "type": "function_call", "call_id": "b", "name": "f", "arguments": "{}" },
                { "type": "function_call_output", "call_id": "b", "output": "B" },
                { "type": "function_call_output", "call_id": "a", "output": "A" },
                { "role": "assistant", "content": "Done." },
                { "role": "user", "content": "Thanks." },
            ],
        }), limits);

        complete(&fixture.program, chat).await;
        fixture.program.respond(response).await;

        assert_eq!(fixture.upstream.body(0).to_string(), fixture.upstream.body(1).to_string());
        fixture.close().await;
    }

    async fn parallel_calls_are_streamed_with_their_index_and_outputs_may_come_in_any_order(backend) {
        let fixture = V1Fixture::open(backend).await;
        let script = ResponseScript::stream().role().call(0, "a", "f").arguments(0, "{\"x\"").call(1, "b", "g")
            .arguments(1, "{}").arguments(0, ":1}").finish("tool_calls").usage(1, 1).done();
        fixture.upstream.next(script);
        fixture.upstream.next(ResponseScript::calls(&[("a", "f", "{\"x\":1}"), ("b", "g", "{}")]));
        fixture.upstream.reply_with("Three.");
        let parameters = json!({ "type": "object", "properties": {} });
        let tool = |name: &str| json!({ "type": "function", "function": { "name": name, "parameters": parameters } });
        let tools = json!({ "tools": [tool("f"), tool("g")], "tool_choice": "required" });

        let streamed = chunks(&fixture.program, with(ask("Go."), tools.clone())).await;
        let answer = complete(&fixture.program, with(ask("Go."), tools.clone())).await;
        let said = message(&answer).clone();
        let mut next = json!({ "messages": [
            { "role": "user", "content": "Go." }, said,
            { "role": "tool", "tool_call_id": "b", "content": "B" },
            { "role": "tool", "tool_call_id": "a", "content": "A" },
        ] });
        let second = complete(&fixture.program, next.clone()).await;

        assert_eq!(said["content"], Value::Null);
        assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");
        let deltas: Vec<&Value> = streamed.iter().map(|it| &it["choices"][0]["delta"]["tool_calls"][0]).filter(|it| !it.is_null()).collect();
        assert_eq!(json!(deltas), json!([
            { "index": 0, "id": "a", "type": "function", "function": { "name": "f", "arguments": "" } },
            { "index": 0, "function": { "arguments": "{\"x\":1}" } },
            { "index": 1, "id": "b", "type": "function", "function": { "name": "g", "arguments": "" } },
            { "index": 1, "function": { "arguments": "{}" } },
        ]));
        assert_eq!(fixture.upstream.body(0)["tool_choice"], "required");
        assert_eq!(message(&second)["content"], "Three.");
        assert_eq!(lines(&fixture.upstream.body(2)), ["user|Go.||", "assistant||a,b|", "tool|A||a", "tool|B||b"]);
        next["messages"].as_array_mut().unwrap().truncate(3);
        let body = with(next.clone(), json!({ "model": "scripted" }));
        let (status, refused) = fixture.program.post(PATH, body).await;
        let error = &refused["error"];
        assert_eq!((status, &error["code"], &error["param"]), (400, &json!("missing_tool_output"), &json!("messages")));
        assert!(error["message"].as_str().unwrap().ends_with(": a."));
        next["messages"][2]["tool_call_id"] = json!("c");
        let unknown = complete_with_error(&fixture.program, next).await;
        assert_eq!(unknown, (400, "unknown_tool_call".to_owned(), json!("messages[2].tool_call_id")));
        assert_eq!(fixture.upstream.n_requests(), 3);
        fixture.close().await;
    }

    async fn custom_tools_and_deprecated_functions_are_called(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::calls(&[("a", "g", "{\"input\":\"x = 1\"}")]));
        fixture.upstream.next(ResponseScript::calls(&[("b", "f", "{}")]));
        let custom = json!({ "tools": [{ "type": "custom", "custom": { "name": "g" } }] });
        let former = json!({ "functions": [{ "name": "f" }], "function_call": { "name": "f" } });

        let first = complete(&fixture.program, with(ask("Go."), custom)).await;
        let second = complete(&fixture.program, with(ask("Go."), former)).await;

        assert_eq!(message(&first)["tool_calls"], json!([{ "id": "a", "type": "custom", "custom": { "name": "g", "input": "x = 1" } }]));
        assert_eq!(message(&second)["tool_calls"][0]["function"], json!({ "name": "f", "arguments": "{}" }));
        assert_eq!(fixture.upstream.body(1)["tool_choice"]["function"]["name"], "f");
        fixture.close().await;
    }

    async fn formats_and_samplers_are_forwarded(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.always(
            ResponseScript::stream().role().text_with_logprob("Hé", -0.25, &[("Ho", -1.5)]).finish("stop").usage(1, 1).done(),
        );
        let schema = json!({ "type": "object", "properties": {}, "additionalProperties": false });
        let fields = json!({
            "response_format": { "type": "json_schema", "json_schema": { "name": "r", "schema": schema, "strict": true } },
            "logprobs": true, "top_logprobs": 1, "stop": ["END"], "seed": 7, "logit_bias": { "50256": -100 },
            "frequency_penalty": 0.5, "max_tokens": 9,
        });

        let answer = complete(&fixture.program, with(ask("Hi."), fields)).await;

        let sent = fixture.upstream.body(0);
        assert_eq!(sent["response_format"]["json_schema"]["schema"], schema);
        assert_eq!((&sent["logprobs"], &sent["top_logprobs"]), (&json!(true), &json!(1)));
        assert_eq!((&sent["stop"], &sent["seed"]), (&json!(["END"]), &json!(7)));
        assert_eq!((&sent["logit_bias"]["50256"], &sent["max_tokens"]), (&json!(-100.0), &json!(16)));
        assert_eq!(sent["frequency_penalty"], 0.5);
        assert_eq!(answer["choices"][0]["logprobs"]["content"][0]["token"], "Hé");
        assert_eq!(fixture.upstream.n_requests(), 1);
        fixture.close().await;
    }

    async fn the_server_ends_an_answer_before_a_stop_sequence(backend) {
        let fixture = V1Fixture::open(backend).await;
        let script = ResponseScript::stream().role().text("One, E").text("ND two").hang();
        fixture.upstream.always(script);
        let body = with(ask("Hi."), json!({ "stop": "END" }));

        let answer = complete(&fixture.program, body.clone()).await;
        let streamed = chunks(&fixture.program, body).await;

        assert_eq!(message(&answer)["content"], "One, ");
        assert_eq!(answer["choices"][0]["finish_reason"], "stop");
        assert_eq!(text_of(&streamed), "One, ");
        fixture.upstream.wait_for_disconnect(1).await;
        fixture.close().await;
    }

    async fn the_name_of_a_message_reaches_the_model(backend) {
        let fixture = V1Fixture::open(backend).await;
        let messages = json!([
            { "role": "user", "name": "Eve", "content": "Hi." },
            { "role": "assistant", "name": "Ada", "content": "Yes?" },
            { "role": "user", "content": "Who am I?" },
        ]);

        complete(&fixture.program, json!({ "messages": messages })).await;

        assert_eq!(lines(&fixture.upstream.body(0)), ["user|Eve: Hi.||", "assistant|Ada: Yes?||", "user|Who am I?||"]);
        fixture.close().await;
    }

    async fn parameters_without_effect_are_named_in_a_header(backend) {
        let fixture = V1Fixture::open(backend).await;
        let fields = json!({ "wobble": 1, "store": true, "reasoning_effort": "low" });

        let ignored = send_streamed(&fixture.program, with(ask("Hi."), fields)).await;
        let none = send_streamed(&fixture.program, ask("Hi.")).await;

        assert_eq!(ignored.status(), 200);
        assert_eq!(ignored.headers()["troupe-ignored"], "wobble, store");
        assert!(!none.headers().contains_key("troupe-ignored"));
        assert_eq!(fixture.program.get(PATH).await.0, 405);
        fixture.close().await;
    }

    async fn a_failure_before_the_first_chunk_is_an_http_error(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.always(ResponseScript::status(400));

        let blocking = complete_with_error(&fixture.program, ask("Hi.")).await;
        let streamed = send_streamed(&fixture.program, ask("Hi.")).await;
        let unknown = complete_with_error(&fixture.program, with(ask("Hi."), json!({ "model": "none" }))).await;

        assert_eq!(blocking, (502, "upstream_error".to_owned(), Value::Null));
        assert_eq!(streamed.status(), 502);
        assert_eq!(streamed.headers()["content-type"], "application/json");
        assert_eq!((unknown.0, unknown.1.as_str()), (404, "model_not_found"));
        fixture.close().await;
    }

    async fn a_failure_after_the_first_chunk_is_one_error_without_done(backend) {
        let fixture = V1Fixture::open(backend).await;
        for (at, script) in [begun().reset(), begun(), begun().error("Overloaded.")].into_iter().enumerate() {
            fixture.upstream.next(script);

            let (chunks, is_done) = stream(&fixture.program, ask("Hi.")).await.rest().await;

            let (error, before) = chunks.split_last().unwrap();
            assert!(!is_done, "{at}");
            assert_eq!(error["error"]["type"], "server_error", "{at}");
            assert_eq!(text_of(before), "One two three ");
            assert!(before.iter().all(|it| it["choices"][0]["finish_reason"].is_null()));
            assert_eq!(fixture.upstream.n_requests(), at + 1);
        }
        fixture.close().await;
    }

    async fn a_client_that_disconnects_cancels_the_call_of_the_model(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(begun().hang());
        let mut reader = stream(&fixture.program, ask("Hi.")).await;
        reader.next().await.expect("the stream begins");

        drop(reader);

        fixture.upstream.wait_for_disconnect(0).await;
        for (at, is_streamed) in [(1, false), (2, true)] {
            fixture.upstream.next(ResponseScript::hang_before_first_chunk());
            let (program, body) = (fixture.program.clone(), with(ask("Hi."), json!({ "model": "scripted", "stream": is_streamed })));
            let waiting = tokio::spawn(async move { program.post(PATH, body).await });
            fixture.upstream.wait_for_requests(at + 1).await;
            waiting.abort();
            fixture.upstream.wait_for_disconnect(at).await;
        }
        fixture.close().await;
    }
}
