//! Finds literals that every text with a match must contain. They are searched for all patterns at
//! once, and a pattern whose literals are missing is not executed.

use crate::pattern::syntax::tree::Node;

/// The maximum number of lists of literals of a pattern.
const MAX_LISTS: usize = 4;
/// The maximum number of literals in a list.
const MAX_LITERALS: usize = 32;
/// The minimum length of a literal, in bytes: shorter ones are in nearly every text.
const MIN_BYTES: usize = 2;

/// What a node requires of the text.
#[derive(Default)]
struct Required {
    /// The text contains at least one literal of each list.
    lists: Vec<Vec<String>>,
    /// The only text that the node matches, in lower case.
    exact: Option<Vec<u32>>,
}

/// Returns lists of literals in lower case. If a text has a match, then its lower case contains at
/// least one literal of each list.
pub fn find(root: &Node) -> Vec<Vec<String>> {
    let mut required = analyze(root);
    if let Some(exact) = &required.exact {
        add_list(&mut required.lists, literals(exact).into_iter().collect());
    }
    let mut lists = required.lists;
    lists.sort_by_key(|list| std::cmp::Reverse(shortest(list)));
    lists.truncate(MAX_LISTS);
    lists
}

fn analyze(node: &Node) -> Required {
    let exact = |chars| Required {
        exact: Some(chars),
        lists: Vec::new(),
    };
    match node {
        Node::Char(char) => lower_case([*char].into_iter())
            .map(|it| exact(vec![it]))
            .unwrap_or_default(),
        Node::Set(set) if set.n_chars() <= 4 => lower_case(set.chars())
            .map(|it| exact(vec![it]))
            .unwrap_or_default(),
        Node::Set(_) | Node::BackReference(_) => Required::default(),
        Node::Assertion(_) => exact(Vec::new()),
        Node::Look(look) if look.is_negated => exact(Vec::new()),
        Node::Look(look) => Required {
            lists: find(&look.body),
            exact: Some(Vec::new()),
        },
        Node::Group(_, body) => analyze(body),
        Node::Sequence(nodes) => analyze_sequence(nodes),
        Node::Alternation(nodes) => analyze_alternation(nodes),
        Node::Repeat(repeat) if (repeat.min, repeat.max) == (1, 1) => analyze(&repeat.body),
        Node::Repeat(repeat) if repeat.min == 0 => Required::default(),
        Node::Repeat(repeat) => Required {
            lists: find(&repeat.body),
            exact: None,
        },
    }
}

/// Joins neighbors that match only one text each.
fn analyze_sequence(nodes: &[Node]) -> Required {
    let (mut lists, mut joined, mut is_exact) = (Vec::new(), Vec::new(), true);
    for node in nodes {
        let next = analyze(node);
        lists.extend(next.lists);
        if let Some(exact) = next.exact {
            joined.extend(exact);
            continue;
        }
        is_exact = false;
        add_list(&mut lists, literals(&joined).into_iter().collect());
        joined.clear();
    }
    if !is_exact {
        add_list(&mut lists, literals(&joined).into_iter().collect());
    }
    Required {
        lists,
        exact: is_exact.then_some(joined),
    }
}

/// Joins the best list of each alternative.
fn analyze_alternation(nodes: &[Node]) -> Required {
    let mut any = Vec::new();
    for node in nodes {
        let Some(best) = find(node).into_iter().next() else {
            return Required::default();
        };
        any.extend(best);
    }
    let mut lists = Vec::new();
    if any.len() <= MAX_LITERALS {
        add_list(&mut lists, any);
    }
    Required { lists, exact: None }
}

fn add_list(lists: &mut Vec<Vec<String>>, list: Vec<String>) {
    if !list.is_empty() {
        lists.push(list);
    }
}

fn shortest(list: &[String]) -> usize {
    list.iter().map(String::len).min().unwrap_or(0)
}

/// Returns the longest literal in a text of code points or UTF-16 code units. Half of a surrogate
/// pair is in no literal. The lower case of other surrogate pairs is not known before they are joined.
fn literals(chars: &[u32]) -> Option<String> {
    let mut units = Vec::with_capacity(chars.len());
    for char in chars {
        match char::from_u32(*char) {
            Some(char) => units.extend_from_slice(char.encode_utf16(&mut [0; 2])),
            None => units.push(*char as u16),
        }
    }
    let chars: Vec<_> = char::decode_utf16(units).collect();
    let parts = chars.split(|it| it.is_err());
    let texts = parts.map(|part| part.iter().flatten().collect::<String>());
    let longest = texts.max_by_key(String::len)?.to_lowercase();
    (longest.len() >= MIN_BYTES).then_some(longest)
}

/// Returns the lower case of characters, if it is the same for all, and is found wherever one of
/// them is in a text that is converted to lower case.
fn lower_case(mut chars: impl Iterator<Item = u32>) -> Option<u32> {
    let lower = |char: u32| {
        let Some(char) = char::from_u32(char) else {
            return Some(char);
        };
        let mut lower = char.to_lowercase();
        match (lower.next(), lower.next()) {
            // The lower case of sigma depends on its neighbors. Line breaks and U+0001 separate the
            // messages, each of which is searched alone.
            (Some('σ' | 'ς' | '\n' | '\u{1}'), _) | (_, Some(_)) => None,
            (first, None) => first.map(u32::from),
        }
    };
    let first = lower(chars.next()?)?;
    chars.all(|it| lower(it) == Some(first)).then_some(first)
}
