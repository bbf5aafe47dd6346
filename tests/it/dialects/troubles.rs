//! What goes wrong, and the limits that hold whoever is asked.

use std::time::Duration;

use serde_json::json;
use troupe::generation::call_limits::CallLimits;
use troupe::generation::outcome::FailureCode;
use troupe::generation::outcome::GenerationOutcome;
use troupe::llm::registry::ProviderKind;

use super::kinds::ALL;
use super::kinds::alive;
use super::kinds::piece;
use super::kinds::recorded;
use super::kinds::refusal;
use super::kinds::sends;
use super::kinds::speak;
use super::kinds::stream;
use crate::support::model_call::SHORT;
use crate::support::model_call::code;
use crate::support::model_call::failure;
use crate::support::model_call::patient;
use crate::support::model_call::text;
use crate::support::upstream::script::Script;
use crate::support::upstream::server::Upstream;

#[tokio::test]
async fn who_is_limited_waits_as_long_as_it_is_told_and_no_longer_than_it_may() {
    for kind in ALL {
        let upstream = Upstream::start().await;
        upstream.next(refusal(kind, 429, "Slow down.").header("Retry-After", "0"));
        upstream.next(sends(kind, recorded(kind, "hello").unwrap()));
        upstream.next(refusal(kind, 429, "Slow down.").header("Retry-After", "999999"));

        let second = speak(kind, &upstream, patient()).await;
        let refused = speak(kind, &upstream, patient()).await;

        assert!(
            matches!(second, GenerationOutcome::Succeeded { .. }),
            "{kind}: {second:?}"
        );
        assert_eq!(code(&refused), FailureCode::UpstreamRateLimited, "{kind}");
        assert_eq!(upstream.n_requests(), 3, "{kind}");
    }
}

#[tokio::test]
async fn a_passing_trouble_is_tried_again_and_a_lasting_one_is_not() {
    for kind in ALL {
        for (status, n_requests) in [(500, 3), (529, 3), (400, 1), (401, 1), (403, 1)] {
            let upstream = Upstream::start().await;
            upstream.always(refusal(kind, status, "No."));

            let outcome = speak(kind, &upstream, patient()).await;

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
async fn an_error_event_before_any_text_is_as_passing_as_its_status() {
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
        let upstream = Upstream::start().await;
        upstream.next(sends(kind, format!("event: error\ndata: {error}\n\n")));
        upstream.next(sends(kind, recorded(kind, "thinking").unwrap()));

        let outcome = speak(kind, &upstream, patient()).await;

        assert_eq!(text(&outcome), "Hi, Eve.", "{kind}");
        assert_eq!(upstream.n_requests(), 2, "{kind}");
    }
}

#[tokio::test]
async fn what_a_failed_attempt_thought_is_forgotten() {
    for kind in ALL {
        let upstream = Upstream::start().await;
        let thought = piece(kind, "<think>I shall never be heard.");
        upstream.next(sends(kind, thought).reset());
        upstream.next(sends(kind, recorded(kind, "thinking").unwrap()));

        let outcome = speak(kind, &upstream, patient()).await;

        let GenerationOutcome::Succeeded { reasoning, .. } = outcome else {
            panic!("{kind}: {outcome:?}");
        };
        assert_eq!(reasoning.unwrap().text, "Eve says hi. So do I.", "{kind}");
    }
}

#[tokio::test]
async fn signs_of_life_and_thoughts_keep_a_call_alive_but_not_for_ever() {
    for kind in ALL {
        for still_here in [alive(kind), piece(kind, "<think>")] {
            let upstream = Upstream::start().await;
            upstream.always(stream(kind).forever(still_here, SHORT / 5));
            let watches = CallLimits {
                first_chunk: SHORT,
                idle: SHORT,
                total: SHORT * 4,
                ..patient()
            };

            let outcome = speak(kind, &upstream, watches).await;

            assert_eq!(code(&outcome), FailureCode::RunTimeout, "{kind}");
            upstream.hung_up(0).await;
        }
    }
}

#[tokio::test]
async fn silence_ends_a_call_at_its_beginning_and_in_its_middle() {
    for kind in ALL {
        let upstream = Upstream::start().await;
        upstream.next(stream(kind).hang());
        upstream.next(stream(kind).hang());
        upstream.next(sends(kind, piece(kind, "Once upon")).hang());
        let watches = CallLimits {
            first_chunk: SHORT,
            idle: SHORT,
            ..patient()
        };

        let never = speak(kind, &upstream, watches).await;
        let fallen = speak(kind, &upstream, watches).await;

        assert_eq!(code(&never), FailureCode::UpstreamTimeout, "{kind}");
        assert_eq!(code(&fallen), FailureCode::UpstreamTimeout, "{kind}");
        assert!(failure(&fallen).message.contains("fell silent"), "{kind}");
    }
}

#[tokio::test]
async fn a_stream_that_never_ends_is_cut_at_the_longest_text() {
    for kind in ALL {
        let upstream = Upstream::start().await;
        upstream.always(stream(kind).forever(piece(kind, "word "), Duration::ZERO));
        let watches = CallLimits {
            max_text_bytes: 1_000,
            ..patient()
        };

        let outcome = speak(kind, &upstream, watches).await;

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
        upstream.hung_up(0).await;
    }
}

#[tokio::test]
async fn a_single_piece_of_more_than_a_megabyte_is_refused() {
    for kind in ALL {
        let upstream = Upstream::start().await;
        let begun = piece(kind, "").trim_end().to_owned();
        upstream.always(sends(kind, begun).forever([b' '; 16 * 1024], Duration::ZERO));

        let outcome = speak(kind, &upstream, patient()).await;

        assert_eq!(code(&outcome), FailureCode::UpstreamError, "{kind}");
        assert!(failure(&outcome).message.contains("megabyte"), "{kind}");
        upstream.hung_up(0).await;
    }
}

#[tokio::test]
async fn a_connection_that_breaks_is_tried_again_only_before_the_first_word() {
    for kind in ALL {
        let upstream = Upstream::start().await;
        upstream.next(Script::reset_before_headers());
        upstream.next(sends(kind, recorded(kind, "hello").unwrap()));
        upstream.next(sends(kind, piece(kind, "Once upon")).reset());

        let second = speak(kind, &upstream, patient()).await;
        let broken = speak(kind, &upstream, patient()).await;

        assert!(
            matches!(second, GenerationOutcome::Succeeded { .. }),
            "{kind}"
        );
        assert_eq!(code(&broken), FailureCode::UpstreamDisconnected, "{kind}");
        assert_eq!(upstream.n_requests(), 3, "{kind}");
    }
}
