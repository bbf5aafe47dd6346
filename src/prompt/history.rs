//! What has been said: many speakers in a model's two roles.
//!
//! **Invariant:** a line goes out as it was written. It carries its speaker's name beside the text;
//! how a model is told the name is its provider's concern.

use crate::conversations::message;
use crate::llm::request::Role;
use crate::prompt::context::Line;
use crate::prompt::sections::Block;
use crate::prompt::sections::Kind;

/// One piece for each line that says anything, oldest first.
pub fn blocks(lines: &[Line], count: &dyn Fn(&str) -> i64) -> Vec<Block> {
    let spoken = lines.iter().filter(|it| !it.text.trim().is_empty());
    spoken.map(|line| block(line, count)).collect()
}

fn block(line: &Line, count: &dyn Fn(&str) -> i64) -> Block {
    let text_tokens = match line.tokens {
        known if known > 0 => known,
        _ => count(&line.text),
    };
    Block {
        kind: Kind::History,
        label: line.name.clone(),
        role: role(line.role),
        name: Some(line.name.clone()).filter(|it| !it.trim().is_empty()),
        tokens: text_tokens + count(&line.name),
        text: line.text.clone(),
        dropped: false,
    }
}

/// The side on which a message was written is the side on which it is sent.
fn role(role: message::Role) -> Role {
    match role {
        message::Role::User => Role::User,
        message::Role::Assistant => Role::Assistant,
        message::Role::System => Role::System,
    }
}
