//! The built-in demo model: answers without a key and without a network, so that the first ten
//! minutes work. It knows a few lines by heart and weaves a word of yours into them.
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
use sha2::Digest;
use sha2::Sha256;
use unicode_segmentation::UnicodeSegmentation;

use crate::llm::delta::Delta;
use crate::llm::delta::FinishReason;
use crate::llm::delta::Usage;
use crate::llm::error::LlmError;
use crate::llm::provider::DeltaStream;
use crate::llm::provider::Provider;
use crate::llm::request::Message;
use crate::llm::request::Request;
use crate::llm::request::Role;
use crate::llm::scripted_voices::VOICES;
use crate::llm::scripted_voices::Voice;

/// Said once in a conversation, before everything else; finding it tells that it was said.
pub const NOTICE: &str = "*You are talking to the built-in demo model. For a real one choose \
    “Connect a model” in the menu, or set TROUPE_LLM_BASE_URL.*";

/// The pace of somebody who types while you watch.
pub const HUMAN_PACE: Duration = Duration::from_millis(50);

const MAX_WORD_CHARS: usize = 20;

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
        let deltas = deltas(request, &reply(request, &mut dice));
        let pace = self.pace;
        let spoken = stream::unfold((deltas, dice), move |(mut deltas, mut dice)| async move {
            let delta = deltas.pop_front()?;
            if matches!(delta, Delta::Text(_)) && !pace.is_zero() {
                tokio::time::sleep(pace.mul_f64(dice.random_range(0.8..1.2))).await;
            }
            Some((Ok(delta), (deltas, dice)))
        });
        Ok(spoken.boxed())
    }

    fn kind(&self) -> &'static str {
        "demo"
    }
}

/// What the demo model has to say to this request.
fn reply(request: &Request, dice: &mut ChaCha8Rng) -> String {
    let voice = voice(&request.speaker);
    let heard = heard(request);
    let word = heard.and_then(|text| word(text, &request.speaker, dice));
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
    let mut spoken = request.messages.iter().filter(|it| it.role != Role::System);
    spoken.any(|it| it.content.contains(NOTICE))
}

/// The newest thing that somebody else said.
fn heard(request: &Request) -> Option<&str> {
    let by_another = |it: &&Message| match (&it.name, it.role) {
        (_, Role::System) => false,
        (Some(name), _) => *name != request.speaker,
        (None, role) => role == Role::User,
    };
    let newest = request.messages.iter().rev().find(by_another)?;
    Some(newest.content.rsplit(NOTICE).next().unwrap_or_default())
}

/// A word worth taking up: one of the three longest, but no monster.
fn word(text: &str, speaker: &str, dice: &mut ChaCha8Rng) -> Option<String> {
    let mut words: Vec<&str> = text
        .unicode_words()
        .filter(|it| it.chars().all(char::is_alphabetic))
        .filter(|it| (4..=MAX_WORD_CHARS).contains(&it.chars().count()))
        .filter(|it| !speaker.contains(it) && !is_common(it))
        .collect();
    words.sort_by_key(|it| std::cmp::Reverse(it.chars().count()));
    words.truncate(3);
    words.choose(dice).map(|it| (*it).to_owned())
}

fn is_common(word: &str) -> bool {
    const COMMON: &[&str] = &[
        "about", "after", "again", "also", "been", "before", "could", "does", "done", "each",
        "even", "every", "from", "have", "having", "hello", "here", "into", "just", "know", "like",
        "made", "make", "many", "more", "most", "much", "must", "okay", "only", "other", "over",
        "please", "really", "should", "since", "some", "such", "tell", "than", "thank", "thanks",
        "that", "their", "them", "then", "there", "these", "they", "thing", "things", "think",
        "this", "those", "very", "want", "well", "were", "what", "when", "where", "which", "while",
        "will", "with", "would", "your", "yours",
    ];
    COMMON.contains(&word.to_lowercase().as_str())
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
fn deltas(request: &Request, reply: &str) -> VecDeque<Delta> {
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
    let usage = Usage {
        prompt_tokens: request
            .messages
            .iter()
            .map(|it| estimate(&it.content))
            .sum(),
        completion_tokens: estimate(&said.concat()),
    };
    let mut deltas: VecDeque<Delta> = said
        .iter()
        .map(|it| Delta::Text((*it).to_owned()))
        .collect();
    deltas.extend([Delta::End(reason), Delta::Usage(usage)]);
    deltas
}

/// Four letters a token: near enough for a model that costs nothing.
fn estimate(text: &str) -> i64 {
    i64::try_from(text.chars().count().div_ceil(4)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use futures::StreamExt;

    use super::NOTICE;
    use super::Scripted;
    use crate::llm::delta::Delta;
    use crate::llm::delta::FinishReason;
    use crate::llm::provider::Provider;
    use crate::llm::request::Message;
    use crate::llm::request::Request;
    use crate::llm::request::Role;

    fn request(speaker: &str, seed: u64, said: &str) -> Request {
        Request {
            messages: vec![
                Message::new(Role::System, "Be kind."),
                Message::new(Role::User, said),
            ],
            seed,
            speaker: speaker.to_owned(),
            ..Request::default()
        }
    }

    async fn deltas(request: &Request) -> Vec<Delta> {
        let stream = Scripted::new(Duration::ZERO).stream(request).await.unwrap();
        stream.map(Result::unwrap).collect().await
    }

    async fn answer(request: &Request) -> String {
        let texts = deltas(request)
            .await
            .into_iter()
            .filter_map(|delta| match delta {
                Delta::Text(text) => Some(text),
                _ => None,
            });
        texts.collect()
    }

    #[tokio::test]
    async fn the_first_reply_says_what_it_is_and_no_later_one_does() {
        let mut request = request("Ada", 1, "Hello!");
        request.messages.insert(
            1,
            Message::new(Role::Assistant, "Welcome, I am Ada.").named("Ada"),
        );

        let first = answer(&request).await;
        request
            .messages
            .push(Message::new(Role::Assistant, first.clone()).named("Ada"));
        request.messages.push(Message::new(Role::User, "Nice."));
        let second = answer(&request).await;

        assert!(first.starts_with(NOTICE), "{first}");
        assert!(first.len() > NOTICE.len() + 10, "{first}");
        assert!(!second.contains(NOTICE), "{second}");
    }

    #[tokio::test]
    async fn the_same_request_gets_the_same_answer_and_another_seed_another() {
        let answers: Vec<String> =
            futures::future::join_all((0..20).map(|seed| async move {
                answer(&request("Ada", seed, "I saw a lighthouse.")).await
            }))
            .await;

        assert_eq!(
            answers[3],
            answer(&request("Ada", 3, "I saw a lighthouse.")).await
        );
        assert!(answers.iter().collect::<HashSet<_>>().len() > 10);
    }

    #[tokio::test]
    async fn a_word_of_the_message_comes_back() {
        for speaker in ["Ada", "Bob", "Cleo", "Dan", "Eve"] {
            let said = answer(&request(speaker, 1, "I saw a lighthouse.")).await;

            assert!(
                said.to_lowercase().contains("lighthouse"),
                "{speaker}: {said}"
            );
        }
    }

    #[tokio::test]
    async fn it_answers_other_characters_and_never_itself() {
        let mut request = request("Ada", 1, NOTICE);
        request
            .messages
            .push(Message::new(Role::Assistant, "A zeppelin!").named("Bob"));
        request
            .messages
            .push(Message::new(Role::Assistant, "Gorgonzola.").named("Ada"));

        let said = answer(&request).await;

        assert!(said.to_lowercase().contains("zeppelin"), "{said}");
    }

    #[tokio::test]
    async fn every_message_gets_an_answer_without_gaps_in_it() {
        for text in [
            "",
            "?",
            "ok",
            "Is it?",
            "这是什么？",
            "🦀🦀🦀",
            "{word} {word}",
            &"x".repeat(10_000),
        ] {
            for seed in 0..30 {
                let said = answer(&request("Ada", seed, text))
                    .await
                    .replace(NOTICE, "");

                assert!(said.trim().len() > 10, "{text:.20}: {said}");
                assert!(
                    text.contains("{word}") || !said.contains("{word}"),
                    "{said}"
                );
            }
        }
    }

    #[tokio::test]
    async fn the_length_limit_ends_it_as_it_would_a_real_model() {
        let limited = Request {
            max_tokens: Some(3),
            ..request("Ada", 1, "Hi.")
        };

        let deltas = deltas(&limited).await;

        assert_eq!(
            deltas
                .iter()
                .filter(|it| matches!(it, Delta::Text(_)))
                .count(),
            3
        );
        assert!(deltas.contains(&Delta::End(FinishReason::Length)));
    }

    #[tokio::test(start_paused = true)]
    async fn words_come_at_the_pace_it_is_given() {
        let began = tokio::time::Instant::now();
        let stream = Scripted::new(Duration::from_millis(50))
            .stream(&request("Ada", 1, "Hi."))
            .await
            .unwrap();

        let n_words = stream
            .filter(|it| std::future::ready(matches!(it, Ok(Delta::Text(_)))))
            .count()
            .await;

        let per_word = began.elapsed().as_millis() / n_words as u128;
        assert!((40..=61).contains(&per_word), "{per_word}");
    }
}
