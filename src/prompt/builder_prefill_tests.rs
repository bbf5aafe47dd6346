//! Tests of what a preset adds to the messages: example messages, prefills and what replaces an empty
//! message.

use base::ids::MembershipId;
use base::prompt_role::PromptRole;
use llm::compatibility::token_factors::TokenFactors;
use llm::request::Message;
use tavern::presets::complete_preset::ExampleMessagesMode;
use tavern::presets::message_formats::{ContinuePostfix, ExampleFormat};

use super::tests::{count, group, solo};
use super::{BuiltPrompt, build};
use crate::prompt::blocks::{BlockKind, PromptBlock};
use crate::prompt::context::{Continuation, PromptContext};

fn built(context: &PromptContext) -> BuiltPrompt {
    build(context, &count).expect("the prompt fits")
}

fn warning_codes(prompt: &BuiltPrompt) -> Vec<&str> {
    let warnings = prompt.lore.warnings_coded.iter();
    warnings.map(|it| it.code.as_ref()).collect()
}

/// The named messages of a prompt that are examples.
fn examples(context: &PromptContext) -> Vec<(String, String)> {
    let messages = built(context).messages.into_iter();
    let named = messages.filter_map(|it| Some((it.name?, it.content)));
    named
        .filter(|(name, _)| name.starts_with("example_"))
        .collect()
}

fn pair(name: &str, text: &str) -> (String, String) {
    (name.to_owned(), text.to_owned())
}

#[test]
fn openai_gets_each_example_as_a_message_and_other_providers_get_blocks() {
    let mut context = solo();
    context.is_openai = true;
    let expected = [
        pair("example_user", "Why?"),
        pair("example_assistant", "Because."),
        pair("example_assistant", "Hm."),
    ];

    assert_eq!(examples(&context), expected);
    let headings = built(&context).blocks.into_iter();
    let headings = headings.filter(|it| it.text == "[Example messages]");
    assert_eq!(headings.count(), 2, "one before each block");
    context.preset.example_format = ExampleFormat::Block;
    assert_eq!(examples(&context), []);
    context.is_openai = false;
    context.preset.example_format = ExampleFormat::Auto;
    assert_eq!(examples(&context), []);
    context.preset.example_format = ExampleFormat::Messages;
    let system = &built(&context).messages[0].content;
    assert!(
        system.contains("[Example messages]\n\nBob: Why?\n\nAda: Because."),
        "{system}"
    );
}

#[test]
fn examples_keep_the_names_in_groups() {
    let mut context = group();
    context.speaker = MembershipId(2);
    context.is_openai = true;

    let first = examples(&context).into_iter().next();

    assert_eq!(first, Some(pair("example_user", "Bob: Why?")));
}

#[test]
fn a_block_of_example_messages_is_dropped_as_a_whole() {
    let mut context = solo();
    context.is_openai = true;
    let is_example = |it: &&PromptBlock| it.kind == BlockKind::Example;
    let whole = built(&context);
    context.preset.max_tokens = Some(1);
    context.preset.context_tokens = Some(whole.total_tokens);

    let cut = built(&context);

    let dropped = cut.blocks.iter().filter(is_example).map(|it| it.dropped);
    assert_eq!(
        dropped.collect::<Vec<_>>(),
        [true, true, true, false, false]
    );
    context.preset.examples = ExampleMessagesMode::Disabled;
    assert_eq!(built(&context).blocks.iter().filter(is_example).count(), 0);
}

#[test]
fn a_prefill_is_the_last_message_where_the_provider_accepts_one() {
    let mut context = solo();
    context.preset.texts.assistant_prefill = "{{char}} smiles: ".to_owned();

    let refused = built(&context);
    context.accepts_prefill = true;
    let accepted = built(&context);

    assert_eq!(warning_codes(&refused), ["prefill_not_sent"]);
    assert!(!refused.is_prefilled);
    let last = Message::new(PromptRole::Assistant, "Ada smiles:");
    assert_eq!(accepted.messages.last(), Some(&last));
    assert!(accepted.is_prefilled && warning_codes(&accepted).is_empty());
    assert_eq!(accepted.stored_prefix, None);
    context.preset.show_prefill = true;
    assert_eq!(
        built(&context).stored_prefix.as_deref(),
        Some("Ada smiles:")
    );
}

#[test]
fn a_text_for_a_user_has_its_own_prefill() {
    let mut context = solo();
    context.speaker = MembershipId(1);
    context.accepts_prefill = true;
    context.preset.texts.assistant_prefill = "Not this".to_owned();
    assert!(!built(&context).is_prefilled);

    context.preset.texts.assistant_impersonation = "As {{user}},".to_owned();

    let last = built(&context).messages.pop();
    assert_eq!(last.map(|it| it.content).as_deref(), Some("As Bob,"));
}

#[test]
fn the_replacement_of_an_empty_message_follows_a_message_of_a_character() {
    let mut context = solo();
    context.preset.texts.replace_empty_message = "[{{user}} waits]".to_owned();
    let n_replacements = |context: &PromptContext| {
        let messages = built(context).messages.into_iter();
        let sent = messages.filter(|it| it.role == PromptRole::User && it.content == "[Bob waits]");
        sent.count()
    };
    assert_eq!(n_replacements(&context), 0, "Bob spoke last");

    context.history.pop();

    assert_eq!(n_replacements(&context), 1);
    context.speaker = MembershipId(1);
    assert_eq!(n_replacements(&context), 0, "the model writes for Bob");
}

#[test]
fn tokens_are_counted_for_the_model_and_a_share_of_the_window_can_be_left_free() {
    let exact = built(&solo());
    let mut context = solo();
    context.token_factors = TokenFactors::uniform(2.0);

    let scaled = built(&context);

    let overhead = 4 * i64::try_from(scaled.blocks.len()).expect("few blocks");
    assert_eq!(
        scaled.total_tokens - overhead,
        2 * (exact.total_tokens - overhead)
    );
    context.budget_percent = 80;
    assert_eq!(built(&context).limit_tokens, scaled.limit_tokens * 80 / 100);
}

#[test]
fn a_continued_text_ends_with_the_continue_postfix() {
    let mut context = group();
    let newest = context.history.last_mut().expect("a message");
    newest.text = "I am. \n".to_owned();
    context.speaker = newest.author;
    context.continuation = Some(Continuation {
        message: newest.message_id,
        is_prefill: true,
    });
    context.preset.continue_postfix = ContinuePostfix::DoubleNewline;
    context.preset.texts.assistant_prefill = "Not this".to_owned();

    let with_space = built(&context);
    context.history.last_mut().expect("a message").text = "I am.".to_owned();
    let without = built(&context);

    for prompt in [&with_space, &without] {
        let last = prompt.messages.last().map(|it| it.content.as_str());
        assert_eq!(last, Some("I am.\n\n"));
    }
    assert_eq!(
        with_space.stored_prefix, None,
        "the stored text ends with white space"
    );
    assert_eq!(without.stored_prefix.as_deref(), Some("\n\n"));
}
