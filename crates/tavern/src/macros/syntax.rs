//! Parses a text into plain text, macros and `{{if}}` blocks, which may be nested.
//!
//! One pass over the text: open macros are on a stack of limited height, and an unclosed macro
//! becomes text.
//!
//! **Invariant:** memory is proportional to the delimiters parsed, and the caller limits their
//! number. The text after the last of them is plain.

/// The maximum nesting depth. Deeper macros are text.
pub const MAX_NESTING: usize = 16;

/// A part of a text.
#[derive(Debug)]
pub enum MacroNode<'a> {
    Text(&'a str),
    /// The legacy form of a macro without its brackets: `USER` of `<USER>`.
    Angle(&'a str),
    Macro(MacroCall<'a>),
    /// Boxed because it is large and rare.
    If(Box<IfBlock<'a>>),
}

/// `{{name rest::part::part}}` with any name.
#[derive(Debug, Default)]
pub struct MacroCall<'a> {
    /// The parts between `::`; the first begins with the name. Not empty after parsing.
    pub parts: Vec<Vec<MacroNode<'a>>>,
}

/// `{{if …}}…{{else}}…{{/if}}`.
#[derive(Debug)]
pub struct IfBlock<'a> {
    pub call: MacroCall<'a>,
    pub then: Vec<MacroNode<'a>>,
    pub otherwise: Vec<MacroNode<'a>>,
}

impl<'a> MacroCall<'a> {
    /// Returns the name as written, and the text after it up to the first `::` or inner macro.
    pub fn head(&self) -> Option<(&'a str, &'a str)> {
        let Some(MacroNode::Text(text)) = self.parts.first()?.first() else {
            return None;
        };
        let text = text.trim_start();
        let end = text.find([':', ' ', '\t', '\n', '\r', '"']);
        let (name, rest) = text.split_at(end.unwrap_or(text.len()));
        let rest = rest.strip_prefix(':').unwrap_or(rest);
        (!name.is_empty()).then_some((name, rest))
    }

    /// Returns whether it is only this name, without arguments.
    fn is_only(&self, name: &str) -> bool {
        let [part] = self.parts.as_slice() else {
            return false;
        };
        matches!(part.as_slice(), [MacroNode::Text(text)] if text.trim().eq_ignore_ascii_case(name))
    }

    fn is_named(&self, name: &str) -> bool {
        self.head()
            .is_some_and(|(it, _)| it.eq_ignore_ascii_case(name))
    }
}

/// Parses a text, up to `delimiters_left` delimiters, and subtracts those it used.
pub fn parse<'a>(text: &'a str, delimiters_left: &mut usize) -> Vec<MacroNode<'a>> {
    let mut parser = Parser {
        open_blocks: Vec::new(),
        nodes: Vec::new(),
        has_ends: true,
    };
    parser.read(text, delimiters_left);
    while let Some(frame) = parser.open_blocks.pop() {
        parser.abandon(frame);
    }
    parser.nodes
}

struct Parser<'a> {
    /// The open blocks, outermost first.
    open_blocks: Vec<OpenBlock<'a>>,
    /// The nodes of the innermost open block, or of the text itself.
    nodes: Vec<MacroNode<'a>>,
    /// Whether a later `}}` may exist; `false` after one search without a result.
    has_ends: bool,
}

struct OpenBlock<'a> {
    kind: OpenBlockKind<'a>,
    /// The nodes before it in the enclosing block.
    around: Vec<MacroNode<'a>>,
}

enum OpenBlockKind<'a> {
    /// `{{`, with the parts that are already ended by `::`.
    Macro(Vec<Vec<MacroNode<'a>>>),
    /// `{{if …}}`; after its `{{else}}`, with the nodes before that.
    If(MacroCall<'a>, Option<Vec<MacroNode<'a>>>),
}

impl<'a> Parser<'a> {
    fn read(&mut self, text: &'a str, delimiters_left: &mut usize) {
        let (mut from, mut at) = (0, 0);
        while let Some(found) = text[at..].find(['{', '}', ':', '<']) {
            at += found;
            let rest = &text[at..];
            if !self.is_delimiter(rest) {
                at += 1;
                continue;
            }
            if *delimiters_left == 0 {
                break;
            }
            *delimiters_left -= 1;
            self.push_text(&text[from..at]);
            at += match rest.as_bytes()[0] {
                b'{' => self.open_blocks(rest),
                b'<' => self.push_angle(rest),
                b':' => self.end_part(),
                _ => self.close(),
            };
            from = at;
        }
        self.push_text(&text[from..]);
    }

    /// Returns whether a delimiter starts here; otherwise it is text.
    fn is_delimiter(&self, rest: &str) -> bool {
        let is_macro = |it: &OpenBlock<'_>| matches!(it.kind, OpenBlockKind::Macro(_));
        match rest.as_bytes()[0] {
            b'{' => rest.starts_with("{{") && self.open_blocks.len() < MAX_NESTING,
            b'<' => angle_name(rest).is_some(),
            b':' => rest.starts_with("::") && self.open_blocks.last().is_some_and(is_macro),
            _ => rest.starts_with("}}") && self.open_blocks.iter().any(is_macro),
        }
    }

    fn push_text(&mut self, text: &'a str) {
        if !text.is_empty() {
            self.nodes.push(MacroNode::Text(text));
        }
    }

    /// Opens a block for each pair in a run of `{`. In an odd run the first is text: `{{{char}}}`
    /// is a name in braces.
    fn open_blocks(&mut self, rest: &'a str) -> usize {
        let n = rest.len() - rest.trim_start_matches('{').len();
        let mut at = n % 2;
        self.push_text(&rest[..at]);
        while at < n && self.open_blocks.len() < MAX_NESTING {
            at += 2;
            let after = &rest[at..];
            if after.starts_with("//") && self.has_ends {
                match after.find("}}") {
                    Some(end) => return at + end + 2, // a comment
                    None => self.has_ends = false,
                }
            }
            self.push(OpenBlockKind::Macro(Vec::new()));
        }
        self.push_text(&rest[at..n]);
        n
    }

    fn push(&mut self, kind: OpenBlockKind<'a>) {
        let around = std::mem::take(&mut self.nodes);
        self.open_blocks.push(OpenBlock { kind, around });
    }

    fn end_part(&mut self) -> usize {
        if let Some(OpenBlock {
            kind: OpenBlockKind::Macro(parts),
            ..
        }) = self.open_blocks.last_mut()
        {
            parts.push(shrink(std::mem::take(&mut self.nodes)));
        }
        2
    }

    fn close(&mut self) -> usize {
        while let Some(OpenBlock { kind, around }) = self.open_blocks.pop() {
            match kind {
                OpenBlockKind::Macro(mut parts) => {
                    parts.push(shrink(std::mem::replace(&mut self.nodes, around)));
                    let parts = shrink(parts);
                    self.add_macro(MacroCall { parts });
                    break;
                }
                condition => self.abandon(OpenBlock {
                    kind: condition,
                    around,
                }),
            }
        }
        2
    }

    /// Adds a macro, or opens, switches or closes an `if` block.
    fn add_macro(&mut self, call: MacroCall<'a>) {
        if call.is_named("if") && self.open_blocks.len() < MAX_NESTING {
            return self.push(OpenBlockKind::If(call, None));
        }
        if let Some(OpenBlock {
            kind: OpenBlockKind::If(_, then),
            ..
        }) = self.open_blocks.last_mut()
        {
            if then.is_none() && call.is_only("else") {
                *then = Some(std::mem::take(&mut self.nodes));
                return;
            }
            if call.is_only("/if") {
                return self.end_if();
            }
        }
        self.nodes.push(MacroNode::Macro(call));
    }

    fn end_if(&mut self) {
        let Some(OpenBlock {
            kind: OpenBlockKind::If(call, then),
            around,
        }) = self.open_blocks.pop()
        else {
            return;
        };
        let last = std::mem::replace(&mut self.nodes, around);
        let (then, otherwise) = match then {
            Some(then) => (then, last),
            None => (last, Vec::new()),
        };
        let choice = IfBlock {
            call,
            then: shrink(then),
            otherwise: shrink(otherwise),
        };
        self.nodes.push(MacroNode::If(Box::new(choice)));
    }

    /// Turns a block without an end into text; the macros inside it are kept.
    fn abandon(&mut self, frame: OpenBlock<'a>) {
        let inner = std::mem::replace(&mut self.nodes, frame.around);
        match frame.kind {
            OpenBlockKind::Macro(parts) => {
                self.push_text("{{");
                for part in parts {
                    self.nodes.extend(part);
                    self.push_text("::");
                }
            }
            OpenBlockKind::If(call, then) => {
                self.nodes.push(MacroNode::Macro(call));
                if let Some(then) = then {
                    self.nodes.extend(then);
                    self.push_text("{{else}}");
                }
            }
        }
        self.nodes.extend(inner);
    }

    fn push_angle(&mut self, rest: &'a str) -> usize {
        let name = angle_name(rest).unwrap_or_default();
        self.nodes.push(MacroNode::Angle(name));
        name.len() + 2
    }
}

/// Frees the unused capacity, because nothing more is added.
fn shrink<T>(mut all: Vec<T>) -> Vec<T> {
    all.shrink_to_fit();
    all
}

/// Returns the name of `<USER>` and similar at the start of a text.
fn angle_name(rest: &str) -> Option<&str> {
    const NAMES: [&str; 5] = ["user", "bot", "char", "group", "charifnotgroup"];
    let inside = rest.strip_prefix('<')?;
    NAMES.iter().find_map(|name| {
        let found = inside.get(..name.len())?;
        let is_it = found.eq_ignore_ascii_case(name) && inside[name.len()..].starts_with('>');
        is_it.then_some(found)
    })
}
