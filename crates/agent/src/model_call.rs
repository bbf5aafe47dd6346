//! Runs one model call: retries failed attempts, enforces the total time limit, handles
//! cancellation, and returns the outcome.
//!
//! **Invariant:** whatever ends the call, its request is dropped immediately, and the text of the
//! outcome is exactly what the sink received. Nothing is retried after the sink has shown output.

use std::mem;

use base::message_text;
use llm::delta::FinishReason;
use llm::provider::Provider;
use llm::request::Request;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::attempt::{AttemptState, attempt};
use crate::attempt_error::{AttemptError, RetryBudget, rounded_seconds};
use crate::call_limits::CallLimits;
use crate::outcome::{CallEnd, FailureCode, GenerationFailure, GenerationOutcome, ModelOutput};
use crate::reasoning::ReasoningBuffer;
use crate::sink::Sink;
use crate::thoughts::thought_collector::ThoughtCollector;
use crate::tool_call_assembler::ToolCallAssembler;
use crate::trim::ReplyTrimmer;
use crate::usage;
use crate::usage::UsageTotal;

/// Calls the model and reads its answer into the sink. A blank answer counts as a failure.
pub async fn generate(
    provider: &dyn Provider,
    request: &Request,
    trimmer: ReplyTrimmer,
    limits: &CallLimits,
    sink: &mut dyn Sink,
    cancel: &CancellationToken,
) -> GenerationOutcome {
    let mut output = complete(provider, request, trimmer, limits, sink, cancel).await;
    let usage = usage::count_usage(mem::take(&mut output.call_usages), request).await;
    conclude(output, usage)
}

/// Does the same as [`generate`], but accepts an empty answer and does not count its tokens.
pub async fn complete(
    provider: &dyn Provider,
    request: &Request,
    trimmer: ReplyTrimmer,
    limits: &CallLimits,
    sink: &mut dyn Sink,
    cancel: &CancellationToken,
) -> ModelOutput {
    let mut state = AttemptState::new(sink);
    let end = tokio::select! {
        biased;
        () = cancel.cancelled() => CallEnd::Canceled,
        () = sleep(limits.total) => CallEnd::Failed(deadline_exceeded(limits)),
        res = run_attempts(provider, request, &trimmer, limits, &mut state) => match res {
            // The answer is complete; `finish_reason` below replaces this placeholder.
            Ok(()) => CallEnd::Failed(deadline_exceeded(limits)),
            Err(error) => CallEnd::Failed(error.to_failure(limits)),
        },
    };
    let end = match (end, state.finish_reason) {
        (CallEnd::Failed(_), Some(reason)) => CallEnd::Answered(reason),
        (end, _) => end,
    };
    ModelOutput {
        end,
        text: state.text,
        reasoning: state.reasoning.finish(),
        thoughts: state.thoughts.finish(),
        calls: state.calls.finish(),
        usage: state.usage,
        call_usages: state.call_usages,
        is_capped: state.is_capped,
    }
}

async fn run_attempts(
    provider: &dyn Provider,
    request: &Request,
    trimmer: &ReplyTrimmer,
    limits: &CallLimits,
    state: &mut AttemptState<'_>,
) -> Result<(), AttemptError> {
    let deadline = Instant::now() + limits.total;
    let mut tries = RetryBudget::default();
    loop {
        let res = attempt(provider, request, trimmer.clone(), limits, state).await;
        let Err(error) = res else { return Ok(()) };
        tries.n_attempts += 1;
        tries.n_first_chunk_timeouts += u32::from(error == AttemptError::FirstChunkTimeout);
        if state.is_shown {
            return Err(error);
        }
        state.reasoning = ReasoningBuffer::default();
        state.thoughts = ThoughtCollector::default();
        state.calls = ToolCallAssembler::default();
        state.logprobs.clear();
        // If the wait would end after the deadline, there is no time for another attempt. This error is
        // returned, because it is more specific than a timeout.
        let wait = error.retry_delay(tries, limits, rand::random());
        match wait.filter(|it| Instant::now() + *it < deadline) {
            Some(wait) => sleep(wait).await,
            None => return Err(error),
        }
    }
}

/// Turns the output and its usage into an outcome. A blank answer counts as a failure.
pub fn conclude(output: ModelOutput, usage: Option<UsageTotal>) -> GenerationOutcome {
    let ModelOutput {
        end,
        text,
        reasoning,
        is_capped,
        ..
    } = output;
    let failure = match end {
        CallEnd::Canceled => {
            return GenerationOutcome::Canceled {
                text,
                reasoning,
                usage,
            };
        }
        CallEnd::Answered(reason) if !message_text::is_blank(&text) => {
            let truncated = is_capped || reason == FinishReason::Length;
            return GenerationOutcome::Succeeded {
                text,
                reasoning,
                usage,
                reason,
                truncated,
            };
        }
        CallEnd::Answered(reason) => empty_answer(&reason),
        CallEnd::Failed(failure) => failure,
    };
    GenerationOutcome::Failed {
        failure,
        text,
        usage,
    }
}

fn empty_answer(reason: &FinishReason) -> GenerationFailure {
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
            "The model returned an empty answer.",
        ),
    };
    GenerationFailure {
        code,
        message: message.to_owned(),
        is_retryable: true,
    }
}

/// Returns the failure of a call that exceeded its total time limit.
pub fn deadline_exceeded(limits: &CallLimits) -> GenerationFailure {
    let message = format!(
        "The answer was not complete within {} seconds.",
        rounded_seconds(limits.total)
    );
    GenerationFailure {
        code: FailureCode::RunTimeout,
        message,
        is_retryable: true,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use async_trait::async_trait;
    use futures::{StreamExt, stream};
    use llm::delta::{Delta, FinishReason};
    use llm::error::LlmError;
    use llm::provider::{Capability, DeltaStream, Provider};
    use llm::request::Request;
    use tokio::time::sleep;
    use tokio_util::sync::CancellationToken;

    use super::{conclude, generate};
    use crate::call_limits::CallLimits;
    use crate::outcome::{CallEnd, FailureCode, GenerationOutcome, ModelOutput};
    use crate::trim::ReplyTrimmer;

    #[test]
    fn a_reply_that_is_no_valid_message_text_is_empty() {
        let conclude_text = |text: &str| {
            let output = ModelOutput {
                end: CallEnd::Answered(FinishReason::Stop),
                text: text.to_owned(),
                ..ModelOutput::default()
            };
            conclude(output, None)
        };

        for blank in ["", " \u{200b}\u{feff}\n", "\u{34f}", "\u{fe0f}", "\u{1b}"] {
            let outcome = conclude_text(blank);
            assert_eq!(
                code(&outcome),
                Some(FailureCode::EmptyResponse),
                "{blank:?}"
            );
        }
        let outcome = conclude_text("\u{200b}.");
        assert!(matches!(outcome, GenerationOutcome::Succeeded { .. }));
    }

    /// Sends each delta the given number of seconds after the previous one, then stays silent.
    #[derive(Default)]
    struct SlowProvider {
        pieces: Vec<(u64, Delta)>,
        n_calls: AtomicUsize,
    }

    #[async_trait]
    impl Provider for SlowProvider {
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

        fn has_capability(&self, _: Capability) -> bool {
            false
        }
    }

    /// Answers every call at once with a rate limit of two seconds.
    #[derive(Default)]
    struct BusyProvider(AtomicUsize);

    #[async_trait]
    impl Provider for BusyProvider {
        async fn stream(&self, _: &Request) -> Result<DeltaStream, LlmError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Err(LlmError::Status {
                status: 429,
                message: "Busy.".to_owned(),
                retry_after: Some(Duration::from_secs(2)),
            })
        }

        fn kind(&self) -> &'static str {
            "busy"
        }

        fn has_capability(&self, _: Capability) -> bool {
            false
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_not_retried_after_its_deadline() {
        for (total_s, n_calls) in [(1, 1), (3, 2), (600, 3)] {
            let busy = BusyProvider::default();
            let limits = CallLimits {
                total: Duration::from_secs(total_s),
                ..CallLimits::default()
            };
            let (trim, stop) = (ReplyTrimmer::without_names(), CancellationToken::new());
            let mut text = String::new();

            let request = Request::default();
            let outcome = generate(&busy, &request, trim, &limits, &mut text, &stop).await;

            assert_eq!(code(&outcome), Some(FailureCode::UpstreamRateLimited));
            assert_eq!(busy.0.into_inner(), n_calls, "within {total_s} s");
        }
    }

    /// Returns the outcome under the default limits and the number of calls.
    async fn generate_from(pieces: Vec<(u64, Delta)>) -> (GenerationOutcome, usize) {
        let slow = SlowProvider {
            pieces,
            ..SlowProvider::default()
        };
        let (trim, stop) = (ReplyTrimmer::without_names(), CancellationToken::new());
        let (request, limits) = (Request::default(), CallLimits::default());
        let mut text = String::new();
        let outcome = generate(&slow, &request, trim, &limits, &mut text, &stop).await;
        (outcome, slow.n_calls.into_inner())
    }

    fn code(outcome: &GenerationOutcome) -> Option<FailureCode> {
        match outcome {
            GenerationOutcome::Failed { failure, .. } => Some(failure.code),
            _ => None,
        }
    }

    fn text() -> Delta {
        Delta::Text("Well.".to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn silence_before_the_first_text_may_last_as_long_as_the_first_chunk_limit() {
        let end = (0, Delta::End(FinishReason::Stop));
        let pieces = vec![
            (90, Delta::KeepAlive),
            (119, Delta::KeepAlive),
            (119, text()),
            end,
        ];

        let (outcome, n_calls) = generate_from(pieces).await;

        assert!(
            matches!(outcome, GenerationOutcome::Succeeded { .. }),
            "{outcome:?}"
        );
        assert_eq!(n_calls, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_without_text_is_retried_once_and_then_fails() {
        for pieces in [vec![], vec![(0, Delta::KeepAlive)], vec![(121, text())]] {
            let (outcome, n_calls) = generate_from(pieces).await;

            assert_eq!(code(&outcome), Some(FailureCode::UpstreamTimeout));
            assert_eq!(n_calls, 2);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silence_after_the_first_text_lasts_no_longer_than_the_idle_limit() {
        let (outcome, n_calls) =
            generate_from(vec![(0, text()), (29, Delta::KeepAlive), (31, text())]).await;

        assert_eq!(code(&outcome), Some(FailureCode::UpstreamTimeout));
        assert_eq!(n_calls, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn keep_alives_without_text_end_at_the_total_limit() {
        let (outcome, n_calls) = generate_from(vec![(100, Delta::KeepAlive); 100]).await;

        assert_eq!(code(&outcome), Some(FailureCode::RunTimeout));
        assert_eq!(n_calls, 1);
    }
}
