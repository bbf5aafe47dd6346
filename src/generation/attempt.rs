//! One attempt at an answer: sends the request and reads until the end, or until trouble.

use std::mem;

use futures::StreamExt;
use serde_json::Value;
use tokio::time::Duration;
use tokio::time::Instant;
use tokio::time::timeout_at;

use crate::generation::calls::Calls;
use crate::generation::reasoning::Gathered;
use crate::generation::sink::Sink;
use crate::generation::trim::Trim;
use crate::generation::trouble::Trouble;
use crate::generation::usage::AnsweredCall;
use crate::generation::watches::Watches;
use crate::llm::delta::Delta;
use crate::llm::delta::FinishReason;
use crate::llm::delta::Usage;
use crate::llm::provider::DeltaStream;
use crate::llm::provider::Provider;
use crate::llm::request::Request;
use crate::llm::tool::CallPiece;

/// After the end only the bill can follow; nobody waits long for it.
const MAX_WAIT_FOR_USAGE: Duration = Duration::from_secs(2);

/// So many tokens of which it is known how likely they were may wait for their text.
const MAX_WAITING_TOKENS: usize = 4_096;

/// What became of the answer so far. Outlives a canceled attempt: it is all that is left of it.
pub struct Answer<'a> {
    sink: &'a mut dyn Sink,
    /// Exactly what the sink was given.
    pub text: String,
    /// What was thought; the sink may show it, but it is no part of the text.
    pub reasoning: Gathered,
    pub calls: Calls,
    /// How likely the tokens were of what is forwarded next.
    pub logprobs: Vec<Value>,
    /// Somebody has seen something of this answer: it cannot begin anew.
    pub was_shown: bool,
    pub usage: Option<Usage>,
    /// The attempts that the provider answered, for what they cost.
    pub answered: Vec<AnsweredCall>,
    /// Set once the answer is complete; what comes later is no part of it.
    pub ended: Option<FinishReason>,
    /// The length limit of ours ended it.
    pub is_capped: bool,
    /// What comes now tells why there is no answer.
    is_refusing: bool,
}

impl<'a> Answer<'a> {
    /// An answer without a word yet.
    pub fn new(sink: &'a mut dyn Sink) -> Self {
        Self {
            sink,
            text: String::new(),
            reasoning: Gathered::default(),
            calls: Calls::default(),
            logprobs: Vec::new(),
            was_shown: false,
            usage: None,
            answered: Vec::new(),
            ended: None,
            is_capped: false,
            is_refusing: false,
        }
    }

    fn note(&mut self, delta: &Delta) {
        if let Some(call) = self.answered.last_mut() {
            call.note(delta);
        }
    }

    fn forward(&mut self, text: &str) {
        if !text.is_empty() {
            if !self.logprobs.is_empty() {
                self.sink.weighed(mem::take(&mut self.logprobs));
            }
            self.text.push_str(text);
            match self.is_refusing {
                true => self.sink.refused(text),
                false => self.sink.delta(text),
            }
            self.was_shown = true;
        }
    }

    fn think(&mut self, text: &str) {
        self.reasoning.push(text);
        self.was_shown |= self.sink.thought(text);
    }

    /// `false`: it is more than anybody calls.
    fn call(&mut self, piece: CallPiece, room: &mut usize) -> bool {
        let n_bytes = piece.arguments.len() + piece.name.as_ref().map_or(0, String::len);
        if n_bytes > *room {
            return false;
        }
        *room -= n_bytes;
        self.was_shown |= self.sink.called(&piece);
        self.calls.push(piece);
        true
    }

    fn end(&mut self, mut trim: Trim, reason: FinishReason) {
        self.forward(&trim.finish());
        self.ended = Some(reason);
    }
}

/// Reads one answer into `answer`. `Ok`: it has ended.
pub async fn attempt(
    provider: &dyn Provider,
    request: &Request,
    mut trim: Trim,
    watches: &Watches,
    answer: &mut Answer<'_>,
) -> Result<(), Trouble> {
    let mut limit = Instant::now() + watches.first_chunk;
    let mut stream = timeout_at(limit, provider.stream(request))
        .await
        .map_err(|_| Trouble::NoChunk)?
        .map_err(Trouble::Call)?;
    answer.answered.push(AnsweredCall::default());
    crate::fail_point!("exec.after_connect");
    let mut room = watches.max_text_bytes;
    let mut late = Trouble::NoChunk;
    loop {
        // A stream that always has more must not keep the cancel waiting.
        tokio::task::consume_budget().await;
        let delta = timeout_at(limit, stream.next()).await;
        let delta = delta.map_err(|_| late.clone())?;
        let delta = delta.ok_or(Trouble::CutShort)?.map_err(Trouble::Call)?;
        answer.note(&delta);
        if begins(&delta) {
            late = Trouble::Silence;
        }
        limit = Instant::now()
            + match late {
                Trouble::Silence => watches.idle,
                _ => watches.first_chunk,
            };
        // What a trim held back until now belongs to what follows it.
        answer.is_refusing = match &delta {
            Delta::Refusal(_) => true,
            Delta::Text(_) => false,
            _ => answer.is_refusing,
        };
        match delta {
            Delta::Life => {}
            Delta::Usage(usage) => answer.usage = Some(usage),
            Delta::Citation(citation) => {
                // Its places are those of a text that nothing was cut from.
                if answer.was_shown && trim.is_verbatim() {
                    answer.sink.cited(citation);
                }
            }
            Delta::Logprobs(logprobs) => {
                // Some servers tell it unasked, and one that is broken tells it without a text.
                if request.top_logprobs.is_some() && answer.logprobs.len() < MAX_WAITING_TOKENS {
                    answer.logprobs.extend(logprobs);
                }
            }
            Delta::Reasoning(text) => answer.think(&text),
            Delta::Call(piece) => {
                answer.is_capped = !answer.call(piece, &mut room);
                if answer.is_capped {
                    answer.end(trim, FinishReason::Length);
                    return Ok(());
                }
            }
            Delta::Text(text) | Delta::Refusal(text) => {
                let taken = &text[..text.floor_char_boundary(room)];
                room -= taken.len();
                answer.forward(&trim.push(taken));
                crate::fail_point!("exec.mid_stream");
                answer.is_capped = taken.len() < text.len();
                if answer.is_capped {
                    answer.end(trim, FinishReason::Length);
                    return Ok(());
                }
                if trim.is_cut() {
                    answer.end(trim, FinishReason::Stop);
                    return Ok(());
                }
            }
            Delta::End(reason) => {
                answer.end(trim, reason);
                read_usage(stream, watches, answer).await;
                return Ok(());
            }
        }
    }
}

/// Whether the answer has begun with this piece: text, thought or tool call. A role, an empty piece
/// or a comment is a sign of life and no beginning.
fn begins(delta: &Delta) -> bool {
    matches!(
        delta,
        Delta::Text(_) | Delta::Refusal(_) | Delta::Reasoning(_) | Delta::Call(_)
    )
}

/// Reads what follows the end; whatever goes wrong here does not matter any more.
async fn read_usage(mut stream: DeltaStream, watches: &Watches, answer: &mut Answer<'_>) {
    let limit = Instant::now() + watches.idle.min(MAX_WAIT_FOR_USAGE);
    while let Ok(Some(Ok(delta))) = timeout_at(limit, stream.next()).await {
        tokio::task::consume_budget().await;
        answer.note(&delta);
        if let Delta::Usage(usage) = delta {
            answer.usage = Some(usage);
        }
        if Instant::now() >= limit {
            return;
        }
    }
}
