//! Tests where the history of a prompt begins while a conversation outgrows the context window.

use base::ids::SummaryId;
use serde_json::json;
use tavern::presets::complete_preset::ExampleMessagesMode;

use super::tests::{count, line, solo};
use super::{BuiltPrompt, build};
use crate::conversations::message::MessageRole;
use crate::prompt::blocks::BlockKind;
use crate::prompt::budget::block_cost;
use crate::prompt::context::PromptContext;
use crate::prompt::history::history_window;
use crate::prompt::history::summary_block::{PromptSummaries, SummaryText};
use crate::prompt::record::sent_prompt::SentPrompt;

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

/// A long chat whose first messages are summarized.
fn summarized_chat(content: &str, facts: Vec<String>) -> PromptContext {
    let mut context = long_chat(100);
    context.summaries = Some(PromptSummaries {
        versions: vec![SummaryText {
            id: SummaryId(7),
            to_seq: 70,
            content: content.to_owned(),
            tokens: count(content),
        }],
        facts,
        facts_version: Some(SummaryId(7)),
        goal_seq: 70,
    });
    context
}

#[test]
fn pinned_facts_and_the_summary_use_at_most_a_quarter_of_the_share() {
    let facts = (0..20).map(|n| format!("Fact {n}: {}", "word ".repeat(10)));
    let context = summarized_chat("They met.", facts.collect());

    let prompt = built(&context);

    let of_kind = |kind: BlockKind| prompt.blocks.iter().filter(move |it| it.kind == kind);
    let block = of_kind(BlockKind::Summary).next().expect("a summary");
    let others = of_kind(BlockKind::History).filter(|it| !it.dropped);
    let history: i64 = others.map(block_cost).sum();
    let share = prompt.limit_tokens - (prompt.total_tokens - history - block_cost(block));
    assert!(block.tokens <= share / 4, "{} of {share}", block.tokens);
    let n_lines = block.text.matches("- Fact").count();
    assert!((1..20).contains(&n_lines), "{n_lines}");
    assert_eq!(block.n_facts_left_out, 20 - n_lines);
    assert!(
        block.text.ends_with("word \n[End of summary]"),
        "{}",
        block.text
    );
    let record =
        serde_json::to_value(SentPrompt::from_built("model", &prompt, usize::MAX)).expect("JSON");
    let stored = record["pieces"].as_array().expect("a list").iter();
    let summaries: Vec<_> = stored.filter_map(|it| it.get("summary")).collect();
    assert_eq!(summaries[0]["n_facts_left_out"], json!(20 - n_lines));
}

#[test]
fn a_short_summary_is_replaced_only_in_the_record_of_blocks_with_the_macro() {
    let mut context = summarized_chat("e", Vec::new());
    let texts = |context: &PromptContext| -> Vec<(BlockKind, String, String)> {
        let prompt = built(context);
        let mut record = SentPrompt::from_built("model", &prompt, usize::MAX);
        let is_written = |it: BlockKind| !matches!(it, BlockKind::History | BlockKind::Summary);
        let sent = prompt.blocks.iter().filter(|it| is_written(it.kind));
        let recorded = record.blocks_mut().filter(|it| is_written(it.kind));
        sent.zip(recorded)
            .map(|(sent, recorded)| (sent.kind, sent.text.clone(), recorded.text.clone()))
            .collect()
    };

    let without = texts(&context);
    assert!(without.iter().any(|(_, sent, _)| sent.contains('e')));
    for (kind, sent, recorded) in without {
        assert_eq!(sent, recorded, "{kind:?}");
    }

    context.note.text = "So far: {{summary}}|".to_owned();
    context.note.interval = 1;
    let with = texts(&context);
    assert!(with.iter().any(|(_, sent, _)| sent == "So far: e|"));
    for (kind, sent, recorded) in with {
        match sent.as_str() {
            "So far: e|" => assert_eq!(recorded, "So far: {{summary}}|"),
            _ => assert_eq!(sent, recorded, "{kind:?}"),
        }
    }
}

#[test]
fn the_macro_inserts_the_summary_in_use() {
    let mut context = summarized_chat("They met {{user}}.", Vec::new());
    context.scenario_override = Some("So far: {{summary}}|".to_owned());
    let has = |context: &PromptContext, text: &str| {
        let prompt = built(context);
        prompt.messages.iter().any(|it| it.content.contains(text))
    };

    assert!(has(&context, "So far: They met {{user}}.|"));
    let record = SentPrompt::from_built("model", &built(&context), usize::MAX);
    let record = serde_json::to_string(&record).expect("JSON");
    assert!(record.contains("So far: {{summary}}|") && !record.contains("They met"));
    // The version in use covers a deleted message.
    let summaries = context.summaries.as_mut().expect("summaries");
    summaries.facts_version = Some(SummaryId(8));
    assert!(has(&context, "So far: |"));
    context.summaries = None;
    assert!(has(&context, "So far: |"));
}
