//! A model call in progress: its chunks and its cancellation.

use std::time::Duration;

use agent::outcome::GenerationOutcome;
use tokio::time::Instant;

use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::model_call::{
    RunningCall, estimated, patient_watches, started_script, succeeded,
};

#[tokio::test]
async fn each_chunk_is_forwarded_immediately() {
    let upstream = FakeProvider::start().await;
    upstream.reply_with("One two three.");
    let gate = upstream.gate();
    let mut speaking = RunningCall::start(&upstream, patient_watches());

    gate.step();
    assert_eq!(speaking.next_text().await, "One");
    gate.step();
    assert_eq!(speaking.next_text().await, " two");
    gate.open();

    assert_eq!(
        speaking.wait_for_outcome().await,
        succeeded("One two three.")
    );
}

#[tokio::test]
async fn a_cancel_aborts_the_request_in_any_phase() {
    for (script, n_texts) in [
        (ResponseScript::hang_before_headers(), 0),
        (ResponseScript::hang_before_first_chunk(), 0),
        (started_script().hang(), 4),
        (
            ResponseScript::stream().forever(": ping\n\n", Duration::ZERO),
            0,
        ),
    ] {
        let upstream = FakeProvider::start().await;
        upstream.always(script);
        let speaking = RunningCall::start(&upstream, patient_watches());
        upstream.wait_for_requests(1).await;
        upstream.wait_for_texts(0, n_texts).await;

        speaking.cancel.cancel();
        let outcome = speaking.wait_for_outcome().await;

        assert!(
            matches!(outcome, GenerationOutcome::Canceled { .. }),
            "{outcome:?}"
        );
        upstream.wait_for_disconnect(0).await;
    }
}

#[tokio::test]
async fn a_canceled_answer_keeps_its_text() {
    let upstream = FakeProvider::start().await;
    upstream.always(started_script().hang());
    let mut speaking = RunningCall::start(&upstream, patient_watches());
    let mut received = String::new();
    while received != "Once upon a time" {
        received += &speaking.next_text().await;
    }

    speaking.cancel.cancel();

    let usage = estimated(&received);
    assert_eq!(
        speaking.wait_for_outcome().await,
        GenerationOutcome::Canceled {
            text: received,
            reasoning: None,
            usage,
        }
    );
}

#[tokio::test]
async fn a_cancel_ends_the_wait_between_two_attempts() {
    let upstream = FakeProvider::start().await;
    upstream.always(ResponseScript::rate_limited("9"));
    let began = Instant::now();
    let speaking = RunningCall::start(&upstream, patient_watches());
    upstream.finished(0).await;

    speaking.cancel.cancel();
    let outcome = speaking.wait_for_outcome().await;

    assert!(
        matches!(outcome, GenerationOutcome::Canceled { .. }),
        "{outcome:?}"
    );
    assert!(began.elapsed() < Duration::from_secs(9));
    assert_eq!(upstream.n_requests(), 1);
}
