//! What a turn cost: as its provider counted, or, where that is silent, as we do.

use crate::generation::outcome::ModelOutput;
use crate::generation::usage::{call_tokens, prompt_tokens};
use crate::llm::request::Request;
use crate::llm::tokens;
use crate::responses::response_document::ResponseUsage;

/// The bill of one call of a model; `None`: nobody counted, and nothing came of it. `is_answer`: the
/// model has come to an end.
pub async fn count(
    output: &ModelOutput,
    request: &Request,
    is_answer: bool,
) -> Option<ResponseUsage> {
    let thought = output.reasoning.as_ref().map(|it| it.text.clone());
    if let Some(usage) = output.usage
        && thought.is_none()
    {
        return Some(ResponseUsage::from_provider(usage, 0));
    }
    let has_output = !output.text.is_empty() || thought.is_some() || !output.calls.is_empty();
    if output.usage.is_none() && !has_output && !is_answer {
        return None;
    }
    let (usage, text, calls) = (output.usage, output.text.clone(), output.calls.clone());
    let request = usage.is_none().then(|| request.clone());
    let thought = thought.unwrap_or_default();
    // Counting is work for a processor: it must not hold up other turns.
    let counted = tokio::task::spawn_blocking(move || {
        let reasoning_tokens = tokens::count(&thought);
        let reported = usage.map(|it| ResponseUsage::from_provider(it, reasoning_tokens));
        let n_output_tokens = tokens::count(&text) + call_tokens(&calls);
        reported.unwrap_or_else(|| ResponseUsage {
            input_tokens: request.as_ref().map_or(0, prompt_tokens),
            output_tokens: n_output_tokens.saturating_add(reasoning_tokens),
            reasoning_tokens,
        })
    });
    counted.await.ok()
}
