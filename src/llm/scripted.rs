//! The built-in demo model: answers without a key and without a network, so that the first ten
//! minutes work. It knows a few lines by heart and weaves a word of yours into them. It also calls
//! tools, keeps to schemas and refuses, in ways that can be foreseen, so that programs can be tried
//! out.
//!
//! **Invariant:** the same seed, speaker and messages give the same answer.

use std::collections::VecDeque;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream;
use rand::RngExt;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use serde_json::json;
use sha2::Digest;
use sha2::Sha256;

use crate::llm::delta::Delta;
use crate::llm::delta::FinishReason;
use crate::llm::delta::Usage;
use crate::llm::error::LlmError;
use crate::llm::provider::Ability;
use crate::llm::provider::DeltaStream;
use crate::llm::provider::Provider;
use crate::llm::request::PromptRole;
use crate::llm::request::Request;
use crate::llm::scripted_ear;
use crate::llm::scripted_json;
use crate::llm::scripted_tools;
use crate::llm::scripted_voices::VOICES;
use crate::llm::scripted_voices::Voice;
use crate::llm::tool::CallPiece;
use crate::llm::tool::Format;
use crate::llm::tool::ToolCall;

/// Said once in a conversation, before everything else; finding it tells that it was said.
pub const NOTICE: &str = "*You are talking to the built-in demo model. For a real one choose \
    “Connect a model” in the menu, or set TROUPE_LLM_BASE_URL.*";

/// Said in place of an answer to whoever wants to see a refusal.
const REFUSAL: &str = "I cannot answer that, as you told me to refuse.";

/// The pace of somebody who types while you watch.
pub const HUMAN_PACE: Duration = Duration::from_millis(50);

/// The provider of kind `demo`.
#[derive(Debug, Clone, Copy)]
pub struct Scripted {
    pace: Duration,
}

impl Scripted {
    /// Speaks a word about every `pace`; without any pause if it is zero.
    pub fn new(pace: Duration) -> Self {
        Self { pace }
    }
}

#[async_trait]
impl Provider for Scripted {
    async fn stream(&self, request: &Request) -> Result<DeltaStream, LlmError> {
        let mut dice = dice(request);
        let calls = scripted_tools::calls(request);
        let deltas = match calls.is_empty() {
            _ if scripted_ear::is_told_to_refuse(request) => refused(request),
            true => deltas(request, &said(request, &mut dice), Delta::Text),
            false => called(request, calls, &mut dice),
        };
        let pace = self.pace;
        let spoken = stream::unfold((deltas, dice), move |(mut deltas, mut dice)| async move {
            let delta = deltas.pop_front()?;
            if matches!(delta, Delta::Text(_) | Delta::Refusal(_)) && !pace.is_zero() {
                tokio::time::sleep(pace.mul_f64(dice.random_range(0.8..1.2))).await;
            }
            Some((Ok(delta), (deltas, dice)))
        });
        Ok(spoken.boxed())
    }

    fn kind(&self) -> &'static str {
        "demo"
    }

    fn can(&self, ability: Ability) -> bool {
        !matches!(ability, Ability::Logprobs | Ability::Documents)
    }
}

/// What it answers with, in the form that is asked for.
fn said(request: &Request, dice: &mut ChaCha8Rng) -> String {
    let reply = |dice| scripted_tools::report(request).unwrap_or_else(|| reply(request, dice));
    match &request.format {
        Format::Text => reply(dice),
        Format::Json => {
            let reply = reply(dice);
            let answer = reply.rsplit(NOTICE).next().unwrap_or_default();
            json!({ "answer": answer.trim() }).to_string()
        }
        Format::Schema(it) => {
            let heard = scripted_ear::heard(request).unwrap_or_default();
            scripted_json::value(&it.schema, heard).to_string()
        }
    }
}

/// What the demo model has to say to this request.
fn reply(request: &Request, dice: &mut ChaCha8Rng) -> String {
    let voice = voice(&request.speaker);
    let heard = scripted_ear::heard(request);
    let heard = heard.map(|it| it.rsplit(NOTICE).next().unwrap_or_default());
    let word = heard.and_then(|text| scripted_ear::word(text, &request.speaker, dice));
    let is_question = heard.is_some_and(|text| text.trim_end().ends_with(['?', '？', '؟']));
    let mut sentences = vec![opening(voice, word.as_deref(), is_question, dice)];
    if dice.random_bool(0.5) {
        sentences.push(pick(voice.musings, dice).to_owned());
    }
    if dice.random_bool(0.6) {
        sentences.push(pick(voice.questions, dice).to_owned());
    }
    let said = sentences.join(" ");
    if was_introduced(request) {
        said
    } else {
        format!("{NOTICE}\n\n{said}")
    }
}

fn opening(voice: &Voice, word: Option<&str>, is_question: bool, dice: &mut ChaCha8Rng) -> String {
    let lines = match (is_question, word) {
        (true, _) => voice.answers,
        (false, Some(_)) => voice.echoes,
        (false, None) => voice.greetings,
    };
    let usable: Vec<&str> = lines
        .iter()
        .copied()
        .filter(|line| word.is_some() || !line.contains("{word}"))
        .collect();
    let line = pick(&usable, dice).replace("{word}", word.unwrap_or_default());
    let mut letters = line.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => line,
    }
}

fn pick<'a>(lines: &[&'a str], dice: &mut ChaCha8Rng) -> &'a str {
    lines
        .choose(dice)
        .copied()
        .expect("every voice has lines of every kind")
}

/// A speaker keeps a voice for life: it goes by the name alone.
fn voice(speaker: &str) -> &'static Voice {
    let digest = Sha256::digest(speaker.as_bytes());
    &VOICES[usize::from(digest[0]) % VOICES.len()]
}

fn was_introduced(request: &Request) -> bool {
    let mut spoken = request
        .messages
        .iter()
        .filter(|it| it.role != PromptRole::System);
    spoken.any(|it| it.content.contains(NOTICE))
}

fn dice(request: &Request) -> ChaCha8Rng {
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

/// The reply word by word, and how it ends. One word counts as one token of the limit.
fn deltas(request: &Request, reply: &str, kind: fn(String) -> Delta) -> VecDeque<Delta> {
    let limit = request
        .max_tokens
        .map_or(usize::MAX, |it| usize::try_from(it).unwrap_or(usize::MAX));
    let words: Vec<&str> = reply.split_inclusive(' ').collect();
    let said = &words[..words.len().min(limit)];
    let reason = if said.len() < words.len() {
        FinishReason::Length
    } else {
        FinishReason::Stop
    };
    let usage = usage(request, &said.concat());
    let mut deltas: VecDeque<Delta> = said.iter().map(|it| kind((*it).to_owned())).collect();
    deltas.extend([Delta::End(reason), Delta::Usage(usage)]);
    deltas
}

/// Why it does not answer, whatever the form that was asked for.
fn refused(request: &Request) -> VecDeque<Delta> {
    deltas(request, REFUSAL, Delta::Refusal)
}

/// The calls piece by piece. The ids are thrown like everything else.
fn called(request: &Request, calls: Vec<ToolCall>, dice: &mut ChaCha8Rng) -> VecDeque<Delta> {
    let (mut deltas, mut said) = (VecDeque::new(), String::new());
    for (index, call) in calls.into_iter().enumerate() {
        said.extend([call.name.as_str(), call.arguments.as_str()]);
        let first = CallPiece {
            index,
            id: Some(format!("call_{:024x}", dice.random::<u128>() >> 32)),
            name: Some(call.name),
            arguments: String::new(),
        };
        let rest = call.arguments.split_inclusive(',').map(|it| CallPiece {
            index,
            arguments: it.to_owned(),
            ..CallPiece::default()
        });
        deltas.extend([first].into_iter().chain(rest).map(Delta::Call));
    }
    deltas.push_back(Delta::End(FinishReason::ToolCalls));
    deltas.push_back(Delta::Usage(usage(request, &said)));
    deltas
}

fn usage(request: &Request, said: &str) -> Usage {
    let messages = request.messages.iter();
    Usage {
        prompt_tokens: messages.map(|it| estimate(&it.content)).sum(),
        completion_tokens: estimate(said),
    }
}

/// Four letters a token: near enough for a model that costs nothing.
fn estimate(text: &str) -> i64 {
    i64::try_from(text.chars().count().div_ceil(4)).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "scripted_tests.rs"]
mod tests;
