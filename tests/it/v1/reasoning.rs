//! Tests of reasoning: the effort reaches the model, its thoughts go back to it after tool calls, and a
//! client can carry them in encrypted form.

use reqwest::Method;
use serde_json::{Value, json};

use super::chat_client::{PATH, complete};
use super::fixture::{V1Fixture, function, id, output, text, types};
use crate::support::backends::on_sqlite;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::v1_client::{V1Client, with_default_model};

const ENCRYPTED: &str = "reasoning.encrypted_content";

/// Sends a request; returns the body of the answer and its header `troupe-ignored`.
async fn post(program: &V1Client, path: &str, body: Value) -> (Value, String) {
    let request = program.request(Method::POST, path);
    let answer = request
        .json(&with_default_model(body))
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200, "{:?}", answer.text().await);
    let ignored = answer.headers().get("troupe-ignored").cloned();
    let ignored = ignored.map_or_else(String::new, |it| it.to_str().unwrap().to_owned());
    (answer.json().await.unwrap(), ignored)
}

/// A compatible endpoint reasons and calls a function.
fn reasoned_call() -> ResponseScript {
    ResponseScript::stream()
        .role()
        .delta(json!({ "reasoning_content": "I need " }))
        .delta(json!({ "reasoning_content": "the map." }))
        .call(0, "a", "f")
        .arguments(0, "{\"x\":1}")
        .finish("tool_calls")
        .usage(7, 3)
        .done()
}

/// Anthropic's API sends these content blocks.
fn blocks(blocks: &[Value], stop_reason: &str) -> ResponseScript {
    let usage = json!({ "input_tokens": 3, "output_tokens": 1 });
    let mut script = ResponseScript::stream()
        .event(&json!({ "type": "message_start", "message": { "usage": usage } }));
    for (index, block) in blocks.iter().enumerate() {
        script = script
            .event(
                &json!({ "type": "content_block_start", "index": index, "content_block": block }),
            )
            .event(&json!({ "type": "content_block_stop", "index": index }));
    }
    script
        .event(&json!({ "type": "message_delta", "delta": { "stop_reason": stop_reason }, "usage": usage }))
        .event(&json!({ "type": "message_stop" }))
}

fn thinking() -> Value {
    json!({ "type": "thinking", "thinking": "I need the map.", "signature": "Eq" })
}

fn tool_use() -> Value {
    json!({ "type": "tool_use", "id": "toolu_1", "name": "f", "input": { "x": 1 } })
}

fn said(text: &str) -> ResponseScript {
    blocks(&[json!({ "type": "text", "text": text })], "end_turn")
}

fn question() -> Value {
    json!({ "role": "user", "content": "Where?" })
}

on_sqlite! {
    async fn the_effort_reaches_the_model_and_what_has_no_effect_is_named(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.add_model("anthropic", "claude-sonnet-4-5").await;
        let demo = json!({ "name": "plain", "kind": "demo", "model": "plain" });
        assert_eq!(fixture.admin.post("/api/providers", demo).await.0, 201);
        let reasoning = json!({ "effort": "high", "summary": "auto" });

        let (response, ignored) = post(&fixture.program, "/responses", json!({ "input": "x", "reasoning": reasoning })).await;
        let (_, of_chat) = post(&fixture.program, PATH, json!({ "messages": [question()], "reasoning_effort": "minimal" })).await;
        fixture.upstream.always(said("Hi."));
        let body = json!({ "model": "claude-sonnet-4-5", "input": "x", "reasoning": reasoning, "max_output_tokens": 4_000 });
        let (_, of_claude) = post(&fixture.program, "/responses", body).await;
        let (_, of_demo) = post(&fixture.program, "/responses", json!({ "model": "plain", "input": "x", "reasoning": reasoning })).await;

        assert_eq!(response["reasoning"]["effort"], "high");
        assert_eq!((ignored.as_str(), fixture.upstream.body(0)["reasoning_effort"].as_str()), ("reasoning.summary", Some("high")));
        assert_eq!((of_chat.as_str(), fixture.upstream.body(1)["reasoning_effort"].as_str()), ("", Some("minimal")));
        let sent = fixture.upstream.body(2);
        assert_eq!(sent["thinking"], json!({ "type": "enabled", "budget_tokens": 2_000 }));
        assert_eq!((of_claude.as_str(), &sent["max_tokens"]), ("", &json!(4_000)));
        assert_eq!(of_demo, "reasoning.effort, reasoning.summary");
        fixture.close().await;
    }

    async fn a_model_that_rejects_the_effort_answers_without_it(backend) {
        let fixture = V1Fixture::open(backend).await;
        let error = json!({ "error": { "message": "Unrecognized request argument supplied: reasoning_effort" } });
        fixture.upstream.next(ResponseScript::json(400, &error));
        fixture.upstream.next(ResponseScript::say("Yes."));

        let response = fixture.program.respond(json!({ "input": "x", "reasoning": { "effort": "low" } })).await;

        assert_eq!(text(&response), "Yes.");
        assert_eq!(fixture.upstream.n_requests(), 2);
        assert!(fixture.upstream.body(1).get("reasoning_effort").is_none());
        fixture.close().await;
    }

    async fn a_model_that_rejects_earlier_reasoning_answers_without_it(backend) {
        let fixture = V1Fixture::open(backend).await;
        let tools = json!([function("f")]);
        fixture.upstream.next(reasoned_call());
        let field = json!({ "type": "extra_forbidden", "loc": ["body", "messages", 1, "reasoning_content"], "msg": "Extra inputs are not permitted", "input": "I need the map." });
        fixture.upstream.next(ResponseScript::json(422, &json!({ "detail": [field] })));
        fixture.upstream.next(ResponseScript::say("There."));
        let asked = fixture.program.respond(json!({ "input": "Where?", "tools": tools })).await;

        let next = json!({ "input": [output("a", "here")], "tools": tools, "previous_response_id": id(&asked) });
        let answer = fixture.program.respond(next).await;

        assert_eq!(text(&answer), "There.");
        let sent = |at: usize| fixture.upstream.body(at)["messages"][1].get("reasoning_content").cloned();
        assert_eq!((sent(1), sent(2)), (Some(json!("I need the map.")), None));
        fixture.close().await;
    }

    async fn thoughts_go_back_to_the_endpoint_that_sent_them(backend) {
        let fixture = V1Fixture::open(backend).await;
        let tools = json!([function("f")]);
        fixture.upstream.next(reasoned_call());
        fixture.upstream.next(ResponseScript::say("There."));
        fixture.upstream.next(ResponseScript::say("Bye."));

        let asked = fixture.program.respond(json!({ "input": "Where?", "tools": tools })).await;
        let next = json!({ "input": [output("a", "here")], "tools": tools, "previous_response_id": id(&asked) });
        let answer = fixture.program.respond(next).await;
        fixture.program.respond(json!({ "input": "Thanks.", "previous_response_id": id(&answer) })).await;

        assert_eq!(types(&asked), ["reasoning", "function_call"]);
        assert!(asked["output"][0].get("encrypted_content").is_none());
        assert!(asked["output"][0].get("sealed_reasoning").is_none());
        assert_eq!(fixture.program.get(&format!("/responses/{}", id(&asked))).await, (200, asked));
        for n in 1..3 {
            let called = &fixture.upstream.body(n)["messages"][1];
            assert_eq!((&called["reasoning_content"], &called["tool_calls"][0]["id"]), (&json!("I need the map."), &json!("a")));
        }
        fixture.close().await;
    }

    async fn thoughts_go_back_within_the_loop_of_server_side_tools(backend) {
        let fixture = V1Fixture::open(backend).await;
        let script = ResponseScript::stream().role().delta(json!({ "reasoning": "What time?" }));
        fixture.upstream.next(script.call(0, "a", "troupe_time").arguments(0, "{}").finish("tool_calls").done());
        fixture.upstream.next(ResponseScript::say("Noon."));

        fixture.program.respond(json!({ "input": "x", "tools": [{ "type": "troupe:time" }], "store": false })).await;

        let called = &fixture.upstream.body(1)["messages"][1];
        assert_eq!((&called["reasoning"], called.get("reasoning_content")), (&json!("What time?"), None));
        fixture.close().await;
    }

    async fn reasoning_of_a_chat_message_goes_back_to_the_model(backend) {
        let fixture = V1Fixture::open(backend).await;
        let function = json!({ "name": "f", "arguments": "{}" });
        let call = json!({ "id": "a", "type": "function", "function": function });
        let messages = json!([
            question(),
            { "role": "assistant", "content": null, "reasoning_content": "I need the map.", "tool_calls": [call] },
            { "role": "tool", "tool_call_id": "a", "content": "here" },
        ]);

        complete(&fixture.program, json!({ "messages": messages })).await;

        assert_eq!(fixture.upstream.body(0)["messages"][1]["reasoning_content"], "I need the map.");
        fixture.close().await;
    }

    async fn signed_thoughts_go_back_unchanged_from_a_chain_and_from_the_client(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.add_model("anthropic", "claude").await;
        let redacted = json!({ "type": "redacted_thinking", "data": "Em" });
        fixture.upstream.next(blocks(&[thinking(), redacted.clone(), tool_use()], "tool_use"));
        fixture.upstream.next(said("There."));
        fixture.upstream.next(blocks(&[thinking(), redacted.clone(), tool_use()], "tool_use"));
        fixture.upstream.next(said("There."));
        let request = |input: Value| json!({ "model": "claude", "input": input, "tools": [function("f")], "reasoning": { "effort": "low" } });

        let asked = fixture.program.respond(request(json!([question()]))).await;
        let mut next = request(json!([output("toolu_1", "here")]));
        next["previous_response_id"] = asked["id"].clone();
        fixture.program.respond(next).await;
        let mut stateless = request(json!([question()]));
        (stateless["store"], stateless["include"]) = (json!(false), json!([ENCRYPTED]));
        let carried = fixture.program.respond(stateless.clone()).await;
        let items = carried["output"].as_array().unwrap();
        stateless["input"] = [&[question()][..], items, &[output("toolu_1", "here")]].concat().into();
        fixture.program.respond(stateless).await;

        assert_eq!(types(&asked), ["reasoning", "reasoning", "function_call"]);
        assert_eq!(carried["output"][0]["summary"][0]["text"], "I need the map.");
        for n in [1, 3] {
            let content = &fixture.upstream.body(n)["messages"][1]["content"];
            assert_eq!(*content, json!([thinking(), redacted, tool_use()]), "request {n}");
        }
        fixture.close().await;
    }

    async fn encrypted_reasoning_is_accepted_from_its_user_only(backend) {
        let fixture = V1Fixture::open(backend).await;
        let ben = V1Client::new(&fixture.app.register("ben").await).await;
        fixture.upstream.next(reasoned_call());
        fixture.upstream.always(ResponseScript::say("There."));
        let request = |input: Value| json!({ "input": input, "tools": [function("f")], "store": false, "include": [ENCRYPTED] });

        let (asked, ignored) = post(&fixture.program, "/responses", request(json!([question()]))).await;
        let (reasoning, call) = (asked["output"][0].clone(), asked["output"][1].clone());
        let sealed = reasoning["encrypted_content"].as_str().unwrap().to_owned();
        let replayed = |content: &str| {
            let mut item = reasoning.clone();
            item["encrypted_content"] = json!(content);
            request(json!([question(), item, call, output("a", "here")]))
        };
        fixture.program.respond(replayed(&sealed)).await;
        fixture.program.respond(replayed("gAAAAABo-of-another-service")).await;
        let end = if sealed.ends_with("AAAA") { "BBBB" } else { "AAAA" };
        let forged = fixture.program.respond_with_error(replayed(&format!("{}{end}", &sealed[..sealed.len() - 4]))).await;
        let foreign = ben.respond_with_error(replayed(&sealed)).await;

        assert_eq!(ignored, "");
        assert!(!sealed.contains("map"));
        let called = |n: usize| fixture.upstream.body(n)["messages"][1].clone();
        assert_eq!(called(1)["reasoning_content"], "I need the map.");
        assert_eq!(called(2)["tool_calls"][0]["id"], "a");
        assert!(called(2).get("reasoning_content").is_none());
        let refused = (400, "invalid_encrypted_content".to_owned(), json!("input[1].encrypted_content"));
        assert_eq!((forged, foreign), (refused.clone(), refused));
        assert_eq!(fixture.upstream.n_requests(), 3);
        fixture.close().await;
    }

    async fn included_reasoning_is_in_the_stream_and_in_a_stored_response(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(reasoned_call());
        let body = json!({ "input": "Where?", "tools": [function("f")], "include": [ENCRYPTED] });

        let events = fixture.program.stream(body).await.rest().await;

        let response = &events.last().unwrap()["response"];
        let sealed = &response["output"][0]["encrypted_content"];
        assert!(sealed.as_str().is_some_and(|it| it.starts_with("v1:")));
        let is_done = |it: &&Value| it["type"] == "response.output_item.done";
        let done = events.iter().find(is_done).unwrap();
        assert_eq!(done["item"], response["output"][0]);
        assert_eq!(fixture.program.get(&format!("/responses/{}", id(response))).await.1, *response);
        fixture.close().await;
    }
}
