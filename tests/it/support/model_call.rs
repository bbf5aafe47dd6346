//! A model call as tests make it: against an upstream, with limits that only the test's own
//! subject can reach.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use troupe::generation::generator::generate;
use troupe::generation::outcome::Failure;
use troupe::generation::outcome::FailureCode;
use troupe::generation::outcome::Outcome;
use troupe::generation::sink::Sink;
use troupe::generation::trim::Trim;
use troupe::generation::usage;
use troupe::generation::usage::TokenUsage;
use troupe::generation::watches::Watches;
use troupe::llm::delta::FinishReason;
use troupe::llm::egress::Egress;
use troupe::llm::egress::SystemNames;
use troupe::llm::provider::Provider;
use troupe::llm::registry::ProviderKind;
use troupe::llm::registry::ProviderSpec;
use troupe::llm::registry::Registry;
use troupe::llm::request::Message;
use troupe::llm::request::PromptRole;
use troupe::llm::request::Request;
use troupe::llm::secret::Secret;
use troupe::llm::tokens;
use troupe::llm::tuning::Tuning;

use crate::support::upstream::script::Script;
use crate::support::upstream::server::Upstream;

/// The key that every provider here has, and that nobody may ever see again.
pub const KEY: &str = "planted-key";

/// Long enough for a slow machine to answer, short enough to wait for.
pub const SHORT: Duration = Duration::from_millis(250);

/// Settings for this upstream.
pub fn spec(base_url: &str) -> ProviderSpec {
    ProviderSpec {
        kind: ProviderKind::OpenaiCompatible,
        base_url: Some(base_url.to_owned()),
        api_key: Some(Secret::new(KEY)),
        model: "scripted".to_owned(),
        tuning: Tuning::default(),
    }
}

/// A registry that may call this machine.
pub fn registry() -> Registry {
    Registry::new(egress(), Duration::ZERO)
}

/// Calls that may lead to this machine.
pub fn egress() -> Egress {
    Egress::new(Arc::new(SystemNames), true).expect("TLS can be set up")
}

pub fn provider(upstream: &Upstream) -> Arc<dyn Provider> {
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
            Message::new(PromptRole::User, "Hi.").named("Eve"),
        ],
        speaker: "Ada".to_owned(),
        ..Request::default()
    }
}

/// Limits that no test reaches by accident, and short waits between attempts.
pub fn patient() -> Watches {
    Watches {
        backoff: Duration::from_millis(1),
        ..Watches::default()
    }
}

/// Lets Ada speak.
pub async fn speak(upstream: &Upstream, watches: Watches) -> Outcome {
    let (outcome, heard) = speak_aloud(&*provider(upstream), watches).await;
    assert_eq!(
        text(&outcome),
        heard,
        "the outcome's text is what the sink was given"
    );
    outcome
}

/// The same, with what the sink was given.
pub async fn speak_aloud(provider: &dyn Provider, watches: Watches) -> (Outcome, String) {
    let mut heard = String::new();
    let trim = Trim::new(&["Ada"], &["Bob"]);
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

pub fn text(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Succeeded { text, .. }
        | Outcome::Failed { text, .. }
        | Outcome::Canceled { text, .. } => text,
    }
}

pub fn failure(outcome: &Outcome) -> &Failure {
    match outcome {
        Outcome::Failed { failure, .. } => failure,
        other => panic!("expected a failure, got {other:?}"),
    }
}

pub fn code(outcome: &Outcome) -> FailureCode {
    failure(outcome).code
}

/// The outcome of [`Script::say`].
pub fn succeeded(said: &str) -> Outcome {
    Outcome::Succeeded {
        text: said.to_owned(),
        reasoning: None,
        usage: Some(TokenUsage {
            prompt_tokens: 7,
            completion_tokens: said.split(' ').count() as i64,
            estimated: false,
        }),
        reason: FinishReason::Stop,
        truncated: false,
    }
}

/// The same where an attempt was answered before and said nothing: its prompt counts, too.
pub fn succeeded_again(said: &str) -> Outcome {
    match succeeded(said) {
        Outcome::Succeeded {
            text,
            reasoning,
            usage,
            reason,
            truncated,
        } => Outcome::Succeeded {
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
pub fn estimated(said: &str) -> Option<TokenUsage> {
    Some(TokenUsage {
        prompt_tokens: tokens::count("Be Ada.") + tokens::count("Eve: Hi."),
        completion_tokens: tokens::count(said),
        estimated: true,
    })
}

/// The beginning of an answer.
pub fn begun() -> Script {
    Script::stream().role().words("Once upon a time")
}

/// A call that goes on in the background.
pub struct Speaking {
    pub cancel: CancellationToken,
    heard: mpsc::UnboundedReceiver<String>,
    outcome: tokio::task::JoinHandle<Outcome>,
}

struct Announcer(mpsc::UnboundedSender<String>);

impl Sink for Announcer {
    fn delta(&mut self, text: &str) {
        let _ = self.0.send(text.to_owned());
    }
}

impl Speaking {
    pub fn start(upstream: &Upstream, watches: Watches) -> Self {
        let provider = provider(upstream);
        let cancel = CancellationToken::new();
        let token = cancel.clone();
        let (announce, heard) = mpsc::unbounded_channel();
        let outcome = tokio::spawn(async move {
            let trim = Trim::new(&["Ada"], &["Bob"]);
            let mut sink = Announcer(announce);
            generate(&*provider, &request(), trim, &watches, &mut sink, &token).await
        });
        Self {
            cancel,
            heard,
            outcome,
        }
    }

    /// The next piece that the sink is given.
    pub async fn hears(&mut self) -> String {
        self.heard.recv().await.expect("the call still goes on")
    }

    pub async fn ends(self) -> Outcome {
        self.outcome.await.expect("the call does not panic")
    }
}
