//! Tests of parameters, tools and items that existing clients send and this server does not use: they are
//! accepted, and the header `troupe-ignored` names them.

use reqwest::Method;
use serde_json::{Value, json};

use super::fixture::{V1Fixture, function, lines, output, text};
use crate::support::backends::on_sqlite;
use crate::support::fake_provider::script::ResponseScript;

/// Creates a response; returns it and the header `troupe-ignored`.
async fn respond(fixture: &V1Fixture, mut body: Value) -> (Value, String) {
    body["model"] = json!("scripted");
    let request = fixture.program.request(Method::POST, "/responses");
    let answer = request.json(&body).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{:?}", answer.text().await);
    let ignored = answer.headers().get("troupe-ignored").cloned();
    let ignored = ignored.map_or_else(String::new, |it| it.to_str().unwrap().to_owned());
    (answer.json().await.unwrap(), ignored)
}

/// The tools of a coding agent.
fn tools() -> Value {
    let search = json!({ "type": "web_search", "external_web_access": true });
    let mail = json!({ "type": "namespace", "name": "mail", "description": "Mail.", "tools": [function("send")] });
    json!([function("f"), mail, search])
}

fn tool_names(body: &Value) -> Vec<&str> {
    let tools = body["tools"].as_array().unwrap().iter();
    tools
        .map(|it| it["function"]["name"].as_str().unwrap())
        .collect()
}

on_sqlite! {
    async fn a_request_of_a_coding_agent_completes_and_so_does_its_second_turn(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::calls(&[("a", "mail__send", r#"{"x":1}"#)]));
        fixture.upstream.next(ResponseScript::say("Sent."));
        let request = |input: Value| json!({
            "input": input, "tools": tools(), "tool_choice": "auto", "store": false,
            "include": ["reasoning.encrypted_content"], "client_metadata": { "id": "1" },
            "access_programs": [], "prompt_cache_key": "k", "parallel_tool_calls": true,
        });
        let asked = json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "Mail it." }] });

        let (first, ignored) = respond(&fixture, request(json!([asked]))).await;
        let call = first["output"][0].clone();
        let searched = json!({ "type": "web_search_call", "status": "failed", "action": { "type": "search", "query": "canary" } });
        let (second, _) = respond(&fixture, request(json!([asked, searched, call, output("a", "done")]))).await;

        assert_eq!(ignored, "tools[2].web_search, access_programs, client_metadata, prompt_cache_key");
        assert_eq!((&call["type"], &call["name"], &call["namespace"]), (&json!("function_call"), &json!("send"), &json!("mail")));
        assert_eq!(first["tools"][2], tools()[2]);
        assert_eq!((&first["tools"][1]["type"], &first["tools"][1]["tools"][0]["name"]), (&json!("namespace"), &json!("send")));
        assert_eq!(tool_names(&fixture.upstream.body(0)), ["f", "mail__send"]);
        assert_eq!(text(&second), "Sent.");
        let sent = fixture.upstream.body(1);
        assert_eq!(lines(&sent), ["user|Mail it.||", "assistant||a|", "tool|done||a"]);
        assert_eq!(sent["messages"][1]["tool_calls"][0]["function"]["name"], "mail__send");
        assert!(!sent.to_string().contains("canary"));
        fixture.close().await;
    }

    async fn a_choice_must_not_demand_a_tool_that_is_not_run(backend) {
        let fixture = V1Fixture::open(backend).await;
        let refused = async |tools: Value, choice: Value| {
            let body = json!({ "input": "x", "tools": tools, "tool_choice": choice });
            let (status, code, param) = fixture.program.respond_with_error(body).await;
            (status, code, param.as_str().unwrap().to_owned())
        };
        let unsupported = |param: &str| (400, "unsupported_tool".to_owned(), param.to_owned());
        let hosted = json!({ "type": "web_search" });

        assert_eq!(refused(tools(), hosted.clone()).await, unsupported("tool_choice.type"));
        assert_eq!(refused(json!([hosted]), json!("required")).await, unsupported("tool_choice"));
        let allowed = json!({ "type": "allowed_tools", "mode": "required", "tools": [hosted] });
        assert_eq!(refused(tools(), allowed).await, unsupported("tool_choice.tools"));
        assert_eq!(refused(json!([{ "type": "foo" }]), json!("auto")).await, unsupported("tools[0].type"));
        assert_eq!(fixture.upstream.n_requests(), 0);
        let named = json!({ "type": "function", "name": "send", "namespace": "mail" });
        respond(&fixture, json!({ "input": "x", "tools": tools(), "tool_choice": named })).await;
        assert_eq!(fixture.upstream.body(0)["tool_choice"]["function"]["name"], "mail__send");
        fixture.close().await;
    }

    async fn every_hosted_tool_item_and_include_is_accepted(backend) {
        let fixture = V1Fixture::open(backend).await;
        let kinds = ["web_search_preview", "file_search", "code_interpreter", "image_generation", "computer_use_preview"];
        let declared: Vec<Value> = kinds.iter().map(|it| json!({ "type": it })).collect();
        let items = ["file_search_call", "code_interpreter_call", "image_generation_call", "computer_call", "computer_call_output"];
        let mut input: Vec<Value> = items.iter().map(|it| json!({ "type": it, "call_id": "c", "output": { "type": "x" } })).collect();
        input.push(json!({ "role": "user", "content": "Hi." }));
        let body = json!({ "input": input, "tools": declared, "include": ["web_search_call.results", "message.input_image.image_url"], "max_output_tokens": 1 });

        let (response, ignored) = respond(&fixture, body).await;

        assert_eq!(response["tools"], json!(declared));
        assert_eq!(response["max_output_tokens"], 1);
        assert!(ignored.starts_with("tools[0].web_search_preview, tools[1].file_search, "), "{ignored}");
        assert!(ignored.ends_with("include[0].web_search_call.results, include[1].message.input_image.image_url"), "{ignored}");
        let sent = fixture.upstream.body(0);
        assert_eq!(lines(&sent), ["user|Hi.||"]);
        assert!(sent.get("tools").is_none());
        let (_, plain) = respond(&fixture, json!({ "input": "x" })).await;
        assert_eq!(plain, "");
        fixture.close().await;
    }
}
