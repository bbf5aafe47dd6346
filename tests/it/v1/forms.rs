//! Tests of images and documents in requests, and of output formats.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::fixture::V1Fixture;
use crate::support::backends::on_sqlite;

on_sqlite! {
    async fn a_schema_reaches_the_model_and_is_echoed(backend) {
        let fixture = V1Fixture::open(backend).await;
        let schema = json!({ "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"] });
        fixture.upstream.reply_with("{\"a\":1}");
        let format = json!({ "type": "json_schema", "name": "reply", "schema": schema, "strict": true });

        let response = fixture.program.respond(json!({ "input": "x", "text": { "format": format } })).await;

        assert_eq!(response["text"]["format"]["schema"], schema);
        assert_eq!(response["output"][0]["content"][0]["text"], "{\"a\":1}");
        let sent = &fixture.upstream.body(0)["response_format"];
        let wanted = json!({ "name": "reply", "schema": schema, "strict": true });
        assert_eq!(*sent, json!({ "type": "json_schema", "json_schema": wanted }));
        let json_object = json!({ "input": "x", "text": { "format": { "type": "json_object" } } });
        fixture.program.respond(json_object).await;
        assert_eq!(fixture.upstream.body(1)["response_format"], json!({ "type": "json_object" }));
        fixture.close().await;
    }

    // The model's API has no field for it.
    async fn an_unsupported_format_is_rejected_before_any_row(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.add_model("anthropic", "claude").await;

        let refused = fixture.program.respond_with_error(json!({ "model": "claude", "input": "x", "text": { "format": { "type": "json_object" } } })).await;

        assert_eq!(refused, (400, "unsupported_parameter".into(), json!("text.format")));
        assert_eq!(fixture.n_rows("responses").await, 0);
        assert_eq!(fixture.upstream.n_requests(), 0);
        fixture.close().await;
    }

    async fn an_image_is_sent_to_the_model_and_a_broken_one_is_rejected(backend) {
        let fixture = V1Fixture::open(backend).await;
        let url = format!("data:image/gif;base64,{}", STANDARD.encode(b"GIF89a......"));
        let message = |url: &str| json!([{ "role": "user", "content": [
            { "type": "input_text", "text": "What is this?" },
            { "type": "input_image", "image_url": url, "detail": "auto" },
        ] }]);

        for store in [true, false] {
            let broken = json!({ "input": message("data:image/png;base64,AAAA"), "store": store });
            let (status, code, param) = fixture.program.respond_with_error(broken).await;
            assert_eq!((status, code.as_str(), param), (400, "invalid_image", json!("input[0].content[1].image_url")));
        }
        let loopback = json!({ "input": message(&format!("{}/favicon.svg", fixture.app.base)) });
        let refused = fixture.program.respond_with_error(loopback).await;
        assert_eq!(refused, (400, "invalid_image".into(), json!("input[0].content[1].image_url")), "a loopback URL was accepted");
        assert_eq!(fixture.n_rows("responses").await, 0);
        let first = fixture.program.respond(json!({ "input": message(&url) })).await;
        fixture.program.respond(json!({ "input": "And now?", "previous_response_id": first["id"] })).await;

        for n in 0..2 {
            let content = &fixture.upstream.body(n)["messages"][0]["content"];
            assert_eq!(content[0]["text"], "What is this?");
            assert_eq!(content[1]["image_url"]["url"], url, "the chain has lost the image");
        }
        fixture.close().await;
    }

    async fn a_document_is_sent_only_to_a_model_that_accepts_documents(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.add_model("openai", "reader").await;
        let data = format!("data:application/pdf;base64,{}", STANDARD.encode(b"%PDF-1.7"));
        let input = json!([{ "role": "user", "content": [
            { "type": "input_file", "filename": "a.pdf", "file_data": data },
            { "type": "input_text", "text": "What is this?" },
        ] }]);

        let refused = fixture.program.respond_with_error(json!({ "input": input })).await;
        assert_eq!(refused, (400, "unsupported_parameter".into(), json!("input")));
        assert_eq!((fixture.n_rows("responses").await, fixture.upstream.n_requests()), (0, 0));
        let first = fixture.program.respond(json!({ "model": "reader", "input": input })).await;
        fixture.program.respond(json!({ "model": "reader", "input": "And now?", "previous_response_id": first["id"] })).await;

        for n in 0..2 {
            let content = &fixture.upstream.body(n)["messages"][0]["content"];
            assert_eq!(content[0]["text"], "What is this?");
            assert_eq!(content[1], json!({ "type": "file", "file": { "filename": "a.pdf", "file_data": data } }));
        }
        let later = fixture.program.respond_with_error(json!({ "input": "And now?", "previous_response_id": first["id"] })).await;
        assert_eq!(later, (400, "unsupported_parameter".into(), json!("input")), "the chain has lost the document");
        fixture.close().await;
    }
}
