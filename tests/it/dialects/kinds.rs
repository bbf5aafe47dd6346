//! The provider kinds and helpers that produce data in the wire format of each.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use agent::call_limits::CallLimits;
use agent::model_call::generate;
use agent::outcome::GenerationOutcome;
use agent::trim::ReplyTrimmer;
use llm::provider::Provider;
use llm::registry::{ProviderKind, ProviderSpec};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::model_call;

/// The kinds with a wire format of their own that are called over a network.
pub const ALL: [ProviderKind; 4] = [
    ProviderKind::OpenaiCompatible,
    ProviderKind::Anthropic,
    ProviderKind::Gemini,
    ProviderKind::Ollama,
];

/// Returns settings of this kind that call this fake provider.
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
    provider.expect("the settings are valid")
}

/// Calls the model for one reply of Ada.
pub async fn call_model(
    kind: ProviderKind,
    upstream: &FakeProvider,
    watches: CallLimits,
) -> GenerationOutcome {
    let provider = provider(kind, upstream);
    let mut deltas = String::new();
    let outcome = generate(
        &*provider,
        &model_call::request(),
        ReplyTrimmer::new(&["Ada"], &["Bob"]),
        &watches,
        &mut deltas,
        &CancellationToken::new(),
    )
    .await;
    assert_eq!(
        model_call::text(&outcome),
        deltas,
        "{kind}: the text of the outcome equals the deltas"
    );
    outcome
}

/// Returns a stream in this kind's format, or `None` if the format cannot express it.
pub fn recorded(kind: ProviderKind, case: &str) -> Option<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/streams");
    let ending = match kind {
        ProviderKind::Ollama => "ndjson",
        _ => "sse",
    };
    fs::read(folder.join(kind.as_str()).join(format!("{case}.{ending}"))).ok()
}

/// Returns a response of this kind without chunks.
pub fn stream(kind: ProviderKind) -> ResponseScript {
    match kind {
        ProviderKind::Ollama => ResponseScript::body(200, "application/x-ndjson", Vec::new()),
        _ => ResponseScript::stream(),
    }
}

/// Returns a response of this kind that sends these bytes.
pub fn sends(kind: ProviderKind, bytes: impl AsRef<[u8]>) -> ResponseScript {
    stream(kind).raw(bytes)
}

/// Returns a chunk of text in this kind's format.
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

/// Returns what this kind sends while no text is available.
pub fn keep_alive(kind: ProviderKind) -> String {
    match kind {
        ProviderKind::Anthropic => event(&json!({ "type": "ping" })),
        ProviderKind::Ollama => piece(kind, ""),
        _ => ": keep-alive\n\n".to_owned(),
    }
}

/// Returns an error response in this kind's format.
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
