//! Lets a model speak once: attempts, limits and the cancel, until there is an outcome.
//!
//! **Invariant:** whatever ends the call, its request is dropped at once, and the outcome's text
//! is what the sink was given. Nothing is tried again once the sink was given anything.

use std::mem;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::generation::attempt::Answer;
use crate::generation::attempt::attempt;
use crate::generation::calls::Calls;
use crate::generation::outcome::Ended;
use crate::generation::outcome::Failure;
use crate::generation::outcome::FailureCode;
use crate::generation::outcome::Heard;
use crate::generation::outcome::Outcome;
use crate::generation::reasoning::Gathered;
use crate::generation::sink::Sink;
use crate::generation::trim::Trim;
use crate::generation::trouble::Tries;
use crate::generation::trouble::Trouble;
use crate::generation::trouble::seconds;
use crate::generation::usage;
use crate::generation::usage::TokenUsage;
use crate::generation::watches::Watches;
use crate::llm::delta::FinishReason;
use crate::llm::provider::Provider;
use crate::llm::request::Request;

/// Asks the model and reads its answer into the sink. An answer without anything to read has failed.
pub async fn generate(
    provider: &dyn Provider,
    request: &Request,
    trim: Trim,
    watches: &Watches,
    sink: &mut dyn Sink,
    cancel: &CancellationToken,
) -> Outcome {
    let mut heard = listen(provider, request, trim, watches, sink, cancel).await;
    let usage = usage::count(mem::take(&mut heard.answered), request).await;
    conclude(heard, usage)
}

/// The same, without a judgment of what was said: for whoever takes an empty answer for one, too.
pub async fn listen(
    provider: &dyn Provider,
    request: &Request,
    trim: Trim,
    watches: &Watches,
    sink: &mut dyn Sink,
    cancel: &CancellationToken,
) -> Heard {
    let mut answer = Answer::new(sink);
    let end = tokio::select! {
        biased;
        () = cancel.cancelled() => Ended::Canceled,
        () = sleep(watches.total) => Ended::Failed(out_of_time(watches)),
        res = attempts(provider, request, &trim, watches, &mut answer) => match res {
            // It was the end that made it whole; see below.
            Ok(()) => Ended::Failed(out_of_time(watches)),
            Err(trouble) => Ended::Failed(trouble.failure(watches)),
        },
    };
    let end = match (end, answer.ended) {
        (Ended::Failed(_), Some(reason)) => Ended::Answered(reason),
        (end, _) => end,
    };
    Heard {
        end,
        text: answer.text,
        reasoning: answer.reasoning.finish(),
        calls: answer.calls.finish(),
        usage: answer.usage,
        answered: answer.answered,
        is_capped: answer.is_capped,
    }
}

async fn attempts(
    provider: &dyn Provider,
    request: &Request,
    trim: &Trim,
    watches: &Watches,
    answer: &mut Answer<'_>,
) -> Result<(), Trouble> {
    let mut tries = Tries::default();
    loop {
        let res = attempt(provider, request, trim.clone(), watches, answer).await;
        let Err(trouble) = res else { return Ok(()) };
        tries.n_attempts += 1;
        tries.n_without_chunk += u32::from(trouble == Trouble::NoChunk);
        if answer.was_shown {
            return Err(trouble);
        }
        answer.reasoning = Gathered::default();
        answer.calls = Calls::default();
        answer.logprobs.clear();
        match trouble.wait_before_retry(tries, watches, rand::random()) {
            Some(wait) => sleep(wait).await,
            None => return Err(trouble),
        }
    }
}

/// The judgment of what was said, and what it cost: an answer without anything to read has failed.
pub fn conclude(heard: Heard, usage: Option<TokenUsage>) -> Outcome {
    let Heard {
        end,
        text,
        reasoning,
        is_capped,
        ..
    } = heard;
    let failure = match end {
        Ended::Canceled => {
            return Outcome::Canceled {
                text,
                reasoning,
                usage,
            };
        }
        Ended::Answered(reason) if !is_blank(&text) => {
            let truncated = is_capped || reason == FinishReason::Length;
            return Outcome::Succeeded {
                text,
                reasoning,
                usage,
                reason,
                truncated,
            };
        }
        Ended::Answered(reason) => nothing_visible(&reason),
        Ended::Failed(failure) => failure,
    };
    Outcome::Failed {
        failure,
        text,
        usage,
    }
}

fn nothing_visible(reason: &FinishReason) -> Failure {
    let (code, message) = match reason {
        FinishReason::ContentFilter => (
            FailureCode::ContentFilter,
            "The provider's content filter withheld the answer.",
        ),
        FinishReason::Length => (
            FailureCode::EmptyResponse,
            "The model reached its length limit before it wrote anything visible.",
        ),
        _ => (
            FailureCode::EmptyResponse,
            "The model answered with nothing.",
        ),
    };
    Failure {
        code,
        message: message.to_owned(),
        retryable: true,
    }
}

/// Why an answer failed that took too long.
pub fn out_of_time(watches: &Watches) -> Failure {
    let message = format!(
        "The answer was not complete within {} seconds.",
        seconds(watches.total)
    );
    Failure {
        code: FailureCode::RunTimeout,
        message,
        retryable: true,
    }
}

/// White space and characters without width are nothing to read.
fn is_blank(text: &str) -> bool {
    text.chars().all(|it| {
        it.is_whitespace()
            || matches!(
                it,
                '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}'
            )
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use async_trait::async_trait;
    use futures::StreamExt;
    use futures::stream;
    use tokio::time::sleep;
    use tokio_util::sync::CancellationToken;

    use super::generate;
    use super::is_blank;
    use crate::generation::outcome::FailureCode;
    use crate::generation::outcome::Outcome;
    use crate::generation::trim::Trim;
    use crate::generation::watches::Watches;
    use crate::llm::delta::Delta;
    use crate::llm::delta::FinishReason;
    use crate::llm::error::LlmError;
    use crate::llm::provider::Ability;
    use crate::llm::provider::DeltaStream;
    use crate::llm::provider::Provider;
    use crate::llm::request::Request;

    #[test]
    fn characters_without_width_are_nothing_to_read() {
        assert!(is_blank(""));
        assert!(is_blank(" \u{200b}\u{feff}\n"));
        assert!(!is_blank("\u{200b}."));
    }

    /// Sends each piece so many seconds after the one before, then nothing more.
    #[derive(Default)]
    struct Slow {
        pieces: Vec<(u64, Delta)>,
        n_calls: AtomicUsize,
    }

    #[async_trait]
    impl Provider for Slow {
        async fn stream(&self, _: &Request) -> Result<DeltaStream, LlmError> {
            self.n_calls.fetch_add(1, Ordering::Relaxed);
            let pieces = stream::iter(self.pieces.clone());
            let pieces = pieces.then(async |(after_s, delta)| {
                sleep(Duration::from_secs(after_s)).await;
                Ok(delta)
            });
            Ok(pieces.chain(stream::pending()).boxed())
        }

        fn kind(&self) -> &'static str {
            "slow"
        }

        fn can(&self, _: Ability) -> bool {
            false
        }
    }

    /// The outcome under the default limits, and the number of calls.
    async fn outcome_of(pieces: Vec<(u64, Delta)>) -> (Outcome, usize) {
        let slow = Slow {
            pieces,
            ..Slow::default()
        };
        let (trim, stop) = (Trim::nameless(), CancellationToken::new());
        let (request, watches) = (Request::default(), Watches::default());
        let mut text = String::new();
        let outcome = generate(&slow, &request, trim, &watches, &mut text, &stop).await;
        (outcome, slow.n_calls.into_inner())
    }

    fn code(outcome: &Outcome) -> Option<FailureCode> {
        match outcome {
            Outcome::Failed { failure, .. } => Some(failure.code),
            _ => None,
        }
    }

    fn text() -> Delta {
        Delta::Text("Well.".to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn silence_before_the_first_text_may_last_as_long_as_the_first_chunk_limit() {
        let end = (0, Delta::End(FinishReason::Stop));
        let thinks = vec![(90, Delta::Life), (119, Delta::Life), (119, text()), end];

        let (outcome, n_calls) = outcome_of(thinks).await;

        assert!(matches!(outcome, Outcome::Succeeded { .. }), "{outcome:?}");
        assert_eq!(n_calls, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_text_the_call_is_tried_once_more_and_then_fails() {
        for pieces in [vec![], vec![(0, Delta::Life)], vec![(121, text())]] {
            let (outcome, n_calls) = outcome_of(pieces).await;

            assert_eq!(code(&outcome), Some(FailureCode::UpstreamTimeout));
            assert_eq!(n_calls, 2);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silence_after_the_first_text_lasts_no_longer_than_the_idle_limit() {
        let (outcome, n_calls) =
            outcome_of(vec![(0, text()), (29, Delta::Life), (31, text())]).await;

        assert_eq!(code(&outcome), Some(FailureCode::UpstreamTimeout));
        assert_eq!(n_calls, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn signs_of_life_alone_last_until_the_total_limit() {
        let (outcome, n_calls) = outcome_of(vec![(100, Delta::Life); 100]).await;

        assert_eq!(code(&outcome), Some(FailureCode::RunTimeout));
        assert_eq!(n_calls, 1);
    }
}
