//! The kinds of endpoints, each with what it says on the wire.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use troupe::generation::call_limits::CallLimits;
use troupe::generation::model_call::generate;
use troupe::generation::outcome::GenerationOutcome;
use troupe::generation::trim::ReplyTrimmer;
use troupe::llm::provider::Provider;
use troupe::llm::registry::{ProviderKind, ProviderSpec};

use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::model_call;

/// The kinds that are spoken to over a network in words of their own.
pub const ALL: [ProviderKind; 4] = [
    ProviderKind::OpenaiCompatible,
    ProviderKind::Anthropic,
    ProviderKind::Gemini,
    ProviderKind::Ollama,
];

/// Settings of this kind for this upstream.
pub fn spec(kind: ProviderKind, upstream: &FakeProvider) -> ProviderSpec {
    let base_url = match kind {
        ProviderKind::OpenaiCompatible => upstream.base_url(),
        _ => upstream.origin(),
    };
    ProviderSpec {
        kind,
        ..model_call::spec(&base_url)
    }
}

pub fn provider(kind: ProviderKind, upstream: &FakeProvider) -> Arc<dyn Provider> {
    let provider = model_call::registry().provider(&spec(kind, upstream));
    provider.expect("the settings are right")
}

/// Lets Ada speak.
pub async fn call_model(
    kind: ProviderKind,
    upstream: &FakeProvider,
    watches: CallLimits,
) -> GenerationOutcome {
    let provider = provider(kind, upstream);
    let mut heard = String::new();
    let outcome = generate(
        &*provider,
        &model_call::request(),
        ReplyTrimmer::new(&["Ada"], &["Bob"]),
        &watches,
        &mut heard,
        &CancellationToken::new(),
    )
    .await;
    assert_eq!(
        model_call::text(&outcome),
        heard,
        "{kind}: the outcome's text is what the sink was given"
    );
    outcome
}

/// A stream as this kind of endpoint sends it; `None` where it has no word for that.
pub fn recorded(kind: ProviderKind, case: &str) -> Option<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/streams");
    let ending = match kind {
        ProviderKind::Ollama => "ndjson",
        _ => "sse",
    };
    fs::read(folder.join(kind.as_str()).join(format!("{case}.{ending}"))).ok()
}

/// An answer of this kind, without a piece yet.
pub fn stream(kind: ProviderKind) -> ResponseScript {
    match kind {
        ProviderKind::Ollama => ResponseScript::body(200, "application/x-ndjson", Vec::new()),
        _ => ResponseScript::stream(),
    }
}

/// An answer of this kind that sends these bytes.
pub fn sends(kind: ProviderKind, bytes: impl AsRef<[u8]>) -> ResponseScript {
    stream(kind).raw(bytes)
}

/// A piece of text, as this kind sends it.
pub fn piece(kind: ProviderKind, text: &str) -> String {
    match kind {
        ProviderKind::Anthropic => event(&json!({
            "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": text },
        })),
        ProviderKind::Gemini => event(&json!({
            "candidates": [{ "content": { "role": "model", "parts": [{ "text": text }] } }],
        })),
        ProviderKind::Ollama => {
            let line =
                json!({ "message": { "role": "assistant", "content": text }, "done": false });
            format!("{line}\n")
        }
        _ => event(&json!({ "choices": [{ "index": 0, "delta": { "content": text } }] })),
    }
}

/// What this kind sends while it has nothing to say.
pub fn keep_alive(kind: ProviderKind) -> String {
    match kind {
        ProviderKind::Anthropic => event(&json!({ "type": "ping" })),
        ProviderKind::Ollama => piece(kind, ""),
        _ => ": keep-alive\n\n".to_owned(),
    }
}

/// How this kind says no.
pub fn error_response(kind: ProviderKind, status: u16, reason: &str) -> ResponseScript {
    let body = match kind {
        ProviderKind::Anthropic => json!({
            "type": "error", "error": { "type": "some_error", "message": reason }, "request_id": "req_1",
        }),
        ProviderKind::Gemini => json!([{
            "error": { "code": status, "message": reason, "status": "SOME_ERROR" },
        }]),
        ProviderKind::Ollama => json!({ "error": reason }),
        _ => json!({ "error": { "message": reason, "type": "some_error" } }),
    };
    ResponseScript::json(status, &body)
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}
