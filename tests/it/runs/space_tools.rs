//! Tests characters' tools: those that the settings of the space allow, with a moderator's approval
//! where required.

use serde_json::{Value, json};

use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::fake_mcp_server::{ALLOW_LOOPBACK, FakeMcpServer, tool};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::http_client::{HttpClient, expect, id, token_of};
use crate::support::nodes::{Nodes, are_given};
use crate::support::poll;
use crate::support::test_space::TestSpace;
use crate::support::ws_client::WsClient;

const ROLL: &[(&str, &str, &str)] = &[("c1", "troupe_dice", "{\"roll\":\"3d1+4\"}")];

async fn open_space(backend: TestBackend, settings: Value) -> TestSpace {
    TestSpace::open(backend, json!({"settings": settings}), &["Mina"]).await
}

/// The newest message.
async fn tail(test_space: &TestSpace) -> Value {
    let messages = test_space.person.messages(test_space.conversation).await;
    messages.last().unwrap().clone()
}

/// Waits for an approval request and returns it.
async fn pending_approval(client: &WsClient) -> Value {
    let is_asked =
        |it: &Value| it["type"] == "tool_approval_updated" && it["approval"]["status"] == "pending";
    client.wait_for("an approval request", is_asked).await["approval"].clone()
}

async fn decide(person: &HttpClient, approval: &Value, approve: bool) -> (u16, Value) {
    let path = format!("/api/tool_approvals/{}", id(approval));
    person.post(&path, json!({"approve": approve})).await
}

/// The tool outputs that the model received.
fn tool_outputs(body: &Value) -> Vec<&str> {
    let messages = body["messages"].as_array().unwrap().iter();
    let answers = messages.filter(|it| it["role"] == "tool");
    answers.map(|it| it["content"].as_str().unwrap()).collect()
}

async fn newest_run(test_space: &TestSpace) -> Value {
    let runs = format!("/api/conversations/{}/runs", test_space.conversation);
    expect(200, test_space.person.get(&runs).await)["data"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone()
}

async fn n_open_approvals(test_space: &TestSpace) -> usize {
    let path = format!(
        "/api/conversations/{}/tool_approvals",
        test_space.conversation
    );
    let open = expect(200, test_space.person.get(&path).await);
    open["data"].as_array().unwrap().len()
}

on_sqlite! {
    async fn a_character_uses_the_tools_that_its_space_allows_and_no_others(backend) {
        let test_space = open_space(backend, json!({"tools": {"dice": "allowed"}})).await;
        let more = ResponseScript::stream().role().text("I roll.").call(0, "c1", "troupe_dice")
            .arguments(0, "{\"roll\":\"3d1+4\"}").call(1, "c2", "troupe_time").finish("tool_calls").done();
        test_space.upstream.next(more);
        test_space.upstream.next(ResponseScript::say("Seven!"));

        test_space.post("Roll, please.").await;
        test_space.settle().await;

        let names: Vec<Value> = test_space.upstream.body(0)["tools"].as_array().unwrap().iter()
            .map(|it| it["function"]["name"].clone()).collect();
        assert_eq!(names, ["troupe_dice"]);
        let answers = tool_outputs(&test_space.upstream.body(1)).join("|");
        assert!(answers.starts_with("3d1+4 = 7") || answers.contains('7'), "{answers}");
        assert!(answers.ends_with("Error: There is no tool of this name."), "{answers}");
        let said = tail(&test_space).await;
        assert_eq!(said["content"], "I roll.\n\nSeven!");
        let calls = &said["metadata"]["tool_calls"];
        assert_eq!((&calls[0]["tool"], &calls[1]["tool"]), (&json!("dice"), &json!("troupe_time")));
        assert_eq!(calls[1]["error"], "There is no tool of this name.");
        assert_eq!(test_space.runs().await.len(), 1);
    }

    async fn without_tool_settings_no_tool_is_offered(backend) {
        let test_space = open_space(backend, json!({})).await;
        test_space.upstream.next(ResponseScript::stream().role().text("Hello.").call(0, "c1", "troupe_dice").finish("tool_calls").done());

        test_space.post("Roll, please.").await;
        test_space.settle().await;

        assert!(test_space.upstream.body(0).get("tools").is_none());
        let said = tail(&test_space).await;
        assert_eq!((said["content"].as_str(), said["metadata"].get("tool_calls")), (Some("Hello."), None));
    }

    async fn deciding_an_approval_requires_the_moderator_role(backend) {
        let test_space = open_space(backend, json!({"tools": {"dice": "with_approval"}})).await;
        let space = id(&test_space.space);
        let invite = test_space.person.invite(space, json!({"role": "guest"})).await;
        let base = test_space.person.base();
        let (guest, _) = HttpClient::join_by_link(base, token_of(&invite), "Bob").await;
        let client = WsClient::subscribed(&guest, test_space.conversation).await;
        test_space.upstream.next(ResponseScript::calls(ROLL));
        test_space.upstream.next(ResponseScript::say("Seven!"));

        test_space.post("Roll, please.").await;
        let asked = pending_approval(&client).await;
        assert_eq!((asked["tool"].as_str(), asked["arguments"].as_str()), (Some("dice"), Some("{\"roll\":\"3d1+4\"}")));
        let late = WsClient::open(&guest).await.subscribe(test_space.conversation, None).await;
        assert_eq!(late["snapshot"]["tool_approvals"], json!([asked]));
        assert_eq!(decide(&guest, &asked, true).await.0, 403);
        assert_eq!(test_space.upstream.n_requests(), 1, "the run continued without a decision");
        let decided = expect(200, decide(&test_space.person, &asked, true).await);
        test_space.settle().await;

        assert_eq!((&decided["status"], &decided["decided_by"]), (&json!("approved"), &json!("ann")));
        assert_eq!(decided["arguments"], asked["arguments"]);
        let kept = "SELECT CAST(count(*) AS TEXT) FROM tool_approvals WHERE arguments <> ''";
        assert_eq!(test_space.facts().await.number(kept).await, 0, "the arguments are stored after the decision");
        let (status, again) = decide(&test_space.person, &asked, false).await;
        assert_eq!((status, &again["error"]["code"]), (409, &json!("already_decided")));
        let said = tail(&test_space).await;
        assert_eq!(said["content"], "Seven!");
        assert_eq!(said["metadata"]["tool_calls"][0]["approved_by"], "ann");
        assert_eq!(n_open_approvals(&test_space).await, 0);
    }

    async fn a_rejected_call_is_not_run_and_the_model_is_informed(backend) {
        let server = FakeMcpServer::start(vec![tool("search", true), tool("delete", false), tool("hidden", true)]).await;
        let servers = json!([{"label": "wiki", "url": server.url, "allowed_tools": ["search", "delete"]}]);
        let settings = json!({"settings": {"tool_servers": servers}});
        let test_space = TestSpace::open_with(backend, settings, &["Mina"], ALLOW_LOOPBACK).await;
        let client = WsClient::subscribed(&test_space.person, test_space.conversation).await;
        let both = [("c1", "mcp_wiki_search", "{\"q\":\"x\"}"), ("c2", "mcp_wiki_delete", "{\"q\":\"y\"}")];
        test_space.upstream.next(ResponseScript::calls(&both));
        test_space.upstream.next(ResponseScript::say("Found."));

        test_space.post("Look, please.").await;
        for (name, approve) in [("wiki: search", true), ("wiki: delete", false)] {
            let is_this = |it: &Value| it["approval"]["tool"] == name && it["approval"]["status"] == "pending";
            let asked = client.wait_for(name, is_this).await["approval"].clone();
            expect(200, decide(&test_space.person, &asked, approve).await);
        }
        test_space.settle().await;

        let names: Vec<Value> = test_space.upstream.body(0)["tools"].as_array().unwrap().iter()
            .map(|it| it["function"]["name"].clone()).collect();
        assert_eq!(names, ["mcp_wiki_search", "mcp_wiki_delete"]);
        let called: Vec<Value> = server.calls().iter().map(|it| it["name"].clone()).collect();
        assert_eq!(called, ["search"]);
        assert_eq!(tool_outputs(&test_space.upstream.body(1))[1], "Error: The people in the room did not allow it.");
        assert_eq!(tail(&test_space).await["content"], "Found.");
    }

    async fn a_stop_ends_the_wait_for_an_approval_and_closes_it(backend) {
        let test_space = open_space(backend, json!({"tools": {"dice": "with_approval"}})).await;
        let client = WsClient::subscribed(&test_space.person, test_space.conversation).await;
        test_space.upstream.next(ResponseScript::calls(ROLL));

        test_space.post("Roll, please.").await;
        let asked = pending_approval(&client).await;
        expect(202, test_space.person.stop(test_space.conversation).await);
        client.wait_for("the approval is closed", |it| it["approval"]["status"] == "expired").await;
        test_space.settle().await;

        assert_eq!(decide(&test_space.person, &asked, true).await.0, 409);
        assert_eq!(test_space.run_statuses().await, ["canceled"]);
        assert_eq!(test_space.upstream.n_requests(), 1);
    }

    async fn a_dead_nodes_approval_is_requested_again_and_the_old_one_is_void(backend) {
        let mut test_space = open_space(backend, json!({"tools": {"dice": "with_approval"}})).await;
        let client = WsClient::subscribed(&test_space.person, test_space.conversation).await;
        for _ in 0..2 {
            test_space.upstream.next(ResponseScript::calls(ROLL));
        }
        test_space.upstream.next(ResponseScript::say("Seven!"));
        test_space.post("Roll, please.").await;
        let old = pending_approval(&client).await;

        test_space.server.kill9();
        test_space.server.restart().await;
        let client = WsClient::subscribed(&test_space.person, test_space.conversation).await;
        let new = poll::until("the approval is requested again", async || {
            let late = client.subscribe(test_space.conversation, None).await;
            let open = late["snapshot"]["tool_approvals"].as_array().unwrap().clone();
            open.into_iter().find(|it| it["id"] != old["id"])
        }).await;

        assert_eq!(decide(&test_space.person, &old, true).await.0, 409);
        assert_eq!(test_space.upstream.n_requests(), 2);
        expect(200, decide(&test_space.person, &new, true).await);
        test_space.settle().await;
        assert_eq!(tail(&test_space).await["content"], "Seven!");
    }

    async fn the_token_limit_is_checked_before_each_further_call_of_a_run(backend) {
        let test_space = open_space(backend, json!({"tools": {"dice": "allowed"}})).await;
        let space = format!("/api/spaces/{}", id(&test_space.space));
        expect(200, test_space.person.patch(&space, json!({"token_limit": 25})).await);
        test_space.upstream.always(ResponseScript::calls(ROLL)); // 10 tokens each time

        test_space.post("Roll, please.").await;
        test_space.settle().await;

        let run = newest_run(&test_space).await;
        assert_eq!(run["error"]["code"], "token_limit_exceeded");
        assert_eq!(run["usage"], json!({"prompt_tokens": 21, "completion_tokens": 9, "estimated": false}));
        assert_eq!(test_space.upstream.n_requests(), 3);
        assert_eq!(expect(200, test_space.person.get(&space).await)["tokens_used"], 30);
        let spaces = expect(200, test_space.person.get("/api/spaces").await);
        let shown = spaces["data"].as_array().unwrap().iter().find(|it| it["id"] == test_space.space["id"]);
        assert_eq!(shown.expect("the space is listed")["tokens_used"], 30);
    }

    async fn the_usage_of_a_run_is_estimated_when_one_of_its_calls_is(backend) {
        let test_space = open_space(backend, json!({"tools": {"dice": "allowed"}})).await;
        test_space.upstream.next(ResponseScript::calls(ROLL));
        let seven = ResponseScript::stream().role().words("Seven!");
        test_space.upstream.next(seven.finish("stop").done());

        test_space.post("Roll, please.").await;
        test_space.settle().await;

        let usage = &newest_run(&test_space).await["usage"];
        let (sent, got) = (usage["prompt_tokens"].as_i64(), usage["completion_tokens"].as_i64());
        assert_eq!(usage["estimated"], true);
        assert!(sent > Some(7) && got > Some(3), "{usage}");
        let space = format!("/api/spaces/{}", id(&test_space.space));
        let used = expect(200, test_space.person.get(&space).await)["tokens_used"].as_i64();
        assert_eq!(used, sent.zip(got).map(|(sent, got)| sent + got));
    }

    async fn a_model_that_keeps_calling_tools_is_forced_to_answer(backend) {
        let test_space = open_space(backend, json!({"tools": {"dice": "allowed"}})).await;
        test_space.upstream.answer_with(|body| match body["tool_choice"] == "none" {
            true => ResponseScript::say("Enough."),
            false => ResponseScript::calls(ROLL),
        });

        test_space.post("Roll, please.").await;
        test_space.settle().await;

        let said = tail(&test_space).await;
        assert_eq!(said["content"], "Enough.");
        assert_eq!(said["metadata"]["tool_calls"].as_array().unwrap().len(), 9);
        assert_eq!(test_space.upstream.n_requests(), 10);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_on_another_node_is_applied() {
    if !are_given() {
        return;
    }
    let nodes = Nodes::open().await;
    let space = format!("/api/spaces/{}", id(&nodes.space));
    let settings = json!({"settings": {"tools": {"dice": "with_approval"}}});
    expect(200, nodes.ann.patch(&space, settings).await);
    let client = nodes.ws_client().await;
    nodes.upstream.next(ResponseScript::calls(ROLL));
    nodes.upstream.next(ResponseScript::say("Seven!"));

    nodes.post("Roll, please.").await;
    let asked = pending_approval(&client).await;
    expect(200, decide(&nodes.ann, &asked, true).await);

    let is_said = |it: &Value| it["message"]["content"] == "Seven!";
    client.wait_for("the reply", is_said).await;
    nodes.close().await;
}
