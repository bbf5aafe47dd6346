//! Tests where the history of a prompt begins while a conversation outgrows the context window.

use serde_json::json;
use tavern::presets::complete_preset::ExampleMessagesMode;

use super::tests::{count, line, solo};
use super::{BuiltPrompt, build};
use crate::conversations::message::MessageRole;
use crate::prompt::blocks::BlockKind;
use crate::prompt::context::PromptContext;
use crate::prompt::history::history_window;

/// A conversation with this many messages of equal length, in a window that holds about 40 of them.
fn long_chat(last: i64) -> PromptContext {
    let mut context = solo();
    context.preset.context_tokens = Some(800);
    context.preset.max_tokens = Some(100);
    context.history_starts = Some(Vec::new());
    context.history = (1..=last)
        .map(|seq| match seq % 2 {
            1 => line(seq, "Bob", MessageRole::User, &text(seq)),
            _ => line(seq, "Ada", MessageRole::Assistant, &text(seq)),
        })
        .collect();
    context
}

fn text(seq: i64) -> String {
    format!("Message {seq:04}: {}", "word ".repeat(8))
}

fn built(context: &PromptContext) -> BuiltPrompt {
    build(context, &count).expect("the prompt fits")
}

fn sent(built: &BuiltPrompt, kind: BlockKind) -> usize {
    let of_kind = built.blocks.iter().filter(|it| it.kind == kind);
    of_kind.filter(|it| !it.dropped).count()
}

/// Returns how many messages of both prompts are equal from the beginning.
fn n_equal(one: &BuiltPrompt, other: &BuiltPrompt) -> usize {
    let pairs = one.messages.iter().zip(&other.messages);
    pairs
        .take_while(|(one, other)| one.content == other.content)
        .count()
}

#[test]
fn the_beginning_of_a_prompt_stays_equal_for_ten_turns_beyond_the_window() {
    let mut starts = json!([]);
    let mut prompts: Vec<BuiltPrompt> = Vec::new();
    for turn in 40..80 {
        let mut context = long_chat(2 * turn);
        context.history_starts = Some(history_window::parse_starts(&starts));
        let prompt = built(&context);
        if let Some(new) = prompt.effects.history.new_start {
            starts = history_window::with_start(&starts, new);
        }
        prompts.push(prompt);
    }

    let shared: Vec<bool> = prompts
        .windows(2)
        .map(|pair| n_equal(&pair[0], &pair[1]) == pair[0].messages.len())
        .collect();
    let n_changes = shared.iter().filter(|it| !**it).count();
    assert!(
        (1..=shared.len() / 4).contains(&n_changes),
        "{n_changes} of {}",
        shared.len()
    );
}

#[test]
fn a_history_that_does_not_fit_is_cut_and_its_start_is_stored() {
    let prompt = built(&long_chat(100));

    let start = prompt.effects.history.new_start.expect("a start");
    assert_eq!(start.limit_tokens, 700);
    let first = prompt.messages.iter().find(|it| it.name.is_some());
    assert_eq!(first.map(|it| it.content.clone()), Some(text(start.seq)));
    let used = prompt.total_tokens as f64 / prompt.limit_tokens as f64;
    assert!((0.7..0.9).contains(&used), "{used}");
}

#[test]
fn a_history_that_fits_stores_no_start() {
    let prompt = built(&long_chat(10));

    assert_eq!(prompt.effects.history.new_start, None);
    assert_eq!(sent(&prompt, BlockKind::History), 10);
}

#[test]
fn examples_are_left_out_once_the_history_is_cut_unless_the_preset_keeps_them() {
    let n_examples = |last: i64, mode: ExampleMessagesMode| {
        let mut context = long_chat(last);
        context.preset.examples = mode;
        sent(&built(&context), BlockKind::Example)
    };

    let usual = ExampleMessagesMode::default();
    let of_card = n_examples(4, usual);
    assert!(of_card > 0);
    assert_eq!(n_examples(100, usual), 0);
    assert_eq!(n_examples(100, ExampleMessagesMode::AlwaysKeep), of_card);
}

#[test]
fn the_history_of_a_request_has_no_stored_start() {
    let mut context = long_chat(100);
    context.history_starts = None;

    let prompt = built(&context);

    assert_eq!(prompt.effects.history.new_start, None);
    assert!(prompt.dropped_messages > 0);
}
