//! Makes a model call against an upstream, with limits that only the subject of the test can reach.

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

/// Settings for this upstream.
pub fn spec(base_url: &str) -> ProviderSpec {
    ProviderSpec {
        kind: ProviderKind::OpenaiCompatible,
        base_url: Some(base_url.to_owned()),
        api_key: Some(Secret::new(KEY)),
        model: "scripted".to_owned(),
        options: ProviderOptions::default(),
    }
}

/// A registry that may call this machine.
pub fn registry() -> ProviderRegistry {
    ProviderRegistry::new(egress(), Duration::ZERO)
}

/// Calls that may lead to this machine.
pub fn egress() -> OutboundClient {
    OutboundClient::new(Arc::new(SystemResolver), true).expect("TLS can be set up")
}

pub fn provider(upstream: &FakeProvider) -> Arc<dyn Provider> {
    registry()
        .provider(&spec(&upstream.base_url()))
        .expect("the settings are right")
}

/// What Ada is asked in a room with Bob.
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

/// Limits that no test reaches by accident, and short waits between attempts.
pub fn patient_watches() -> CallLimits {
    CallLimits {
        backoff: Duration::from_millis(1),
        ..CallLimits::default()
    }
}

/// Lets Ada speak.
pub async fn call_model(upstream: &FakeProvider, watches: CallLimits) -> GenerationOutcome {
    let (outcome, heard) = call_model_with_deltas(&*provider(upstream), watches).await;
    assert_eq!(
        text(&outcome),
        heard,
        "the outcome's text is what the sink was given"
    );
    outcome
}

/// The same, with what the sink was given.
pub async fn call_model_with_deltas(
    provider: &dyn Provider,
    watches: CallLimits,
) -> (GenerationOutcome, String) {
    let mut heard = String::new();
    let trim = ReplyTrimmer::new(&["Ada"], &["Bob"]);
    let outcome = generate(
        provider,
        &request(),
        trim,
        &watches,
        &mut heard,
        &CancellationToken::new(),
    )
    .await;
    (outcome, heard)
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

/// The outcome of [`Script::say`].
pub fn succeeded(said: &str) -> GenerationOutcome {
    GenerationOutcome::Succeeded {
        text: said.to_owned(),
        reasoning: None,
        usage: Some(UsageTotal {
            prompt_tokens: 7,
            completion_tokens: said.split(' ').count() as i64,
            is_estimated: false,
        }),
        reason: FinishReason::Stop,
        truncated: false,
    }
}

/// The same where an attempt was answered before and said nothing: its prompt counts, too.
pub fn succeeded_after_retry(said: &str) -> GenerationOutcome {
    match succeeded(said) {
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

/// What the server itself counts for [`request`] and this answer.
pub fn estimated(said: &str) -> Option<UsageTotal> {
    Some(UsageTotal {
        prompt_tokens: tokens::count("Be Ada.") + tokens::count("Eve: Hi."),
        completion_tokens: tokens::count(said),
        is_estimated: true,
    })
}

/// The beginning of an answer.
pub fn started_script() -> ResponseScript {
    ResponseScript::stream().role().words("Once upon a time")
}

/// A call that runs in the background.
pub struct RunningCall {
    pub cancel: CancellationToken,
    heard: mpsc::UnboundedReceiver<String>,
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
        let (announce, heard) = mpsc::unbounded_channel();
        let outcome = tokio::spawn(async move {
            let trim = ReplyTrimmer::new(&["Ada"], &["Bob"]);
            let mut sink = TextSink(announce);
            generate(&*provider, &request(), trim, &watches, &mut sink, &token).await
        });
        Self {
            cancel,
            heard,
            outcome,
        }
    }

    /// The next piece that the sink is given.
    pub async fn next_text(&mut self) -> String {
        self.heard.recv().await.expect("the call still goes on")
    }

    pub async fn wait_for_outcome(self) -> GenerationOutcome {
        self.outcome.await.expect("the call does not panic")
    }
}
