//! Tests of items: stored ones are always readable, and new ones are stored as they were sent.

use serde_json::{Value, json};

use super::{ItemContent, ItemView};
use crate::request::create_response::CreateResponse;
use crate::request::error::RequestError;
use crate::request::items::call_items::RemoteCall;
use crate::request::server_rules::ServerRules;
use crate::status::ItemStatus;

fn parse(input: Value) -> Result<CreateResponse, RequestError> {
    let rules = ServerRules {
        is_builtin_tool: |_| false,
        is_allowed_header: |_, _| false,
        has_web_search: false,
    };
    let body = json!({ "model": "m", "input": input });
    CreateResponse::parse(body.as_object().unwrap(), &rules)
}

#[test]
fn a_stored_item_is_readable_though_a_request_must_not_contain_it() {
    let foreign = json!({ "type": "dream", "id": "ws_1", "status": "searching" });
    let failed = json!({
        "type": "mcp_call", "id": "mcp_1", "status": "failed", "server_label": "w", "error": "no",
    });
    let cut = json!({ "type": "function_call", "call_id": "c", "status": "incomplete" });

    let view = ItemView::of(&foreign);
    assert_eq!(
        (view.id, view.status, &view.content),
        ("ws_1", None, &ItemContent::Foreign)
    );
    let call = RemoteCall {
        server_label: "w",
        error: Some("no"),
        ..RemoteCall::default()
    };
    let view = ItemView::of(&failed);
    assert_eq!(
        (view.status, &view.content),
        (None, &ItemContent::RemoteCall(call))
    );
    let view = ItemView::of(&cut);
    assert_eq!(view.status, Some(ItemStatus::Incomplete));
    assert!(view.is_incomplete() && matches!(view.content, ItemContent::Call(_)));
    assert_eq!(ItemView::of(&json!(7)).content, ItemContent::Foreign);
}

#[test]
fn a_text_and_a_list_with_this_text_are_the_same_content() {
    let short = json!({ "type": "message", "role": "user", "content": "Hi." });
    let part = json!({ "type": "input_text", "text": "Hi." });
    let long = json!({ "type": "message", "role": "user", "content": [part] });

    assert_eq!(ItemView::of(&short).content, ItemView::of(&long).content);
}

#[test]
fn unknown_fields_of_an_item_keep_their_position() {
    let item = json!({ "x": 1, "role": "user", "id": "msg_1", "content": [], "y": null });

    let request = parse(json!([item])).unwrap();

    assert_eq!(
        request.input[0].to_string(),
        r#"{"x":1,"role":"user","id":"msg_1","content":[],"y":null,"type":"message","status":"completed"}"#
    );
}

#[test]
fn the_first_error_in_reading_order_is_reported() {
    let param = |item: Value| parse(json!([item])).unwrap_err().param;
    let unknown = json!({ "type": "x" });

    let message = json!({ "role": "user", "content": [unknown, 7] });
    assert_eq!(param(message), "input[0].content[0].type");
    // All elements of this list must be objects before one is read.
    let reasoning = json!({ "type": "reasoning", "summary": [unknown, 7] });
    assert_eq!(param(reasoning), "input[0].summary[1]");
    let call = json!({ "type": "function_call", "arguments": 7, "status": 7 });
    assert_eq!(param(call), "input[0].status");
}
