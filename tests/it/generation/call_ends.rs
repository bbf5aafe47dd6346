//! Tests how an answer can end, and which end counts as success.

use std::time::Duration;

use agent::call_limits::CallLimits;
use agent::outcome::{FailureCode, GenerationOutcome};
use futures::future::join_all;
use llm::delta::FinishReason;
use serde_json::json;

use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::model_call::{
    SHORT_TIMEOUT, call_model, code, estimated, failure, patient_watches, started_script,
    succeeded, text,
};

#[tokio::test]
async fn an_answer_comes_with_its_usage() {
    let upstream = FakeProvider::start().await;
    upstream.reply_with("Good morning, Eve.");

    let outcome = call_model(&upstream, patient_watches()).await;

    assert_eq!(outcome, succeeded("Good morning, Eve."));
    assert_eq!(upstream.n_requests(), 1);
}

#[tokio::test]
async fn a_refusal_is_ordinary_text_unless_distinguished() {
    let upstream = FakeProvider::start().await;
    let refusal = |text: &str| json!({ "choices": [{ "delta": { "refusal": text } }] });
    let script = ResponseScript::stream()
        .role()
        .text("Well. ")
        .event(&refusal("I "));
    upstream.always(script.event(&refusal("cannot.")).finish("stop").done());

    let outcome = call_model(&upstream, patient_watches()).await;

    assert!(
        matches!(outcome, GenerationOutcome::Succeeded { .. }),
        "{outcome:?}"
    );
    assert_eq!(text(&outcome), "Well. I cannot.");
}

#[tokio::test]
async fn an_end_without_finish_reason_and_done_is_never_success() {
    for cut in [
        started_script(),
        ResponseScript::stream(),
        ResponseScript::stream().role(),
        started_script().raw("data: {\"choices\": ["),
    ] {
        let upstream = FakeProvider::start().await;
        upstream.always(cut);

        let outcome = call_model(&upstream, patient_watches()).await;

        assert_eq!(code(&outcome), FailureCode::UpstreamDisconnected);
    }
}

#[tokio::test]
async fn either_a_finish_reason_or_done_is_an_end() {
    for whole in [started_script().finish("stop"), started_script().done()] {
        let upstream = FakeProvider::start().await;
        upstream.always(whole);

        let outcome = call_model(&upstream, patient_watches()).await;

        assert!(
            matches!(outcome, GenerationOutcome::Succeeded { .. }),
            "{outcome:?}"
        );
        assert_eq!(text(&outcome), "Once upon a time");
    }
}

#[tokio::test]
async fn a_complete_answer_is_not_delayed_by_a_connection_that_stays_open() {
    for whole in [
        started_script().finish("stop").hang(),
        started_script().done().hang(),
        started_script().finish("stop").reset(),
    ] {
        let upstream = FakeProvider::start().await;
        upstream.always(whole);

        let outcome = call_model(
            &upstream,
            CallLimits {
                idle: SHORT_TIMEOUT,
                ..patient_watches()
            },
        )
        .await;

        assert!(
            matches!(outcome, GenerationOutcome::Succeeded { .. }),
            "{outcome:?}"
        );
    }
}

#[tokio::test]
async fn a_length_limit_truncates_and_a_filter_is_reported() {
    let upstream = FakeProvider::start().await;
    for (word, reason, is_truncated) in [
        ("length", FinishReason::Length, true),
        ("content_filter", FinishReason::ContentFilter, false),
        ("tool_calls", FinishReason::ToolCalls, false),
        ("tired", FinishReason::Other("tired".to_owned()), false),
    ] {
        upstream.next(started_script().finish(word).done());

        let outcome = call_model(&upstream, patient_watches()).await;

        let text = "Once upon a time".to_owned();
        let usage = estimated(&text);
        assert_eq!(
            outcome,
            GenerationOutcome::Succeeded {
                text,
                reasoning: None,
                usage,
                reason,
                truncated: is_truncated
            }
        );
    }
}

#[tokio::test]
async fn an_answer_without_visible_text_fails_with_its_reason() {
    let upstream = FakeProvider::start().await;
    for (said, word, expected) in [
        ("", "stop", FailureCode::EmptyResponse),
        (" \n\u{200b} ", "stop", FailureCode::EmptyResponse),
        ("", "length", FailureCode::EmptyResponse),
        ("", "content_filter", FailureCode::ContentFilter),
        ("", "tool_calls", FailureCode::EmptyResponse),
        ("Ada: ", "stop", FailureCode::EmptyResponse),
        ("Bob: Hello!\n", "stop", FailureCode::EmptyResponse),
    ] {
        upstream.next(
            ResponseScript::stream()
                .role()
                .text(said)
                .finish(word)
                .done(),
        );

        let outcome = call_model(&upstream, patient_watches()).await;

        assert_eq!(code(&outcome), expected, "{said:?} {word}");
    }
}

#[tokio::test]
async fn an_error_object_in_the_stream_fails_with_its_reason() {
    let upstream = FakeProvider::start().await;
    upstream.always(
        started_script()
            .error("The engine overheated.")
            .finish("stop")
            .done(),
    );

    let outcome = call_model(&upstream, patient_watches()).await;

    assert_eq!(code(&outcome), FailureCode::UpstreamError);
    assert_eq!(
        failure(&outcome).message,
        "The provider returned an error: The engine overheated."
    );
    assert_eq!(text(&outcome), "Once upon a time");
    assert_eq!(upstream.n_requests(), 1);
}

#[tokio::test]
async fn a_response_that_is_no_event_stream_fails() {
    for (script, hint) in [
        (started_script().garbage().finish("stop").done(), "not JSON"),
        (ResponseScript::html(), "web page"),
        (
            started_script().raw(vec![b'x'; 2 * 1024 * 1024]).done(),
            "more than a megabyte",
        ),
        (
            ResponseScript::stream()
                .header("Content-Encoding", "gzip")
                .raw([0x1f, 0x8b]),
            "compressed",
        ),
    ] {
        let upstream = FakeProvider::start().await;
        upstream.always(script);

        let outcome = call_model(&upstream, patient_watches()).await;

        assert_eq!(code(&outcome), FailureCode::UpstreamError);
        assert!(failure(&outcome).message.contains(hint), "{outcome:?}");
        assert_eq!(upstream.n_requests(), 1);
    }
}

#[tokio::test]
async fn in_a_group_text_for_another_speaker_is_cut() {
    let upstream = FakeProvider::start().await;
    upstream.always(
        ResponseScript::stream()
            .words("Ada: Well.\n\n**Bob:** I agree! ")
            .hang(),
    );

    let outcome = call_model(&upstream, patient_watches()).await;

    let GenerationOutcome::Succeeded {
        text,
        reason,
        truncated,
        usage,
        ..
    } = outcome
    else {
        panic!("{outcome:?}")
    };
    assert_eq!(
        (text.as_str(), reason, truncated),
        ("Well.", FinishReason::Stop, false)
    );
    assert!(usage.is_some_and(|it| it.is_estimated), "{usage:?}");
    upstream.wait_for_disconnect(0).await;
}

#[tokio::test]
async fn with_any_provider_fault_every_call_ends_and_only_complete_answers_succeed() {
    let upstream = FakeProvider::start().await;
    upstream.reply_with("A whole answer.");
    upstream.inject_faults(7, 60);
    let watches = CallLimits {
        first_chunk: Duration::from_secs(1),
        idle: Duration::from_secs(1),
        total: Duration::from_secs(4),
        ..patient_watches()
    };

    let outcomes = join_all((0..60).map(|_| call_model(&upstream, watches))).await;

    let n_succeeded = outcomes
        .iter()
        .filter(|it| matches!(it, GenerationOutcome::Succeeded { .. }))
        .count();
    for outcome in outcomes {
        match outcome {
            GenerationOutcome::Succeeded { text, .. } => assert_eq!(text, "A whole answer."),
            GenerationOutcome::Failed { text, .. } => {
                assert!("Once upon a time".starts_with(&text), "{text}")
            }
            GenerationOutcome::Canceled { .. } => panic!("the call was not canceled"),
        }
    }
    assert!((20..60).contains(&n_succeeded), "{n_succeeded}");
}
