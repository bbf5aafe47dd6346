//! Retries of a model call: when, how often, and the error after the last one.

use std::time::Duration;

use agent::outcome::FailureCode;
use tokio::net::TcpListener;

use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::model_call;
use crate::support::model_call::{
    call_model, code, failure, patient_watches, registry, started_script, succeeded,
    succeeded_after_retry, text,
};

#[tokio::test]
async fn transient_errors_are_survived_within_three_attempts() {
    for status in [408, 409, 425, 429, 499, 500, 502, 503] {
        let upstream = FakeProvider::start().await;
        upstream.next(ResponseScript::status(status));
        upstream.next(ResponseScript::status(status));

        let outcome = call_model(&upstream, patient_watches()).await;

        assert_eq!(outcome, succeeded("Hello."), "{status}");
        assert_eq!(upstream.n_requests(), 3, "{status}");
    }
}

#[tokio::test]
async fn after_three_attempts_the_providers_reason_is_reported() {
    for (status, expected) in [
        (429, FailureCode::UpstreamRateLimited),
        (503, FailureCode::UpstreamError),
    ] {
        let upstream = FakeProvider::start().await;
        upstream.always(ResponseScript::status(status));

        let outcome = call_model(&upstream, patient_watches()).await;

        assert_eq!(code(&outcome), expected);
        assert!(
            failure(&outcome)
                .message
                .contains(&format!("Scripted {status}.")),
            "{outcome:?}"
        );
        assert!(failure(&outcome).is_retryable);
        assert_eq!(upstream.n_requests(), 3);
    }
}

#[tokio::test]
async fn a_permanent_error_is_not_retried() {
    for status in [302, 400, 401, 402, 403, 404, 422] {
        let upstream = FakeProvider::start().await;
        upstream.always(ResponseScript::status(status));

        let outcome = call_model(&upstream, patient_watches()).await;

        assert_eq!(code(&outcome), FailureCode::UpstreamError);
        assert!(!failure(&outcome).is_retryable);
        assert_eq!(upstream.n_requests(), 1, "{status}");
    }
}

#[tokio::test]
async fn a_short_retry_after_is_waited_for() {
    let upstream = FakeProvider::start().await;
    upstream.next(ResponseScript::rate_limited("1"));

    let outcome = call_model(&upstream, patient_watches()).await;

    let waited = upstream.seen(1).came_at - upstream.seen(0).came_at;
    assert_eq!(outcome, succeeded("Hello."));
    assert!(waited >= Duration::from_secs(1), "{waited:?}");
}

#[tokio::test]
async fn a_long_retry_after_fails_at_once() {
    let date = ResponseScript::rate_limited("Wed, 21 Oct 2015 07:29:00 GMT")
        .header("Date", "Wed, 21 Oct 2015 07:28:00 GMT");
    for script in [
        ResponseScript::rate_limited("11"),
        ResponseScript::rate_limited("999999"),
        date,
    ] {
        let upstream = FakeProvider::start().await;
        upstream.always(script);

        let outcome = call_model(&upstream, patient_watches()).await;

        assert_eq!(code(&outcome), FailureCode::UpstreamRateLimited);
        assert_eq!(upstream.n_requests(), 1);
    }
}

#[tokio::test]
async fn a_retry_after_without_a_valid_delay_is_ignored() {
    for nonsense in ["soon", "-5", "0", "Wed, 21 Oct 2015 07:28:00 GMT"] {
        let upstream = FakeProvider::start().await;
        upstream.next(ResponseScript::rate_limited(nonsense));

        let outcome = call_model(&upstream, patient_watches()).await;

        assert_eq!(outcome, succeeded("Hello."), "{nonsense}");
    }
}

#[tokio::test]
async fn an_unreachable_provider_is_reported_clearly() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let provider = registry()
        .provider(&model_call::spec(&format!("http://{address}/v1")))
        .unwrap();

    let (outcome, _) = model_call::call_model_with_deltas(&*provider, patient_watches()).await;

    assert_eq!(code(&outcome), FailureCode::UpstreamError);
    assert_eq!(
        failure(&outcome).message,
        "The provider could not be reached: it refused the connection."
    );
    assert!(failure(&outcome).is_retryable);
}

#[tokio::test]
async fn a_connection_that_breaks_before_any_text_is_retried() {
    let upstream = FakeProvider::start().await;
    upstream.next(ResponseScript::reset_before_headers());
    upstream.next(ResponseScript::stream().role().reset());

    let outcome = call_model(&upstream, patient_watches()).await;

    assert_eq!(outcome, succeeded_after_retry("Hello."));
    assert_eq!(upstream.n_requests(), 3);
}

#[tokio::test]
async fn a_connection_that_breaks_after_some_text_is_not_retried() {
    for broken in [started_script().reset(), started_script().close()] {
        let upstream = FakeProvider::start().await;
        upstream.always(broken);

        let outcome = call_model(&upstream, patient_watches()).await;

        assert_eq!(code(&outcome), FailureCode::UpstreamDisconnected);
        assert_eq!(text(&outcome), "Once upon a time");
        assert_eq!(upstream.n_requests(), 1);
    }
}
