//! Time and size limits of a model call.

use std::time::Duration;

use agent::call_limits::CallLimits;
use agent::outcome::{FailureCode, GenerationOutcome};
use llm::delta::FinishReason;
use serde_json::json;

use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::model_call::{
    SHORT_TIMEOUT, call_model, code, failure, patient_watches, started_script, succeeded,
    succeeded_after_retry, text,
};

#[tokio::test]
async fn a_call_without_a_first_chunk_is_retried_once_and_then_fails() {
    for script in [
        ResponseScript::hang_before_headers(),
        ResponseScript::hang_before_first_chunk(),
    ] {
        let upstream = FakeProvider::start().await;
        upstream.always(script);

        let outcome = call_model(
            &upstream,
            CallLimits {
                first_chunk: SHORT_TIMEOUT,
                ..patient_watches()
            },
        )
        .await;

        assert_eq!(code(&outcome), FailureCode::UpstreamTimeout);
        assert!(failure(&outcome).is_retryable);
        assert_eq!(upstream.n_requests(), 2);
        upstream.wait_for_disconnect(0).await;
        upstream.wait_for_disconnect(1).await;
    }
}

#[tokio::test]
async fn a_second_attempt_succeeds_after_one_without_a_first_chunk() {
    let upstream = FakeProvider::start().await;
    upstream.next(ResponseScript::hang_before_first_chunk());
    let watches = CallLimits {
        first_chunk: Duration::from_secs(2),
        ..patient_watches()
    };

    let outcome = call_model(&upstream, watches).await;

    assert_eq!(outcome, succeeded_after_retry("Hello."));
    assert_eq!(upstream.n_requests(), 2);
}

#[tokio::test]
async fn the_first_chunk_limit_applies_until_the_first_text_thought_or_tool_call() {
    for alive in [
        ResponseScript::stream().comment(),
        ResponseScript::stream().role(),
        ResponseScript::stream().empty(),
        ResponseScript::stream().usage(1, 0),
        ResponseScript::stream().raw("data: {\"cho"),
    ] {
        let upstream = FakeProvider::start().await;
        upstream.always(alive.hang());

        let outcome = call_model(
            &upstream,
            CallLimits {
                first_chunk: SHORT_TIMEOUT,
                ..patient_watches()
            },
        )
        .await;

        assert_eq!(code(&outcome), FailureCode::UpstreamTimeout);
        assert_eq!(upstream.n_requests(), 2, "tried once more");
        upstream.wait_for_disconnect(1).await;
    }
}

#[tokio::test]
async fn a_model_that_reasons_silently_is_not_ended_by_the_idle_limit_after_its_role() {
    let upstream = FakeProvider::start().await;
    let thinks = ResponseScript::stream().role().pause(SHORT_TIMEOUT * 4);
    upstream.always(thinks.words("At last.").finish("stop").usage(7, 2).done());

    let outcome = call_model(
        &upstream,
        CallLimits {
            idle: SHORT_TIMEOUT,
            ..patient_watches()
        },
    )
    .await;

    assert_eq!(outcome, succeeded("At last."));
    assert_eq!(upstream.n_requests(), 1);
}

#[tokio::test]
async fn the_idle_limit_applies_after_the_first_text_thought_or_tool_call() {
    let thought = json!({ "reasoning_content": "Hm." });
    for begun in [
        ResponseScript::stream().role().text("Once"),
        ResponseScript::stream().delta(thought),
        ResponseScript::stream().call(0, "c1", "f"),
    ] {
        let upstream = FakeProvider::start().await;
        upstream.always(begun.comment().hang());

        let outcome = call_model(
            &upstream,
            CallLimits {
                idle: SHORT_TIMEOUT,
                ..patient_watches()
            },
        )
        .await;

        assert_eq!(code(&outcome), FailureCode::UpstreamTimeout);
        assert_eq!(upstream.n_requests(), 1, "not tried again");
        upstream.wait_for_disconnect(0).await;
    }
}

#[tokio::test]
async fn an_answer_that_becomes_idle_fails() {
    let upstream = FakeProvider::start().await;
    upstream.always(started_script().hang());

    let outcome = call_model(
        &upstream,
        CallLimits {
            idle: SHORT_TIMEOUT,
            ..patient_watches()
        },
    )
    .await;

    assert_eq!(code(&outcome), FailureCode::UpstreamTimeout);
    assert_eq!(text(&outcome), "Once upon a time");
    assert_eq!(upstream.n_requests(), 1);
    upstream.wait_for_disconnect(0).await;
}

#[tokio::test]
async fn the_total_limit_ends_a_stream_of_only_comments() {
    let upstream = FakeProvider::start().await;
    upstream.always(ResponseScript::stream().forever(": ping\n\n", Duration::from_millis(5)));

    let outcome = call_model(
        &upstream,
        CallLimits {
            total: SHORT_TIMEOUT,
            ..patient_watches()
        },
    )
    .await;

    assert_eq!(code(&outcome), FailureCode::RunTimeout);
    upstream.wait_for_disconnect(0).await;
}

#[tokio::test]
async fn no_retry_waits_beyond_the_total_limit() {
    let upstream = FakeProvider::start().await;
    upstream.always(ResponseScript::rate_limited("9"));

    let outcome = call_model(
        &upstream,
        CallLimits {
            total: SHORT_TIMEOUT,
            ..patient_watches()
        },
    )
    .await;

    assert_eq!(code(&outcome), FailureCode::UpstreamRateLimited);
    assert_eq!(upstream.n_requests(), 1);
}

#[tokio::test]
async fn an_endless_answer_is_cut_at_the_size_limit() {
    let upstream = FakeProvider::start().await;
    let flood = "data: {\"choices\": [{\"delta\": {\"content\": \"na na 漢 \"}}]}\n\n";
    upstream.always(ResponseScript::stream().forever(flood, Duration::ZERO));

    let outcome = call_model(
        &upstream,
        CallLimits {
            max_text_bytes: 10_000,
            ..patient_watches()
        },
    )
    .await;

    let GenerationOutcome::Succeeded {
        text,
        reason,
        truncated,
        ..
    } = outcome
    else {
        panic!("{outcome:?}")
    };
    assert!((9_990..=10_000).contains(&text.len()), "{}", text.len());
    assert_eq!((reason, truncated), (FinishReason::Length, true));
    upstream.wait_for_disconnect(0).await;
}
