//! Tests of [`parse_server`](super::parse_server): unknown fields are rejected, and credentials are
//! never echoed.

use agent::tools::mcp::policy::{ApprovalPolicy, ToolFilter};
use serde_json::{Value, json};

use super::parse_server;
use crate::responses::execution::tool_config::ToolConfig;

fn read(more: Value) -> Result<(ToolConfig, Value), (&'static str, Option<String>)> {
    let mut tool = json!({ "type": "mcp", "server_label": "wiki", "server_url": "https://mcp.example.com/mcp" });
    for (name, value) in more.as_object().unwrap() {
        tool[name] = value.clone();
    }
    let mut toolbox = ToolConfig::default();
    match parse_server("tools[0]", tool.as_object().unwrap(), &mut toolbox) {
        Ok(echo) => Ok((toolbox, echo)),
        Err(problem) => Err((problem.code, problem.param)),
    }
}

#[test]
fn credentials_are_stored_apart_and_not_echoed() {
    let more = json!({
        "server_url": "https://mcp.example.com/mcp?key=planted", "authorization": "Bearer planted",
        "headers": { "x-team": "planted" },
    });

    let (toolbox, echo) = read(more).unwrap();

    assert!(!echo.to_string().contains("planted"));
    assert!(!serde_json::to_string(&toolbox).unwrap().contains("planted"));
    let secrets = &toolbox.credentials["wiki"];
    assert_eq!(secrets.authorization.as_deref(), Some("planted"));
    assert_eq!(secrets.query.as_deref(), Some("key=planted"));
    assert_eq!(secrets.headers.len(), 1);
    assert_eq!(echo["require_approval"], "always");
    assert_eq!(toolbox.servers[0].approval, ApprovalPolicy::Always);
}

#[test]
fn filters_are_parsed() {
    let never = json!({ "never": { "tool_names": ["look"] } });
    let (toolbox, _) =
        read(json!({ "require_approval": never, "allowed_tools": ["look", "write"] })).unwrap();

    let named = |names: &[&str]| ToolFilter {
        tool_names: Some(names.iter().map(|it| (*it).to_owned()).collect()),
        read_only: None,
    };
    assert_eq!(toolbox.servers[0].allowed, Some(named(&["look", "write"])));
    let approval = ApprovalPolicy::Some {
        always: ToolFilter::default(),
        never: named(&["look"]),
    };
    assert_eq!(toolbox.servers[0].approval, approval);
}

#[test]
fn an_invalid_server_is_rejected_with_its_path() {
    for (more, param) in [
        (
            json!({ "require_approval": "sometimes" }),
            "require_approval",
        ),
        (json!({ "require_approval": true }), "require_approval"),
        (json!({ "require_approval": {} }), "require_approval"),
        (
            json!({ "require_approval": { "often": {} } }),
            "require_approval.often",
        ),
        (
            json!({ "require_approval": { "never": {} } }),
            "require_approval.never",
        ),
        (
            json!({ "require_approval": { "never": ["look"] } }),
            "require_approval.never",
        ),
        (
            json!({ "require_approval": { "never": { "tool_names": [7] } } }),
            "require_approval.never.tool_names[0]",
        ),
        (json!({ "allowed_tools": "look" }), "allowed_tools"),
        (
            json!({ "allowed_tools": { "names": [] } }),
            "allowed_tools.names",
        ),
        (json!({ "connector_id": "x" }), "connector_id"),
        (json!({ "server_url": "nowhere" }), "server_url"),
        (json!({ "server_url": null }), "server_url"),
        (json!({ "server_label": "a b" }), "server_label"),
        (json!({ "headers": { "host": "x" } }), "headers.host"),
        (json!({ "authorization": "a\nb" }), "authorization"),
    ] {
        let (_, found) = read(more.clone()).unwrap_err();
        assert_eq!(found, Some(format!("tools[0].{param}")), "{more}");
    }
}
