//! What a turn cost: as its provider counted, or, where that is silent, as we do.

use crate::generation::outcome::ModelOutput;
use crate::generation::usage::call_tokens;
use crate::generation::usage::prompt_tokens;
use crate::llm::request::Request;
use crate::llm::tokens;
use crate::responses::document::Bill;

/// The bill of one call of a model; `None`: nobody counted, and nothing came of it. `is_answer`: the
/// model has come to an end.
pub async fn of(heard: &ModelOutput, request: &Request, is_answer: bool) -> Option<Bill> {
    let thought = heard.reasoning.as_ref().map(|it| it.text.clone());
    if let Some(usage) = heard.usage
        && thought.is_none()
    {
        return Some(Bill::of(usage, 0));
    }
    let has_said = !heard.text.is_empty() || thought.is_some() || !heard.calls.is_empty();
    if heard.usage.is_none() && !has_said && !is_answer {
        return None;
    }
    let (usage, text, calls) = (heard.usage, heard.text.clone(), heard.calls.clone());
    let request = usage.is_none().then(|| request.clone());
    let thought = thought.unwrap_or_default();
    // Counting is work for a processor: it must not hold up other turns.
    let counted = tokio::task::spawn_blocking(move || {
        let reasoning_tokens = tokens::count(&thought);
        let told = usage.map(|it| Bill::of(it, reasoning_tokens));
        let said = tokens::count(&text) + call_tokens(&calls);
        told.unwrap_or_else(|| Bill {
            input_tokens: request.as_ref().map_or(0, prompt_tokens),
            output_tokens: said.saturating_add(reasoning_tokens),
            reasoning_tokens,
        })
    });
    counted.await.ok()
}
