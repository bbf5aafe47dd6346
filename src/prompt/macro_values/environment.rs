//! Returns what macros read besides names and cards: the state of the conversation. No I/O.

use std::cell::RefCell;

use tavern::macros::environment::{LastMessages, MacroEnvironment, MacroSeed, TokenLimits};
use tavern::presets::complete_preset::GenerationTrigger;

use crate::conversations::message::MessageRole;
use crate::prompt::context::{HistoryLine, PromptContext};
use crate::prompt::history::summary_block::PromptSummaries;

/// Returns the values that macros use in addition to members and cards.
pub fn macro_environment(context: &PromptContext) -> MacroEnvironment {
    let limits = context.limits();
    MacroEnvironment {
        now: Some(context.now),
        seed: MacroSeed {
            conversation: context.conversation.0,
            message: context.history.last().map_or(0, |it| it.seq),
        },
        last_messages: last_messages(context),
        summary: summary_text(context),
        token_limits: TokenLimits {
            context: limits.context_tokens,
            response: limits.response_tokens,
        },
        model: context.model.clone(),
        templates: context.templates.clone(),
        generation_type: generation_type(context.trigger),
        variables: RefCell::new(context.variables.clone()),
        ..MacroEnvironment::default()
    }
}

/// Returns the text of the running summary in use; empty if there is none, or if it may not be used.
fn summary_text(context: &PromptContext) -> String {
    let summaries = context.summaries.as_ref();
    let in_use = summaries.and_then(PromptSummaries::in_use);
    in_use.map_or_else(String::new, |it| it.content.clone())
}

/// Messages are numbered from 0 for macros, and from 1 in a timeline.
fn last_messages(context: &PromptContext) -> LastMessages {
    let last = |role: Option<MessageRole>| {
        let mut lines = context.history.iter().rev();
        lines.find(|it| role.is_none_or(|role| it.role == role))
    };
    let text = |line: Option<&HistoryLine>| line.map_or(String::new(), |it| it.text.clone());
    let newest = last(None);
    let of_ai = newest.filter(|it| it.role == MessageRole::Assistant);
    LastMessages {
        message: text(newest),
        user_message: text(last(Some(MessageRole::User))),
        character_message: text(last(Some(MessageRole::Assistant))),
        message_id: newest.map(|it| it.seq - 1),
        first_included_id: context.history.first().map(|it| it.seq - 1),
        n_swipes: context.n_swipes,
        swipe: of_ai.map(|it| it.swipe + 1),
        user_spoke_at: last(Some(MessageRole::User)).map(|it| it.created_at),
        input: context.impersonation_request.clone().unwrap_or_default(),
    }
}

fn generation_type(trigger: GenerationTrigger) -> &'static str {
    match trigger {
        GenerationTrigger::Normal => "normal",
        GenerationTrigger::Continue => "continue",
        GenerationTrigger::Impersonate => "impersonate",
        GenerationTrigger::Swipe => "swipe",
        GenerationTrigger::Regenerate => "regenerate",
        GenerationTrigger::Quiet => "quiet",
    }
}
