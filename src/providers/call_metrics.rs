//! Counts model calls by outcome, and their tokens, for Prometheus: wraps each provider in one that
//! records its calls.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use async_trait::async_trait;
use futures::{Stream, StreamExt};
use llm::delta::{Delta, TokenUsage};
use llm::error::LlmError;
use llm::provider::{Capability, DeltaStream, Provider};
use llm::request::Request;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Calls and tokens per kind of provider. Cheap to clone; clones share the counters.
#[derive(Clone, Default)]
pub struct ProviderMetrics {
    calls: Family<CallLabels, Counter>,
    tokens: Family<TokenLabels, Counter>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CallLabels {
    provider: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct TokenLabels {
    provider: &'static str,
    direction: &'static str,
}

impl ProviderMetrics {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "upstream_calls",
            "Model calls; each attempt counts",
            self.calls.clone(),
        );
        registry.register(
            "upstream_tokens",
            "Tokens as reported by the providers",
            self.tokens.clone(),
        );
    }

    /// Wraps a provider so that its calls are counted.
    pub fn wrap(&self, provider: Arc<dyn Provider>) -> Arc<dyn Provider> {
        let meter = self.clone();
        Arc::new(MeteredProvider {
            provider,
            metrics: meter,
        })
    }

    fn record_call(&self, provider: &'static str, outcome: &'static str) {
        let called = CallLabels { provider, outcome };
        self.calls.get_or_create(&called).inc();
    }

    fn record_tokens(&self, provider: &'static str, usage: TokenUsage) {
        for (direction, n) in [
            ("prompt", usage.prompt_tokens),
            ("completion", usage.completion_tokens),
        ] {
            let spent = TokenLabels {
                provider,
                direction,
            };
            // Providers may report negative numbers, but a counter must not decrease.
            let n = u64::try_from(n).unwrap_or_default();
            self.tokens.get_or_create(&spent).inc_by(n);
        }
    }
}

/// A provider that counts its calls.
struct MeteredProvider {
    provider: Arc<dyn Provider>,
    metrics: ProviderMetrics,
}

#[async_trait]
impl Provider for MeteredProvider {
    async fn stream(&self, request: &Request) -> Result<DeltaStream, LlmError> {
        let mut call = CallRecord {
            metrics: self.metrics.clone(),
            provider: self.kind(),
            // The outcome if the future is dropped before the call returns.
            outcome: "hung_up",
            usage: None,
        };
        match self.provider.stream(request).await {
            Ok(deltas) => Ok(MeteredStream { deltas, call }.boxed()),
            Err(error) => {
                call.outcome = outcome_name(&error);
                Err(error)
            }
        }
    }

    fn kind(&self) -> &'static str {
        self.provider.kind()
    }

    fn has_capability(&self, ability: Capability) -> bool {
        self.provider.has_capability(ability)
    }

    fn min_output_tokens(&self, request: &Request) -> u32 {
        self.provider.min_output_tokens(request)
    }

    fn can_prefill(&self, request: &Request) -> bool {
        self.provider.can_prefill(request)
    }

    fn max_stops(&self) -> usize {
        self.provider.max_stops()
    }

    fn completes_text(&self) -> bool {
        self.provider.completes_text()
    }

    async fn count_tokens(&self, text: &str) -> Option<i64> {
        self.provider.count_tokens(text).await
    }
}

/// Counts one call when it is dropped, because a caller may cancel at any time.
struct CallRecord {
    metrics: ProviderMetrics,
    provider: &'static str,
    outcome: &'static str,
    usage: Option<TokenUsage>,
}

impl Drop for CallRecord {
    fn drop(&mut self) {
        self.metrics.record_call(self.provider, self.outcome);
        if let Some(usage) = self.usage {
            self.metrics.record_tokens(self.provider, usage);
        }
    }
}

/// The stream of a call, with the record that its deltas update.
struct MeteredStream {
    deltas: DeltaStream,
    call: CallRecord,
}

impl Stream for MeteredStream {
    type Item = Result<Delta, LlmError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.deltas.poll_next_unpin(context));
        match &next {
            Some(Ok(
                Delta::Text(_) | Delta::Refusal(_) | Delta::Reasoning(_) | Delta::ReasoningIn(..),
            )) => {}
            Some(Ok(
                Delta::Logprobs(_)
                | Delta::Citation(_)
                | Delta::Thought(_)
                | Delta::ToolCall(_)
                | Delta::KeepAlive,
            )) => {}
            Some(Ok(Delta::Usage(usage))) => self.call.usage = Some(*usage),
            Some(Ok(Delta::End(_))) => self.call.outcome = "answered",
            Some(Err(error)) => self.call.outcome = outcome_name(error),
            None if self.call.outcome == "hung_up" => self.call.outcome = "cut_short",
            None => {}
        }
        Poll::Ready(next)
    }
}

fn outcome_name(error: &LlmError) -> &'static str {
    match error {
        LlmError::Status { status: 429, .. } => "rate_limited",
        LlmError::Status { status, .. } if *status >= 500 => "server_error",
        LlmError::Status { .. } => "refused",
        LlmError::ContextOverflow { .. } => "context_overflow",
        LlmError::Unreachable { .. } => "unreachable",
        LlmError::Disconnected { .. } => "disconnected",
        LlmError::Upstream { .. } => "broken_answer",
        LlmError::Unusable { .. } => "unusable",
    }
}
