//! Tests of tool declarations: what is accepted, what the model receives, and the echo.

use agent::tools::mcp::policy::{ApprovalPolicy, ToolFilter};
use llm::tool::ToolChoice;
use responses_api::request::create_response::CreateResponse;
use serde_json::{Map, Value, json};

use super::SERVER_RULES;
use crate::responses::execution::tool_config::ToolConfig;
use crate::responses::request::ResponseRequest;

/// Returns the tools and the echo of a request with these fields, or the code and the param of its
/// error.
fn read(mut body: Value) -> Result<(ToolConfig, Map<String, Value>), (String, String)> {
    body["model"] = json!("m");
    body["input"] = json!("Hi.");
    match CreateResponse::parse(body.as_object().unwrap(), &SERVER_RULES) {
        Ok(request) => {
            let stored = ResponseRequest::from(request).stored;
            Ok((stored.tools, stored.echo))
        }
        Err(error) => Err((error.code.to_owned(), error.param)),
    }
}

fn assert_rejected(body: Value, code: &str, param: &str) {
    let rejection = read(body.clone()).expect_err(&body.to_string());
    assert_eq!(rejection, (code.to_owned(), param.to_owned()), "{body}");
}

fn function_tool() -> Value {
    json!({ "type": "function", "name": "f" })
}

#[test]
fn an_invalid_declaration_is_named() {
    let with = |tool: Value| json!({ "tools": [function_tool(), tool] });

    assert_rejected(json!({ "tools": {} }), "invalid_type", "tools");
    assert_rejected(with(json!(1)), "invalid_type", "tools[1]");
    assert_rejected(
        with(json!({})),
        "missing_required_parameter",
        "tools[1].type",
    );
    for kind in ["search", "troupe:dream", "troupe:troupe:time"] {
        assert_rejected(
            with(json!({ "type": kind })),
            "unsupported_tool",
            "tools[1].type",
        );
    }
    assert_rejected(
        with(json!({ "type": "function" })),
        "missing_required_parameter",
        "tools[1].name",
    );
    for name in ["", "ä", "a b", &"x".repeat(65)] {
        let tool = json!({ "type": "custom", "name": name });
        assert_rejected(with(tool), "invalid_value", "tools[1].name");
    }
    assert_rejected(with(function_tool()), "invalid_value", "tools[1].name");
    let bad_parameters = json!({ "type": "function", "name": "g", "parameters": "{}" });
    assert_rejected(with(bad_parameters), "invalid_type", "tools[1].parameters");
    let more = json!({ "type": "function", "name": "g", "timeout": 1 });
    assert_rejected(with(more), "unknown_parameter", "tools[1].timeout");
    let grammar = json!({ "type": "custom", "name": "g", "format": { "type": "grammar" } });
    assert_rejected(
        with(grammar),
        "missing_required_parameter",
        "tools[1].format.syntax",
    );
    let many: Vec<Value> = (0..129)
        .map(|it| json!({ "type": "function", "name": format!("f{it}") }))
        .collect();
    assert_rejected(json!({ "tools": many }), "invalid_value", "tools");
    assert_rejected(
        json!({ "max_tool_calls": 0 }),
        "invalid_value",
        "max_tool_calls",
    );
}

#[test]
fn a_tool_choice_must_be_declared() {
    let with = |choice: Value| json!({ "tools": [function_tool()], "tool_choice": choice });

    assert_rejected(
        json!({ "tool_choice": "required" }),
        "invalid_value",
        "tool_choice",
    );
    assert_rejected(with(json!("always")), "invalid_value", "tool_choice");
    assert_rejected(with(json!(1)), "invalid_type", "tool_choice");
    let g = json!({ "type": "function", "name": "g" });
    assert_rejected(with(g.clone()), "invalid_value", "tool_choice.name");
    assert_rejected(
        with(json!({ "type": "custom", "name": "f" })),
        "invalid_value",
        "tool_choice.name",
    );
    assert_rejected(
        with(json!({ "type": "troupe:time" })),
        "invalid_value",
        "tool_choice.type",
    );
    let allowed = json!({ "type": "allowed_tools", "tools": [function_tool(), g] });
    assert_rejected(with(allowed), "invalid_value", "tool_choice.tools[1].name");
    let none = json!({ "type": "allowed_tools", "tools": [] });
    assert_rejected(with(none), "invalid_value", "tool_choice.tools");
}

#[test]
fn a_choice_is_parsed_and_echoed() {
    let read = |choice: Value| {
        let tools = json!([function_tool(), { "type": "troupe:time" }]);
        read(json!({ "tools": tools, "tool_choice": choice })).unwrap()
    };

    for (choice, means) in [
        (json!("auto"), ToolChoice::Auto),
        (json!("none"), ToolChoice::None),
        (json!("required"), ToolChoice::Required),
        (function_tool(), ToolChoice::Named("f".to_owned())),
        (
            json!({ "type": "troupe:time" }),
            ToolChoice::Named("troupe_time".to_owned()),
        ),
    ] {
        let (config, echo) = read(choice.clone());
        assert_eq!((config.choice, &echo["tool_choice"]), (means, &choice));
    }
    let (config, echo) = read(json!({ "type": "allowed_tools", "tools": [function_tool()] }));
    assert!(config.find("f").is_some() && config.find("troupe_time").is_none());
    assert_eq!(
        echo["tool_choice"],
        json!({ "type": "allowed_tools", "tools": [function_tool()], "mode": "auto" })
    );
}

#[test]
fn tools_are_echoed_in_full_and_sent_as_functions() {
    let sql = json!({
        "type": "custom", "name": "sql", "description": "Asks.",
        "format": { "type": "grammar", "syntax": "lark", "definition": "start: /x/" },
    });
    let body = json!({
        "tools": [function_tool(), sql, { "type": "local_shell" }, { "type": "troupe:dice" }],
        "parallel_tool_calls": false, "max_tool_calls": 3,
    });

    let (config, echo) = read(body).unwrap();

    assert_eq!(
        echo["tools"][0],
        json!({ "type": "function", "name": "f", "description": null, "parameters": null, "strict": null })
    );
    assert_eq!(echo["tools"][1], sql);
    assert_eq!(echo["tools"][3], json!({ "type": "troupe:dice" }));
    assert_eq!(
        (&echo["parallel_tool_calls"], &echo["max_tool_calls"]),
        (&json!(false), &json!(3))
    );
    assert!(config.is_serial && config.max_calls == Some(3));
    let names: Vec<&str> = config
        .tools
        .iter()
        .map(|it| it.tool.name.as_str())
        .collect();
    assert_eq!(names, ["f", "sql", "local_shell", "troupe_dice"]);
    assert_eq!(config.tools[0].tool.parameters["type"], "object");
    let description = config.tools[1].tool.description.as_ref().unwrap();
    assert!(description.starts_with("Asks.") && description.contains("start: /x/"));
    assert_eq!(
        config.tools[1].tool.parameters["required"],
        json!(["input"])
    );
}

#[test]
fn a_choice_may_be_a_server_or_one_of_its_tools() {
    let server = json!({
        "type": "mcp", "server_label": "wiki", "server_url": "https://wiki.test/mcp",
        "allowed_tools": ["look"],
    });
    let with = |choice: Value| json!({ "tools": [function_tool(), server], "tool_choice": choice });
    let mcp = json!({ "type": "mcp", "server_label": "wiki" });
    let look = json!({ "type": "mcp", "server_label": "wiki", "name": "look" });

    let (config, echo) = read(with(mcp.clone())).unwrap();
    assert_eq!(config.choice, ToolChoice::Required);
    assert_eq!(
        (config.must_use.as_deref(), &echo["tool_choice"]),
        (Some("wiki"), &mcp)
    );
    let (config, echo) = read(with(look.clone())).unwrap();
    let named = ToolChoice::Named("mcp_wiki_look".to_owned());
    assert_eq!((config.choice, &echo["tool_choice"]), (named, &look));
    assert_eq!(config.must_use, None);
    let list =
        json!({ "type": "allowed_tools", "mode": "auto", "tools": [look, mcp, function_tool()] });
    let (config, echo) = read(with(list)).unwrap();
    let names = ["mcp_wiki_look", "f"].map(str::to_owned);
    assert_eq!(config.allowed, Some(names.to_vec()));
    assert_eq!(config.allowed_servers, ["wiki"]);
    let echoed = echo["tool_choice"]["tools"].as_array().unwrap();
    assert_eq!(echoed[..2], [look, mcp]);

    let other = json!({ "type": "mcp", "server_label": "maps" });
    assert_rejected(with(other), "invalid_value", "tool_choice.server_label");
    assert_rejected(
        with(json!({ "type": "mcp" })),
        "invalid_value",
        "tool_choice.server_label",
    );
    let label = json!({ "type": "mcp", "server_label": 1 });
    assert_rejected(with(label), "invalid_type", "tool_choice.server_label");
    let write = json!({ "type": "mcp", "server_label": "wiki", "name": "write" });
    assert_rejected(with(write.clone()), "invalid_value", "tool_choice.name");
    let list = json!({ "type": "allowed_tools", "tools": [write] });
    assert_rejected(with(list), "invalid_value", "tool_choice.tools[0].name");
}

/// Like [`read`], for one MCP server with these fields; returns the echo of the server alone.
fn read_server(more: Value) -> Result<(ToolConfig, Value), (String, String)> {
    let mut tool = json!({ "type": "mcp", "server_label": "wiki", "server_url": "https://mcp.example.com/mcp" });
    for (name, value) in more.as_object().unwrap() {
        tool[name] = value.clone();
    }
    let (tools, echo) = read(json!({ "tools": [tool] }))?;
    Ok((tools, echo["tools"][0].clone()))
}

#[test]
fn credentials_are_stored_separately_and_not_echoed() {
    let more = json!({
        "server_url": "https://mcp.example.com/mcp?key=planted", "authorization": "Bearer planted",
        "headers": { "x-team": "planted" },
    });

    let (config, echo) = read_server(more).unwrap();

    assert!(!echo.to_string().contains("planted"));
    assert!(!serde_json::to_string(&config).unwrap().contains("planted"));
    let secrets = &config.credentials["wiki"];
    assert_eq!(secrets.authorization.as_deref(), Some("planted"));
    assert_eq!(secrets.query.as_deref(), Some("key=planted"));
    assert_eq!(secrets.headers.len(), 1);
    assert_eq!(echo["require_approval"], "always");
    assert_eq!(config.servers[0].approval, ApprovalPolicy::Always);
}

#[test]
fn filters_are_parsed() {
    let never = json!({ "never": { "tool_names": ["look"] } });
    let (config, _) =
        read_server(json!({ "require_approval": never, "allowed_tools": ["look", "write"] }))
            .unwrap();

    let named = |names: &[&str]| ToolFilter {
        tool_names: Some(names.iter().map(|it| (*it).to_owned()).collect()),
        read_only: None,
    };
    assert_eq!(config.servers[0].allowed, Some(named(&["look", "write"])));
    let approval = ApprovalPolicy::Some {
        always: ToolFilter::default(),
        never: named(&["look"]),
    };
    assert_eq!(config.servers[0].approval, approval);
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
        let (_, found) = read_server(more.clone()).unwrap_err();
        assert_eq!(found, format!("tools[0].{param}"), "{more}");
    }
}
