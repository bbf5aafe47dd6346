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

    async fn a_text_file_is_text_to_every_model(backend) {
        let fixture = V1Fixture::open(backend).await;
        let data = format!("data:text/markdown;charset=utf-8;base64,{}", STANDARD.encode("# Plan\nGo."));
        let file = json!({ "type": "input_file", "filename": "plan.md", "file_data": data });
        let input = json!([{ "role": "user", "content": [{ "type": "input_text", "text": "Read this." }, file] }]);
        let broken = json!([{ "role": "user", "content": [
            { "type": "input_file", "file_data": format!("data:text/plain;base64,{}", STANDARD.encode([0xff_u8, 0xfe])) },
        ] }]);

        let refused = fixture.program.respond_with_error(json!({ "input": broken })).await;
        let first = fixture.program.respond(json!({ "input": input })).await;
        let (_, items) = fixture.program.get(&format!("/responses/{}/input_items", first["id"].as_str().unwrap())).await;

        assert_eq!(refused, (400, "invalid_value".into(), json!("input[0].content[0].file_data")));
        let sent = &fixture.upstream.body(0)["messages"][0]["content"];
        assert_eq!(*sent, "Read this.\n[File: plan.md]\n# Plan\nGo.");
        assert_eq!(items["data"][0]["content"][1], file, "the item was changed");
        fixture.close().await;
    }

    async fn pictures_and_files_of_a_tool_output_reach_the_model(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.add_model("anthropic", "claude").await;
        let (png, pdf) = (STANDARD.encode(b"\x89PNG\r\n\x1a\n.."), STANDARD.encode(b"%PDF-1.7"));
        let url = format!("data:image/png;base64,{png}");
        let parts = json!([
            { "type": "input_text", "text": "A map." },
            { "type": "input_image", "image_url": url },
            { "type": "input_file", "filename": "a.csv", "file_data": format!("data:text/csv;base64,{}", STANDARD.encode("a,b")) },
        ]);
        let input = |parts: &serde_json::Value| json!([
            { "role": "user", "content": "Look." },
            { "type": "function_call", "call_id": "c", "name": "f", "arguments": "{}" },
            { "type": "function_call_output", "call_id": "c", "output": parts },
        ]);
        let document = json!([{ "type": "input_file", "file_data": format!("data:application/pdf;base64,{pdf}") }]);
        let broken = json!([{ "type": "input_image", "image_url": "data:image/png;base64,AAAA" }]);

        fixture.program.respond(json!({ "input": input(&parts) })).await;
        fixture.program.respond(json!({ "model": "claude", "input": input(&parts) })).await;
        let refused = fixture.program.respond_with_error(json!({ "input": input(&document) })).await;
        let invalid = fixture.program.respond_with_error(json!({ "input": input(&broken), "store": false })).await;
        let loopback = json!([{ "type": "input_image", "image_url": format!("{}/favicon.svg", fixture.app.base) }]);
        let forbidden = fixture.program.respond_with_error(json!({ "input": input(&loopback) })).await;

        let text = "A map.\n[File: a.csv]\na,b";
        let sent = &fixture.upstream.body(0)["messages"];
        assert_eq!((&sent[2]["role"], &sent[2]["content"]), (&json!("tool"), &json!(text)));
        assert_eq!((&sent[3]["role"], &sent[3]["content"][1]["image_url"]["url"]), (&json!("user"), &json!(url)));
        let source = json!({ "type": "base64", "media_type": "image/png", "data": png });
        let content = json!([{ "type": "text", "text": text }, { "type": "image", "source": source }]);
        assert_eq!(fixture.upstream.body(1)["messages"][2]["content"][0]["content"], content);
        assert_eq!(refused, (400, "unsupported_parameter".into(), json!("input")));
        assert_eq!(invalid, (400, "invalid_image".into(), json!("input[2].output[0].image_url")));
        assert_eq!(forbidden, (400, "invalid_image".into(), json!("input[2].output[0].image_url")));
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
