//! Reads a text into plain pieces and macros, which may stand in each other.
//!
//! One walk from the beginning to the end, whatever the text: what is open stands on a stack of
//! bounded height, and what nobody closes was text all along.
//!
//! **Invariant:** what is read takes memory by the marks in it, and whoever asks says how many there
//! may be. What stands behind the last of them is text.

/// How deep macros may stand in each other. A beginning further down is text.
pub const MAX_NESTING: usize = 16;

/// A piece of a text.
#[derive(Debug)]
pub enum MacroNode<'a> {
    Text(&'a str),
    /// The older form of a macro, without its brackets: `USER` of `<USER>`.
    Angle(&'a str),
    Macro(MacroCall<'a>),
    /// Seldom and large: the others are many.
    If(Box<IfBlock<'a>>),
}

/// `{{name rest::part::part}}`, whatever it is called.
#[derive(Debug, Default)]
pub struct MacroCall<'a> {
    /// What stands between its `::`; the first part begins with the name. Never empty once read.
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
    /// The name as it is written, and what follows it before the first `::` or inner macro.
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

    /// Whether it is nothing but this name.
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

/// The pieces of a text, in which so many marks are read; they are taken off.
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
    /// What has begun, the outermost first.
    open_blocks: Vec<OpenBlock<'a>>,
    /// The pieces of what began last, or of the text itself.
    nodes: Vec<MacroNode<'a>>,
    /// Further on some `}}` may stand: looked for no more once there was none.
    has_ends: bool,
}

struct OpenBlock<'a> {
    kind: OpenBlockKind<'a>,
    /// The pieces that came before, where it stands.
    around: Vec<MacroNode<'a>>,
}

enum OpenBlockKind<'a> {
    /// `{{`, with the parts that have ended in `::`.
    Macro(Vec<Vec<MacroNode<'a>>>),
    /// `{{if …}}`, and after its `{{else}}` what stands before that.
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

    /// Whether something begins or ends here; else it is text.
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

    /// Takes a row of `{`. Of an odd number the first is text: `{{{char}}}` is a name in braces.
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

    /// Puts a macro where it stands, or where it changes what stands around it.
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

    /// Nobody closes it: what looked like a macro is text, with the macros in it.
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

/// Nothing is added any more: the room for it is given back.
fn shrink<T>(mut all: Vec<T>) -> Vec<T> {
    all.shrink_to_fit();
    all
}

/// The name in `<USER>` and its like, at the beginning of a text.
fn angle_name(rest: &str) -> Option<&str> {
    const NAMES: [&str; 5] = ["user", "bot", "char", "group", "charifnotgroup"];
    let inside = rest.strip_prefix('<')?;
    NAMES.iter().find_map(|name| {
        let found = inside.get(..name.len())?;
        let is_it = found.eq_ignore_ascii_case(name) && inside[name.len()..].starts_with('>');
        is_it.then_some(found)
    })
}
