//! Determines the token usage of a model call: as the provider reports it, otherwise counted by our
//! tokenizer.

use agent::outcome::ModelOutput;
use agent::usage::{call_tokens, prompt_tokens};
use llm::delta::TokenUsage;
use llm::request::Request;
use llm::tokens;
use responses_api::response::ResponseUsage;

/// Returns the usage of one model call, or `None` if it was not reported and nothing was received.
/// `is_answer` states that the answer reached its end.
pub async fn count(
    output: &ModelOutput,
    request: &Request,
    is_answer: bool,
) -> Option<ResponseUsage> {
    let thought = output.reasoning.as_ref().map(|it| it.text.clone());
    if let Some(usage) = output.usage
        && thought.is_none()
    {
        return Some(from_provider(usage, 0));
    }
    let has_output = !output.text.is_empty() || thought.is_some() || !output.calls.is_empty();
    if output.usage.is_none() && !has_output && !is_answer {
        return None;
    }
    let (usage, text, calls) = (output.usage, output.text.clone(), output.calls.clone());
    let request = usage.is_none().then(|| request.clone());
    let thought = thought.unwrap_or_default();
    // Tokenizing is CPU-bound: it must not block other tasks of this runtime.
    let counted = tokio::task::spawn_blocking(move || {
        let reasoning_tokens = tokens::count(&thought);
        let reported = usage.map(|it| from_provider(it, reasoning_tokens));
        let n_output_tokens = tokens::count(&text) + call_tokens(&calls);
        reported.unwrap_or_else(|| ResponseUsage {
            input_tokens: request.as_ref().map_or(0, prompt_tokens),
            output_tokens: n_output_tokens.saturating_add(reasoning_tokens),
            reasoning_tokens,
        })
    });
    counted.await.ok()
}

/// Returns the usage as a provider counted it, with the reasoning part counted separately.
fn from_provider(usage: TokenUsage, reasoning_tokens: i64) -> ResponseUsage {
    ResponseUsage {
        input_tokens: usage.prompt_tokens,
        output_tokens: usage.completion_tokens,
        reasoning_tokens: reasoning_tokens.min(usage.completion_tokens),
    }
}
