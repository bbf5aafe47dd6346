//! Who does what about a call.

use super::Fate;
use super::Left;
use super::Sorted;
use super::sort;
use crate::llm::tool::Tool;
use crate::llm::tool::ToolCall;
use crate::llm::tool::ToolChoice;
use crate::responses::toolbox::Declared;
use crate::responses::toolbox::Kind;
use crate::responses::toolbox::Toolbox;
use serde_json::json;
use std::collections::HashSet;

fn toolbox() -> Toolbox {
    let declared = |name: &str, kind| Declared {
        kind,
        tool: Tool {
            name: name.to_owned(),
            description: None,
            parameters: json!({}),
            strict: None,
        },
    };
    Toolbox {
        tools: vec![
            declared("f", Kind::Function),
            declared("sql", Kind::Custom),
            declared("local_shell", Kind::Shell),
            declared("troupe_time", Kind::Server),
        ],
        ..Toolbox::default()
    }
}

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    }
}

fn sorted(calls: Vec<ToolCall>, toolbox: &Toolbox, mut left: Left) -> Sorted {
    sort(calls, toolbox, &mut HashSet::new(), &mut left)
}

const PLENTY: Left = Left {
    all: 100,
    server: 32,
};

fn is_refused(name: &str, arguments: &str, toolbox: &Toolbox) -> bool {
    let sorted = sorted(vec![call("a", name, arguments)], toolbox, PLENTY);
    matches!(sorted.made[0].fate, Fate::Refused(_))
}

#[test]
fn each_kind_has_its_form() {
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

    let sorted = sorted(calls, &toolbox(), PLENTY);

    let shown = sorted.made.into_iter().map(|it| match it.fate {
        Fate::Client(call) | Fate::Server(call, ..) => call,
        Fate::Refused(reason) => panic!("{reason}"),
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

// R59
#[test]
fn what_is_invented_broken_or_not_allowed_is_refused() {
    assert!(is_refused("g", "{}", &toolbox()));
    assert!(is_refused("f", "{", &toolbox()));
    assert!(is_refused("f", "[]", &toolbox()));
    assert!(is_refused("sql", "{}", &toolbox()));
    assert!(is_refused(
        "local_shell",
        r#"{"command": "ls"}"#,
        &toolbox()
    ));
    let of_one = Toolbox {
        allowed: Some(vec!["sql".to_owned()]),
        ..toolbox()
    };
    assert!(is_refused("f", "{}", &of_one));
    let of_none = Toolbox {
        choice: ToolChoice::None,
        ..toolbox()
    };
    assert!(is_refused("f", "{}", &of_none));
    assert!(!is_refused("f", "{}", &toolbox()));
}

#[test]
fn an_id_that_is_missing_or_doubled_is_ours() {
    let calls = vec![
        call("a", "f", "{}"),
        call("a", "f", "{}"),
        call("", "f", "{}"),
    ];

    let sorted = sorted(calls, &toolbox(), PLENTY);

    let ids: HashSet<&str> = sorted.made.iter().map(|it| it.call.id.as_str()).collect();
    assert_eq!(ids.len(), 3);
    assert!(ids.contains("a"));
}

#[test]
fn more_than_may_be_called_is_left_out() {
    let three = || {
        vec![
            call("a", "f", "{}"),
            call("b", "troupe_time", ""),
            call("c", "f", "{}"),
        ]
    };
    let serial = Toolbox {
        is_serial: true,
        ..toolbox()
    };

    assert_eq!(sorted(three(), &serial, PLENTY).made.len(), 1);
    assert!(!sorted(three(), &serial, PLENTY).is_over);
    let two = sorted(three(), &toolbox(), Left { all: 2, server: 9 });
    assert_eq!((two.made.len(), two.is_over), (2, true));
    let none = sorted(three(), &toolbox(), Left { all: 9, server: 0 });
    assert_eq!((none.made.len(), none.is_over), (2, true));
}
