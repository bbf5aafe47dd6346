//! Tests of tool outputs that do not match the open calls: they are rejected and not stored.

use serde_json::{Value, json};

use super::fixture::{V1Fixture, function, id, output};
use crate::support::backends::on_sqlite;
use crate::support::fake_provider::script::ResponseScript;

on_sqlite! {
    async fn the_next_input_must_contain_exactly_the_outputs_of_open_calls(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::calls(&[("a", "f", "{}"), ("b", "f", "{}")]));
        let first = fixture.program.respond(json!({ "input": "Go.", "tools": [function("f")] })).await;
        let refused = async |input: Value, store: bool| {
            let body = json!({ "input": input, "previous_response_id": id(&first), "store": store });
            fixture.program.respond_with_error(body).await
        };
        let (a, b) = (output("a", "A"), output("b", "B"));

        for store in [true, false] {
            let missing = (400, "missing_tool_output".to_owned(), json!("input"));
            assert_eq!(refused(json!([a]), store).await, missing);
            assert_eq!(refused(json!("And?"), store).await, missing);
            let unknown = refused(json!([a, b, output("c", "C")]), store).await;
            assert_eq!(unknown, (400, "unknown_tool_call".into(), json!("input[2].call_id")));
            let doubled = refused(json!([a, b, a]), store).await;
            assert_eq!(doubled, (400, "duplicate_tool_output".into(), json!("input[2].call_id")));
        }
        let (_, body) = fixture.program.post("/responses", json!({ "model": "scripted", "input": [b], "previous_response_id": id(&first) })).await;
        assert!(body["error"]["message"].as_str().unwrap().contains("a."), "{body}");
        let alone = json!([{ "type": "function_call", "call_id": "x", "name": "f", "arguments": "{}" }]);
        let open = fixture.program.respond_with_error(json!({ "input": alone, "store": false })).await;
        assert_eq!(open.1, "missing_tool_output");
        assert_eq!(fixture.n_rows("responses").await, 1);
        assert_eq!(fixture.upstream.n_requests(), 1);
        fixture.close().await;
    }

    async fn web_fetch_is_available_only_if_it_is_enabled(backend) {
        let fetch = json!({ "input": "Read.", "tools": [{ "type": "troupe:web_fetch" }] });
        let fixture = V1Fixture::open(backend).await;
        let refused = fixture.program.respond_with_error(fetch.clone()).await;
        assert_eq!(refused, (400, "unsupported_tool".into(), json!("tools[0].type")));
        fixture.close().await;

        let fixture = V1Fixture::open_with(backend, &[("TROUPE_WEB_FETCH", "true")]).await;
        let arguments = json!({ "url": fixture.app.base }).to_string();
        fixture.upstream.next(ResponseScript::calls(&[("a", "troupe_web_fetch", arguments.as_str())]));
        let response = fixture.program.respond(fetch).await;
        assert_eq!(response["status"], "completed");
        assert_eq!(response["output"][0]["error"], "This address is not allowed.");
        fixture.close().await;
    }

    async fn an_invalid_call_item_is_rejected_with_its_field(backend) {
        let fixture = V1Fixture::open(backend).await;
        let refused = async |item: Value| {
            let (status, code, param) = fixture.program.respond_with_error(json!({ "input": [item] })).await;
            assert_eq!(status, 400);
            (code, param.as_str().unwrap().to_owned())
        };
        let is = |code: &str, param: &str| (code.to_owned(), format!("input[0].{param}"));

        let call = |name: &str| json!({ "type": "function_call", "call_id": "a", "name": name, "arguments": "{}" });
        assert_eq!(refused(json!({ "type": "function_call", "name": "f" })).await, is("missing_required_parameter", "call_id"));
        assert_eq!(refused(call("no name")).await, is("invalid_value", "name"));
        assert_eq!(refused(json!({ "type": "function_call_output", "call_id": "a" })).await, is("missing_required_parameter", "output"));
        assert_eq!(refused(json!({ "type": "function_call_output", "call_id": "a", "output": 1 })).await, is("invalid_type", "output"));
        assert_eq!(refused(json!({ "type": "local_shell_call", "call_id": "a", "action": {} })).await, is("invalid_type", "action.command"));
        assert_eq!(refused(json!({ "type": "custom_tool_call", "call_id": "a", "name": "f" })).await, is("missing_required_parameter", "input"));
        assert_eq!(fixture.n_rows("responses").await, 0);
        fixture.close().await;
    }
}
