//! Tests of irregular streams of the model, and of clients that stop reading.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;

use super::fixture::{V1Fixture, deltas, kinds, text};
use super::simple_client::fold_items;
use super::text::Schema;
use crate::support::backends::on_sqlite;
use crate::support::database_facts::{DatabaseFacts, word};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::poll;

on_sqlite! {
    async fn what_says_nothing_gives_no_delta(backend) {
        let stage = V1Fixture::open(backend).await;
        let crlf = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":null}]}\r\n\r\n";
        let (first, second) = crlf.split_at(20);
        let odd = ResponseScript::stream().comment().role().empty().text("a").comment().raw(first).pause(Duration::from_millis(20)).raw(second).empty().finish("stop");
        stage.upstream.always(odd);

        let events = stage.program.stream(json!({ "input": "Hi." })).await.rest().await;

        assert_eq!(deltas(&events), ["a", "x"]);
        assert_eq!(text(&events.last().unwrap()["response"]), "ax");
        stage.close().await;
    }

    async fn a_client_that_does_not_read_is_disconnected_and_a_stored_response_completes(backend) {
        let stage = V1Fixture::open(backend).await;
        // On the wire a quotation mark is two letters: more than the buffers of the sockets hold.
        let piece = "\"".repeat(10_000);
        let script = (0..700).fold(ResponseScript::stream().role(), |it, _| it.text(&piece));
        stage.upstream.always(script.finish("stop").usage(1, 1).done());
        let host = stage.app.base.strip_prefix("http://").unwrap().to_owned();
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4_096).unwrap();
        let mut idle = socket.connect(host.parse().unwrap()).await.unwrap();
        let body = json!({ "model": "scripted", "input": "Hi.", "stream": true }).to_string();
        let key = &stage.program.key;
        let request = format!("POST /v1/responses HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        idle.write_all(request.as_bytes()).await.unwrap();

        let mut facts = DatabaseFacts::open(&stage.app.database).await;
        let status = "SELECT status FROM responses";
        poll::until("the response completes", async || {
            let rows = facts.rows(status).await;
            (rows.first().map(|it| word(&it[0])) == Some("completed".to_owned())).then_some(())
        })
        .await;

        let mut told = Vec::new();
        let _ = idle.read_to_end(&mut told).await;
        assert!(!String::from_utf8_lossy(&told).contains("[DONE]"), "it was cut, visibly");
        stage.close().await;
    }

    // The opposite case: output without a delay exceeds no timeout.
    async fn a_reading_client_gets_all_of_a_long_text_that_came_at_once(backend) {
        let stage = V1Fixture::open(backend).await;
        let piece = "x".repeat(500_000);
        let script = (0..6).fold(ResponseScript::stream().role(), |it, _| it.text(&piece));
        stage.upstream.always(script.finish("stop").usage(1, 1).done());

        let events = stage.program.stream(json!({ "input": "Hi." })).await.rest().await;

        let last = events.last().unwrap();
        assert_eq!(last["type"], "response.completed");
        assert_eq!(text(&last["response"]), piece.repeat(6));
        stage.close().await;
    }

    async fn deltas_are_padded_on_request(backend) {
        let stage = V1Fixture::open(backend).await;
        let asked = json!({ "input": "Hi.", "background": true, "stream_options": { "include_obfuscation": true } });

        let events = stage.program.stream(asked).await.rest().await;

        let is_piece = |it: &Value| it["type"].as_str().unwrap().ends_with(".delta");
        assert!(events.iter().any(is_piece));
        for event in &events {
            assert_eq!(is_piece(event), event["obfuscation"].is_string(), "{event}");
        }
        let id = events[0]["response"]["id"].as_str().unwrap();
        let plain = stage.program.replay(id, None).await.rest().await;
        assert!(plain.iter().all(|it| it.get("obfuscation").is_none()), "nobody asked this time");
        let path = |padded: &str| format!("/responses/{id}?stream=true&include_obfuscation={padded}");
        let (status, again) = stage.program.get(&path("true")).await;
        assert_eq!((status, again.to_string().contains("obfuscation")), (200, true));
        assert_eq!(stage.program.get(&path("perhaps")).await.0, 400);
        stage.close().await;
    }

    async fn annotations_are_sent_when_the_text_is_complete(backend) {
        let stage = V1Fixture::open(backend).await;
        let place = json!({ "start_index": 0, "end_index": 2, "url": "https://a.example/", "title": "A" });
        let cited = json!({ "annotations": [{ "type": "url_citation", "url_citation": place }] });
        let script = ResponseScript::stream().text("It").delta(cited).text(" rains.");
        stage.upstream.always(script.finish("stop").usage(1, 1).done());

        let events = stage.program.stream(json!({ "input": "Hi." })).await.rest().await;

        let whole = &events.last().unwrap()["response"];
        let annotations = &whole["output"][0]["content"][0]["annotations"];
        assert_eq!(*annotations, json!([{ "type": "url_citation", "start_index": 0, "end_index": 2, "url": "https://a.example/", "title": "A" }]));
        assert_eq!(json!(fold_items(&events)), whole["output"]);
        assert_eq!(kinds(&events)[4..8], ["output_text.delta", "output_text.delta", "output_text.annotation.added", "output_text.done"]);
        for event in &events {
            Schema::read().hold_event(event);
        }
        stage.close().await;
    }
}
