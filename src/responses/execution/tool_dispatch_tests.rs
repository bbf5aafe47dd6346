//! Tests of which tool calls run where, and which are rejected.

use std::collections::HashSet;

use llm::tool::{Tool, ToolCall, ToolChoice};
use serde_json::json;

use super::{CallBudget, DispatchedCalls, Disposition, dispatch};
use crate::responses::execution::tool_config::{DeclaredTool, ToolConfig, ToolKind};

fn tool_config() -> ToolConfig {
    let declared = |name: &str, kind| DeclaredTool {
        namespaced: None,
        kind,
        tool: Tool {
            name: name.to_owned(),
            description: None,
            parameters: json!({}),
            strict: None,
        },
    };
    ToolConfig {
        tools: vec![
            declared("f", ToolKind::Function),
            declared("sql", ToolKind::Custom),
            declared("local_shell", ToolKind::Shell),
            declared("troupe_time", ToolKind::Server),
        ],
        ..ToolConfig::default()
    }
}

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    }
}

fn dispatched(calls: Vec<ToolCall>, tools: &ToolConfig, mut budget: CallBudget) -> DispatchedCalls {
    dispatch(calls, tools, &mut HashSet::new(), &mut budget)
}

const LARGE_BUDGET: CallBudget = CallBudget {
    n_total: 100,
    n_server: 32,
};

fn is_rejected(name: &str, arguments: &str, tools: &ToolConfig) -> bool {
    let dispatched = dispatched(vec![call("a", name, arguments)], tools, LARGE_BUDGET);
    matches!(dispatched.calls[0].disposition, Disposition::Rejected(_))
}

#[test]
fn each_kind_of_tool_has_its_item() {
    let calls = vec![
        call("a", "f", r#"{"x": 1}"#),
        call("b", "sql", r#"{"input": "SELECT"}"#),
        call(
            "c",
            "local_shell",
            r#"{"command": ["ls"], "timeout_ms": 5}"#,
        ),
        call("d", "troupe_time", ""),
    ];

    let sorted = dispatched(calls, &tool_config(), LARGE_BUDGET);

    let shown = sorted.calls.into_iter().map(|it| match it.disposition {
        Disposition::Client(call) | Disposition::Server(call, ..) => {
            serde_json::to_value(call).unwrap()
        }
        Disposition::Rejected(reason) => panic!("{reason}"),
    });
    let shown: Vec<_> = shown.collect();
    assert_eq!(shown[0]["arguments"], r#"{"x": 1}"#);
    assert_eq!(shown[1]["input"], "SELECT");
    assert_eq!(
        shown[2]["action"],
        json!({ "type": "exec", "command": ["ls"], "env": {}, "timeout_ms": 5 })
    );
    assert_eq!(
        (&shown[3]["type"], &shown[3]["arguments"]),
        (&json!("troupe:time"), &json!("{}"))
    );
}

#[test]
fn an_unknown_invalid_or_forbidden_call_is_rejected() {
    assert!(is_rejected("g", "{}", &tool_config()));
    assert!(is_rejected("f", "{", &tool_config()));
    assert!(is_rejected("f", "[]", &tool_config()));
    assert!(is_rejected("sql", "{}", &tool_config()));
    assert!(is_rejected(
        "local_shell",
        r#"{"command": "ls"}"#,
        &tool_config()
    ));
    let of_one = ToolConfig {
        allowed: Some(vec!["sql".to_owned()]),
        ..tool_config()
    };
    assert!(is_rejected("f", "{}", &of_one));
    let of_none = ToolConfig {
        choice: ToolChoice::None,
        ..tool_config()
    };
    assert!(is_rejected("f", "{}", &of_none));
    assert!(!is_rejected("f", "{}", &tool_config()));
}

#[test]
fn a_missing_or_duplicate_id_is_replaced() {
    let calls = vec![
        call("a", "f", "{}"),
        call("a", "f", "{}"),
        call("", "f", "{}"),
    ];

    let sorted = dispatched(calls, &tool_config(), LARGE_BUDGET);

    let ids: HashSet<&str> = sorted.calls.iter().map(|it| it.call.id.as_str()).collect();
    assert_eq!(ids.len(), 3);
    assert!(ids.contains("a"));
}

#[test]
fn calls_over_the_budget_are_left_out() {
    let three = || {
        vec![
            call("a", "f", "{}"),
            call("b", "troupe_time", ""),
            call("c", "f", "{}"),
        ]
    };
    let serial = ToolConfig {
        is_serial: true,
        ..tool_config()
    };

    assert_eq!(dispatched(three(), &serial, LARGE_BUDGET).calls.len(), 1);
    assert!(!dispatched(three(), &serial, LARGE_BUDGET).exceeds_budget);
    let two = dispatched(
        three(),
        &tool_config(),
        CallBudget {
            n_total: 2,
            n_server: 9,
        },
    );
    assert_eq!((two.calls.len(), two.exceeds_budget), (2, true));
    let none = dispatched(
        three(),
        &tool_config(),
        CallBudget {
            n_total: 9,
            n_server: 0,
        },
    );
    assert_eq!((none.calls.len(), none.exceeds_budget), (2, true));
}
