//! Tests of images and documents in requests, and of output formats.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::fixture::V1Fixture;
use crate::support::backends::on_sqlite;

on_sqlite! {
    async fn a_schema_reaches_the_model_and_is_echoed(backend) {
        let stage = V1Fixture::open(backend).await;
        let schema = json!({ "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"] });
        stage.upstream.reply_with("{\"a\":1}");
        let format = json!({ "type": "json_schema", "name": "reply", "schema": schema, "strict": true });

        let response = stage.program.respond(json!({ "input": "x", "text": { "format": format } })).await;

        assert_eq!(response["text"]["format"]["schema"], schema);
        assert_eq!(response["output"][0]["content"][0]["text"], "{\"a\":1}");
        let sent = &stage.upstream.body(0)["response_format"];
        let wanted = json!({ "name": "reply", "schema": schema, "strict": true });
        assert_eq!(*sent, json!({ "type": "json_schema", "json_schema": wanted }));
        let json_object = json!({ "input": "x", "text": { "format": { "type": "json_object" } } });
        stage.program.respond(json_object).await;
        assert_eq!(stage.upstream.body(1)["response_format"], json!({ "type": "json_object" }));
        stage.close().await;
    }

    // The model's API has no field for it.
    async fn an_unsupported_format_is_rejected_before_any_row(backend) {
        let stage = V1Fixture::open(backend).await;
        stage.add_model("anthropic", "claude").await;

        let refused = stage.program.respond_with_error(json!({ "model": "claude", "input": "x", "text": { "format": { "type": "json_object" } } })).await;

        assert_eq!(refused, (400, "unsupported_parameter".into(), json!("text.format")));
        assert_eq!(stage.n_rows("responses").await, 0);
        assert_eq!(stage.upstream.n_requests(), 0);
        stage.close().await;
    }

    async fn an_image_is_sent_to_the_model_and_a_broken_one_is_rejected(backend) {
        let stage = V1Fixture::open(backend).await;
        let url = format!("data:image/gif;base64,{}", STANDARD.encode(b"GIF89a......"));
        let message = |url: &str| json!([{ "role": "user", "content": [
            { "type": "input_text", "text": "What is this?" },
            { "type": "input_image", "image_url": url, "detail": "auto" },
        ] }]);

        for store in [true, false] {
            let broken = json!({ "input": message("data:image/png;base64,AAAA"), "store": store });
            let (status, code, param) = stage.program.respond_with_error(broken).await;
            assert_eq!((status, code.as_str(), param), (400, "invalid_image", json!("input[0].content[1].image_url")));
        }
        let near = json!({ "input": message(&format!("{}/favicon.svg", stage.app.base)) });
        let refused = stage.program.respond_with_error(near).await;
        assert_eq!(refused, (400, "invalid_image".into(), json!("input[0].content[1].image_url")), "our own network is out of reach");
        assert_eq!(stage.n_rows("responses").await, 0);
        let first = stage.program.respond(json!({ "input": message(&url) })).await;
        stage.program.respond(json!({ "input": "And now?", "previous_response_id": first["id"] })).await;

        for n in 0..2 {
            let content = &stage.upstream.body(n)["messages"][0]["content"];
            assert_eq!(content[0]["text"], "What is this?");
            assert_eq!(content[1]["image_url"]["url"], url, "the chain has it still");
        }
        stage.close().await;
    }

    // Section 4: documents, if the model accepts them.
    async fn a_document_reaches_a_model_that_reads_them_and_no_other(backend) {
        let stage = V1Fixture::open(backend).await;
        stage.add_model("openai", "reader").await;
        let data = format!("data:application/pdf;base64,{}", STANDARD.encode(b"%PDF-1.7"));
        let input = json!([{ "role": "user", "content": [
            { "type": "input_file", "filename": "a.pdf", "file_data": data },
            { "type": "input_text", "text": "What is this?" },
        ] }]);

        let refused = stage.program.respond_with_error(json!({ "input": input })).await;
        assert_eq!(refused, (400, "unsupported_parameter".into(), json!("input")));
        assert_eq!((stage.n_rows("responses").await, stage.upstream.n_requests()), (0, 0));
        let first = stage.program.respond(json!({ "model": "reader", "input": input })).await;
        stage.program.respond(json!({ "model": "reader", "input": "And now?", "previous_response_id": first["id"] })).await;

        for n in 0..2 {
            let content = &stage.upstream.body(n)["messages"][0]["content"];
            assert_eq!(content[0]["text"], "What is this?");
            assert_eq!(content[1], json!({ "type": "file", "file": { "filename": "a.pdf", "file_data": data } }));
        }
        let later = stage.program.respond_with_error(json!({ "input": "And now?", "previous_response_id": first["id"] })).await;
        assert_eq!(later, (400, "unsupported_parameter".into(), json!("input")), "the chain has it still");
        stage.close().await;
    }
}
