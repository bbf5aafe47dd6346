//! Makes a model call against a fake provider, with limits that only the tested behavior reaches.

use std::sync::Arc;
use std::time::Duration;

use agent::call_limits::CallLimits;
use agent::model_call::generate;
use agent::outcome::{FailureCode, GenerationFailure, GenerationOutcome};
use agent::sink::Sink;
use agent::trim::ReplyTrimmer;
use agent::usage;
use agent::usage::UsageTotal;
use base::prompt_role::PromptRole;
use llm::delta::FinishReason;
use llm::provider::Provider;
use llm::provider_options::ProviderOptions;
use llm::registry::{ProviderKind, ProviderRegistry, ProviderSpec};
use llm::request::{Message, Request};
use llm::secret::Secret;
use llm::tokens;
use outbound_http::client::{OutboundClient, SystemResolver};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;

/// The API key of every provider in these tests, which must never appear in output.
pub const KEY: &str = "planted-key";

/// Long enough for a slow machine to answer, short enough to wait for.
pub const SHORT_TIMEOUT: Duration = Duration::from_millis(250);

/// Settings of a provider at this base URL.
pub fn spec(base_url: &str) -> ProviderSpec {
    ProviderSpec {
        kind: ProviderKind::OpenaiCompatible,
        base_url: Some(base_url.to_owned()),
        api_key: Some(Secret::new(KEY)),
        model: "scripted".to_owned(),
        options: ProviderOptions::default(),
        extra_headers: Vec::new(),
    }
}

/// A registry that may call local addresses.
pub fn registry() -> ProviderRegistry {
    ProviderRegistry::new(egress(), Duration::ZERO, None)
}

/// An HTTP client that may call local addresses.
pub fn egress() -> OutboundClient {
    OutboundClient::new(Arc::new(SystemResolver), true).expect("TLS can be set up")
}

pub fn provider(upstream: &FakeProvider) -> Arc<dyn Provider> {
    registry()
        .provider(&spec(&upstream.base_url()))
        .expect("the settings are valid")
}

/// A prompt for a reply of Ada to Eve.
pub fn request() -> Request {
    Request {
        model: "scripted".to_owned(),
        messages: vec![
            Message::new(PromptRole::System, "Be Ada."),
            Message::new(PromptRole::User, "Hi.").with_name("Eve"),
        ],
        speaker: "Ada".to_owned(),
        ..Request::default()
    }
}

/// The default limits, with a short backoff between attempts.
pub fn patient_watches() -> CallLimits {
    CallLimits {
        backoff: Duration::from_millis(1),
        ..CallLimits::default()
    }
}

/// Generates a reply of Ada.
pub async fn call_model(upstream: &FakeProvider, watches: CallLimits) -> GenerationOutcome {
    let (outcome, deltas) = call_model_with_deltas(&*provider(upstream), watches).await;
    assert_eq!(
        text(&outcome),
        deltas,
        "the text of the outcome equals the deltas"
    );
    outcome
}

/// Generates a reply of Ada; also returns the concatenated deltas.
pub async fn call_model_with_deltas(
    provider: &dyn Provider,
    watches: CallLimits,
) -> (GenerationOutcome, String) {
    let mut deltas = String::new();
    let trim = ReplyTrimmer::new(&["Ada"], &["Bob"]);
    let outcome = generate(
        provider,
        &request(),
        trim,
        &watches,
        &mut deltas,
        &CancellationToken::new(),
    )
    .await;
    (outcome, deltas)
}

pub fn text(outcome: &GenerationOutcome) -> &str {
    match outcome {
        GenerationOutcome::Succeeded { text, .. }
        | GenerationOutcome::Failed { text, .. }
        | GenerationOutcome::Canceled { text, .. } => text,
    }
}

pub fn failure(outcome: &GenerationOutcome) -> &GenerationFailure {
    match outcome {
        GenerationOutcome::Failed { failure, .. } => failure,
        other => panic!("expected a failure, got {other:?}"),
    }
}

pub fn code(outcome: &GenerationOutcome) -> FailureCode {
    failure(outcome).code
}

/// The outcome of [`ResponseScript::say`].
pub fn succeeded(reply: &str) -> GenerationOutcome {
    GenerationOutcome::Succeeded {
        text: reply.to_owned(),
        reasoning: None,
        usage: Some(UsageTotal {
            prompt_tokens: 7,
            completion_tokens: reply.split(' ').count() as i64,
            is_estimated: false,
        }),
        reason: FinishReason::Stop,
        truncated: false,
    }
}

/// The same after an attempt with an empty response, whose prompt tokens are counted as well.
pub fn succeeded_after_retry(reply: &str) -> GenerationOutcome {
    match succeeded(reply) {
        GenerationOutcome::Succeeded {
            text,
            reasoning,
            usage,
            reason,
            truncated,
        } => GenerationOutcome::Succeeded {
            usage: usage::sum(estimated(""), usage),
            text,
            reasoning,
            reason,
            truncated,
        },
        other => other,
    }
}

/// The usage that the server estimates for [`request`] and this reply.
pub fn estimated(reply: &str) -> Option<UsageTotal> {
    Some(UsageTotal {
        prompt_tokens: tokens::count("Be Ada.") + tokens::count("Eve: Hi."),
        completion_tokens: tokens::count(reply),
        is_estimated: true,
    })
}

/// An unfinished response.
pub fn started_script() -> ResponseScript {
    ResponseScript::stream().role().words("Once upon a time")
}

/// A call that runs in the background.
pub struct RunningCall {
    pub cancel: CancellationToken,
    deltas: mpsc::UnboundedReceiver<String>,
    outcome: tokio::task::JoinHandle<GenerationOutcome>,
}

struct TextSink(mpsc::UnboundedSender<String>);

impl Sink for TextSink {
    fn on_text(&mut self, text: &str) {
        let _ = self.0.send(text.to_owned());
    }
}

impl RunningCall {
    pub fn start(upstream: &FakeProvider, watches: CallLimits) -> Self {
        let provider = provider(upstream);
        let cancel = CancellationToken::new();
        let token = cancel.clone();
        let (sender, deltas) = mpsc::unbounded_channel();
        let outcome = tokio::spawn(async move {
            let trim = ReplyTrimmer::new(&["Ada"], &["Bob"]);
            let mut sink = TextSink(sender);
            generate(&*provider, &request(), trim, &watches, &mut sink, &token).await
        });
        Self {
            cancel,
            deltas,
            outcome,
        }
    }

    /// Waits for the next text that the sink receives.
    pub async fn next_text(&mut self) -> String {
        self.deltas.recv().await.expect("the call has not ended")
    }

    pub async fn wait_for_outcome(self) -> GenerationOutcome {
        self.outcome.await.expect("the call does not panic")
    }
}
