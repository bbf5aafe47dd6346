//! A call while it goes on: its pieces as they come, and its cancel.

use std::time::Duration;

use tokio::time::Instant;
use troupe::generation::outcome::GenerationOutcome;

use crate::support::model_call::Speaking;
use crate::support::model_call::begun;
use crate::support::model_call::estimated;
use crate::support::model_call::patient;
use crate::support::model_call::succeeded;
use crate::support::upstream::script::Script;
use crate::support::upstream::server::Upstream;

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

        assert!(
            matches!(outcome, GenerationOutcome::Canceled { .. }),
            "{outcome:?}"
        );
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

    let usage = estimated(&heard);
    assert_eq!(
        speaking.ends().await,
        GenerationOutcome::Canceled {
            text: heard,
            reasoning: None,
            usage,
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

    assert!(
        matches!(outcome, GenerationOutcome::Canceled { .. }),
        "{outcome:?}"
    );
    assert!(began.elapsed() < Duration::from_secs(9));
    assert_eq!(upstream.n_requests(), 1);
}
