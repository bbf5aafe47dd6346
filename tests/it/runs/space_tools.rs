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

async fn room(backend: TestBackend, settings: Value) -> TestSpace {
    TestSpace::open(backend, json!({"settings": settings}), &["Mina"]).await
}

/// The newest message.
async fn tail(room: &TestSpace) -> Value {
    let messages = room.person.messages(room.conversation).await;
    messages.last().unwrap().clone()
}

/// Waits for an approval request and returns it.
async fn question(ear: &WsClient) -> Value {
    let is_asked =
        |it: &Value| it["type"] == "tool_approval_updated" && it["approval"]["status"] == "pending";
    ear.wait_for("a question", is_asked).await["approval"].clone()
}

async fn decide(person: &HttpClient, approval: &Value, approve: bool) -> (u16, Value) {
    let door = format!("/api/tool_approvals/{}", id(approval));
    person.post(&door, json!({"approve": approve})).await
}

/// The tool outputs that the model received.
fn tool_outputs(body: &Value) -> Vec<&str> {
    let messages = body["messages"].as_array().unwrap().iter();
    let answers = messages.filter(|it| it["role"] == "tool");
    answers.map(|it| it["content"].as_str().unwrap()).collect()
}

async fn newest_run(room: &TestSpace) -> Value {
    let runs = format!("/api/conversations/{}/runs", room.conversation);
    expect(200, room.person.get(&runs).await)["data"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone()
}

async fn open_questions(room: &TestSpace) -> usize {
    let door = format!("/api/conversations/{}/tool_approvals", room.conversation);
    let open = expect(200, room.person.get(&door).await);
    open["data"].as_array().unwrap().len()
}

on_sqlite! {
    async fn a_character_uses_the_tools_that_its_space_allows_and_no_others(backend) {
        let room = room(backend, json!({"tools": {"dice": "allowed"}})).await;
        let more = ResponseScript::stream().role().text("I roll.").call(0, "c1", "troupe_dice")
            .arguments(0, "{\"roll\":\"3d1+4\"}").call(1, "c2", "troupe_time").finish("tool_calls").done();
        room.upstream.next(more);
        room.upstream.next(ResponseScript::say("Seven!"));

        room.post("Roll, please.").await;
        room.settle().await;

        let names: Vec<Value> = room.upstream.body(0)["tools"].as_array().unwrap().iter()
            .map(|it| it["function"]["name"].clone()).collect();
        assert_eq!(names, ["troupe_dice"]);
        let answers = tool_outputs(&room.upstream.body(1)).join("|");
        assert!(answers.starts_with("3d1+4 = 7") || answers.contains('7'), "{answers}");
        assert!(answers.ends_with("Error: There is no tool of this name."), "{answers}");
        let said = tail(&room).await;
        assert_eq!(said["content"], "I roll.\n\nSeven!");
        let calls = &said["metadata"]["tool_calls"];
        assert_eq!((&calls[0]["tool"], &calls[1]["tool"]), (&json!("dice"), &json!("troupe_time")));
        assert_eq!(calls[1]["error"], "There is no tool of this name.");
        assert_eq!(room.runs().await.len(), 1);
    }

    async fn without_a_word_in_the_settings_no_tool_is_offered(backend) {
        let room = room(backend, json!({})).await;
        room.upstream.next(ResponseScript::stream().role().text("Hello.").call(0, "c1", "troupe_dice").finish("tool_calls").done());

        room.post("Roll, please.").await;
        room.settle().await;

        assert!(room.upstream.body(0).get("tools").is_none());
        let said = tail(&room).await;
        assert_eq!((said["content"].as_str(), said["metadata"].get("tool_calls")), (Some("Hello."), None));
    }

    async fn a_moderator_decides_and_no_lower_role(backend) {
        let room = room(backend, json!({"tools": {"dice": "with_approval"}})).await;
        let invite = room.person.invite(id(&room.space), json!({"role": "guest"})).await;
        let (guest, _) = HttpClient::join_by_link(room.person.base(), token_of(&invite), "Bob").await;
        let ear = WsClient::subscribed(&guest, room.conversation).await;
        room.upstream.next(ResponseScript::calls(ROLL));
        room.upstream.next(ResponseScript::say("Seven!"));

        room.post("Roll, please.").await;
        let asked = question(&ear).await;
        assert_eq!((asked["tool"].as_str(), asked["arguments"].as_str()), (Some("dice"), Some("{\"roll\":\"3d1+4\"}")));
        let late = WsClient::open(&guest).await.subscribe(room.conversation, None).await;
        assert_eq!(late["snapshot"]["tool_approvals"], json!([asked]));
        assert_eq!(decide(&guest, &asked, true).await.0, 403);
        assert_eq!(room.upstream.n_requests(), 1, "nothing goes on before somebody decides");
        let decided = expect(200, decide(&room.person, &asked, true).await);
        room.settle().await;

        assert_eq!((&decided["status"], &decided["decided_by"]), (&json!("approved"), &json!("ann")));
        let (status, again) = decide(&room.person, &asked, false).await;
        assert_eq!((status, &again["error"]["code"]), (409, &json!("already_decided")));
        let said = tail(&room).await;
        assert_eq!(said["content"], "Seven!");
        assert_eq!(said["metadata"]["tool_calls"][0]["approved_by"], "ann");
        assert_eq!(open_questions(&room).await, 0);
    }

    async fn a_rejected_call_is_not_run_and_the_model_is_informed(backend) {
        let server = FakeMcpServer::start(vec![tool("search", true), tool("delete", false), tool("hidden", true)]).await;
        let servers = json!([{"label": "wiki", "url": server.url, "allowed_tools": ["search", "delete"]}]);
        let settings = json!({"settings": {"tool_servers": servers}});
        let room = TestSpace::open_with(backend, settings, &["Mina"], ALLOW_LOOPBACK).await;
        let ear = WsClient::subscribed(&room.person, room.conversation).await;
        let both = [("c1", "mcp_wiki_search", "{\"q\":\"x\"}"), ("c2", "mcp_wiki_delete", "{\"q\":\"y\"}")];
        room.upstream.next(ResponseScript::calls(&both));
        room.upstream.next(ResponseScript::say("Found."));

        room.post("Look, please.").await;
        for (name, approve) in [("wiki: search", true), ("wiki: delete", false)] {
            let is_this = |it: &Value| it["approval"]["tool"] == name && it["approval"]["status"] == "pending";
            let asked = ear.wait_for(name, is_this).await["approval"].clone();
            expect(200, decide(&room.person, &asked, approve).await);
        }
        room.settle().await;

        let names: Vec<Value> = room.upstream.body(0)["tools"].as_array().unwrap().iter()
            .map(|it| it["function"]["name"].clone()).collect();
        assert_eq!(names, ["mcp_wiki_search", "mcp_wiki_delete"]);
        let called: Vec<Value> = server.calls().iter().map(|it| it["name"].clone()).collect();
        assert_eq!(called, ["search"]);
        assert_eq!(tool_outputs(&room.upstream.body(1))[1], "Error: The people in the room did not allow it.");
        assert_eq!(tail(&room).await["content"], "Found.");
    }

    async fn a_stop_ends_the_waiting_and_closes_the_question(backend) {
        let room = room(backend, json!({"tools": {"dice": "with_approval"}})).await;
        let ear = WsClient::subscribed(&room.person, room.conversation).await;
        room.upstream.next(ResponseScript::calls(ROLL));

        room.post("Roll, please.").await;
        let asked = question(&ear).await;
        expect(202, room.person.stop(room.conversation).await);
        ear.wait_for("the question is closed", |it| it["approval"]["status"] == "expired").await;
        room.settle().await;

        assert_eq!(decide(&room.person, &asked, true).await.0, 409);
        assert_eq!(room.run_statuses().await, ["canceled"]);
        assert_eq!(room.upstream.n_requests(), 1);
    }

    async fn a_dead_nodes_approval_is_requested_again_and_the_old_one_is_void(backend) {
        let mut room = room(backend, json!({"tools": {"dice": "with_approval"}})).await;
        let ear = WsClient::subscribed(&room.person, room.conversation).await;
        for _ in 0..2 {
            room.upstream.next(ResponseScript::calls(ROLL));
        }
        room.upstream.next(ResponseScript::say("Seven!"));
        room.post("Roll, please.").await;
        let old = question(&ear).await;

        room.server.kill9();
        room.server.restart().await;
        let ear = WsClient::subscribed(&room.person, room.conversation).await;
        let new = poll::until("it is asked anew", async || {
            let late = ear.subscribe(room.conversation, None).await;
            let open = late["snapshot"]["tool_approvals"].as_array().unwrap().clone();
            open.into_iter().find(|it| it["id"] != old["id"])
        }).await;

        assert_eq!(decide(&room.person, &old, true).await.0, 409);
        assert_eq!(room.upstream.n_requests(), 2);
        expect(200, decide(&room.person, &new, true).await);
        room.settle().await;
        assert_eq!(tail(&room).await["content"], "Seven!");
    }

    async fn the_token_limit_is_checked_before_each_further_call_of_a_run(backend) {
        let room = room(backend, json!({"tools": {"dice": "allowed"}})).await;
        let space = format!("/api/spaces/{}", id(&room.space));
        expect(200, room.person.patch(&space, json!({"token_limit": 25})).await);
        room.upstream.always(ResponseScript::calls(ROLL)); // 10 tokens each time

        room.post("Roll, please.").await;
        room.settle().await;

        let run = newest_run(&room).await;
        assert_eq!(run["error"]["code"], "token_limit_exceeded");
        assert_eq!(run["usage"], json!({"prompt_tokens": 21, "completion_tokens": 9, "estimated": false}));
        assert_eq!(room.upstream.n_requests(), 3);
        assert_eq!(expect(200, room.person.get(&space).await)["tokens_used"], 30);
    }

    async fn the_usage_of_a_run_is_estimated_when_one_of_its_calls_is(backend) {
        let room = room(backend, json!({"tools": {"dice": "allowed"}})).await;
        room.upstream.next(ResponseScript::calls(ROLL));
        room.upstream.next(ResponseScript::stream().role().words("Seven!").finish("stop").done());

        room.post("Roll, please.").await;
        room.settle().await;

        let usage = &newest_run(&room).await["usage"];
        let (sent, got) = (usage["prompt_tokens"].as_i64(), usage["completion_tokens"].as_i64());
        assert_eq!(usage["estimated"], true);
        assert!(sent > Some(7) && got > Some(3), "{usage}");
        let space = format!("/api/spaces/{}", id(&room.space));
        let used = expect(200, room.person.get(&space).await)["tokens_used"].as_i64();
        assert_eq!(used, sent.zip(got).map(|(sent, got)| sent + got));
    }

    async fn a_model_that_calls_for_ever_is_made_to_speak(backend) {
        let room = room(backend, json!({"tools": {"dice": "allowed"}})).await;
        room.upstream.answer_with(|body| match body["tool_choice"] == "none" {
            true => ResponseScript::say("Enough."),
            false => ResponseScript::calls(ROLL),
        });

        room.post("Roll, please.").await;
        room.settle().await;

        let said = tail(&room).await;
        assert_eq!(said["content"], "Enough.");
        assert_eq!(said["metadata"]["tool_calls"].as_array().unwrap().len(), 9);
        assert_eq!(room.upstream.n_requests(), 10);
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
    let ear = nodes.ws_client().await;
    nodes.upstream.next(ResponseScript::calls(ROLL));
    nodes.upstream.next(ResponseScript::say("Seven!"));

    nodes.post("Roll, please.").await;
    let asked = question(&ear).await;
    expect(200, decide(&nodes.ann, &asked, true).await);

    let is_said = |it: &Value| it["message"]["content"] == "Seven!";
    ear.wait_for("what the character says of it", is_said).await;
    nodes.close().await;
}
