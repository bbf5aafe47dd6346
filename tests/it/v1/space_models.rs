//! Tests of spaces as models: the speaker, the prompt, whose tokens are counted, and that no
//! conversation changes.

use reqwest::Method;
use serde_json::{Value, json};

use super::fixture::{V1Fixture, id, kinds, text};
use super::persona_models::{ada, space, speakers, written};
use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::http_client::{expect, root_of, token_of};
use crate::support::v1_client::V1Client;
use crate::support::ws_client::WsClient;

/// A fixture with a space, and the memberships of Ada, Bob and Cid in it.
async fn open_with_space(backend: TestBackend, settings: Value) -> (V1Fixture, Value, Vec<Value>) {
    let fixture = V1Fixture::open(backend).await;
    let test_space = fixture.admin.create_space("The stage", settings).await;
    let mut memberships = Vec::new();
    for character in [
        ada(&fixture.admin).await,
        fixture.admin.create_character("Bob", None).await,
        fixture.admin.create_character("Cid", None).await,
    ] {
        memberships.push(fixture.admin.add_character(&test_space, &character).await);
    }
    fixture.upstream.answer_with(|body| {
        ResponseScript::say(&format!(
            "Line {}.",
            body["messages"].as_array().unwrap().len()
        ))
    });
    (fixture, test_space, memberships)
}

async fn change(fixture: &V1Fixture, test_space: &Value, change: Value) {
    expect(
        200,
        fixture
            .admin
            .patch(&format!("/api/spaces/{}", test_space["id"]), change)
            .await,
    );
}

on_sqlite! {
    async fn the_mentioned_speaker_answers_and_the_item_gives_the_reason(backend) {
        let (fixture, test_space, memberships) = open_with_space(backend, json!({ "reply_order": "natural" })).await;

        let response = fixture.program.respond(json!({ "model": space(&test_space), "input": "What do you say, Bob?" })).await;

        assert_eq!(response["output"][0]["metadata"], json!({
            "speaker": "Bob", "speaker_id": format!("character:{}", memberships[1]["character_id"]),
            "membership_id": memberships[1]["id"], "chosen_because": "mentioned \"Bob\"",
        }));
        fixture.close().await;
    }

    async fn list_order_follows_positions_and_pooled_order_picks_each_member_once(backend) {
        let (fixture, test_space, _) = open_with_space(backend, json!({ "reply_order": "list" })).await;
        let mut previous = Value::Null;
        let mut seen = Vec::new();
        for _ in 0..4 {
            previous = fixture.program.respond(json!({
                "model": space(&test_space), "previous_response_id": previous["id"],
                "input": "Go on.",
            })).await;
            seen.extend(speakers(&previous));
        }
        assert_eq!(seen, ["Ada", "Bob", "Cid", "Ada"]);

        change(&fixture, &test_space, json!({ "reply_order": "pooled" })).await;
        let mut previous = fixture.program.respond(json!({ "model": space(&test_space), "input": "All of you." })).await;
        let mut seen = speakers(&previous);
        for _ in 0..2 {
            previous = fixture.program.respond(json!({
                "model": space(&test_space), "previous_response_id": previous["id"],
            })).await;
            seen.extend(speakers(&previous));
        }

        seen.sort_unstable();
        assert_eq!(seen, ["Ada", "Bob", "Cid"]);
        fixture.close().await;
    }

    async fn several_speakers_answer_in_turn_and_see_earlier_answers(backend) {
        let (fixture, test_space, _) = open_with_space(backend, json!({
            "reply_order": "list", "replies_per_turn": "activated",
        })).await;
        let texts = ["Ada: I begin.\nBob: No.", "I follow.", "I end."];
        for text in texts {
            fixture.upstream.next(ResponseScript::say(text));
        }

        let events = fixture.program.stream(json!({ "model": space(&test_space), "input": "All of you." })).await.rest().await;

        let response = &events.last().unwrap()["response"];
        assert_eq!(speakers(response), ["Ada", "Bob", "Cid"]);
        assert_eq!(text(response), "I begin.I follow.I end.");
        assert_eq!(response["status"], "completed");
        assert_eq!(kinds(&events).iter().filter(|it| *it == "output_item.added").count(), 3);
        let n_prompt = response["usage"]["input_tokens"].as_i64().unwrap();
        assert!(n_prompt > 0);
        insta::assert_snapshot!("a_space", written(&fixture.upstream.body(2)));
        let stored =
            expect(200, fixture.program.get(&format!("/responses/{}", id(response))).await);
        assert_eq!(stored["output"], response["output"]);
        fixture.close().await;
    }

    async fn the_texts_before_a_failure_are_kept(backend) {
        let (fixture, test_space, _) = open_with_space(backend, json!({
            "reply_order": "list", "replies_per_turn": "activated",
        })).await;
        fixture.upstream.next(ResponseScript::say("I begin."));
        fixture.upstream.next(ResponseScript::status(400));

        let response = fixture.program.respond(json!({ "model": space(&test_space), "input": "All of you." })).await;

        assert_eq!((&response["status"], text(&response).as_str()), (&json!("failed"), "I begin."));
        assert_eq!(fixture.upstream.n_requests(), 2);
        fixture.close().await;
    }

    async fn an_archived_or_spent_space_is_rejected_and_a_former_member_gets_not_found(backend) {
        let (fixture, test_space, _) = open_with_space(backend, json!({})).await;
        let ben = fixture.app.register("ben").await;
        let program = V1Client::new(&ben).await;
        let invite = fixture.admin.invite(test_space["id"].as_i64().unwrap(), json!({ "role": "member" })).await;
        let joined = expect(201, ben.join(token_of(&invite)).await);
        let first = program.respond(json!({ "model": space(&test_space), "input": "Hi." })).await;
        let next = json!({ "model": space(&test_space), "input": "And?", "previous_response_id": id(&first) });
        let used = fixture.n_rows("spaces WHERE unattributed_tokens > 0").await;
        assert_eq!(used, 1, "the tokens were not counted for the space");

        change(&fixture, &test_space, json!({ "token_limit": 1 })).await;
        let spent = program.respond_with_error(next.clone()).await;
        change(&fixture, &test_space, json!({ "token_limit": 0, "status": "archived" })).await;
        let archived = program.respond_with_error(next.clone()).await;
        let listed = expect(200, program.get("/models").await);
        change(&fixture, &test_space, json!({ "status": "active" })).await;
        let (removed, _) = fixture.admin.delete(&format!("/api/memberships/{}", joined["membership"]["id"])).await;
        assert!(removed < 300, "{removed}");
        let lost = program.respond_with_error(next).await;

        assert_eq!((spent.0, spent.1.as_str()), (403, "token_limit_exceeded"));
        assert_eq!((archived.0, archived.1.as_str()), (403, "space_archived"));
        assert!(!listed.to_string().contains(&space(&test_space)));
        assert_eq!((lost.0, lost.1.as_str()), (404, "model_not_found"));
        assert_eq!(fixture.upstream.n_requests(), 1);
        fixture.close().await;
    }

    async fn a_space_model_requires_the_permission_to_generate(backend) {
        let (fixture, test_space, _) = open_with_space(backend, json!({})).await;
        let ben = fixture.app.register("ben").await;
        let program = V1Client::new(&ben).await;
        let invite = fixture.admin.invite(test_space["id"].as_i64().unwrap(), json!({ "role": "guest" })).await;
        expect(201, ben.join(token_of(&invite)).await);

        let refused = program.respond_with_error(json!({ "model": space(&test_space), "input": "Hi." })).await;

        assert_eq!(refused.0, 404);
        fixture.close().await;
    }

    async fn a_space_without_characters_has_no_speaker(backend) {
        let fixture = V1Fixture::open(backend).await;
        let test_space = fixture.admin.create_space("Empty", json!({})).await;

        let refused = fixture.program.respond_with_error(json!({ "model": space(&test_space), "input": "Hi." })).await;

        assert_eq!((refused.0, refused.1.as_str()), (400, "no_speaker"));
        assert_eq!(fixture.n_rows("responses").await, 0);
        fixture.close().await;
    }

    async fn answers_of_a_space_model_are_not_stored_or_announced_in_the_space(backend) {
        let (fixture, test_space, _) = open_with_space(backend, json!({ "reply_order": "list", "replies_per_turn": "activated" })).await;
        let subscriber = WsClient::subscribed(&fixture.admin, root_of(&test_space)).await;
        subscriber.call(json!({ "op": "subscribe_space", "space_id": test_space["id"] })).await;
        let tables = ["messages", "message_swipes", "conversation_runs", "conversations", "conversation_rounds", "run_prompts"];
        let mut before = Vec::new();
        for table in tables {
            before.push(fixture.n_rows(table).await);
        }
        let n_received = subscriber.log().len();
        let variables = "conversations WHERE CAST(variables AS TEXT) <> '{}'";
        let n_variables = fixture.n_rows(variables).await;

        let first = fixture.program.respond(json!({ "model": space(&test_space), "input": "The engine?" })).await;
        fixture.program.stream(json!({ "model": space(&test_space), "input": "And?", "previous_response_id": id(&first) })).await.rest().await;
        let queued = fixture.program.respond(json!({ "model": space(&test_space), "input": "And?", "background": true })).await;
        fixture.wait_for_status(id(&queued), "completed").await;

        let mut after = Vec::new();
        for table in tables {
            after.push(fixture.n_rows(table).await);
        }
        assert_eq!(after, before);
        assert_eq!(fixture.n_rows(variables).await, n_variables);
        // The next frame is the response to this ping, without an event before it.
        subscriber.call(json!({ "op": "ping" })).await;
        let received: Vec<Value> = subscriber.log().split_off(n_received);
        assert_eq!(received.len(), 1, "{received:?}");
        fixture.close().await;
    }

    async fn an_unstored_response_of_a_space_changes_only_its_token_count(backend) {
        let (fixture, test_space, _) = open_with_space(backend, json!({})).await;

        fixture.program.respond(json!({ "model": space(&test_space), "input": "Bob?", "store": false })).await;

        assert_eq!(fixture.n_rows("responses").await, 0);
        assert_eq!(fixture.n_rows("spaces WHERE unattributed_tokens > 0").await, 1);
        fixture.close().await;
    }

    async fn the_headers_state_what_is_left_of_the_tokens_of_a_space(backend) {
        let (fixture, test_space, _) = open_with_space(backend, json!({ "reply_order": "list" })).await;
        let ask = async |path: &str| {
            let message = json!({ "role": "user", "content": "Hi." });
            let mut body = json!({ "model": space(&test_space) });
            let field = if path == "/responses" { "input" } else { "messages" };
            body[field] = json!([message]);
            let answer = fixture.program.request(Method::POST, path).json(&body).send().await.unwrap();
            let header = |name: &str| answer.headers().get(name).map(|it| it.to_str().unwrap().parse::<i64>().unwrap());
            let found = (header("x-ratelimit-limit-tokens"), header("x-ratelimit-remaining-tokens"));
            assert_eq!(answer.status(), 200);
            answer.text().await.unwrap();
            found
        };

        assert_eq!(ask("/responses").await, (None, None), "a space without a limit");
        change(&fixture, &test_space, json!({ "token_limit": 1_000_000 })).await;
        let (limit, before) = ask("/responses").await;
        let (_, after) = ask("/chat/completions").await;

        assert_eq!(limit, Some(1_000_000));
        assert!(before < limit && after < before, "{before:?} {after:?}");
        fixture.close().await;
    }
}
