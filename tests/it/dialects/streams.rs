//! Streamed responses of each kind of provider.

use agent::outcome::{FailureCode, GenerationOutcome};
use agent::reasoning::Reasoning;
use agent::usage::UsageTotal;
use llm::delta::FinishReason;
use llm::registry::ProviderKind;

use super::kinds::{ALL, call_model, piece, recorded, sends, stream};
use crate::support::fake_provider::server::FakeProvider;
use crate::support::model_call::{code, failure, patient_watches, text};

const USAGE: UsageTotal = UsageTotal {
    is_estimated: false,
    prompt_tokens: 7,
    completion_tokens: 5,
};

/// Returns the outcome of this recorded stream for each kind.
async fn each(case: &str) -> Vec<(ProviderKind, GenerationOutcome)> {
    let mut outcomes = Vec::new();
    for kind in ALL {
        let Some(bytes) = recorded(kind, case) else {
            continue;
        };
        let upstream = FakeProvider::start().await;
        upstream.always(sends(kind, bytes));
        outcomes.push((kind, call_model(kind, &upstream, patient_watches()).await));
    }
    outcomes
}

fn succeeded(text: &str, reason: FinishReason) -> GenerationOutcome {
    GenerationOutcome::Succeeded {
        text: text.to_owned(),
        reasoning: None,
        usage: Some(USAGE),
        truncated: reason == FinishReason::Length,
        reason,
    }
}

#[tokio::test]
async fn a_complete_response_has_text_a_finish_reason_and_usage() {
    let outcomes = each("hello").await;

    assert_eq!(outcomes.len(), ALL.len());
    for (kind, outcome) in outcomes {
        let expected = succeeded("Grüße, 漢字 🦀.", FinishReason::Stop);
        assert_eq!(outcome, expected, "{kind}");
    }
}

#[tokio::test]
async fn a_stream_may_be_split_at_any_byte() {
    for kind in ALL {
        let bytes = recorded(kind, "hello").unwrap();
        let upstream = FakeProvider::start().await;
        upstream.always(bytes.iter().fold(stream(kind), |it, byte| it.raw([*byte])));

        let outcome = call_model(kind, &upstream, patient_watches()).await;

        let expected = succeeded("Grüße, 漢字 🦀.", FinishReason::Stop);
        assert_eq!(outcome, expected, "{kind}");
    }
}

#[tokio::test]
async fn reasoning_is_separate_from_the_text() {
    let outcomes = each("thinking").await;

    assert_eq!(outcomes.len(), ALL.len());
    for (kind, outcome) in outcomes {
        let expected = GenerationOutcome::Succeeded {
            text: "Hi, Eve.".to_owned(),
            reasoning: Some(Reasoning {
                text: "Eve says hi. So do I.".to_owned(),
                is_truncated: false,
            }),
            usage: Some(USAGE),
            reason: FinishReason::Stop,
            truncated: false,
        };
        assert_eq!(outcome, expected, "{kind}");
    }
}

#[tokio::test]
async fn a_response_with_only_reasoning_is_empty() {
    let outcomes = each("only_thinking").await;

    assert_eq!(outcomes.len(), ALL.len());
    for (kind, outcome) in outcomes {
        assert_eq!(code(&outcome), FailureCode::EmptyResponse, "{kind}");
    }
}

#[tokio::test]
async fn text_in_think_tags_is_reasoning_for_every_kind() {
    for kind in ALL {
        let upstream = FakeProvider::start().await;
        let whole = String::from_utf8(recorded(kind, "length").unwrap()).unwrap();
        let chunks = ["<thi", "nk>Hm.</", "think>\n\n"].map(|it| piece(kind, it));
        upstream.always(sends(kind, chunks.concat()).raw(whole));

        let outcome = call_model(kind, &upstream, patient_watches()).await;

        let GenerationOutcome::Succeeded {
            text, reasoning, ..
        } = outcome
        else {
            panic!("{kind}: {outcome:?}");
        };
        assert_eq!(text, "Once upon a time", "{kind}");
        assert_eq!(
            reasoning.map(|it| it.text).as_deref(),
            Some("Hm."),
            "{kind}"
        );
    }
}

#[tokio::test]
async fn finish_reasons_are_the_same_for_every_kind() {
    for (kind, outcome) in each("length").await {
        let expected = succeeded("Once upon a time", FinishReason::Length);
        assert_eq!(outcome, expected, "{kind}");
    }
    let mut filtered = each("filtered").await;
    filtered.extend(each("blocked").await);
    // Ollama has no content filter.
    assert_eq!(filtered.len(), ALL.len());
    for (kind, outcome) in filtered {
        assert_eq!(code(&outcome), FailureCode::ContentFilter, "{kind}");
    }
}

#[tokio::test]
async fn a_stream_without_its_end_marker_is_a_disconnect() {
    let outcomes = each("cut").await;

    assert_eq!(outcomes.len(), ALL.len());
    for (kind, outcome) in outcomes {
        assert_eq!(code(&outcome), FailureCode::UpstreamDisconnected, "{kind}");
        assert_eq!(text(&outcome), "Once upon", "{kind}");
    }
}

#[tokio::test]
async fn an_error_event_in_a_stream_ends_it_with_the_message() {
    let outcomes = each("error").await;

    assert_eq!(outcomes.len(), ALL.len());
    for (kind, outcome) in outcomes {
        assert_eq!(code(&outcome), FailureCode::UpstreamError, "{kind}");
        let message = &failure(&outcome).message;
        assert!(message.contains("Overloaded"), "{kind}: {message}");
        assert_eq!(text(&outcome), "Once upon", "{kind}");
    }
}

#[tokio::test]
async fn a_chunk_that_is_not_json_is_an_error() {
    let outcomes = each("broken").await;

    assert_eq!(outcomes.len(), ALL.len());
    for (kind, outcome) in outcomes {
        assert_eq!(code(&outcome), FailureCode::UpstreamError, "{kind}");
        let message = &failure(&outcome).message;
        assert!(message.contains("not JSON"), "{kind}: {message}");
    }
}

#[tokio::test]
async fn unusual_chunks_are_accepted_and_chunks_after_the_end_ignored() {
    let outcomes = each("odd").await;

    assert_eq!(outcomes.len(), ALL.len());
    for (kind, outcome) in outcomes {
        assert!(
            matches!(outcome, GenerationOutcome::Succeeded { .. }),
            "{kind}: {outcome:?}"
        );
        assert_eq!(text(&outcome), "ab\u{fffd}c", "{kind}");
    }
}
