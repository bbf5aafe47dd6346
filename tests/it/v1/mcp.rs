//! Tests of MCP tools of other servers: lists, calls, and calls that a user must approve.

use serde_json::{Value, json};

use super::fixture::{V1Fixture, function, id, kinds, lines, text, types};
use crate::support::backends::on_sqlite;
use crate::support::database_facts::DatabaseFacts;
use crate::support::fake_mcp_server::{ALLOW_LOOPBACK, FakeMcpServer, tool};
use crate::support::fake_provider::script::ResponseScript;

/// The declaration of a server, with more about it.
fn declared(mcp: &FakeMcpServer, more: Value) -> Value {
    let url = format!("{}?key=planted", mcp.url);
    let mut server = json!({
        "type": "mcp", "server_label": "wiki", "server_url": url, "authorization": "planted",
    });
    for (name, value) in more.as_object().unwrap() {
        server[name] = value.clone();
    }
    json!([server])
}

/// The model calls this tool of the server once, and then says so.
fn call_once(stage: &V1Fixture, name: &str) {
    let name = format!("mcp_wiki_{name}");
    stage
        .upstream
        .next(ResponseScript::calls(&[("c1", &name, r#"{"q":"tea"}"#)]));
}

fn approval(request: &Value, approve: bool) -> Value {
    json!({ "type": "mcp_approval_response", "approval_request_id": request["id"], "approve": approve })
}

async fn assert_holds_no_secret(stage: &V1Fixture) {
    let everything = DatabaseFacts::open(&stage.app.database)
        .await
        .everything()
        .await;
    assert!(!everything.iter().any(|it| it.contains("planted")));
}

on_sqlite! {
    async fn calls_without_approval_run_at_once_and_are_reported_in_their_group(backend) {
        let stage = V1Fixture::open_with(backend, ALLOW_LOOPBACK).await;
        let mcp = FakeMcpServer::start(vec![tool("search", true), tool("write", false)]).await;
        call_once(&stage, "search");
        let never = json!({ "require_approval": { "never": { "read_only": true } }, "allowed_tools": ["search"] });
        let body = json!({ "input": "Tea?", "tools": declared(&mcp, never) });

        let events = stage.program.stream(body.clone()).await.rest().await;

        let whole = events.last().unwrap()["response"].clone();
        assert_eq!(types(&whole), ["mcp_list_tools", "mcp_call", "message"]);
        assert_eq!(kinds(&events)[2..14], [
            "output_item.added", "mcp_list_tools.in_progress", "mcp_list_tools.completed", "output_item.done",
            "output_item.added", "mcp_call.in_progress", "mcp_call_arguments.delta", "mcp_call_arguments.done",
            "mcp_call.completed", "output_item.done", "output_item.added", "content_part.added",
        ]);
        let call = &whole["output"][1];
        assert_eq!(call["output"], r#"search got {"q":"tea"}"#);
        assert_eq!((&call["server_label"], &call["approval_request_id"]), (&json!("wiki"), &Value::Null));
        assert_eq!(whole["output"][0]["tools"].as_array().unwrap().len(), 2);
        assert_eq!(stage.upstream.body(0)["tools"].as_array().unwrap().len(), 1, "what is not allowed is not told");
        assert_eq!(mcp.calls(), [json!({ "name": "search", "arguments": { "q": "tea" } })]);
        assert!(mcp.received().iter().all(|it| it.header("authorization") == Some("Bearer planted")));
        assert_eq!(stage.program.get(&format!("/responses/{}", id(&whole))).await, (200, whole.clone()));
        assert!(!whole.to_string().contains("planted"));

        let mut next = body;
        next["previous_response_id"] = whole["id"].clone();
        let next = stage.program.respond(next).await;

        assert_eq!(types(&next), ["message"], "a list that is known is not asked for");
        let call = id_of(call);
        assert_eq!(lines(&stage.upstream.body(2))[1..3], [
            format!("assistant||{call}|"), format!("tool|search got {{\"q\":\"tea\"}}||{call}"),
        ]);
        assert_holds_no_secret(&stage).await;
        stage.close().await;
    }

    async fn what_needs_an_approval_is_called_once_and_exactly_as_it_was_shown(backend) {
        let stage = V1Fixture::open_with(backend, ALLOW_LOOPBACK).await;
        let mcp = FakeMcpServer::start(vec![tool("write", false)]).await;
        call_once(&stage, "write");
        let tools = declared(&mcp, json!({}));

        let asked = stage.program.respond(json!({ "input": "Write.", "tools": tools })).await;

        assert_eq!(asked["status"], "completed");
        assert_eq!(types(&asked), ["mcp_list_tools", "mcp_approval_request"]);
        let request = &asked["output"][1];
        assert_eq!((&request["name"], &request["arguments"]), (&json!("write"), &json!(r#"{"q":"tea"}"#)));
        assert!(mcp.calls().is_empty());

        let granted = json!({ "input": [approval(request, true)], "previous_response_id": id(&asked), "tools": tools });
        let done = stage.program.respond(granted).await;

        assert_eq!(types(&done), ["mcp_call", "message"]);
        assert_eq!(done["output"][0]["approval_request_id"], request["id"]);
        assert_eq!(mcp.calls(), [json!({ "name": "write", "arguments": { "q": "tea" } })]);
        let told = lines(&stage.upstream.body(1));
        assert!(told.last().unwrap().starts_with("tool|write got"), "{told:?}");

        let after = json!({ "input": "And?", "previous_response_id": id(&done), "tools": tools });
        assert_eq!(text(&stage.program.respond(after).await), "Hello.");
        assert_eq!(mcp.calls().len(), 1);
        stage.close().await;
    }

    async fn a_rejected_call_never_runs_and_the_model_is_informed(backend) {
        let stage = V1Fixture::open_with(backend, ALLOW_LOOPBACK).await;
        let mcp = FakeMcpServer::start(vec![tool("write", false)]).await;
        call_once(&stage, "write");
        let tools = declared(&mcp, json!({}));
        let asked = stage.program.respond(json!({ "input": "Write.", "tools": tools, "store": false })).await;
        let request = &asked["output"][1];

        // Nothing is stored: all of it is handed in again.
        let input = json!([{ "role": "user", "content": "Write." }, asked["output"][0], request, approval(request, false)]);
        let done = stage.program.respond(json!({ "input": input, "tools": tools, "store": false })).await;

        assert_eq!(types(&done), ["message"]);
        assert!(mcp.calls().is_empty());
        let told = lines(&stage.upstream.body(1));
        assert!(told.last().unwrap().contains("did not allow"), "{told:?}");
        stage.close().await;
    }

    async fn all_that_waits_for_an_approval_is_answered_at_once(backend) {
        let stage = V1Fixture::open_with(backend, ALLOW_LOOPBACK).await;
        let mcp = FakeMcpServer::start(vec![tool("write", false)]).await;
        stage.upstream.next(ResponseScript::calls(&[("a", "mcp_wiki_write", "{}"), ("b", "mcp_wiki_write", "{}")]));
        let tools = declared(&mcp, json!({}));
        let asked = stage.program.respond(json!({ "input": "Write.", "tools": tools })).await;
        let (one, two) = (&asked["output"][1], &asked["output"][2]);
        let refused = async |input: Value| {
            let body = json!({ "input": input, "previous_response_id": id(&asked), "tools": tools });
            stage.program.respond_with_error(body).await
        };

        assert_eq!(refused(json!([approval(one, true)])).await.1, "approval_required");
        assert_eq!(refused(json!("Go on.")).await.1, "approval_required");
        let mut unknown = approval(one, true);
        unknown["approval_request_id"] = json!("mcpr_x");
        let unknown = refused(json!([unknown, approval(one, true), approval(two, true)])).await;
        assert_eq!(unknown, (400, "unknown_approval".to_owned(), json!("input[0].approval_request_id")));
        assert!(mcp.calls().is_empty());
        assert_eq!(stage.n_rows("responses").await, 1);
        stage.close().await;
    }

    async fn an_unreachable_server_is_reported_and_the_answer_continues(backend) {
        let stage = V1Fixture::open_with(backend, ALLOW_LOOPBACK).await;
        let mcp = FakeMcpServer::start(vec![tool("write", false)]).await;
        mcp.set_behavior(|it| it.status = Some(500));
        let tools = declared(&mcp, json!({}));

        let done = stage.program.respond(json!({ "input": "Hi.", "tools": tools, "tool_choice": "required" })).await;

        assert_eq!(done["status"], "completed");
        assert_eq!(types(&done), ["mcp_list_tools", "message"]);
        assert!(done["output"][0]["error"].as_str().unwrap().contains("500"));
        stage.close().await;
    }

    async fn a_server_or_one_of_its_tools_can_be_the_choice_of_the_first_round(backend) {
        let stage = V1Fixture::open_with(backend, ALLOW_LOOPBACK).await;
        let mcp = FakeMcpServer::start(vec![tool("search", true), tool("write", true)]).await;
        let mut tools = declared(&mcp, json!({ "require_approval": "never" }));
        tools.as_array_mut().unwrap().push(function("f"));
        let chosen = async |choice: Value| {
            call_once(&stage, "search");
            let body = json!({ "input": "Tea?", "tools": tools, "tool_choice": choice });
            let done = stage.program.respond(body).await;
            assert_eq!(types(&done), ["mcp_list_tools", "mcp_call", "message"]);
            assert_eq!(done["tool_choice"], choice);
            let n = stage.upstream.n_requests();
            [stage.upstream.body(n - 2), stage.upstream.body(n - 1)]
        };

        let [first, second] = chosen(json!({ "type": "mcp", "server_label": "wiki" })).await;
        assert_eq!(first["tool_choice"], "required");
        assert_eq!(names(&first), ["mcp_wiki_search", "mcp_wiki_write"]);
        assert_eq!(second.get("tool_choice"), None);
        assert_eq!(names(&second), ["f", "mcp_wiki_search", "mcp_wiki_write"]);

        let [first, second] = chosen(json!({ "type": "mcp", "server_label": "wiki", "name": "search" })).await;
        assert_eq!(first["tool_choice"]["function"]["name"], "mcp_wiki_search");
        assert_eq!((names(&first).len(), second.get("tool_choice")), (3, None));

        let wiki = json!([{ "type": "mcp", "server_label": "wiki" }]);
        let allowed = json!({ "type": "allowed_tools", "tools": wiki, "mode": "auto" });
        for body in chosen(allowed).await {
            assert_eq!(names(&body), ["mcp_wiki_search", "mcp_wiki_write"]);
        }
        stage.close().await;
    }

    async fn a_chosen_tool_that_its_server_does_not_have_is_not_asked_for(backend) {
        let stage = V1Fixture::open_with(backend, ALLOW_LOOPBACK).await;
        let mcp = FakeMcpServer::start(vec![tool("search", true)]).await;
        let mut tools = declared(&mcp, json!({}));
        tools.as_array_mut().unwrap().push(function("f"));
        let choice = json!({ "type": "mcp", "server_label": "wiki", "name": "gone" });

        let done = stage.program.respond(json!({ "input": "Hi.", "tools": tools, "tool_choice": choice })).await;

        assert_eq!((&done["status"], text(&done).as_str()), (&json!("completed"), "Hello."));
        assert_eq!(stage.upstream.body(0).get("tool_choice"), None);
        assert_eq!(names(&stage.upstream.body(0)), ["f", "mcp_wiki_search"]);
        stage.close().await;
    }

    async fn what_opens_a_server_waits_sealed_with_a_background_response(backend) {
        let stage = V1Fixture::open_with(backend, ALLOW_LOOPBACK).await;
        let mcp = FakeMcpServer::start(vec![tool("search", true)]).await;
        call_once(&stage, "search");
        let tools = declared(&mcp, json!({ "require_approval": "never" }));

        let queued = stage.program.respond(json!({ "input": "Tea?", "tools": tools, "background": true })).await;
        let done = stage.wait_for_status(id(&queued), "completed").await;

        assert_eq!(types(&done), ["mcp_list_tools", "mcp_call", "message"]);
        assert!(mcp.received().iter().all(|it| it.header("authorization") == Some("Bearer planted")));
        let mut facts = DatabaseFacts::open(&stage.app.database).await;
        let n_sealed = facts.number("SELECT CAST(count(sealed_secrets) AS TEXT) FROM responses").await;
        assert_eq!(n_sealed, 0, "it goes with the end");
        assert_holds_no_secret(&stage).await;
        stage.close().await;
    }

    async fn a_server_in_a_private_network_is_refused_before_anything_is_written(backend) {
        let stage = V1Fixture::open_with(backend, ALLOW_LOOPBACK).await;
        let mcp = FakeMcpServer::start(vec![]).await;
        let mut tools = declared(&mcp, json!({}));
        tools[0]["server_url"] = json!("http://169.254.169.254/mcp");

        let refused = stage.program.respond_with_error(json!({ "input": "Hi.", "tools": tools })).await;

        assert_eq!(refused, (400, "invalid_value".to_owned(), json!("tools")));
        assert_eq!(stage.n_rows("responses").await, 0);
        stage.close().await;
    }
}

/// The tools in the request to the model.
fn names(body: &Value) -> Vec<&str> {
    let tools = body["tools"].as_array().into_iter().flatten();
    tools
        .map(|it| it["function"]["name"].as_str().unwrap())
        .collect()
}

fn id_of(item: &Value) -> &str {
    item["id"].as_str().unwrap()
}
