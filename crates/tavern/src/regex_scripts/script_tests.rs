//! Tests of how scripts are read.

use serde_json::json;

use super::RegexScript;

#[test]
fn a_script_of_sillytavern_is_read() {
    let script = RegexScript::from_value(&json!({
        "id": "a8", "scriptName": "Stars", "findRegex": "/\\*(.+?)\\*/g", "replaceString": "<i>$1</i>",
        "trimStrings": ["*", ""], "placement": [1, 2], "disabled": false, "markdownOnly": true,
        "promptOnly": false, "runOnEdit": true, "substituteRegex": 2, "minDepth": null, "maxDepth": 4
    }));

    assert_eq!(
        script,
        Some(RegexScript {
            name: "Stars".into(),
            find_regex: "/\\*(.+?)\\*/g".into(),
            replace_string: "<i>$1</i>".into(),
            trim_strings: vec!["*".into()],
            placement: vec![1, 2],
            disabled: false,
            markdown_only: true,
            prompt_only: false,
            run_on_edit: true,
            substitute_regex: 2,
            min_depth: None,
            max_depth: Some(4),
        })
    );
}

#[test]
fn values_of_other_types_are_accepted() {
    let script = RegexScript::from_value(&json!({
        "scriptName": 5, "findRegex": "a", "trimStrings": "x\n\ny", "placement": ["2", 1.0, "z"],
        "disabled": "true", "markdownOnly": 1, "substituteRegex": true, "minDepth": "-1", "maxDepth": 2.0
    }));

    let script = script.expect("it is an object");
    assert_eq!(script.name, "");
    assert_eq!(script.trim_strings, ["x", "y"]);
    assert_eq!(script.placement, [2, 1]);
    assert!(script.disabled && script.markdown_only);
    assert_eq!(script.substitute_regex, 1);
    assert_eq!((script.min_depth, script.max_depth), (Some(-1), Some(2)));
}

#[test]
fn depths_below_their_minimum_are_no_bounds() {
    let script = json!({"minDepth": -2, "maxDepth": -1});
    let script = RegexScript::from_value(&script).expect("it is an object");

    assert_eq!((script.min_depth, script.max_depth), (None, None));
}

#[test]
fn what_is_no_object_is_no_script() {
    assert_eq!(RegexScript::from_value(&json!("a")), None);
    assert_eq!(RegexScript::from_value(&json!([])), None);
}
