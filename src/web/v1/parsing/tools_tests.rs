//! Tests of tool declarations: what is accepted, what the model receives, and the echo.

use llm::tool::ToolChoice;
use serde_json::{Map, Value, json};

use super::tool_config;
use crate::responses::execution::tool_config::ToolConfig;
use crate::web::v1::parsing::fields::Fields;

fn read(body: Value) -> Result<(ToolConfig, Map<String, Value>), (String, String)> {
    let mut echo = Map::new();
    let fields = Fields(body.as_object().unwrap());
    match tool_config(&fields, &mut echo) {
        Ok(toolbox) => Ok((toolbox, echo)),
        Err(problem) => Err((problem.code.to_owned(), problem.param.unwrap_or_default())),
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
    for kind in ["web_search", "troupe:memory"] {
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
    let odd = json!({ "type": "function", "name": "g", "parameters": "{}" });
    assert_rejected(with(odd), "invalid_type", "tools[1].parameters");
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
fn a_choice_must_be_among_what_is_declared() {
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
        let (toolbox, echo) = read(choice.clone());
        assert_eq!((toolbox.choice, &echo["tool_choice"]), (means, &choice));
    }
    let (toolbox, echo) = read(json!({ "type": "allowed_tools", "tools": [function_tool()] }));
    assert!(toolbox.find("f").is_some() && toolbox.find("troupe_time").is_none());
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

    let (toolbox, echo) = read(body).unwrap();

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
    assert!(toolbox.is_serial && toolbox.max_calls == Some(3));
    let names: Vec<&str> = toolbox
        .tools
        .iter()
        .map(|it| it.tool.name.as_str())
        .collect();
    assert_eq!(names, ["f", "sql", "local_shell", "troupe_dice"]);
    assert_eq!(toolbox.tools[0].tool.parameters["type"], "object");
    let description = toolbox.tools[1].tool.description.as_ref().unwrap();
    assert!(description.starts_with("Asks.") && description.contains("start: /x/"));
    assert_eq!(
        toolbox.tools[1].tool.parameters["required"],
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

    let (toolbox, echo) = read(with(mcp.clone())).unwrap();
    assert_eq!(toolbox.choice, ToolChoice::Required);
    assert_eq!(
        (toolbox.must_use.as_deref(), &echo["tool_choice"]),
        (Some("wiki"), &mcp)
    );
    let (toolbox, echo) = read(with(look.clone())).unwrap();
    let named = ToolChoice::Named("mcp_wiki_look".to_owned());
    assert_eq!((toolbox.choice, &echo["tool_choice"]), (named, &look));
    assert_eq!(toolbox.must_use, None);
    let list =
        json!({ "type": "allowed_tools", "mode": "auto", "tools": [look, mcp, function_tool()] });
    let (toolbox, echo) = read(with(list)).unwrap();
    let names = ["mcp_wiki_look", "f"].map(str::to_owned);
    assert_eq!(toolbox.allowed, Some(names.to_vec()));
    assert_eq!(toolbox.allowed_servers, ["wiki"]);
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
