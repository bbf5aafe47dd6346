//! The provider of the demo model, which needs no API key and no network: it combines fixed lines
//! with a word of the user's message. Its tool calls and JSON are predictable, so that a program can
//! be tried with it.
//!
//! **Invariant:** the same request produces the same reply.

use std::collections::VecDeque;
use std::time::Duration;

use async_trait::async_trait;
use base::prompt_role::PromptRole;
use futures::{StreamExt, stream};
use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::delta::{Delta, FinishReason, TokenUsage};
use crate::demo::personas::{PERSONAS, Persona};
use crate::demo::{keywords, sample_json, speaker_choice, tools};
use crate::error::LlmError;
use crate::provider::{Capability, DeltaStream, Provider};
use crate::request::Request;
use crate::tool::{OutputFormat, ToolCall, ToolCallDelta};

/// Precedes the first reply in a conversation: it is omitted if an earlier message contains it.
pub const NOTICE: &str = "*You are talking to the built-in demo model. For a real one choose \
    “Connect a model” in the menu, or set TROUPE_LLM_BASE_URL.*";

/// Pause between two words, like a person who types.
pub const TYPING_SPEED: Duration = Duration::from_millis(50);

/// The provider of kind `demo`.
#[derive(Debug, Clone, Copy)]
pub struct DemoModel {
    typing_speed: Duration,
}

impl DemoModel {
    /// Creates a model that pauses `typing_speed` after each word; zero means no pause.
    pub fn new(typing_speed: Duration) -> Self {
        Self { typing_speed }
    }
}

#[async_trait]
impl Provider for DemoModel {
    async fn stream(&self, request: &Request) -> Result<DeltaStream, LlmError> {
        let mut rng = seeded_rng(request);
        let calls = tools::choose_calls(request);
        let deltas = if calls.is_empty() {
            text_deltas(request, &reply(request, &mut rng))
        } else {
            call_deltas(request, calls, &mut rng)
        };
        let typing_speed = self.typing_speed;
        let deltas = stream::unfold((deltas, rng), move |(mut deltas, mut dice)| async move {
            let delta = deltas.pop_front()?;
            if matches!(delta, Delta::Text(_)) && !typing_speed.is_zero() {
                tokio::time::sleep(typing_speed.mul_f64(dice.random_range(0.8..1.2))).await;
            }
            Some((Ok(delta), (deltas, dice)))
        });
        Ok(deltas.boxed())
    }

    fn kind(&self) -> &'static str {
        "demo"
    }

    fn has_capability(&self, capability: Capability) -> bool {
        !matches!(
            capability,
            Capability::Logprobs
                | Capability::Documents
                | Capability::Effort
                | Capability::ReasoningSummary
        )
    }

    fn can_prefill(&self, _request: &Request) -> bool {
        true
    }
}

/// Returns the reply in the requested output format.
fn reply(request: &Request, rng: &mut ChaCha8Rng) -> String {
    let reply =
        |dice| tools::report_results(request).unwrap_or_else(|| compose_reply(request, dice));
    match &request.format {
        OutputFormat::Text => reply(rng),
        OutputFormat::Json => {
            let reply = reply(rng);
            let answer = reply.rsplit(NOTICE).next().unwrap_or_default();
            json!({ "answer": answer.trim() }).to_string()
        }
        OutputFormat::Schema(it) => {
            let message = keywords::latest_message(request).unwrap_or_default();
            let answer = speaker_choice::answer(it, rng);
            let answer = answer.unwrap_or_else(|| sample_json::value(&it.schema, message));
            answer.to_string()
        }
    }
}

/// Composes a reply from the persona's lines.
fn compose_reply(request: &Request, rng: &mut ChaCha8Rng) -> String {
    let persona = persona(&request.speaker);
    let latest = keywords::latest_message(request);
    let latest = latest.map(|it| it.rsplit(NOTICE).next().unwrap_or_default());
    let word = latest.and_then(|text| keywords::keyword(text, &request.speaker, rng));
    let is_question = latest.is_some_and(|text| text.trim_end().ends_with(['?', '？', '؟']));
    let mut sentences = vec![opening(persona, word.as_deref(), is_question, rng)];
    if rng.random_bool(0.5) {
        sentences.push(choose_line(persona.musings, rng).to_owned());
    }
    if rng.random_bool(0.6) {
        sentences.push(choose_line(persona.questions, rng).to_owned());
    }
    let text = sentences.join(" ");
    match has_introduction(request) {
        _ if request.is_prefilled => format!(" {text}"),
        true => text,
        false => format!("{NOTICE}\n\n{text}"),
    }
}

fn opening(
    persona: &Persona,
    word: Option<&str>,
    is_question: bool,
    rng: &mut ChaCha8Rng,
) -> String {
    let lines = match (is_question, word) {
        (true, _) => persona.answers,
        (false, Some(_)) => persona.echoes,
        (false, None) => persona.greetings,
    };
    let usable: Vec<&str> = lines
        .iter()
        .copied()
        .filter(|line| word.is_some() || !line.contains("{word}"))
        .collect();
    let line = choose_line(&usable, rng).replace("{word}", word.unwrap_or_default());
    let mut letters = line.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => line,
    }
}

fn choose_line<'a>(lines: &[&'a str], rng: &mut ChaCha8Rng) -> &'a str {
    lines
        .choose(rng)
        .copied()
        .expect("every persona has lines of every kind")
}

/// Selects the persona by the speaker's name alone, so that a speaker always keeps it.
fn persona(speaker: &str) -> &'static Persona {
    let digest = Sha256::digest(speaker.as_bytes());
    &PERSONAS[usize::from(digest[0]) % PERSONAS.len()]
}

fn has_introduction(request: &Request) -> bool {
    let mut spoken = request
        .messages
        .iter()
        .filter(|it| it.role != PromptRole::System);
    spoken.any(|it| it.content.contains(NOTICE))
}

fn seeded_rng(request: &Request) -> ChaCha8Rng {
    let mut hash = Sha256::new();
    hash.update(request.seed.to_be_bytes());
    hash.update(request.speaker.as_bytes());
    for message in &request.messages {
        hash.update([0]);
        hash.update(message.role.as_str());
        hash.update(message.name.as_deref().unwrap_or_default());
        hash.update([0]);
        hash.update(message.content.as_bytes());
    }
    ChaCha8Rng::from_seed(hash.finalize().into())
}

/// Returns the reply word by word, and its end. One word counts as one token of the limit.
fn text_deltas(request: &Request, reply: &str) -> VecDeque<Delta> {
    let limit = request
        .max_tokens
        .map_or(usize::MAX, |it| usize::try_from(it).unwrap_or(usize::MAX));
    let words: Vec<&str> = reply.split_inclusive(' ').collect();
    let sent = &words[..words.len().min(limit)];
    let reason = if sent.len() < words.len() {
        FinishReason::Length
    } else {
        FinishReason::Stop
    };
    let usage = estimate_usage(request, &sent.concat());
    let mut deltas: VecDeque<Delta> = sent
        .iter()
        .map(|it| Delta::Text((*it).to_owned()))
        .collect();
    deltas.extend([Delta::End(reason), Delta::Usage(usage)]);
    deltas
}

/// Returns the calls in pieces. Their ids come from the same random generator as everything else.
fn call_deltas(request: &Request, calls: Vec<ToolCall>, rng: &mut ChaCha8Rng) -> VecDeque<Delta> {
    let (mut deltas, mut output) = (VecDeque::new(), String::new());
    for (index, call) in calls.into_iter().enumerate() {
        output.extend([call.name.as_str(), call.arguments.as_str()]);
        let first = ToolCallDelta {
            index,
            id: Some(format!("call_{:024x}", rng.random::<u128>() >> 32)),
            name: Some(call.name),
            arguments: String::new(),
        };
        let rest = call.arguments.split_inclusive(',').map(|it| ToolCallDelta {
            index,
            arguments: it.to_owned(),
            ..ToolCallDelta::default()
        });
        deltas.extend([first].into_iter().chain(rest).map(Delta::ToolCall));
    }
    deltas.push_back(Delta::End(FinishReason::ToolCalls));
    deltas.push_back(Delta::Usage(estimate_usage(request, &output)));
    deltas
}

fn estimate_usage(request: &Request, output: &str) -> TokenUsage {
    let messages = request.messages.iter();
    TokenUsage {
        prompt_tokens: messages.map(|it| estimate_tokens(&it.content)).sum(),
        completion_tokens: estimate_tokens(output),
    }
}

/// Estimates four characters per token: good enough for a model without costs.
fn estimate_tokens(text: &str) -> i64 {
    i64::try_from(text.chars().count().div_ceil(4)).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "demo_tests.rs"]
mod tests;
