//! Tests of the WebSocket at `/v1/responses`: several requests on one connection.

use std::time::Duration;

use serde_json::{Value, json};

use super::fixture::{V1Fixture, id, kinds, prompt_texts, text};
use crate::support::backends::on_sqlite;
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};
use crate::support::http_client::expect;
use crate::support::poll;
use crate::support::v1_client::error_of;
use crate::support::ws_client::{WsClient, connect_with_key};

/// A WebSocket of `/v1/responses`, read response by response.
struct V1Socket {
    client: WsClient,
    at: usize,
}

impl V1Socket {
    async fn open(fixture: &V1Fixture) -> V1Socket {
        let address = fixture.app.base.replacen("http", "ws", 1);
        let address = format!("{address}/v1/responses");
        let socket = connect_with_key(&address, &fixture.program.key).await;
        let client = WsClient::at(socket.expect("the socket did not open"));
        V1Socket { client, at: 0 }
    }

    async fn send(&self, mut frame: Value) {
        frame["type"] = json!("response.create");
        if frame.get("model").is_none() {
            frame["model"] = json!("scripted");
        }
        self.client.send_text(&frame.to_string()).await;
    }

    async fn next(&mut self) -> Value {
        let (at, frame) = self.client.wait_after(self.at, "a frame", |_| true).await;
        self.at = at;
        frame
    }

    /// The frames of the next response, or its error frame.
    async fn next_response(&mut self) -> Vec<Value> {
        let mut frames = Vec::new();
        loop {
            let frame = self.next().await;
            let kind = frame["type"].as_str().unwrap().to_owned();
            frames.push(frame);
            let ends = [
                "error",
                "response.completed",
                "response.incomplete",
                "response.failed",
            ];
            if ends.contains(&kind.as_str()) {
                return frames;
            }
        }
    }

    /// Sends a frame and returns the completed response.
    async fn request(&mut self, frame: Value) -> Value {
        self.send(frame).await;
        let frames = self.next_response().await;
        let last = frames.last().unwrap();
        assert_eq!(last["type"], "response.completed", "{last}");
        last["response"].clone()
    }

    /// Sends a frame that is rejected; returns status and code.
    async fn request_with_error(&mut self, frame: Value) -> (u16, String) {
        self.send(frame).await;
        self.error().await
    }

    async fn error(&mut self) -> (u16, String) {
        let frame = self.next().await;
        assert_eq!(frame["type"], "error", "{frame}");
        let status = u16::try_from(frame["status"].as_i64().unwrap()).unwrap();
        let (status, code, _) = error_of(&(status, frame));
        (status, code)
    }
}

fn after(previous: &Value, input: &str) -> Value {
    json!({ "input": input, "previous_response_id": id(previous), "store": false })
}

on_sqlite! {
    async fn two_frames_at_once_get_two_responses_in_order(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::say("first"));
        fixture.upstream.next(ResponseScript::say("second"));
        let mut socket = V1Socket::open(&fixture).await;

        socket.send(json!({ "input": "one" })).await;
        socket.send(json!({ "input": "two" })).await;
        let (first, second) = (socket.next_response().await, socket.next_response().await);

        for (frames, expected) in [(&first, "first"), (&second, "second")] {
            let kinds = kinds(frames);
            assert_eq!(kinds[..2], ["created", "in_progress"]);
            let numbers: Vec<i64> = frames.iter().map(|it| it["sequence_number"].as_i64().unwrap()).collect();
            assert_eq!(numbers, (0..numbers.len() as i64).collect::<Vec<_>>());
            let response = &frames.last().unwrap()["response"];
            assert_eq!(text(response), expected);
            let (_, stored) = fixture.program.get(&format!("/responses/{}", id(response))).await;
            assert_eq!(&stored, response);
        }
        fixture.close().await;
    }

    async fn an_unstored_response_can_be_continued_only_on_its_socket(backend) {
        let fixture = V1Fixture::open(backend).await;
        let mut socket = V1Socket::open(&fixture).await;
        let stored = fixture.program.respond(json!({ "input": "zero" })).await;

        let first = socket.request(after(&stored, "one")).await;
        let second = socket.request(after(&first, "two")).await;
        socket.request(after(&second, "three")).await;

        let expected = ["zero", "Hello.", "one", "Hello.", "two", "Hello.", "three"];
        assert_eq!(prompt_texts(&fixture.upstream.body(3)), expected);
        assert_eq!(fixture.n_rows("responses").await, 1);
        let not_found = (400, "previous_response_not_found".to_owned());
        let mut other = V1Socket::open(&fixture).await;
        assert_eq!(other.request_with_error(after(&second, "x")).await, not_found);
        assert_eq!(fixture.program.respond_with_error(after(&second, "x")).await.1, not_found.1);
        let mut stored = after(&second, "x");
        stored["store"] = json!(true);
        assert_eq!(socket.request_with_error(stored).await, not_found, "a stored response continued an unstored one");
        fixture.close().await;
    }

    async fn a_failed_request_drops_the_response_that_it_continued(backend) {
        let fixture = V1Fixture::open(backend).await;
        let mut socket = V1Socket::open(&fixture).await;
        let not_found = (400, "previous_response_not_found".to_owned());

        let first = socket.request(json!({ "input": "one", "store": false })).await;
        let mut broken = after(&first, "two");
        broken["temperature"] = json!(5);
        assert_eq!(socket.request_with_error(broken).await, (400, "invalid_value".to_owned()));
        assert_eq!(socket.request_with_error(after(&first, "two")).await, not_found);

        let second = socket.request(json!({ "input": "one", "store": false })).await;
        fixture.upstream.next(ResponseScript::status(400));
        socket.send(after(&second, "two")).await;
        assert_eq!(socket.next_response().await.last().unwrap()["type"], "response.failed");
        assert_eq!(socket.request_with_error(after(&second, "two")).await, not_found);

        let third = socket.request(json!({ "input": "one", "store": false })).await;
        let mut wrong = after(&third, "two");
        wrong["input"] = json!([{ "type": "function_call_output", "call_id": "x", "output": "y" }]);
        assert_eq!(
            socket.request_with_error(wrong).await,
            (400, "unknown_tool_call".to_owned()),
        );
        assert_eq!(socket.request_with_error(after(&third, "two")).await, not_found);

        let stored = socket.request(json!({ "input": "one" })).await;
        let mut broken = after(&stored, "two");
        broken["temperature"] = json!(5);
        socket.request_with_error(broken).await;
        socket.request(after(&stored, "two")).await;
        fixture.close().await;
    }

    async fn an_invalid_frame_is_rejected_and_the_socket_stays_open(backend) {
        let fixture = V1Fixture::open(backend).await;
        let mut socket = V1Socket::open(&fixture).await;

        socket.client.send_text("{").await;
        assert_eq!(socket.error().await, (400, "invalid_json".to_owned()));
        socket.client.send_text(r#"{"type":"session.update"}"#).await;
        assert_eq!(socket.error().await, (400, "invalid_event".to_owned()));
        for (name, value) in [("stream", false), ("background", true), ("stream_options", true)] {
            let refused = socket.request_with_error(json!({ "input": "x", name: value })).await;
            assert_eq!(refused, (400, "unsupported_parameter".to_owned()), "{name}");
        }
        assert_eq!(socket.request_with_error(json!({ "input": "x", "model": "none" })).await, (404, "model_not_found".to_owned()));
        assert_eq!(fixture.upstream.n_requests(), 0);
        socket.request(json!({ "input": "x", "stream": true })).await;
        socket.request(json!({ "input": "x" })).await;
        fixture.close().await;
    }

    async fn eight_frames_wait_and_a_ninth_is_refused_at_once(backend) {
        let fixture = V1Fixture::open(backend).await;
        let gate = HoldPoint::closed();
        fixture.upstream.next(ResponseScript::say("late").held_at(&gate));
        let mut socket = V1Socket::open(&fixture).await;
        socket.send(json!({ "input": "0" })).await;
        fixture.upstream.wait_for_requests(1).await;

        for n in 1..=9 {
            socket.send(json!({ "input": n.to_string() })).await;
        }
        let refused = socket.client.wait_for("an error frame", |it| it["type"] == "error").await;
        gate.open();

        assert_eq!(refused["status"], 429);
        let answered = poll::until("nine responses are complete", async || {
            let log = socket.client.log();
            let ended = log.iter().filter(|it| it["type"] == "response.completed");
            (ended.count() == 9).then_some(log)
        })
        .await;
        assert_eq!(answered.iter().filter(|it| it["type"] == "error").count(), 1);
        let last = fixture.upstream.body(8);
        assert_eq!(prompt_texts(&last), ["8"]);
        socket.at = answered.len();
        socket.request(json!({ "input": "after all" })).await;
        fixture.close().await;
    }

    async fn closing_the_socket_cancels_its_response(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::stream().role().text("Well, ").hang());
        let mut socket = V1Socket::open(&fixture).await;
        socket.send(json!({ "input": "one" })).await;
        let created = socket.next().await;

        socket.client.wait_for("a delta", |it| it["type"] == "response.output_text.delta").await;
        drop(socket);

        fixture.upstream.wait_for_disconnect(0).await;
        let cancelled = fixture.wait_for_status(id(&created["response"]), "cancelled").await;
        assert_eq!(text(&cancelled), "Well, ");
        fixture.close().await;
    }

    async fn revoking_a_key_closes_its_socket(backend) {
        let fixture = V1Fixture::open(backend).await;
        let mut socket = V1Socket::open(&fixture).await;
        socket.request(json!({ "input": "one" })).await;

        let keys = expect(200, fixture.admin.get("/api/api_keys").await);
        let key = &keys["data"][0]["id"];
        expect(204, fixture.admin.delete(&format!("/api/api_keys/{key}")).await);

        socket.client.wait_closed().await;
        fixture.close().await;
    }

    async fn a_socket_at_its_session_limit_finishes_the_response_and_closes(backend) {
        let fixture = V1Fixture::open_changed(backend, |app| app.socket_timeouts.v1_session_limit = Duration::from_millis(400)).await;
        let late = ResponseScript::stream().role().text("late").pause(Duration::from_millis(800)).finish("stop").done();
        fixture.upstream.next(late);
        let mut socket = V1Socket::open(&fixture).await;
        socket.send(json!({ "input": "one" })).await;
        socket.send(json!({ "input": "two" })).await;

        let frames = socket.next_response().await;

        assert_eq!(frames.last().unwrap()["type"], "response.completed");
        assert_eq!(socket.error().await, (400, "websocket_connection_limit_reached".to_owned()));
        socket.client.wait_closed().await;
        fixture.close().await;
    }

    async fn a_closing_server_finishes_the_response_and_then_closes_the_socket(backend) {
        let fixture = V1Fixture::open_with(backend, &[("SHUTDOWN_GRACE_MS", "20000")]).await;
        let gate = HoldPoint::closed();
        fixture.upstream.next(ResponseScript::say("whole").held_at(&gate));
        let mut socket = V1Socket::open(&fixture).await;
        socket.send(json!({ "input": "one" })).await;
        fixture.upstream.wait_for_requests(1).await;
        let draining = fixture.app.app.shutdown.draining.clone();

        let watching = async {
            draining.cancelled().await;
            gate.open();
            let frames = socket.next_response().await;
            assert_eq!(text(&frames.last().unwrap()["response"]), "whole");
            socket.client.wait_closed().await;
        };
        futures::join!(fixture.app.close(), watching);
    }
}
