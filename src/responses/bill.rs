//! What a turn cost: as its provider counted, or, where that is silent, as we do.

use crate::generation::outcome::Heard;
use crate::llm::request::Request;
use crate::llm::tokens;
use crate::responses::document::Bill;
use crate::responses::fold::How;

/// The bill of a turn; `None`: nobody counted, and nothing came of it.
pub async fn of(heard: &Heard, request: Request, how: &How) -> Option<Bill> {
    let thought = heard.reasoning.as_ref().map(|it| it.text.clone());
    if let Some(usage) = heard.usage
        && thought.is_none()
    {
        return Some(Bill::of(usage, 0));
    }
    let has_said = !heard.text.is_empty() || thought.is_some();
    let is_answer = matches!(how, How::Completed | How::Incomplete(_));
    if heard.usage.is_none() && !has_said && !is_answer {
        return None;
    }
    let (usage, text) = (heard.usage, heard.text.clone());
    let thought = thought.unwrap_or_default();
    // Counting is work for a processor: it must not hold up other turns.
    let counted = tokio::task::spawn_blocking(move || {
        let reasoning_tokens = tokens::count(&thought);
        let told = usage.map(|it| Bill::of(it, reasoning_tokens));
        told.unwrap_or_else(|| Bill {
            input_tokens: prompt_tokens(&request),
            output_tokens: tokens::count(&text).saturating_add(reasoning_tokens),
            reasoning_tokens,
        })
    });
    counted.await.ok()
}

/// The tokens of a prompt, by our own count.
pub fn prompt_tokens(request: &Request) -> i64 {
    let all = request.messages.iter();
    all.map(|it| tokens::count(&it.content)).sum()
}
