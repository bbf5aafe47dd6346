//! Makes one attempt at a model call: sends the request, reads the stream into `AttemptState` and
//! passes it to the sink, until the answer ends, fails, pauses too long or reaches its maximum
//! size.

use std::mem;

use futures::StreamExt;
use llm::delta::{Delta, FinishReason, TokenUsage};
use llm::provider::{DeltaStream, Provider};
use llm::reasoning::thought::Thought;
use llm::request::Request;
use llm::tool::ToolCallDelta;
use serde_json::Value;
use tokio::time::{Duration, Instant, timeout_at};

use crate::attempt_error::AttemptError;
use crate::call_limits::CallLimits;
use crate::reasoning::ReasoningBuffer;
use crate::sink::Sink;
use crate::text::token_cap::TokenCap;
use crate::thoughts::thought_collector::ThoughtCollector;
use crate::tool_call_assembler::ToolCallAssembler;
use crate::trim::ReplyTrimmer;
use crate::usage::CallUsage;

/// After the end only the usage report can follow, and it is not worth a long wait.
const MAX_WAIT_FOR_USAGE: Duration = Duration::from_secs(2);

/// The most token logprobs that are buffered while no text follows.
const MAX_PENDING_LOGPROBS: usize = 4_096;

/// The answer so far. Outlives a canceled attempt and holds what that attempt received.
pub struct AttemptState<'a> {
    sink: &'a mut dyn Sink,
    /// Exactly what the sink received.
    pub text: String,
    /// The sink may show it, but it is not part of the text.
    pub reasoning: ReasoningBuffer,
    pub thoughts: ThoughtCollector,
    pub calls: ToolCallAssembler,
    /// The logprobs of the tokens that are forwarded next.
    pub logprobs: Vec<Value>,
    /// Part of this answer was shown to a reader, so the call cannot be retried.
    pub is_shown: bool,
    pub usage: Option<TokenUsage>,
    /// One entry for each attempt with a success status, for computing the cost.
    pub call_usages: Vec<CallUsage>,
    /// Set once the answer is complete; later output is not part of it.
    pub finish_reason: Option<FinishReason>,
    /// Our own length limit ended the answer.
    pub is_capped: bool,
    /// The text that arrives now is a refusal.
    is_refusing: bool,
}

impl<'a> AttemptState<'a> {
    /// Returns the state of an answer that has not started.
    pub fn new(sink: &'a mut dyn Sink) -> Self {
        Self {
            sink,
            text: String::new(),
            reasoning: ReasoningBuffer::default(),
            thoughts: ThoughtCollector::default(),
            calls: ToolCallAssembler::default(),
            logprobs: Vec::new(),
            is_shown: false,
            usage: None,
            call_usages: Vec::new(),
            finish_reason: None,
            is_capped: false,
            is_refusing: false,
        }
    }

    fn record_usage(&mut self, delta: &Delta) {
        if let Some(call) = self.call_usages.last_mut() {
            call.record(delta);
        }
    }

    fn push_text(&mut self, text: &str) {
        if !text.is_empty() {
            if !self.logprobs.is_empty() {
                self.sink.on_logprobs(mem::take(&mut self.logprobs));
            }
            self.text.push_str(text);
            match self.is_refusing {
                true => self.sink.on_refusal(text),
                false => self.sink.on_text(text),
            }
            self.is_shown = true;
        }
    }

    fn push_reasoning(&mut self, text: &str) {
        self.reasoning.push(text);
        self.is_shown |= self.sink.on_reasoning(text);
    }

    /// Sends the thought that is complete now, if there is one, to the sink.
    fn close_thought(&mut self) {
        if let Some(thought) = self.thoughts.close() {
            self.is_shown |= self.sink.on_thought(thought);
        }
    }

    fn push_thought(&mut self, thought: Thought) {
        self.close_thought();
        if let Some(thought) = self.thoughts.push(thought) {
            self.is_shown |= self.sink.on_thought(thought);
        }
    }

    /// Returns `false` if the tool calls exceed the size limit of the answer.
    fn push_call(&mut self, piece: ToolCallDelta, remaining: &mut usize) -> bool {
        let n_bytes = piece.arguments.len() + piece.name.as_ref().map_or(0, String::len);
        if n_bytes > *remaining {
            return false;
        }
        *remaining -= n_bytes;
        self.is_shown |= self.sink.on_tool_call(&piece);
        self.calls.push(piece);
        true
    }

    fn finish(&mut self, mut trimmer: ReplyTrimmer, reason: FinishReason) {
        self.push_text(&trimmer.finish());
        self.finish_reason = Some(reason);
    }
}

/// Reads one answer into `state`. Returns `Ok` when the answer has ended.
pub async fn attempt(
    provider: &dyn Provider,
    request: &Request,
    mut trimmer: ReplyTrimmer,
    limits: &CallLimits,
    state: &mut AttemptState<'_>,
) -> Result<(), AttemptError> {
    let mut deadline = Instant::now() + limits.first_chunk;
    let mut stream = timeout_at(deadline, provider.stream(request))
        .await
        .map_err(|_| AttemptError::FirstChunkTimeout)?
        .map_err(AttemptError::Provider)?;
    state.call_usages.push(CallUsage::default());
    base::fail_point!("exec.after_connect");
    let mut remaining = limits.max_text_bytes;
    let mut cap = TokenCap::new(request, provider);
    let mut timeout = AttemptError::FirstChunkTimeout;
    loop {
        // A stream that always has data ready must not delay a cancellation.
        tokio::task::consume_budget().await;
        let delta = timeout_at(deadline, stream.next()).await;
        let delta = delta.map_err(|_| timeout.clone())?;
        let delta = delta
            .ok_or(AttemptError::Incomplete)?
            .map_err(AttemptError::Provider)?;
        state.record_usage(&delta);
        if is_first_output(&delta) {
            timeout = AttemptError::IdleTimeout;
        }
        deadline = Instant::now()
            + match timeout {
                AttemptError::IdleTimeout => limits.idle,
                _ => limits.first_chunk,
            };
        // Text that the trimmer held back counts as part of what follows it.
        state.is_refusing = match &delta {
            Delta::Refusal(_) => true,
            Delta::Text(_) => false,
            _ => state.is_refusing,
        };
        if ends_a_thought(&delta) {
            state.close_thought();
        }
        match delta {
            Delta::KeepAlive => {}
            Delta::Usage(usage) => state.usage = Some(usage),
            Delta::Citation(citation) => {
                // Its offsets are valid only for a text from which nothing was removed.
                if state.is_shown && trimmer.is_verbatim() {
                    state.sink.on_annotation(citation);
                }
            }
            Delta::Logprobs(logprobs) => {
                // Some servers send logprobs unrequested; a broken one sends them without any text.
                if request.top_logprobs.is_some() && state.logprobs.len() < MAX_PENDING_LOGPROBS {
                    state.logprobs.extend(logprobs);
                }
            }
            Delta::Reasoning(text) => state.push_reasoning(&text),
            Delta::ReasoningIn(field, text) => {
                state.thoughts.push_text(field, &text);
                state.push_reasoning(&text);
            }
            Delta::Thought(thought) => state.push_thought(thought),
            Delta::ToolCall(piece) => {
                state.is_capped = !state.push_call(piece, &mut remaining);
                if state.is_capped {
                    state.finish(trimmer, FinishReason::Length);
                    return Ok(());
                }
            }
            Delta::Text(text) | Delta::Refusal(text) => {
                let accepted = &text[..text.floor_char_boundary(remaining)];
                let accepted = cap.as_mut().map_or(accepted, |it| it.cut(accepted));
                remaining -= accepted.len();
                state.push_text(&trimmer.push(accepted));
                base::fail_point!("exec.mid_stream");
                state.is_capped = accepted.len() < text.len();
                if state.is_capped {
                    state.finish(trimmer, FinishReason::Length);
                    return Ok(());
                }
                if trimmer.is_cut() {
                    state.finish(trimmer, FinishReason::Stop);
                    return Ok(());
                }
            }
            Delta::End(reason) => {
                state.finish(trimmer, reason);
                read_usage(stream, limits, state).await;
                return Ok(());
            }
        }
    }
}

/// Returns whether this delta begins the answer: text, reasoning or a tool call. A role, an empty
/// chunk or a comment only shows that the connection is alive.
fn is_first_output(delta: &Delta) -> bool {
    matches!(
        delta,
        Delta::Text(_)
            | Delta::Refusal(_)
            | Delta::Reasoning(_)
            | Delta::ReasoningIn(..)
            | Delta::Thought(_)
            | Delta::ToolCall(_)
    )
}

/// Returns whether this delta ends a reasoning text, because the API does not mark its end.
fn ends_a_thought(delta: &Delta) -> bool {
    matches!(
        delta,
        Delta::Text(_) | Delta::Refusal(_) | Delta::ToolCall(_) | Delta::End(_)
    )
}

/// Reads the usage that follows the end; errors are ignored because the answer is complete.
async fn read_usage(mut stream: DeltaStream, limits: &CallLimits, state: &mut AttemptState<'_>) {
    let deadline = Instant::now() + limits.idle.min(MAX_WAIT_FOR_USAGE);
    while let Ok(Some(Ok(delta))) = timeout_at(deadline, stream.next()).await {
        tokio::task::consume_budget().await;
        state.record_usage(&delta);
        if let Delta::Usage(usage) = delta {
            state.usage = Some(usage);
        }
        if Instant::now() >= deadline {
            return;
        }
    }
}
