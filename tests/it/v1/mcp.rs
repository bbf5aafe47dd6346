//! Tests of MCP tools of other servers: lists, calls, and calls that a user must approve.

use serde_json::{Value, json};

use super::fixture::{V1Fixture, function, id, kinds, lines, text, types};
use crate::support::backends::on_sqlite;
use crate::support::database_facts::DatabaseFacts;
use crate::support::fake_mcp_server::{ALLOW_LOOPBACK, FakeMcpServer, tool};
use crate::support::fake_provider::script::ResponseScript;

/// The declaration of a server, with these additional fields.
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

/// Makes the model call this tool of the server once.
fn call_once(fixture: &V1Fixture, name: &str) {
    let name = format!("mcp_wiki_{name}");
    fixture
        .upstream
        .next(ResponseScript::calls(&[("c1", &name, r#"{"q":"tea"}"#)]));
}

fn approval(request: &Value, approve: bool) -> Value {
    json!({ "type": "mcp_approval_response", "approval_request_id": request["id"], "approve": approve })
}

async fn assert_holds_no_secret(fixture: &V1Fixture) {
    let everything = DatabaseFacts::open(&fixture.app.database)
        .await
        .everything()
        .await;
    assert!(!everything.iter().any(|it| it.contains("planted")));
}

on_sqlite! {
    async fn calls_without_approval_run_at_once_and_are_reported_in_their_group(backend) {
        let fixture = V1Fixture::open_with(backend, ALLOW_LOOPBACK).await;
        let mcp = FakeMcpServer::start(vec![tool("search", true), tool("write", false)]).await;
        call_once(&fixture, "search");
        let never = json!({ "require_approval": { "never": { "read_only": true } }, "allowed_tools": ["search"] });
        let body = json!({ "input": "Tea?", "tools": declared(&mcp, never) });

        let events = fixture.program.stream(body.clone()).await.rest().await;

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
        assert_eq!(fixture.upstream.body(0)["tools"].as_array().unwrap().len(), 1, "a tool that is not allowed was sent to the model");
        assert_eq!(mcp.calls(), [json!({ "name": "search", "arguments": { "q": "tea" } })]);
        assert!(mcp.received().iter().all(|it| it.header("authorization") == Some("Bearer planted")));
        assert_eq!(fixture.program.get(&format!("/responses/{}", id(&whole))).await, (200, whole.clone()));
        assert!(!whole.to_string().contains("planted"));

        let mut next = body;
        next["previous_response_id"] = whole["id"].clone();
        let next = fixture.program.respond(next).await;

        assert_eq!(types(&next), ["message"], "the tools were listed again");
        let call = id_of(call);
        assert_eq!(lines(&fixture.upstream.body(2))[1..3], [
            format!("assistant||{call}|"), format!("tool|search got {{\"q\":\"tea\"}}||{call}"),
        ]);
        assert_holds_no_secret(&fixture).await;
        fixture.close().await;
    }

    async fn an_approved_tool_is_called_once_with_exactly_the_shown_arguments(backend) {
        let fixture = V1Fixture::open_with(backend, ALLOW_LOOPBACK).await;
        let mcp = FakeMcpServer::start(vec![tool("write", false)]).await;
        call_once(&fixture, "write");
        let tools = declared(&mcp, json!({}));

        let asked = fixture.program.respond(json!({ "input": "Write.", "tools": tools })).await;

        assert_eq!(asked["status"], "completed");
        assert_eq!(types(&asked), ["mcp_list_tools", "mcp_approval_request"]);
        let request = &asked["output"][1];
        assert_eq!((&request["name"], &request["arguments"]), (&json!("write"), &json!(r#"{"q":"tea"}"#)));
        assert!(mcp.calls().is_empty());

        let granted = json!({ "input": [approval(request, true)], "previous_response_id": id(&asked), "tools": tools });
        let done = fixture.program.respond(granted).await;

        assert_eq!(types(&done), ["mcp_call", "message"]);
        assert_eq!(done["output"][0]["approval_request_id"], request["id"]);
        assert_eq!(mcp.calls(), [json!({ "name": "write", "arguments": { "q": "tea" } })]);
        let prompt = lines(&fixture.upstream.body(1));
        assert!(prompt.last().unwrap().starts_with("tool|write got"), "{prompt:?}");

        let after = json!({ "input": "And?", "previous_response_id": id(&done), "tools": tools });
        assert_eq!(text(&fixture.program.respond(after).await), "Hello.");
        assert_eq!(mcp.calls().len(), 1);
        fixture.close().await;
    }

    async fn a_rejected_call_never_runs_and_the_model_is_informed(backend) {
        let fixture = V1Fixture::open_with(backend, ALLOW_LOOPBACK).await;
        let mcp = FakeMcpServer::start(vec![tool("write", false)]).await;
        call_once(&fixture, "write");
        let tools = declared(&mcp, json!({}));
        let asked = fixture.program.respond(json!({ "input": "Write.", "tools": tools, "store": false })).await;
        let request = &asked["output"][1];

        // Nothing is stored, so the input repeats the whole exchange.
        let input = json!([{ "role": "user", "content": "Write." }, asked["output"][0], request, approval(request, false)]);
        let done = fixture.program.respond(json!({ "input": input, "tools": tools, "store": false })).await;

        assert_eq!(types(&done), ["message"]);
        assert!(mcp.calls().is_empty());
        let prompt = lines(&fixture.upstream.body(1));
        assert!(prompt.last().unwrap().contains("did not allow"), "{prompt:?}");
        fixture.close().await;
    }

    async fn all_pending_approvals_must_be_answered_in_one_request(backend) {
        let fixture = V1Fixture::open_with(backend, ALLOW_LOOPBACK).await;
        let mcp = FakeMcpServer::start(vec![tool("write", false)]).await;
        fixture.upstream.next(ResponseScript::calls(&[("a", "mcp_wiki_write", "{}"), ("b", "mcp_wiki_write", "{}")]));
        let tools = declared(&mcp, json!({}));
        let asked = fixture.program.respond(json!({ "input": "Write.", "tools": tools })).await;
        let (one, two) = (&asked["output"][1], &asked["output"][2]);
        let refused = async |input: Value| {
            let body = json!({ "input": input, "previous_response_id": id(&asked), "tools": tools });
            fixture.program.respond_with_error(body).await
        };

        assert_eq!(refused(json!([approval(one, true)])).await.1, "approval_required");
        assert_eq!(refused(json!("Go on.")).await.1, "approval_required");
        let mut unknown = approval(one, true);
        unknown["approval_request_id"] = json!("mcpr_x");
        let unknown = refused(json!([unknown, approval(one, true), approval(two, true)])).await;
        assert_eq!(unknown, (400, "unknown_approval".to_owned(), json!("input[0].approval_request_id")));
        assert!(mcp.calls().is_empty());
        assert_eq!(fixture.n_rows("responses").await, 1);
        fixture.close().await;
    }

    async fn an_unreachable_server_is_reported_and_the_answer_continues(backend) {
        let fixture = V1Fixture::open_with(backend, ALLOW_LOOPBACK).await;
        let mcp = FakeMcpServer::start(vec![tool("write", false)]).await;
        mcp.set_behavior(|it| it.status = Some(500));
        let tools = declared(&mcp, json!({}));

        let done = fixture.program.respond(json!({ "input": "Hi.", "tools": tools, "tool_choice": "required" })).await;

        assert_eq!(done["status"], "completed");
        assert_eq!(types(&done), ["mcp_list_tools", "message"]);
        assert!(done["output"][0]["error"].as_str().unwrap().contains("500"));
        fixture.close().await;
    }

    async fn the_tool_choice_of_the_first_iteration_can_be_an_mcp_server_or_its_tool(backend) {
        let fixture = V1Fixture::open_with(backend, ALLOW_LOOPBACK).await;
        let mcp = FakeMcpServer::start(vec![tool("search", true), tool("write", true)]).await;
        let mut tools = declared(&mcp, json!({ "require_approval": "never" }));
        tools.as_array_mut().unwrap().push(function("f"));
        let chosen = async |choice: Value| {
            call_once(&fixture, "search");
            let body = json!({ "input": "Tea?", "tools": tools, "tool_choice": choice });
            let done = fixture.program.respond(body).await;
            assert_eq!(types(&done), ["mcp_list_tools", "mcp_call", "message"]);
            assert_eq!(done["tool_choice"], choice);
            let n = fixture.upstream.n_requests();
            [fixture.upstream.body(n - 2), fixture.upstream.body(n - 1)]
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
        fixture.close().await;
    }

    async fn a_tool_choice_that_the_mcp_server_does_not_offer_is_not_sent(backend) {
        let fixture = V1Fixture::open_with(backend, ALLOW_LOOPBACK).await;
        let mcp = FakeMcpServer::start(vec![tool("search", true)]).await;
        let mut tools = declared(&mcp, json!({}));
        tools.as_array_mut().unwrap().push(function("f"));
        let choice = json!({ "type": "mcp", "server_label": "wiki", "name": "gone" });

        let done = fixture.program.respond(json!({ "input": "Hi.", "tools": tools, "tool_choice": choice })).await;

        assert_eq!((&done["status"], text(&done).as_str()), (&json!("completed"), "Hello."));
        assert_eq!(fixture.upstream.body(0).get("tool_choice"), None);
        assert_eq!(names(&fixture.upstream.body(0)), ["f", "mcp_wiki_search"]);
        fixture.close().await;
    }

    async fn mcp_credentials_are_stored_encrypted_until_a_background_response_ends(backend) {
        let fixture = V1Fixture::open_with(backend, ALLOW_LOOPBACK).await;
        let mcp = FakeMcpServer::start(vec![tool("search", true)]).await;
        call_once(&fixture, "search");
        let tools = declared(&mcp, json!({ "require_approval": "never" }));

        let queued = fixture.program.respond(json!({ "input": "Tea?", "tools": tools, "background": true })).await;
        let done = fixture.wait_for_status(id(&queued), "completed").await;

        assert_eq!(types(&done), ["mcp_list_tools", "mcp_call", "message"]);
        assert!(mcp.received().iter().all(|it| it.header("authorization") == Some("Bearer planted")));
        let mut facts = DatabaseFacts::open(&fixture.app.database).await;
        let n_sealed = facts.number("SELECT CAST(count(sealed_secrets) AS TEXT) FROM responses").await;
        assert_eq!(n_sealed, 0, "the credentials were not deleted");
        assert_holds_no_secret(&fixture).await;
        fixture.close().await;
    }

    async fn a_server_in_a_private_network_is_refused_before_anything_is_written(backend) {
        let fixture = V1Fixture::open_with(backend, ALLOW_LOOPBACK).await;
        let mcp = FakeMcpServer::start(vec![]).await;
        let mut tools = declared(&mcp, json!({}));
        tools[0]["server_url"] = json!("http://169.254.169.254/mcp");

        let refused = fixture.program.respond_with_error(json!({ "input": "Hi.", "tools": tools })).await;

        assert_eq!(refused, (400, "invalid_value".to_owned(), json!("tools")));
        assert_eq!(fixture.n_rows("responses").await, 0);
        fixture.close().await;
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
