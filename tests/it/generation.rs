//! The watch on the model call, row by row: every way in which a provider can answer, and what
//! becomes of it.

use std::time::Duration;

use futures::future::join_all;
use tokio::net::TcpListener;
use tokio::time::Instant;
use troupe::generation::outcome::FailureCode;
use troupe::generation::outcome::Outcome;
use troupe::generation::watches::Watches;
use troupe::llm::delta::FinishReason;
use troupe::llm::delta::Usage;

use crate::support::model;
use crate::support::model::Speaking;
use crate::support::model::failure;
use crate::support::model::patient;
use crate::support::model::registry;
use crate::support::model::speak;
use crate::support::model::text;
use crate::support::upstream::script::Script;
use crate::support::upstream::server::Upstream;

/// Long enough for a slow machine to answer, short enough to wait for.
const SHORT: Duration = Duration::from_millis(250);

fn begun() -> Script {
    Script::stream().role().words("Once upon a time")
}

fn code(outcome: &Outcome) -> FailureCode {
    failure(outcome).code
}

fn succeeded(said: &str) -> Outcome {
    Outcome::Succeeded {
        text: said.to_owned(),
        usage: Some(Usage {
            prompt_tokens: 7,
            completion_tokens: said.split(' ').count() as i64,
        }),
        reason: FinishReason::Stop,
        truncated: false,
    }
}

#[tokio::test]
async fn an_answer_comes_with_its_usage() {
    let upstream = Upstream::start().await;
    upstream.say("Good morning, Eve.");

    let outcome = speak(&upstream, patient()).await;

    assert_eq!(outcome, succeeded("Good morning, Eve."));
    assert_eq!(upstream.n_requests(), 1);
}

#[tokio::test]
async fn each_piece_is_forwarded_as_soon_as_it_is_there() {
    let upstream = Upstream::start().await;
    upstream.say("One two three.");
    let gate = upstream.gate();
    let mut speaking = Speaking::start(&upstream, patient());

    gate.step();
    assert_eq!(speaking.hears().await, "One");
    gate.step();
    assert_eq!(speaking.hears().await, " two");
    gate.open();

    assert_eq!(speaking.ends().await, succeeded("One two three."));
}

#[tokio::test]
async fn without_a_chunk_it_is_tried_once_more_and_then_given_up() {
    for script in [
        Script::hang_before_headers(),
        Script::hang_before_first_chunk(),
    ] {
        let upstream = Upstream::start().await;
        upstream.always(script);

        let outcome = speak(
            &upstream,
            Watches {
                first_chunk: SHORT,
                ..patient()
            },
        )
        .await;

        assert_eq!(code(&outcome), FailureCode::UpstreamTimeout);
        assert!(failure(&outcome).retryable);
        assert_eq!(upstream.n_requests(), 2);
        upstream.hung_up(0).await;
        upstream.hung_up(1).await;
    }
}

#[tokio::test]
async fn a_silent_start_is_made_good_by_the_second_attempt() {
    let upstream = Upstream::start().await;
    upstream.next(Script::hang_before_first_chunk());
    let watches = Watches {
        first_chunk: Duration::from_secs(2),
        ..patient()
    };

    let outcome = speak(&upstream, watches).await;

    assert_eq!(outcome, succeeded("Hello."));
    assert_eq!(upstream.n_requests(), 2);
}

#[tokio::test]
async fn comments_roles_and_empty_pieces_are_signs_of_life() {
    for alive in [
        Script::stream().comment(),
        Script::stream().role(),
        Script::stream().empty(),
        Script::stream().usage(1, 0),
        Script::stream().raw("data: {\"cho"),
    ] {
        let upstream = Upstream::start().await;
        upstream.always(alive.hang());
        let first_chunk = Duration::from_secs(2);

        let outcome = speak(
            &upstream,
            Watches {
                first_chunk,
                idle: SHORT,
                ..patient()
            },
        )
        .await;

        assert_eq!(code(&outcome), FailureCode::UpstreamTimeout);
        assert_eq!(
            upstream.n_requests(),
            1,
            "silence after a sign of life is not tried again"
        );
    }
}

#[tokio::test]
async fn silence_in_an_answer_ends_it() {
    let upstream = Upstream::start().await;
    upstream.always(begun().hang());

    let outcome = speak(
        &upstream,
        Watches {
            idle: SHORT,
            ..patient()
        },
    )
    .await;

    assert_eq!(code(&outcome), FailureCode::UpstreamTimeout);
    assert_eq!(text(&outcome), "Once upon a time");
    assert_eq!(upstream.n_requests(), 1);
    upstream.hung_up(0).await;
}

#[tokio::test]
async fn the_total_limit_ends_a_stream_of_mere_comments() {
    let upstream = Upstream::start().await;
    upstream.always(Script::stream().forever(": ping\n\n", Duration::from_millis(5)));

    let outcome = speak(
        &upstream,
        Watches {
            total: SHORT,
            ..patient()
        },
    )
    .await;

    assert_eq!(code(&outcome), FailureCode::RunTimeout);
    upstream.hung_up(0).await;
}

#[tokio::test]
async fn the_total_limit_counts_the_waits_between_attempts_too() {
    let upstream = Upstream::start().await;
    upstream.always(Script::rate_limited("9"));

    let outcome = speak(
        &upstream,
        Watches {
            total: SHORT,
            ..patient()
        },
    )
    .await;

    assert_eq!(code(&outcome), FailureCode::RunTimeout);
    assert_eq!(upstream.n_requests(), 1);
}

#[tokio::test]
async fn passing_troubles_are_outlived_within_three_attempts() {
    for status in [408, 409, 425, 429, 499, 500, 502, 503] {
        let upstream = Upstream::start().await;
        upstream.next(Script::status(status));
        upstream.next(Script::status(status));

        let outcome = speak(&upstream, patient()).await;

        assert_eq!(outcome, succeeded("Hello."), "{status}");
        assert_eq!(upstream.n_requests(), 3, "{status}");
    }
}

#[tokio::test]
async fn after_three_attempts_the_providers_reason_is_told() {
    for (status, expected) in [
        (429, FailureCode::UpstreamRateLimited),
        (503, FailureCode::UpstreamError),
    ] {
        let upstream = Upstream::start().await;
        upstream.always(Script::status(status));

        let outcome = speak(&upstream, patient()).await;

        assert_eq!(code(&outcome), expected);
        assert!(
            failure(&outcome)
                .message
                .contains(&format!("Scripted {status}.")),
            "{outcome:?}"
        );
        assert!(failure(&outcome).retryable);
        assert_eq!(upstream.n_requests(), 3);
    }
}

#[tokio::test]
async fn a_refusal_for_good_is_not_repeated() {
    for status in [302, 400, 401, 402, 403, 404, 422] {
        let upstream = Upstream::start().await;
        upstream.always(Script::status(status));

        let outcome = speak(&upstream, patient()).await;

        assert_eq!(code(&outcome), FailureCode::UpstreamError);
        assert!(!failure(&outcome).retryable);
        assert_eq!(upstream.n_requests(), 1, "{status}");
    }
}

#[tokio::test]
async fn a_short_retry_after_is_waited_for() {
    let upstream = Upstream::start().await;
    upstream.next(Script::rate_limited("1"));

    let outcome = speak(&upstream, patient()).await;

    let waited = upstream.seen(1).came_at - upstream.seen(0).came_at;
    assert_eq!(outcome, succeeded("Hello."));
    assert!(waited >= Duration::from_secs(1), "{waited:?}");
}

#[tokio::test]
async fn a_long_retry_after_fails_at_once() {
    let date = Script::rate_limited("Wed, 21 Oct 2015 07:29:00 GMT")
        .header("Date", "Wed, 21 Oct 2015 07:28:00 GMT");
    for script in [
        Script::rate_limited("11"),
        Script::rate_limited("999999"),
        date,
    ] {
        let upstream = Upstream::start().await;
        upstream.always(script);

        let outcome = speak(&upstream, patient()).await;

        assert_eq!(code(&outcome), FailureCode::UpstreamRateLimited);
        assert_eq!(upstream.n_requests(), 1);
    }
}

#[tokio::test]
async fn a_retry_after_that_says_nothing_is_ignored() {
    for nonsense in ["soon", "-5", "0", "Wed, 21 Oct 2015 07:28:00 GMT"] {
        let upstream = Upstream::start().await;
        upstream.next(Script::rate_limited(nonsense));

        let outcome = speak(&upstream, patient()).await;

        assert_eq!(outcome, succeeded("Hello."), "{nonsense}");
    }
}

#[tokio::test]
async fn a_provider_that_is_not_there_is_told_in_plain_words() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let provider = registry()
        .provider(&model::spec(&format!("http://{address}/v1")))
        .unwrap();

    let (outcome, _) = model::speak_aloud(&*provider, patient()).await;

    assert_eq!(code(&outcome), FailureCode::UpstreamError);
    assert_eq!(
        failure(&outcome).message,
        "The provider could not be reached: it refused the connection."
    );
    assert!(failure(&outcome).retryable);
}

#[tokio::test]
async fn a_connection_that_breaks_before_any_text_is_tried_again() {
    let upstream = Upstream::start().await;
    upstream.next(Script::reset_before_headers());
    upstream.next(Script::stream().role().reset());

    let outcome = speak(&upstream, patient()).await;

    assert_eq!(outcome, succeeded("Hello."));
    assert_eq!(upstream.n_requests(), 3);
}

#[tokio::test]
async fn a_connection_that_breaks_in_the_text_is_not() {
    for broken in [begun().reset(), begun().close()] {
        let upstream = Upstream::start().await;
        upstream.always(broken);

        let outcome = speak(&upstream, patient()).await;

        assert_eq!(code(&outcome), FailureCode::UpstreamDisconnected);
        assert_eq!(text(&outcome), "Once upon a time");
        assert_eq!(upstream.n_requests(), 1);
    }
}

#[tokio::test]
async fn an_end_without_finish_reason_and_done_is_never_success() {
    for cut in [
        begun(),
        Script::stream(),
        Script::stream().role(),
        begun().raw("data: {\"choices\": ["),
    ] {
        let upstream = Upstream::start().await;
        upstream.always(cut);

        let outcome = speak(&upstream, patient()).await;

        assert_eq!(code(&outcome), FailureCode::UpstreamDisconnected);
    }
}

#[tokio::test]
async fn either_a_finish_reason_or_done_is_an_end() {
    for whole in [begun().finish("stop"), begun().done()] {
        let upstream = Upstream::start().await;
        upstream.always(whole);

        let outcome = speak(&upstream, patient()).await;

        assert!(matches!(outcome, Outcome::Succeeded { .. }), "{outcome:?}");
        assert_eq!(text(&outcome), "Once upon a time");
    }
}

#[tokio::test]
async fn a_complete_answer_is_not_held_up_by_a_connection_that_stays_open() {
    for whole in [
        begun().finish("stop").hang(),
        begun().done().hang(),
        begun().finish("stop").reset(),
    ] {
        let upstream = Upstream::start().await;
        upstream.always(whole);

        let outcome = speak(
            &upstream,
            Watches {
                idle: SHORT,
                ..patient()
            },
        )
        .await;

        assert!(matches!(outcome, Outcome::Succeeded { .. }), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_length_limit_truncates_and_a_filter_is_told() {
    let upstream = Upstream::start().await;
    for (word, reason, is_truncated) in [
        ("length", FinishReason::Length, true),
        ("content_filter", FinishReason::ContentFilter, false),
        ("tool_calls", FinishReason::ToolCalls, false),
        ("tired", FinishReason::Other("tired".to_owned()), false),
    ] {
        upstream.next(begun().finish(word).done());

        let outcome = speak(&upstream, patient()).await;

        let text = "Once upon a time".to_owned();
        assert_eq!(
            outcome,
            Outcome::Succeeded {
                text,
                usage: None,
                reason,
                truncated: is_truncated
            }
        );
    }
}

#[tokio::test]
async fn nothing_visible_is_a_failure_with_its_reason() {
    let upstream = Upstream::start().await;
    for (said, word, expected) in [
        ("", "stop", FailureCode::EmptyResponse),
        (" \n\u{200b} ", "stop", FailureCode::EmptyResponse),
        ("", "length", FailureCode::EmptyResponse),
        ("", "content_filter", FailureCode::ContentFilter),
        ("", "tool_calls", FailureCode::EmptyResponse),
        ("Ada: ", "stop", FailureCode::EmptyResponse),
        ("Bob: Hello!\n", "stop", FailureCode::EmptyResponse),
    ] {
        upstream.next(Script::stream().role().text(said).finish(word).done());

        let outcome = speak(&upstream, patient()).await;

        assert_eq!(code(&outcome), expected, "{said:?} {word}");
    }
}

#[tokio::test]
async fn an_error_object_in_the_stream_fails_with_its_reason() {
    let upstream = Upstream::start().await;
    upstream.always(
        begun()
            .error("The engine overheated.")
            .finish("stop")
            .done(),
    );

    let outcome = speak(&upstream, patient()).await;

    assert_eq!(code(&outcome), FailureCode::UpstreamError);
    assert_eq!(
        failure(&outcome).message,
        "The provider broke off: The engine overheated."
    );
    assert_eq!(text(&outcome), "Once upon a time");
    assert_eq!(upstream.n_requests(), 1);
}

#[tokio::test]
async fn what_is_no_event_stream_fails() {
    for (script, hint) in [
        (begun().garbage().finish("stop").done(), "not JSON"),
        (Script::html(), "web page"),
        (
            begun().raw(vec![b'x'; 2 * 1024 * 1024]).done(),
            "more than a megabyte",
        ),
        (
            Script::stream()
                .header("Content-Encoding", "gzip")
                .raw([0x1f, 0x8b]),
            "compressed",
        ),
    ] {
        let upstream = Upstream::start().await;
        upstream.always(script);

        let outcome = speak(&upstream, patient()).await;

        assert_eq!(code(&outcome), FailureCode::UpstreamError);
        assert!(failure(&outcome).message.contains(hint), "{outcome:?}");
        assert_eq!(upstream.n_requests(), 1);
    }
}

#[tokio::test]
async fn in_a_group_a_speaker_who_goes_on_as_another_is_cut_short() {
    let upstream = Upstream::start().await;
    upstream.always(
        Script::stream()
            .words("Ada: Well.\n\n**Bob:** I agree! ")
            .hang(),
    );

    let outcome = speak(&upstream, patient()).await;

    let text = "Well.".to_owned();
    let reason = FinishReason::Stop;
    assert_eq!(
        outcome,
        Outcome::Succeeded {
            text,
            usage: None,
            reason,
            truncated: false
        }
    );
    upstream.hung_up(0).await;
}

#[tokio::test]
async fn an_endless_answer_is_cut_at_the_size_limit() {
    let upstream = Upstream::start().await;
    let flood = "data: {\"choices\": [{\"delta\": {\"content\": \"na na 漢 \"}}]}\n\n";
    upstream.always(Script::stream().forever(flood, Duration::ZERO));

    let outcome = speak(
        &upstream,
        Watches {
            max_text_bytes: 10_000,
            ..patient()
        },
    )
    .await;

    let Outcome::Succeeded {
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
    upstream.hung_up(0).await;
}

#[tokio::test]
async fn a_cancel_drops_the_request_wherever_it_is() {
    for (script, n_texts) in [
        (Script::hang_before_headers(), 0),
        (Script::hang_before_first_chunk(), 0),
        (begun().hang(), 4),
        (Script::stream().forever(": ping\n\n", Duration::ZERO), 0),
    ] {
        let upstream = Upstream::start().await;
        upstream.always(script);
        let speaking = Speaking::start(&upstream, patient());
        upstream.requested(1).await;
        upstream.said(0, n_texts).await;

        speaking.cancel.cancel();
        let outcome = speaking.ends().await;

        assert!(matches!(outcome, Outcome::Canceled { .. }), "{outcome:?}");
        upstream.hung_up(0).await;
    }
}

#[tokio::test]
async fn a_canceled_answer_keeps_what_was_said() {
    let upstream = Upstream::start().await;
    upstream.always(begun().hang());
    let mut speaking = Speaking::start(&upstream, patient());
    let mut heard = String::new();
    while heard != "Once upon a time" {
        heard += &speaking.hears().await;
    }

    speaking.cancel.cancel();

    assert_eq!(
        speaking.ends().await,
        Outcome::Canceled {
            text: heard,
            usage: None
        }
    );
}

#[tokio::test]
async fn a_cancel_ends_the_wait_between_two_attempts() {
    let upstream = Upstream::start().await;
    upstream.always(Script::rate_limited("9"));
    let began = Instant::now();
    let speaking = Speaking::start(&upstream, patient());
    upstream.finished(0).await;

    speaking.cancel.cancel();
    let outcome = speaking.ends().await;

    assert!(matches!(outcome, Outcome::Canceled { .. }), "{outcome:?}");
    assert!(began.elapsed() < Duration::from_secs(9));
    assert_eq!(upstream.n_requests(), 1);
}

#[tokio::test]
async fn whatever_a_provider_does_every_call_ends_and_only_whole_answers_succeed() {
    let upstream = Upstream::start().await;
    upstream.say("A whole answer.");
    upstream.misbehave(7, 60);
    let watches = Watches {
        first_chunk: Duration::from_secs(1),
        idle: Duration::from_secs(1),
        total: Duration::from_secs(4),
        ..patient()
    };

    let outcomes = join_all((0..60).map(|_| speak(&upstream, watches))).await;

    let n_succeeded = outcomes
        .iter()
        .filter(|it| matches!(it, Outcome::Succeeded { .. }))
        .count();
    for outcome in outcomes {
        match outcome {
            Outcome::Succeeded { text, .. } => assert_eq!(text, "A whole answer."),
            Outcome::Failed { text, .. } => {
                assert!("Once upon a time".starts_with(&text), "{text}")
            }
            Outcome::Canceled { .. } => panic!("nobody canceled"),
        }
    }
    assert!((20..60).contains(&n_succeeded), "{n_succeeded}");
}
