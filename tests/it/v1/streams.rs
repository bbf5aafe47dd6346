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
    async fn empty_chunks_and_comments_produce_no_delta(backend) {
        let fixture = V1Fixture::open(backend).await;
        let crlf = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":null}]}\r\n\r\n";
        let (first, second) = crlf.split_at(20);
        let odd = ResponseScript::stream().comment().role().empty().text("a").comment().raw(first).pause(Duration::from_millis(20)).raw(second).empty().finish("stop");
        fixture.upstream.always(odd);

        let events = fixture.program.stream(json!({ "input": "Hi." })).await.rest().await;

        assert_eq!(deltas(&events), ["a", "x"]);
        assert_eq!(text(&events.last().unwrap()["response"]), "ax");
        fixture.close().await;
    }

    async fn a_client_that_does_not_read_is_disconnected_and_a_stored_response_completes(backend) {
        let fixture = V1Fixture::open(backend).await;
        // JSON escapes a quotation mark as two bytes: 14 MB exceed the buffers of the sockets.
        let piece = "\"".repeat(10_000);
        let script = (0..700).fold(ResponseScript::stream().role(), |it, _| it.text(&piece));
        fixture.upstream.always(script.finish("stop").usage(1, 1).done());
        let host = fixture.app.base.strip_prefix("http://").unwrap().to_owned();
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4_096).unwrap();
        let mut idle = socket.connect(host.parse().unwrap()).await.unwrap();
        let body = json!({ "model": "scripted", "input": "Hi.", "stream": true }).to_string();
        let key = &fixture.program.key;
        let request = format!("POST /v1/responses HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        idle.write_all(request.as_bytes()).await.unwrap();

        let mut facts = DatabaseFacts::open(&fixture.app.database).await;
        let status = "SELECT status FROM responses";
        poll::until("the response completes", async || {
            let rows = facts.rows(status).await;
            (rows.first().map(|it| word(&it[0])) == Some("completed".to_owned())).then_some(())
        })
        .await;

        let mut received = Vec::new();
        let _ = idle.read_to_end(&mut received).await;
        assert!(
            !String::from_utf8_lossy(&received).contains("[DONE]"),
            "the stream was not cut off",
        );
        fixture.close().await;
    }

    // The opposite case: output without a delay exceeds no timeout.
    async fn a_reading_client_gets_all_of_a_long_text_that_arrives_at_once(backend) {
        let fixture = V1Fixture::open(backend).await;
        let piece = "x".repeat(500_000);
        let script = (0..6).fold(ResponseScript::stream().role(), |it, _| it.text(&piece));
        fixture.upstream.always(script.finish("stop").usage(1, 1).done());

        let events = fixture.program.stream(json!({ "input": "Hi." })).await.rest().await;

        let last = events.last().unwrap();
        assert_eq!(last["type"], "response.completed");
        assert_eq!(text(&last["response"]), piece.repeat(6));
        fixture.close().await;
    }

    async fn deltas_are_padded_on_request(backend) {
        let fixture = V1Fixture::open(backend).await;
        let asked = json!({ "input": "Hi.", "background": true, "stream_options": { "include_obfuscation": true } });

        let events = fixture.program.stream(asked).await.rest().await;

        let is_piece = |it: &Value| it["type"].as_str().unwrap().ends_with(".delta");
        assert!(events.iter().any(is_piece));
        for event in &events {
            assert_eq!(is_piece(event), event["obfuscation"].is_string(), "{event}");
        }
        let id = events[0]["response"]["id"].as_str().unwrap();
        let plain = fixture.program.replay(id, None).await.rest().await;
        assert!(
            plain.iter().all(|it| it.get("obfuscation").is_none()),
            "a replay is padded without a request",
        );
        let path = |padded: &str| format!("/responses/{id}?stream=true&include_obfuscation={padded}");
        let (status, again) = fixture.program.get(&path("true")).await;
        assert_eq!((status, again.to_string().contains("obfuscation")), (200, true));
        assert_eq!(fixture.program.get(&path("perhaps")).await.0, 400);
        fixture.close().await;
    }

    async fn annotations_are_sent_when_the_text_is_complete(backend) {
        let fixture = V1Fixture::open(backend).await;
        let citation = json!({ "start_index": 0, "end_index": 2, "url": "https://a.example/", "title": "A" });
        let cited =
            json!({ "annotations": [{ "type": "url_citation", "url_citation": citation }] });
        let script = ResponseScript::stream().text("It").delta(cited).text(" rains.");
        fixture.upstream.always(script.finish("stop").usage(1, 1).done());

        let events = fixture.program.stream(json!({ "input": "Hi." })).await.rest().await;

        let whole = &events.last().unwrap()["response"];
        let annotations = &whole["output"][0]["content"][0]["annotations"];
        assert_eq!(*annotations, json!([{ "type": "url_citation", "start_index": 0, "end_index": 2, "url": "https://a.example/", "title": "A" }]));
        assert_eq!(json!(fold_items(&events)), whole["output"]);
        assert_eq!(kinds(&events)[4..8], ["output_text.delta", "output_text.delta", "output_text.annotation.added", "output_text.done"]);
        for event in &events {
            Schema::read().check_event(event);
        }
        fixture.close().await;
    }
}
