//! Finds out with which characters a match can start, so that other positions are skipped.

use crate::pattern::char_set::CharSet;
use crate::pattern::syntax::tree::{Assertion, Node};

/// The characters with which a match of a node can start.
struct Start {
    chars: CharSet,
    can_be_empty: bool,
}

/// Returns the characters with which a match can start, or `None` if a match can be empty or start
/// with any text.
pub fn first_chars(root: &Node) -> Option<CharSet> {
    let start = start(root)?;
    (!start.can_be_empty).then_some(start.chars)
}

/// Returns whether a match can only start at the start of the text.
pub fn is_anchored(node: &Node) -> bool {
    match node {
        Node::Assertion(Assertion::TextStart) => true,
        Node::Sequence(nodes) => nodes.first().is_some_and(is_anchored),
        Node::Alternation(nodes) => nodes.iter().all(is_anchored),
        Node::Group(_, body) => is_anchored(body),
        _ => false,
    }
}

/// Returns `None` if the characters are not known.
fn start(node: &Node) -> Option<Start> {
    let consuming = |chars| Start {
        chars,
        can_be_empty: false,
    };
    let empty = Start {
        chars: CharSet::default(),
        can_be_empty: true,
    };
    Some(match node {
        Node::Char(char) => consuming(CharSet::single(*char)),
        Node::Set(set) => consuming(set.clone()),
        Node::Assertion(_) | Node::Look(_) => empty,
        Node::BackReference(_) => return None,
        Node::Group(_, body) => start(body)?,
        Node::Repeat(repeat) => {
            let mut start = start(&repeat.body)?;
            start.can_be_empty |= repeat.min == 0;
            start
        }
        Node::Sequence(nodes) => {
            let mut all = empty;
            for node in nodes {
                let next = start(node)?;
                all.chars = all.chars.union(&next.chars);
                if !next.can_be_empty {
                    return Some(consuming(all.chars));
                }
            }
            all
        }
        Node::Alternation(nodes) => {
            let mut all = consuming(CharSet::default());
            for node in nodes {
                let next = start(node)?;
                all.chars = all.chars.union(&next.chars);
                all.can_be_empty |= next.can_be_empty;
            }
            all
        }
    })
}
