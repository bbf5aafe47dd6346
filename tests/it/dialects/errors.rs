//! Retries, errors and limits that apply to every kind of provider.

use std::time::Duration;

use agent::call_limits::CallLimits;
use agent::outcome::{FailureCode, GenerationOutcome};
use llm::registry::ProviderKind;
use serde_json::json;

use super::kinds::{ALL, call_model, error_response, keep_alive, piece, recorded, sends, stream};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::model_call::{SHORT_TIMEOUT, code, failure, patient_watches, text};

#[tokio::test]
async fn a_rate_limited_call_waits_for_retry_after_up_to_the_limit() {
    for kind in ALL {
        let upstream = FakeProvider::start().await;
        upstream.next(error_response(kind, 429, "Slow down.").header("Retry-After", "0"));
        upstream.next(sends(kind, recorded(kind, "hello").unwrap()));
        upstream.next(error_response(kind, 429, "Slow down.").header("Retry-After", "999999"));

        let second = call_model(kind, &upstream, patient_watches()).await;
        let refused = call_model(kind, &upstream, patient_watches()).await;

        assert!(
            matches!(second, GenerationOutcome::Succeeded { .. }),
            "{kind}: {second:?}"
        );
        assert_eq!(code(&refused), FailureCode::UpstreamRateLimited, "{kind}");
        assert_eq!(upstream.n_requests(), 3, "{kind}");
    }
}

#[tokio::test]
async fn a_transient_error_is_retried_and_a_permanent_one_is_not() {
    for kind in ALL {
        for (status, n_requests) in [(500, 3), (529, 3), (400, 1), (401, 1), (403, 1)] {
            let upstream = FakeProvider::start().await;
            upstream.always(error_response(kind, status, "No."));

            let outcome = call_model(kind, &upstream, patient_watches()).await;

            assert_eq!(
                code(&outcome),
                FailureCode::UpstreamError,
                "{kind} {status}"
            );
            assert_eq!(upstream.n_requests(), n_requests, "{kind} {status}");
        }
    }
}

#[tokio::test]
async fn an_error_event_before_any_text_is_retried_like_its_status() {
    let overloaded = [
        (
            ProviderKind::Anthropic,
            json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } }),
        ),
        (
            ProviderKind::Gemini,
            json!({ "error": { "code": 503, "message": "Overloaded", "status": "UNAVAILABLE" } }),
        ),
    ];
    for (kind, error) in overloaded {
        let upstream = FakeProvider::start().await;
        upstream.next(sends(kind, format!("event: error\ndata: {error}\n\n")));
        upstream.next(sends(kind, recorded(kind, "thinking").unwrap()));

        let outcome = call_model(kind, &upstream, patient_watches()).await;

        assert_eq!(text(&outcome), "Hi, Eve.", "{kind}");
        assert_eq!(upstream.n_requests(), 2, "{kind}");
    }
}

#[tokio::test]
async fn reasoning_of_a_failed_attempt_is_discarded() {
    for kind in ALL {
        let upstream = FakeProvider::start().await;
        let reasoning_chunk = piece(kind, "<think>I shall never be heard.");
        upstream.next(sends(kind, reasoning_chunk).reset());
        upstream.next(sends(kind, recorded(kind, "thinking").unwrap()));

        let outcome = call_model(kind, &upstream, patient_watches()).await;

        let GenerationOutcome::Succeeded { reasoning, .. } = outcome else {
            panic!("{kind}: {outcome:?}");
        };
        assert_eq!(reasoning.unwrap().text, "Eve says hi. So do I.", "{kind}");
    }
}

#[tokio::test]
async fn keep_alives_and_reasoning_extend_a_call_up_to_the_total_timeout() {
    for kind in ALL {
        for event in [keep_alive(kind), piece(kind, "<think>")] {
            let upstream = FakeProvider::start().await;
            upstream.always(stream(kind).forever(event, SHORT_TIMEOUT / 5));
            let watches = CallLimits {
                first_chunk: SHORT_TIMEOUT,
                idle: SHORT_TIMEOUT,
                total: SHORT_TIMEOUT * 4,
                ..patient_watches()
            };

            let outcome = call_model(kind, &upstream, watches).await;

            assert_eq!(code(&outcome), FailureCode::RunTimeout, "{kind}");
            upstream.wait_for_disconnect(0).await;
        }
    }
}

#[tokio::test]
async fn a_call_times_out_before_the_first_chunk_and_between_chunks() {
    for kind in ALL {
        let upstream = FakeProvider::start().await;
        upstream.next(stream(kind).hang());
        upstream.next(stream(kind).hang());
        upstream.next(sends(kind, piece(kind, "Once upon")).hang());
        let watches = CallLimits {
            first_chunk: SHORT_TIMEOUT,
            idle: SHORT_TIMEOUT,
            ..patient_watches()
        };

        let never = call_model(kind, &upstream, watches).await;
        let stalled = call_model(kind, &upstream, watches).await;

        assert_eq!(code(&never), FailureCode::UpstreamTimeout, "{kind}");
        assert_eq!(code(&stalled), FailureCode::UpstreamTimeout, "{kind}");
        assert!(failure(&stalled).message.contains("stalled for"), "{kind}");
    }
}

#[tokio::test]
async fn an_endless_stream_is_truncated_at_the_maximum_text_length() {
    for kind in ALL {
        let upstream = FakeProvider::start().await;
        upstream.always(stream(kind).forever(piece(kind, "word "), Duration::ZERO));
        let watches = CallLimits {
            max_text_bytes: 1_000,
            ..patient_watches()
        };

        let outcome = call_model(kind, &upstream, watches).await;

        assert!(text(&outcome).len() <= 1_000, "{kind}");
        assert!(
            matches!(
                outcome,
                GenerationOutcome::Succeeded {
                    truncated: true,
                    ..
                }
            ),
            "{kind}"
        );
        upstream.wait_for_disconnect(0).await;
    }
}

#[tokio::test]
async fn a_chunk_of_more_than_a_megabyte_is_rejected() {
    for kind in ALL {
        let upstream = FakeProvider::start().await;
        let begun = piece(kind, "").trim_end().to_owned();
        upstream.always(sends(kind, begun).forever([b' '; 16 * 1024], Duration::ZERO));

        let outcome = call_model(kind, &upstream, patient_watches()).await;

        assert_eq!(code(&outcome), FailureCode::UpstreamError, "{kind}");
        assert!(failure(&outcome).message.contains("megabyte"), "{kind}");
        upstream.wait_for_disconnect(0).await;
    }
}

#[tokio::test]
async fn a_broken_connection_is_retried_only_before_the_first_text() {
    for kind in ALL {
        let upstream = FakeProvider::start().await;
        upstream.next(ResponseScript::reset_before_headers());
        upstream.next(sends(kind, recorded(kind, "hello").unwrap()));
        upstream.next(sends(kind, piece(kind, "Once upon")).reset());

        let second = call_model(kind, &upstream, patient_watches()).await;
        let broken = call_model(kind, &upstream, patient_watches()).await;

        assert!(
            matches!(second, GenerationOutcome::Succeeded { .. }),
            "{kind}"
        );
        assert_eq!(code(&broken), FailureCode::UpstreamDisconnected, "{kind}");
        assert_eq!(upstream.n_requests(), 3, "{kind}");
    }
}
