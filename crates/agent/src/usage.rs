//! Counts the tokens of model calls: as reported by the provider, or estimated by our tokenizer.
//!
//! **Invariant:** each call that was answered with a success status is counted once, and never as 0
//! if anything was sent. A call that was rejected earlier costs nothing.

use llm::delta::{Delta, TokenUsage};
use llm::reasoning::thought::Thought;
use llm::request::{Message, Request};
use llm::tokens;
use llm::tool::{Tool, ToolCall};

/// Tokens of one or several calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsageTotal {
    pub prompt_tokens: i64,
    pub completion_tokens: i64,
    /// At least a part was not reported by the provider.
    pub is_estimated: bool,
}

impl UsageTotal {
    /// Returns prompt and completion tokens together.
    pub fn total(self) -> i64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }

    /// Returns the sum; it is estimated if either part is.
    pub fn combine(self, other: Self) -> Self {
        Self {
            prompt_tokens: self.prompt_tokens.saturating_add(other.prompt_tokens),
            completion_tokens: self
                .completion_tokens
                .saturating_add(other.completion_tokens),
            is_estimated: self.is_estimated || other.is_estimated,
        }
    }
}

/// Returns the sum of the known values, or `None` if both are unknown.
pub fn sum(one: Option<UsageTotal>, other: Option<UsageTotal>) -> Option<UsageTotal> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.combine(other)),
        (one, other) => one.or(other),
    }
}

/// A call that the provider answered with a success status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallUsage {
    /// The provider's last report.
    reported: Option<TokenUsage>,
    /// The stream reached the end of the answer.
    is_complete: bool,
    received: Received,
}

impl CallUsage {
    /// Records the next delta of the answer.
    pub fn record(&mut self, delta: &Delta) {
        match delta {
            Delta::Usage(usage) => self.reported = Some(*usage),
            Delta::End(_) => self.is_complete = true,
            Delta::Text(text)
            | Delta::Refusal(text)
            | Delta::Reasoning(text)
            | Delta::ReasoningIn(_, text) => {
                self.received.push(text);
            }
            Delta::ToolCall(piece) => {
                self.received
                    .push(piece.name.as_deref().unwrap_or_default());
                self.received.push(&piece.arguments);
            }
            Delta::KeepAlive | Delta::Logprobs(_) | Delta::Citation(_) | Delta::Thought(_) => {}
        }
    }

    /// Returns whether the provider's report is complete and final.
    fn is_reported(&self) -> bool {
        let is_full = |it: &TokenUsage| it.prompt_tokens > 0 && it.completion_tokens > 0;
        self.is_complete && self.reported.as_ref().is_some_and(is_full)
    }

    /// Returns the usage, given the tokenizer's count of the prompt. Values that the provider did
    /// not report, or had not yet reported when the call was cut off, are estimated.
    fn usage(&self, sent_tokens: i64) -> UsageTotal {
        let reported = self.reported.unwrap_or_default();
        let received = match self.is_reported() {
            true => 0,
            false => self.received.tokens(),
        };
        let prompt = reported_or_estimate(reported.prompt_tokens, sent_tokens, true);
        let completion =
            reported_or_estimate(reported.completion_tokens, received, self.is_complete);
        UsageTotal {
            prompt_tokens: prompt.0,
            completion_tokens: completion.0,
            is_estimated: prompt.1 || completion.1,
        }
    }
}

/// Returns the tokens of one part and whether they are estimated. A preliminary report is used only
/// if it is not below the estimate.
fn reported_or_estimate(reported: i64, estimate: i64, is_final: bool) -> (i64, bool) {
    let is_missing = reported <= 0 || !is_final && reported < estimate;
    match is_missing && estimate > 0 {
        true => (estimate, true),
        false => (reported.max(0), false),
    }
}

/// The part of an answer that is tokenized; the rest is extrapolated from it.
const MAX_SAMPLE_BYTES: usize = 64 * 1024;

/// What one call received: text, reasoning and tool calls together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Received {
    sample: String,
    n_bytes: usize,
}

impl Received {
    fn push(&mut self, text: &str) {
        self.n_bytes = self.n_bytes.saturating_add(text.len());
        let left = MAX_SAMPLE_BYTES.saturating_sub(self.sample.len());
        self.sample
            .push_str(&text[..text.floor_char_boundary(left)]);
    }

    fn tokens(&self) -> i64 {
        let counted = i128::from(tokens::count(&self.sample));
        let (all, sampled) = (self.n_bytes as i128, self.sample.len().max(1) as i128);
        i64::try_from(counted * all / sampled).unwrap_or(i64::MAX)
    }
}

/// Returns the tokens of attempts that all sent `request`, or `None` if none succeeded.
pub async fn count_usage(calls: Vec<CallUsage>, request: &Request) -> Option<UsageTotal> {
    let total = |calls: &[CallUsage], sent: i64| {
        let all = calls.iter().map(|it| it.usage(sent));
        all.reduce(UsageTotal::combine)
    };
    if calls.iter().all(CallUsage::is_reported) {
        return total(&calls, 0);
    }
    let request = request.clone();
    // Tokenizing is CPU-bound: it must not block other tasks of this runtime.
    let counting = tokio::task::spawn_blocking(move || total(&calls, prompt_tokens(&request)));
    counting.await.ok().flatten()
}

/// Returns the tokens of a prompt by our own count.
pub fn prompt_tokens(request: &Request) -> i64 {
    let messages = request.messages.iter();
    let messages = messages
        .map(|it| message_tokens(it) + call_tokens(&it.calls) + thought_tokens(&it.thoughts));
    messages.sum::<i64>() + tool_tokens(&request.tools)
}

/// Counts the name too; it is sent before the text or in a field of its own.
fn message_tokens(message: &Message) -> i64 {
    match &message.name {
        Some(name) => tokens::count(&format!("{name}: {}", message.content)),
        None => tokens::count(&message.content),
    }
}

/// Returns the tokens of the tool definitions in a prompt.
pub fn tool_tokens(tools: &[Tool]) -> i64 {
    let cost = |it: &Tool| {
        let description = it.description.as_deref().unwrap_or_default();
        let parameters = it.parameters.to_string();
        tokens::count(&it.name) + tokens::count(description) + tokens::count(&parameters)
    };
    tools.iter().map(cost).sum()
}

fn thought_tokens(thoughts: &[Thought]) -> i64 {
    let texts = thoughts.iter().filter_map(Thought::text);
    texts.map(tokens::count).sum()
}

/// Returns the tokens of tool calls.
pub fn call_tokens(calls: &[ToolCall]) -> i64 {
    let calls = calls.iter();
    calls
        .map(|it| tokens::count(&it.name) + tokens::count(&it.arguments))
        .sum()
}

#[cfg(test)]
mod tests {
    use base::prompt_role::PromptRole;
    use llm::delta::{Delta, FinishReason, TokenUsage};
    use llm::request::{Message, Request};
    use llm::tokens;
    use llm::tool::ToolCallDelta;

    use super::{CallUsage, MAX_SAMPLE_BYTES, UsageTotal, count_usage};

    fn text(text: &str) -> Delta {
        Delta::Text(text.to_owned())
    }

    fn report(prompt_tokens: i64, completion_tokens: i64) -> Delta {
        Delta::Usage(TokenUsage {
            prompt_tokens,
            completion_tokens,
        })
    }

    fn end() -> Delta {
        Delta::End(FinishReason::Stop)
    }

    /// Returns the cost of calls whose prompt was the two tokens of "hello world".
    async fn cost(calls: &[&[Delta]]) -> Option<(i64, i64, bool)> {
        let request = Request {
            messages: vec![Message::new(PromptRole::User, "hello world")],
            ..Request::default()
        };
        let calls = calls.iter().map(|deltas| {
            let mut call = CallUsage::default();
            deltas.iter().for_each(|it| call.record(it));
            call
        });
        let cost = count_usage(calls.collect(), &request).await;
        cost.map(|it| (it.prompt_tokens, it.completion_tokens, it.is_estimated))
    }

    #[tokio::test]
    async fn reported_usage_is_not_changed_and_no_answer_has_no_usage() {
        assert_eq!(
            cost(&[&[text("Hi."), report(9, 5), end()]]).await,
            Some((9, 5, false))
        );
        assert_eq!(
            cost(&[&[text("Hi."), end(), report(9, 5)]]).await,
            Some((9, 5, false))
        );
        assert_eq!(cost(&[]).await, None);
    }

    #[tokio::test]
    async fn unreported_usage_is_estimated_and_marked() {
        let two = tokens::count("hello world");
        let thought = Delta::Reasoning("hello world".to_owned());
        let call = Delta::ToolCall(ToolCallDelta {
            arguments: "hello world".to_owned(),
            ..ToolCallDelta::default()
        });

        assert_eq!(cost(&[&[]]).await, Some((two, 0, true)));
        for delta in [text("hello world"), thought, call] {
            assert_eq!(
                cost(&[&[delta.clone(), end()]]).await,
                Some((two, two, true))
            );
            assert_eq!(
                cost(&[&[delta, report(0, -9), end()]]).await,
                Some((two, two, true))
            );
        }
        assert_eq!(
            cost(&[&[text("hello world"), report(9, 0), end()]]).await,
            Some((9, two, true))
        );
    }

    #[tokio::test]
    async fn an_estimate_replaces_a_report_that_misses_later_text() {
        let two = tokens::count("hello world");

        assert_eq!(
            cost(&[&[report(9, 1), text("hello world")]]).await,
            Some((9, two, true))
        );
        assert_eq!(
            cost(&[&[text("hello world"), report(9, 7)]]).await,
            Some((9, 7, false))
        );
    }

    #[tokio::test]
    async fn usage_is_added_over_calls_and_is_an_estimate_if_any_part_is() {
        let two = tokens::count("hello world");
        let reported: &[Delta] = &[text("Hi."), report(9, 5), end()];

        assert_eq!(cost(&[reported, reported]).await, Some((18, 10, false)));
        let mixed = cost(&[reported, &[text("hello world")]]).await;
        assert_eq!(mixed, Some((9 + two, 5 + two, true)));
    }

    #[test]
    fn the_sum_of_huge_reports_does_not_overflow() {
        let absurd = UsageTotal {
            prompt_tokens: i64::MAX,
            completion_tokens: i64::MAX,
            is_estimated: false,
        };

        assert_eq!(absurd.combine(absurd).total(), i64::MAX);
    }

    #[test]
    fn a_long_answer_is_estimated_from_its_beginning() {
        let mut call = CallUsage::default();
        for _ in 0..10 {
            call.record(&text(&"hello world ".repeat(MAX_SAMPLE_BYTES / 12)));
        }

        let (tokens, expected) = (
            call.usage(0).completion_tokens,
            10 * 2 * MAX_SAMPLE_BYTES / 12,
        );
        assert!(
            tokens > 0 && (tokens - expected as i64).abs() < expected as i64 / 10,
            "{tokens}"
        );
    }
}
