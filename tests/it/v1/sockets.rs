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

/// A socket of a program, read turn by turn.
struct V1Socket {
    ear: WsClient,
    at: usize,
}

impl V1Socket {
    async fn open(stage: &V1Fixture) -> V1Socket {
        let address = stage.app.base.replacen("http", "ws", 1);
        let address = format!("{address}/v1/responses");
        let socket = connect_with_key(&address, &stage.program.key).await;
        let ear = WsClient::at(socket.expect("the server opens a socket"));
        V1Socket { ear, at: 0 }
    }

    async fn send(&self, mut frame: Value) {
        frame["type"] = json!("response.create");
        if frame.get("model").is_none() {
            frame["model"] = json!("scripted");
        }
        self.ear.send_text(&frame.to_string()).await;
    }

    async fn next(&mut self) -> Value {
        let (at, frame) = self.ear.wait_after(self.at, "a frame", |_| true).await;
        self.at = at;
        frame
    }

    /// The frames of the next turn, or the one that says why there is none.
    async fn turn(&mut self) -> Vec<Value> {
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

    /// A whole turn; answers its response.
    async fn request(&mut self, frame: Value) -> Value {
        self.send(frame).await;
        let frames = self.turn().await;
        let last = frames.last().unwrap();
        assert_eq!(last["type"], "response.completed", "{last}");
        last["response"].clone()
    }

    /// A turn that must not be; answers status and code.
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
    async fn two_frames_at_once_are_two_responses_one_after_the_other(backend) {
        let stage = V1Fixture::open(backend).await;
        stage.upstream.next(ResponseScript::say("first"));
        stage.upstream.next(ResponseScript::say("second"));
        let mut line = V1Socket::open(&stage).await;

        line.send(json!({ "input": "one" })).await;
        line.send(json!({ "input": "two" })).await;
        let (first, second) = (line.turn().await, line.turn().await);

        for (frames, text_of_it) in [(&first, "first"), (&second, "second")] {
            let kinds = kinds(frames);
            assert_eq!(kinds[..2], ["created", "in_progress"]);
            let numbers: Vec<i64> = frames.iter().map(|it| it["sequence_number"].as_i64().unwrap()).collect();
            assert_eq!(numbers, (0..numbers.len() as i64).collect::<Vec<_>>());
            let response = &frames.last().unwrap()["response"];
            assert_eq!(text(response), text_of_it);
            let (_, stored) = stage.program.get(&format!("/responses/{}", id(response))).await;
            assert_eq!(&stored, response);
        }
        stage.close().await;
    }

    async fn what_is_not_stored_goes_on_here_and_nowhere_else(backend) {
        let stage = V1Fixture::open(backend).await;
        let mut line = V1Socket::open(&stage).await;
        let stored = stage.program.respond(json!({ "input": "zero" })).await;

        let first = line.request(after(&stored, "one")).await;
        let second = line.request(after(&first, "two")).await;
        line.request(after(&second, "three")).await;

        let told = ["zero", "Hello.", "one", "Hello.", "two", "Hello.", "three"];
        assert_eq!(prompt_texts(&stage.upstream.body(3)), told);
        assert_eq!(stage.n_rows("responses").await, 1);
        let not_found = (400, "previous_response_not_found".to_owned());
        let mut other = V1Socket::open(&stage).await;
        assert_eq!(other.request_with_error(after(&second, "x")).await, not_found);
        assert_eq!(stage.program.respond_with_error(after(&second, "x")).await.1, not_found.1);
        let mut stored = after(&second, "x");
        stored["store"] = json!(true);
        assert_eq!(line.request_with_error(stored).await, not_found, "what is stored goes on from what is stored");
        stage.close().await;
    }

    async fn a_failed_turn_drops_the_response_it_continued(backend) {
        let stage = V1Fixture::open(backend).await;
        let mut line = V1Socket::open(&stage).await;
        let not_found = (400, "previous_response_not_found".to_owned());

        let first = line.request(json!({ "input": "one", "store": false })).await;
        let mut broken = after(&first, "two");
        broken["temperature"] = json!(5);
        assert_eq!(line.request_with_error(broken).await, (400, "invalid_value".to_owned()));
        assert_eq!(line.request_with_error(after(&first, "two")).await, not_found);

        let second = line.request(json!({ "input": "one", "store": false })).await;
        stage.upstream.next(ResponseScript::status(400));
        line.send(after(&second, "two")).await;
        assert_eq!(line.turn().await.last().unwrap()["type"], "response.failed");
        assert_eq!(line.request_with_error(after(&second, "two")).await, not_found);

        let third = line.request(json!({ "input": "one", "store": false })).await;
        let mut wrong = after(&third, "two");
        wrong["input"] = json!([{ "type": "function_call_output", "call_id": "x", "output": "y" }]);
        assert_eq!(line.request_with_error(wrong).await, (400, "unknown_tool_call".to_owned()));
        assert_eq!(line.request_with_error(after(&third, "two")).await, not_found);

        let stored = line.request(json!({ "input": "one" })).await;
        let mut broken = after(&stored, "two");
        broken["temperature"] = json!(5);
        line.request_with_error(broken).await;
        line.request(after(&stored, "two")).await;
        stage.close().await;
    }

    async fn a_frame_that_makes_no_sense_is_refused_and_the_socket_lives(backend) {
        let stage = V1Fixture::open(backend).await;
        let mut line = V1Socket::open(&stage).await;

        line.ear.send_text("{").await;
        assert_eq!(line.error().await, (400, "invalid_json".to_owned()));
        line.ear.send_text(r#"{"type":"session.update"}"#).await;
        assert_eq!(line.error().await, (400, "invalid_event".to_owned()));
        for name in ["stream", "background", "stream_options"] {
            let refused = line.request_with_error(json!({ "input": "x", name: true })).await;
            assert_eq!(refused, (400, "unsupported_parameter".to_owned()), "{name}");
        }
        assert_eq!(line.request_with_error(json!({ "input": "x", "model": "none" })).await, (404, "model_not_found".to_owned()));
        assert_eq!(stage.upstream.n_requests(), 0);
        line.request(json!({ "input": "x" })).await;
        stage.close().await;
    }

    async fn eight_frames_wait_and_a_ninth_is_refused_at_once(backend) {
        let stage = V1Fixture::open(backend).await;
        let gate = HoldPoint::closed();
        stage.upstream.next(ResponseScript::say("late").held_at(&gate));
        let mut line = V1Socket::open(&stage).await;
        line.send(json!({ "input": "0" })).await;
        stage.upstream.wait_for_requests(1).await;

        for n in 1..=9 {
            line.send(json!({ "input": n.to_string() })).await;
        }
        let refused = line.ear.wait_for("a refusal", |it| it["type"] == "error").await;
        gate.open();

        assert_eq!(refused["status"], 429);
        let answered = poll::until("nine turns", async || {
            let log = line.ear.log();
            let ended = log.iter().filter(|it| it["type"] == "response.completed");
            (ended.count() == 9).then_some(log)
        })
        .await;
        assert_eq!(answered.iter().filter(|it| it["type"] == "error").count(), 1);
        let last = stage.upstream.body(8);
        assert_eq!(prompt_texts(&last), ["8"]);
        line.at = answered.len();
        line.request(json!({ "input": "after all" })).await;
        stage.close().await;
    }

    async fn closing_the_socket_cancels_its_turn(backend) {
        let stage = V1Fixture::open(backend).await;
        stage.upstream.next(ResponseScript::stream().role().text("Well, ").hang());
        let mut line = V1Socket::open(&stage).await;
        line.send(json!({ "input": "one" })).await;
        let created = line.next().await;

        line.ear.wait_for("a word", |it| it["type"] == "response.output_text.delta").await;
        drop(line);

        stage.upstream.wait_for_disconnect(0).await;
        let cancelled = stage.wait_for_status(id(&created["response"]), "cancelled").await;
        assert_eq!(text(&cancelled), "Well, ");
        stage.close().await;
    }

    async fn a_key_that_is_taken_away_closes_its_socket(backend) {
        let stage = V1Fixture::open(backend).await;
        let mut line = V1Socket::open(&stage).await;
        line.request(json!({ "input": "one" })).await;

        let keys = expect(200, stage.admin.get("/api/api_keys").await);
        let key = &keys["data"][0]["id"];
        expect(204, stage.admin.delete(&format!("/api/api_keys/{key}")).await);

        line.ear.wait_closed().await;
        stage.close().await;
    }

    async fn a_socket_that_was_open_for_long_ends_its_turn_and_then_closes(backend) {
        let stage = V1Fixture::open_changed(backend, |app| app.socket_timeouts.v1_session_limit = Duration::from_millis(400)).await;
        let late = ResponseScript::stream().role().text("late").pause(Duration::from_millis(800)).finish("stop").done();
        stage.upstream.next(late);
        let mut line = V1Socket::open(&stage).await;
        line.send(json!({ "input": "one" })).await;
        line.send(json!({ "input": "two" })).await;

        let frames = line.turn().await;

        assert_eq!(frames.last().unwrap()["type"], "response.completed");
        assert_eq!(line.error().await, (400, "websocket_connection_limit_reached".to_owned()));
        line.ear.wait_closed().await;
        stage.close().await;
    }

    async fn a_closing_server_ends_the_turn_and_then_the_socket(backend) {
        let stage = V1Fixture::open_with(backend, &[("SHUTDOWN_GRACE_MS", "20000")]).await;
        let gate = HoldPoint::closed();
        stage.upstream.next(ResponseScript::say("whole").held_at(&gate));
        let mut line = V1Socket::open(&stage).await;
        line.send(json!({ "input": "one" })).await;
        stage.upstream.wait_for_requests(1).await;
        let draining = stage.app.app.shutdown.draining.clone();

        let watching = async {
            draining.cancelled().await;
            gate.open();
            let frames = line.turn().await;
            assert_eq!(text(&frames.last().unwrap()["response"]), "whole");
            line.ear.wait_closed().await;
        };
        futures::join!(stage.app.close(), watching);
    }
}
