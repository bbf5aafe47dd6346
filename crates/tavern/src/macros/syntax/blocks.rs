//! Joins the macros `{{name}}` and `{{/name}}` of a list of nodes, and what stands between them, to
//! a block. A tag without its counterpart stays a macro of its own.
//!
//! **Invariant:** a macro opens a block only if it accepts one more argument, which is the text of
//! the block, and `{{else}}` divides the innermost block if that is an `if`.

use std::collections::HashMap;

use crate::macros::limits::{MAX_LEVELS, MacroLimit};
use crate::macros::syntax::names;
use crate::macros::syntax::names::IF;
use crate::macros::syntax::tree::{MacroBlock, MacroCall, MacroNode};

/// What a tag is in its list.
enum Tag<'a> {
    Open,
    /// Closes a block; with its text.
    Close(&'a str),
}

/// An open block.
struct OpenBlock<'a> {
    call: MacroCall<'a>,
    nodes: Vec<MacroNode<'a>>,
    /// The nodes before `{{else}}`.
    then: Option<Vec<MacroNode<'a>>>,
}

/// Joins the blocks of a list.
///
/// # Errors
/// `Levels` when blocks are nested too deep.
pub fn join(mut nodes: Vec<MacroNode<'_>>) -> Result<Vec<MacroNode<'_>>, MacroLimit> {
    nodes.shrink_to_fit();
    let tags = find_tags(&nodes);
    if tags.is_empty() {
        return Ok(nodes);
    }
    let mut outer = Vec::new();
    let mut open: Vec<OpenBlock<'_>> = Vec::new();
    for (at, node) in nodes.into_iter().enumerate() {
        let inner = open.last_mut().map_or(&mut outer, |it| &mut it.nodes);
        match (node, tags.get(&at)) {
            (MacroNode::Macro(call), Some(Tag::Open)) => open.push(OpenBlock {
                call,
                nodes: Vec::new(),
                then: None,
            }),
            (_, Some(Tag::Close(end))) => {
                let closed = open.pop().map(|it| close(it, end)).transpose()?;
                let around = open.last_mut().map_or(&mut outer, |it| &mut it.nodes);
                around.extend(closed);
            }
            (node, _) if !is_else(&node) => inner.push(node),
            (node, _) => match open.last_mut() {
                Some(block) if block.then.is_none() && is_if(&block.call) => {
                    block.then = Some(std::mem::take(&mut block.nodes));
                }
                Some(block) => block.nodes.push(node),
                None => outer.push(node),
            },
        }
    }
    Ok(outer)
}

fn close<'a>(open: OpenBlock<'a>, end: &'a str) -> Result<MacroNode<'a>, MacroLimit> {
    let OpenBlock {
        mut call,
        mut nodes,
        then,
    } = open;
    nodes.shrink_to_fit();
    let (nodes, otherwise) = match then {
        Some(then) => (then, Some(nodes)),
        None => (nodes, None),
    };
    let all = nodes.iter().chain(otherwise.iter().flatten());
    let inner = all.map(MacroNode::levels).max().unwrap_or(0);
    call.levels = call.levels.max(inner + 1);
    if call.levels > MAX_LEVELS {
        return Err(MacroLimit::Levels);
    }
    call.block = Some(Box::new(MacroBlock {
        nodes,
        otherwise,
        end,
    }));
    Ok(MacroNode::Macro(call))
}

/// Finds the tags that have a counterpart, by their positions.
fn find_tags<'a>(nodes: &[MacroNode<'a>]) -> HashMap<usize, Tag<'a>> {
    let mut tags = HashMap::new();
    let mut open: Vec<(usize, &'static str)> = Vec::new();
    // The number of open tags by name, so that a closing tag without an opening tag needs no search.
    let mut n_open: HashMap<&'static str, usize> = HashMap::new();
    for (at, node) in nodes.iter().enumerate() {
        let MacroNode::Macro(call) = node else {
            continue;
        };
        let Some(head) = call.head() else { continue };
        let Some(spec) = names::find(head.name) else {
            continue;
        };
        if !head.is_closing {
            if call.n_args() < spec.max_args {
                open.push((at, spec.name));
                *n_open.entry(spec.name).or_default() += 1;
            }
            continue;
        }
        let Some(end) = call.only_text() else {
            continue;
        };
        if !head.rest.trim().is_empty() || n_open.get(spec.name).copied().unwrap_or(0) == 0 {
            continue;
        }
        // Those in between have no closing tag.
        while let Some((start, name)) = open.pop() {
            *n_open.entry(name).or_default() -= 1;
            if name == spec.name {
                tags.insert(start, Tag::Open);
                tags.insert(at, Tag::Close(end));
                break;
            }
        }
    }
    tags
}

fn is_if(call: &MacroCall<'_>) -> bool {
    let spec = call.head().and_then(|it| names::find(it.name));
    spec.is_some_and(|it| it.name == IF)
}

/// Returns whether it is `{{else}}`.
pub fn is_else(node: &MacroNode<'_>) -> bool {
    match node {
        MacroNode::Macro(call) => call
            .only_text()
            .is_some_and(|it| it.trim().eq_ignore_ascii_case("else")),
        MacroNode::Text(_) | MacroNode::Angle(..) => false,
    }
}
