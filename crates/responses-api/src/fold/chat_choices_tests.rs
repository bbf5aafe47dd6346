//! Tests of several choices: their positions, the sum of their usage, and failures of some or all.

use base::clock::Timestamp;
use serde_json::{Value, json};

use super::{completion, error_chunk, usage_chunk};
use crate::fold::chat_fold::ChatFold;
use crate::fold::chat_objects::CompletionHeader;
use crate::fold::engine_event::{EngineEvent, ResponseEnd, ResponseOutcome};
use crate::response::{ResponseError, ResponseUsage};

fn header() -> CompletionHeader {
    CompletionHeader {
        id: "chatcmpl-1".to_owned(),
        created: 1,
        model: "m".to_owned(),
        include_usage: true,
    }
}

/// Returns the choice at `index` after a text, which may be empty, and this end.
fn choice(index: usize, text: &str, outcome: ResponseOutcome) -> ChatFold {
    let mut fold = ChatFold::new(header(), index);
    if !text.is_empty() {
        fold.apply(EngineEvent::TextDelta(text.to_owned()));
    }
    fold.apply(EngineEvent::Finished(ResponseEnd {
        outcome,
        usage: Some(ResponseUsage {
            input_tokens: 7,
            output_tokens: 3,
            reasoning_tokens: 1,
        }),
        at: Timestamp(2_000),
    }));
    fold
}

fn failed(message: &str) -> ResponseOutcome {
    ResponseOutcome::Failed(ResponseError {
        code: "rate_limit_exceeded".to_owned(),
        message: message.to_owned(),
    })
}

#[test]
fn the_prompt_of_several_choices_is_counted_once() {
    let folds = vec![
        choice(0, "A", ResponseOutcome::Completed),
        choice(1, "B", ResponseOutcome::Completed),
    ];

    let chunk = usage_chunk(&header(), &folds).unwrap().unwrap();
    let answer = serde_json::to_value(completion(&header(), folds).unwrap()).unwrap();

    let chunk: Value = serde_json::from_str(&chunk).unwrap();
    assert_eq!(
        (&chunk["choices"], &chunk["usage"]),
        (&json!([]), &answer["usage"])
    );
    let usage = &answer["usage"];
    assert_eq!(
        (&usage["prompt_tokens"], &usage["completion_tokens"]),
        (&json!(7), &json!(6))
    );
    assert_eq!(usage["completion_tokens_details"]["reasoning_tokens"], 2);
    for (index, text) in [(0, "A"), (1, "B")] {
        let choice = &answer["choices"][index];
        assert_eq!(
            (&choice["index"], &choice["message"]["content"]),
            (&json!(index), &json!(text))
        );
    }
}

#[test]
fn an_answer_leaves_out_the_choices_that_failed() {
    let folds = vec![
        choice(0, "", failed("First.")),
        choice(1, "B", ResponseOutcome::Completed),
    ];

    let answer = serde_json::to_value(completion(&header(), folds).unwrap()).unwrap();

    assert_eq!(answer["choices"].as_array().map(Vec::len), Some(1));
    assert_eq!(answer["choices"][0]["index"], 1);
}

#[test]
fn a_request_whose_choices_all_failed_returns_the_first_failure() {
    let folds = || {
        vec![
            choice(0, "", failed("First.")),
            choice(1, "", failed("Second.")),
        ]
    };

    assert_eq!(
        completion(&header(), folds()).unwrap_err().message,
        "First."
    );
    assert_eq!(
        usage_chunk(&header(), &folds()).unwrap_err().message,
        "First."
    );
}

#[test]
fn a_stream_reports_the_failure_of_a_choice_that_had_begun() {
    let of = |text| {
        vec![
            choice(0, text, failed("Cut.")),
            choice(1, "B", ResponseOutcome::Completed),
        ]
    };

    assert_eq!(
        usage_chunk(&header(), &of("A")).unwrap_err().message,
        "Cut."
    );
    assert!(usage_chunk(&header(), &of("")).unwrap().is_some());
}

#[test]
fn the_error_of_a_stream_has_exactly_this_json() {
    for (code, kind, reported) in [
        (
            "rate_limit_exceeded",
            "rate_limit_error",
            "rate_limit_exceeded",
        ),
        ("strange", "server_error", "upstream_error"),
    ] {
        let error = ResponseError {
            code: code.to_owned(),
            message: "Later.".to_owned(),
        };

        let expected = format!(
            r#"{{"error":{{"type":"{kind}","code":"{reported}","message":"Later.","param":null}}}}"#
        );
        assert_eq!(error_chunk(&error), expected);
    }
}
