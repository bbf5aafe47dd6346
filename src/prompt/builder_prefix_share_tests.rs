//! Measures how much of each prompt of a long conversation equals the beginning of an earlier one, which a
//! provider with a prompt cache does not process again. `bin/bench prefix` prints the shares.

#![expect(clippy::print_stdout, reason = "bin/bench shows the output")]

use base::ids::MembershipId;
use serde_json::{Value, json};
use tavern::lorebook::engine_lorebook::{Lorebook, LorebookSource};
use tavern::lorebook::scan_request::ScanSettings;
use tavern::lorebook_files::entry;
use tavern::presets::cache_layout::CacheLayout;

use super::build;
use super::tests::{line, member, solo};
use crate::conversations::message::MessageRole;
use crate::prompt::context::{HistoryLine, LoreInput, PromptContext};
use crate::prompt::history::history_window;
use crate::prompt::record::prompt_prefix::equal_tokens;
use crate::prompt::record::sent_prompt::SentPrompt;
use crate::spaces::space::CardHandlingMode;

/// The messages before the first measured turn: more than a history has.
const N_EARLIER: i64 = 220;
/// More messages than a history has.
const MAX_LOADED: usize = 260;
/// The goal of docs/performance.md: this share of the tokens of a prompt equals the beginning of the previous
/// one.
const GOAL: f64 = 0.9;
const NAMES: [&str; 3] = ["Ada", "Cid", "Dot"];
/// The words of messages. The keys of the lore are among them.
const WORDS: [&str; 40] = [
    "the", "harbor", "lantern", "and", "rain", "slowly", "mill", "with", "a", "captain", "over",
    "bridge", "her", "letter", "old", "market", "she", "says", "tower", "then", "of", "garden",
    "winter", "under", "his", "clock", "quiet", "street", "they", "river", "looks", "at", "forest",
    "wall", "again", "ship", "from", "island", "near", "song",
];

/// A conversation to measure.
#[derive(Clone, Copy)]
struct Conversation {
    n_characters: usize,
    cards: CardHandlingMode,
    context_tokens: i64,
    /// The layout with World Info; `None`: there is none.
    lore: Option<CacheLayout>,
}

/// The tokens of one prompt.
#[derive(Clone, Copy)]
struct Measured {
    total: i64,
    /// Those that equal the beginning of the previous prompt of the same speaker.
    equal_to_own_previous: i64,
    /// Those that equal the beginning of the previous prompt of any speaker.
    equal_to_previous: i64,
}

/// Returns a text of `n_words` words, a different one for each `seed`.
fn text(seed: i64, n_words: i64) -> String {
    let mut state = seed.unsigned_abs() + 1;
    let words = (0..n_words).map(|_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        WORDS[(state >> 33) as usize % WORDS.len()]
    });
    words.collect::<Vec<_>>().join(" ") + "."
}

/// Returns the messages up to `last`: Bob and a character alternate, and the characters rotate.
fn messages(n_characters: usize, last: i64) -> Vec<HistoryLine> {
    let message = |seq: i64| {
        let (author, name, role) = match seq % 2 {
            1 => (1, "Bob", MessageRole::User),
            _ => {
                let speaker = speaker_at(n_characters, seq);
                (speaker as i64 + 2, NAMES[speaker], MessageRole::Assistant)
            }
        };
        let text = text(seq, if author == 1 { 25 } else { 80 });
        HistoryLine {
            author: MembershipId(author),
            tokens: llm::tokens::count(&text),
            ..line(seq, name, role, &text)
        }
    };
    (1..=last).map(message).collect()
}

/// Returns which character writes the message `seq`.
fn speaker_at(n_characters: usize, seq: i64) -> usize {
    usize::try_from(seq / 2).unwrap_or_default() % n_characters
}

/// Bob with one or three characters, whose cards have about 300 tokens.
fn build_context(conversation: Conversation) -> PromptContext {
    let mut context = solo();
    let n_characters = conversation.n_characters;
    let card = |n: i64, name: &str| {
        json!({"name": name, "description": text(1_000 + n, 200), "personality": text(2_000 + n, 30),
            "scenario": text(3_000, 40), "mes_example": format!("<START>\n{{{{char}}}}: {}", text(4_000 + n, 60))})
    };
    context.members.truncate(1);
    for (n, name) in (0..).zip(&NAMES[..n_characters]) {
        context
            .members
            .push(member(n + 2, name, Some(card(n, name))));
    }
    context.user.persona = text(7_000, 40);
    if n_characters > 1 {
        context.preset = context.preset.for_group();
    }
    context.card_handling = conversation.cards;
    context.preset.context_tokens = Some(conversation.context_tokens);
    if let Some(layout) = conversation.lore {
        context.preset.cache_layout = layout;
        context.lore = LoreInput {
            lorebooks: vec![places()],
            settings: ScanSettings {
                budget: conversation.context_tokens / 4,
                ..ScanSettings::default()
            },
            ..LoreInput::default()
        };
    }
    context
}

/// A lorebook with a constant entry, and with one for each place, at all positions around the cards and
/// the example messages. About a third of them is active in a turn.
fn places() -> Lorebook {
    let keys = [
        "harbor", "mill", "bridge", "market", "tower", "garden", "river", "forest", "ship",
        "island",
    ];
    let of_key = |(n, key): (usize, &&str)| {
        let position = [0, 1, 5, 6][n % 4];
        json!({"keys": [format!("{key} {}", WORDS[n])], "content": text(5_000 + n as i64, 60),
            "extensions": {"position": position}})
    };
    let constant = json!({"keys": [], "constant": true, "content": text(6_000, 60)});
    let entries: Vec<Value> = keys
        .iter()
        .enumerate()
        .map(of_key)
        .chain([constant])
        .collect();
    let entries = entries.iter().enumerate();
    Lorebook {
        key: "places".into(),
        id: None,
        name: "Places".into(),
        source: LorebookSource::Space,
        scan_depth: None,
        token_budget: None,
        recursive: None,
        entries: entries
            .map(|(n, it)| entry::read(it, n.to_string(), None))
            .collect(),
    }
}

/// Builds the prompts of `n_turns` turns; before each, Bob has written one more message.
fn measure(conversation: Conversation, n_turns: i64) -> Vec<Measured> {
    let mut context = build_context(conversation);
    let all = messages(conversation.n_characters, N_EARLIER + 2 * n_turns);
    let mut starts = json!([]);
    let mut sent: Vec<(MembershipId, SentPrompt)> = Vec::new();
    let mut measured = Vec::new();
    for turn in 0..n_turns {
        let n_messages = usize::try_from(N_EARLIER + 2 * turn + 1).unwrap_or_default();
        let speaker = speaker_at(conversation.n_characters, n_messages as i64 + 1);
        context.speaker = context.members[speaker + 1].id;
        context.history = all[n_messages.saturating_sub(MAX_LOADED)..n_messages].to_vec();
        context.history_starts = Some(history_window::parse_starts(&starts));
        let built = build(&context, &llm::tokens::count).expect("the prompt fits");
        if let Some(new) = built.effects.history.new_start {
            starts = history_window::with_start(&starts, new);
        }
        let prompt = SentPrompt::from_built("model", &built, usize::MAX);
        let equal_to = |earlier: Option<&(MembershipId, SentPrompt)>| {
            earlier.map(|(_, it)| equal_tokens(&prompt, it))
        };
        let own = sent
            .iter()
            .rfind(|(speaker, _)| *speaker == context.speaker);
        if let Some((equal_to_own_previous, equal_to_previous)) =
            equal_to(own).zip(equal_to(sent.last()))
        {
            measured.push(Measured {
                total: prompt.total_tokens,
                equal_to_own_previous,
                equal_to_previous,
            });
        }
        sent.push((context.speaker, prompt));
    }
    measured
}

/// Returns the median of the shares, and the share of all tokens together.
fn shares(measured: &[Measured], equal: fn(&Measured) -> i64) -> (f64, f64) {
    let of = |equal: i64, total: i64| equal as f64 / total as f64;
    let mut each: Vec<f64> = measured.iter().map(|it| of(equal(it), it.total)).collect();
    each.sort_by(f64::total_cmp);
    let sum = |part: fn(&Measured) -> i64| measured.iter().map(part).sum();
    (each[each.len() / 2], of(sum(equal), sum(|it| it.total)))
}

#[test]
fn nine_tenths_of_the_tokens_of_a_long_conversation_equal_the_previous_prompt() {
    let conversation = Conversation {
        n_characters: 1,
        cards: CardHandlingMode::Swap,
        context_tokens: 8_192,
        lore: None,
    };

    let measured = measure(conversation, 40);

    let (median, _) = shares(&measured, |it| it.equal_to_previous);
    assert_eq!(measured.len(), 39);
    assert!(median >= GOAL, "{median}");
}

#[test]
#[ignore = "several seconds in a debug build; bin/bench prefix prints the shares"]
fn shares_of_two_hundred_turns() {
    let lore = [
        None,
        Some(CacheLayout::AsListed),
        Some(CacheLayout::StableFirst),
    ];
    let speakers = [
        (1, CardHandlingMode::Swap),
        (3, CardHandlingMode::Swap),
        (3, CardHandlingMode::Append),
    ];
    for context_tokens in [8_192, 32_768] {
        for ((n_characters, cards), lore) in
            speakers.iter().flat_map(|it| lore.map(|lore| (*it, lore)))
        {
            let conversation = Conversation {
                n_characters,
                cards,
                context_tokens,
                lore,
            };
            let (median, overall) = print_shares(conversation, &measure(conversation, 200));
            if n_characters == 1 && lore.is_none() {
                assert!(median >= GOAL && overall >= GOAL, "{median} {overall}");
            }
        }
    }
}

/// Prints the shares, and returns those of the previous prompt of the same speaker.
fn print_shares(conversation: Conversation, measured: &[Measured]) -> (f64, f64) {
    let of_group = conversation.n_characters > 1;
    let speakers = match conversation.cards {
        _ if !of_group => "1 speaker",
        CardHandlingMode::Swap => "3 speakers with swapped cards",
        _ => "3 speakers with joined cards",
    };
    let lore = match conversation.lore {
        None => "no World Info",
        Some(CacheLayout::AsListed) => "World Info as listed",
        Some(CacheLayout::StableFirst) => "World Info with stable_first",
    };
    let own = shares(measured, |it| it.equal_to_own_previous);
    let any = shares(measured, |it| it.equal_to_previous);
    let format_shares = |(median, overall)| format!("median {median:.3}, overall {overall:.3}");
    let others = match of_group {
        true => format!("; the previous speaker's prompt: {}", format_shares(any)),
        false => String::new(),
    };
    let context_tokens = conversation.context_tokens;
    println!(
        "{context_tokens} tokens, {speakers}, {lore}: {}{others}",
        format_shares(own)
    );
    own
}
