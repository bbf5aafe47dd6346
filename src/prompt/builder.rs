//! One prompt from one context: the sections in their order, fitted into the window.

use crate::llm::request::Message;
use crate::llm::request::Request;
use crate::llm::request::Role;
use crate::prompt::budget::ContextOverflow;
use crate::prompt::budget::fit;
use crate::prompt::context::Context;
use crate::prompt::context::Sampling;
use crate::prompt::history;
use crate::prompt::sections::Block;
use crate::prompt::sections::Kind;
use crate::prompt::sections::Sections;

/// A finished prompt, and how it came about.
#[derive(Clone, Debug)]
pub struct Built {
    /// What is sent, oldest first.
    pub messages: Vec<Message>,
    /// Every piece, dropped ones too, in order.
    pub blocks: Vec<Block>,
    /// How long what is sent is.
    pub total_tokens: i64,
    /// How long it may be: the window without what is kept free for the answer.
    pub limit_tokens: i64,
    /// How many lines of the history did not fit.
    pub dropped_messages: usize,
    /// Display name of who is about to speak.
    pub speaker: String,
    /// How the model is to choose its words, with the macros in `stop` expanded.
    pub sampling: Sampling,
}

/// Builds the prompt of `context`; `count` tells how many tokens a text has.
pub fn build(context: &Context, count: &dyn Fn(&str) -> i64) -> Result<Built, ContextOverflow> {
    let sections = Sections::new(context, count);
    let mut blocks = in_order(context, &sections, count);
    let limit_tokens = context.limits.context_tokens - context.limits.response_tokens;
    let total_tokens = fit(&mut blocks, limit_tokens)?;
    let dropped = blocks
        .iter()
        .filter(|it| it.kind == Kind::History && it.dropped);
    Ok(Built {
        messages: messages(&blocks),
        total_tokens,
        limit_tokens,
        dropped_messages: dropped.count(),
        speaker: context
            .speaking()
            .map(|it| it.name.clone())
            .unwrap_or_default(),
        sampling: Sampling {
            stop: sections.stop(),
            ..context.sampling.clone()
        },
        blocks,
    })
}

impl Built {
    /// The call of `model` that asks for this turn.
    pub fn into_request(self, model: impl Into<String>, seed: u64) -> Request {
        Request {
            model: model.into(),
            messages: self.messages,
            temperature: self.sampling.temperature,
            top_p: self.sampling.top_p,
            max_tokens: self.sampling.max_tokens,
            stop: self.sampling.stop,
            seed,
            speaker: self.speaker,
        }
    }
}

/// The order of a prompt.
fn in_order(context: &Context, sections: &Sections, count: &dyn Fn(&str) -> i64) -> Vec<Block> {
    let mut blocks = Vec::new();
    blocks.extend(sections.main_prompt());
    blocks.extend(sections.persona());
    blocks.extend(sections.description());
    blocks.extend(sections.personality());
    blocks.extend(sections.scenario());
    blocks.extend(sections.examples());
    blocks.extend(sections.new_chat());
    blocks.extend(history::blocks(&context.history, count));
    blocks.extend(sections.group_nudge());
    blocks.extend(sections.post_history());
    blocks.extend(sections.impersonation());
    blocks
}

/// What is sent. Neighboring system pieces are one message: many models take only one at a time.
fn messages(blocks: &[Block]) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    for block in blocks.iter().filter(|it| !it.dropped) {
        let is_piece = block.role == Role::System && block.name.is_none();
        match messages.last_mut() {
            Some(last) if is_piece && last.role == Role::System && last.name.is_none() => {
                last.content.push_str("\n\n");
                last.content.push_str(&block.text);
            }
            _ => messages.push(Message {
                role: block.role,
                name: block.name.clone(),
                content: block.text.clone(),
            }),
        }
    }
    messages
}

#[cfg(test)]
#[path = "builder_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "builder_human_tests.rs"]
mod human_tests;
