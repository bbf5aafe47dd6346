//! Finds what the demo model replies to: the latest message of another speaker, and a keyword in it.

use base::prompt_role::PromptRole;
use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use unicode_segmentation::UnicodeSegmentation;

use crate::request::{Message, Request};

const MAX_WORD_CHARS: usize = 20;

/// Returns the latest message that the speaker did not write.
pub fn latest_message(request: &Request) -> Option<&str> {
    let by_another = |it: &&Message| match (&it.name, it.role) {
        (_, PromptRole::System) => false,
        _ if it.answers.is_some() => false,
        (Some(name), _) => *name != request.speaker,
        (None, role) => role == PromptRole::User,
    };
    let newest = request.messages.iter().rev().find(by_another)?;
    Some(&newest.content)
}

/// Picks a keyword of a text: one of its three longest words, but none of excessive length.
pub fn keyword(text: &str, speaker: &str, rng: &mut ChaCha8Rng) -> Option<String> {
    let mut words: Vec<&str> = text
        .unicode_words()
        .filter(|it| it.chars().all(char::is_alphabetic))
        .filter(|it| (4..=MAX_WORD_CHARS).contains(&it.chars().count()))
        .filter(|it| !speaker.contains(it) && !is_common_word(it))
        .collect();
    words.sort_by_key(|it| std::cmp::Reverse(it.chars().count()));
    words.truncate(3);
    words.choose(rng).map(|it| (*it).to_owned())
}

fn is_common_word(word: &str) -> bool {
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
