//! Tests of spaces as models: the speaker, the prompt, whose tokens are counted, and that no
//! conversation changes.

use serde_json::{Value, json};

use super::fixture::{V1Fixture, id, kinds, text};
use super::persona_models::{ada, space, speakers, written};
use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::http_client::{expect, root_of, token_of};
use crate::support::v1_client::V1Client;
use crate::support::ws_client::WsClient;

/// A stage with a space in which Ada, Bob and Cid sit.
async fn create_space_with_voices(
    backend: TestBackend,
    settings: Value,
) -> (V1Fixture, Value, Vec<Value>) {
    let stage = V1Fixture::open(backend).await;
    let house = stage.admin.create_space("The stage", settings).await;
    let mut seats = Vec::new();
    for character in [
        ada(&stage.admin).await,
        stage.admin.create_character("Bob", None).await,
        stage.admin.create_character("Cid", None).await,
    ] {
        seats.push(stage.admin.add_character(&house, &character).await);
    }
    stage.upstream.answer_with(|body| {
        ResponseScript::say(&format!(
            "Line {}.",
            body["messages"].as_array().unwrap().len()
        ))
    });
    (stage, house, seats)
}

async fn change(stage: &V1Fixture, house: &Value, change: Value) {
    expect(
        200,
        stage
            .admin
            .patch(&format!("/api/spaces/{}", house["id"]), change)
            .await,
    );
}

on_sqlite! {
    async fn the_mentioned_speaker_answers_and_the_item_gives_the_reason(backend) {
        let (stage, house, seats) = create_space_with_voices(backend, json!({ "reply_order": "natural" })).await;

        let response = stage.program.respond(json!({ "model": space(&house), "input": "What do you say, Bob?" })).await;

        assert_eq!(response["output"][0]["metadata"], json!({
            "speaker": "Bob", "speaker_id": format!("character:{}", seats[1]["character_id"]),
            "membership_id": seats[1]["id"], "chosen_because": "mentioned \"Bob\"",
        }));
        stage.close().await;
    }

    async fn one_after_the_other_by_position_and_each_once_of_a_pool(backend) {
        let (stage, house, _) = create_space_with_voices(backend, json!({ "reply_order": "list" })).await;
        let mut previous = Value::Null;
        let mut seen = Vec::new();
        for _ in 0..4 {
            previous = stage.program.respond(json!({
                "model": space(&house), "previous_response_id": previous["id"], "input": "Go on.",
            })).await;
            seen.extend(speakers(&previous));
        }
        assert_eq!(seen, ["Ada", "Bob", "Cid", "Ada"]);

        change(&stage, &house, json!({ "reply_order": "pooled" })).await;
        let mut previous = stage.program.respond(json!({ "model": space(&house), "input": "All of you." })).await;
        let mut seen = speakers(&previous);
        for _ in 0..2 {
            previous = stage.program.respond(json!({
                "model": space(&house), "previous_response_id": previous["id"],
            })).await;
            seen.extend(speakers(&previous));
        }

        seen.sort_unstable();
        assert_eq!(seen, ["Ada", "Bob", "Cid"]);
        stage.close().await;
    }

    async fn several_speakers_answer_in_turn_and_see_earlier_answers(backend) {
        let (stage, house, _) = create_space_with_voices(backend, json!({
            "reply_order": "list", "replies_per_turn": "activated",
        })).await;
        let texts = ["Ada: I begin.\nBob: No.", "I follow.", "I end."];
        for text in texts {
            stage.upstream.next(ResponseScript::say(text));
        }

        let events = stage.program.stream(json!({ "model": space(&house), "input": "All of you." })).await.rest().await;

        let response = &events.last().unwrap()["response"];
        assert_eq!(speakers(response), ["Ada", "Bob", "Cid"]);
        assert_eq!(text(response), "I begin.I follow.I end.");
        assert_eq!(response["status"], "completed");
        assert_eq!(kinds(&events).iter().filter(|it| *it == "output_item.added").count(), 3);
        let n_prompt = response["usage"]["input_tokens"].as_i64().unwrap();
        assert!(n_prompt > 0);
        insta::assert_snapshot!("a_space", written(&stage.upstream.body(2)));
        let stored = expect(200, stage.program.get(&format!("/responses/{}", id(response))).await);
        assert_eq!(stored["output"], response["output"]);
        stage.close().await;
    }

    async fn what_was_said_before_a_failure_is_kept(backend) {
        let (stage, house, _) = create_space_with_voices(backend, json!({
            "reply_order": "list", "replies_per_turn": "activated",
        })).await;
        stage.upstream.next(ResponseScript::say("I begin."));
        stage.upstream.next(ResponseScript::status(400));

        let response = stage.program.respond(json!({ "model": space(&house), "input": "All of you." })).await;

        assert_eq!((&response["status"], text(&response).as_str()), (&json!("failed"), "I begin."));
        assert_eq!(stage.upstream.n_requests(), 2);
        stage.close().await;
    }

    async fn a_space_that_is_closed_or_spent_is_not_asked_and_a_lost_seat_is_no_seat(backend) {
        let (stage, house, _) = create_space_with_voices(backend, json!({})).await;
        let ben = stage.app.register("ben").await;
        let program = V1Client::new(&ben).await;
        let invite = stage.admin.invite(house["id"].as_i64().unwrap(), json!({ "role": "member" })).await;
        let seat = expect(201, ben.join(token_of(&invite)).await);
        let first = program.respond(json!({ "model": space(&house), "input": "Hi." })).await;
        let next = json!({ "model": space(&house), "input": "And?", "previous_response_id": id(&first) });
        let used = stage.n_rows("spaces WHERE tokens_used > 0").await;
        assert_eq!(used, 1, "the space pays");

        change(&stage, &house, json!({ "token_limit": 1 })).await;
        let spent = program.respond_with_error(next.clone()).await;
        change(&stage, &house, json!({ "token_limit": 0, "status": "archived" })).await;
        let archived = program.respond_with_error(next.clone()).await;
        let listed = expect(200, program.get("/models").await);
        change(&stage, &house, json!({ "status": "active" })).await;
        let (removed, _) = stage.admin.delete(&format!("/api/memberships/{}", seat["membership"]["id"])).await;
        assert!(removed < 300, "{removed}");
        let lost = program.respond_with_error(next).await;

        assert_eq!((spent.0, spent.1.as_str()), (403, "token_limit_exceeded"));
        assert_eq!((archived.0, archived.1.as_str()), (403, "space_archived"));
        assert!(!listed.to_string().contains(&space(&house)));
        assert_eq!((lost.0, lost.1.as_str()), (404, "model_not_found"));
        assert_eq!(stage.upstream.n_requests(), 1);
        stage.close().await;
    }

    async fn asking_a_space_needs_the_right_to_generate(backend) {
        let (stage, house, _) = create_space_with_voices(backend, json!({})).await;
        let ben = stage.app.register("ben").await;
        let program = V1Client::new(&ben).await;
        let invite = stage.admin.invite(house["id"].as_i64().unwrap(), json!({ "role": "guest" })).await;
        expect(201, ben.join(token_of(&invite)).await);

        let refused = program.respond_with_error(json!({ "model": space(&house), "input": "Hi." })).await;

        assert_eq!(refused.0, 404);
        stage.close().await;
    }

    async fn a_space_without_characters_has_no_speaker(backend) {
        let stage = V1Fixture::open(backend).await;
        let house = stage.admin.create_space("Empty", json!({})).await;

        let refused = stage.program.respond_with_error(json!({ "model": space(&house), "input": "Hi." })).await;

        assert_eq!((refused.0, refused.1.as_str()), (400, "no_speaker"));
        assert_eq!(stage.n_rows("responses").await, 0);
        stage.close().await;
    }

    async fn answers_of_a_space_model_are_not_stored_or_announced_in_the_space(backend) {
        let (stage, house, _) = create_space_with_voices(backend, json!({ "reply_order": "list", "replies_per_turn": "activated" })).await;
        let ear = WsClient::subscribed(&stage.admin, root_of(&house)).await;
        ear.call(json!({ "op": "subscribe_space", "space_id": house["id"] })).await;
        let tables = ["messages", "message_swipes", "conversation_runs", "conversations", "conversation_rounds", "run_prompts"];
        let mut before = Vec::new();
        for table in tables {
            before.push(stage.n_rows(table).await);
        }
        let n_heard = ear.log().len();
        let variables = "conversations WHERE CAST(variables AS TEXT) <> '{}'";
        let n_variables = stage.n_rows(variables).await;

        let first = stage.program.respond(json!({ "model": space(&house), "input": "The engine?" })).await;
        stage.program.stream(json!({ "model": space(&house), "input": "And?", "previous_response_id": id(&first) })).await.rest().await;
        let queued = stage.program.respond(json!({ "model": space(&house), "input": "And?", "background": true })).await;
        stage.wait_for_status(id(&queued), "completed").await;

        let mut after = Vec::new();
        for table in tables {
            after.push(stage.n_rows(table).await);
        }
        assert_eq!(after, before);
        assert_eq!(stage.n_rows(variables).await, n_variables);
        // What comes next is the answer to our own frame, and nothing before it.
        ear.call(json!({ "op": "ping" })).await;
        let heard: Vec<Value> = ear.log().split_off(n_heard);
        assert_eq!(heard.len(), 1, "{heard:?}");
        stage.close().await;
    }

    async fn nothing_but_its_price_is_left_of_what_a_space_said_in_passing(backend) {
        let (stage, house, _) = create_space_with_voices(backend, json!({})).await;

        stage.program.respond(json!({ "model": space(&house), "input": "Bob?", "store": false })).await;

        assert_eq!(stage.n_rows("responses").await, 0);
        assert_eq!(stage.n_rows("spaces WHERE tokens_used > 0").await, 1);
        stage.close().await;
    }
}
