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
pub enum Node<'a> {
    Text(&'a str),
    /// The older form of a macro, without its brackets: `USER` of `<USER>`.
    Angle(&'a str),
    Macro(Call<'a>),
    /// Seldom and large: the others are many.
    If(Box<Choice<'a>>),
}

/// `{{name rest::part::part}}`, whatever it is called.
#[derive(Debug, Default)]
pub struct Call<'a> {
    /// What stands between its `::`; the first part begins with the name. Never empty once read.
    pub parts: Vec<Vec<Node<'a>>>,
}

/// `{{if …}}…{{else}}…{{/if}}`.
#[derive(Debug)]
pub struct Choice<'a> {
    pub call: Call<'a>,
    pub then: Vec<Node<'a>>,
    pub otherwise: Vec<Node<'a>>,
}

impl<'a> Call<'a> {
    /// The name as it is written, and what follows it before the first `::` or inner macro.
    pub fn head(&self) -> Option<(&'a str, &'a str)> {
        let Some(Node::Text(text)) = self.parts.first()?.first() else {
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
        matches!(part.as_slice(), [Node::Text(text)] if text.trim().eq_ignore_ascii_case(name))
    }

    fn is_called(&self, name: &str) -> bool {
        self.head()
            .is_some_and(|(it, _)| it.eq_ignore_ascii_case(name))
    }
}

/// The pieces of a text, in which so many marks are read; they are taken off.
pub fn parse<'a>(text: &'a str, marks_left: &mut usize) -> Vec<Node<'a>> {
    let mut parser = Parser {
        open: Vec::new(),
        nodes: Vec::new(),
        has_ends: true,
    };
    parser.read(text, marks_left);
    while let Some(frame) = parser.open.pop() {
        parser.give_up(frame);
    }
    parser.nodes
}

struct Parser<'a> {
    /// What has begun, the outermost first.
    open: Vec<Frame<'a>>,
    /// The pieces of what began last, or of the text itself.
    nodes: Vec<Node<'a>>,
    /// Further on some `}}` may stand: looked for no more once there was none.
    has_ends: bool,
}

struct Frame<'a> {
    kind: Kind<'a>,
    /// The pieces that came before, where it stands.
    around: Vec<Node<'a>>,
}

enum Kind<'a> {
    /// `{{`, with the parts that have ended in `::`.
    Macro(Vec<Vec<Node<'a>>>),
    /// `{{if …}}`, and after its `{{else}}` what stands before that.
    If(Call<'a>, Option<Vec<Node<'a>>>),
}

impl<'a> Parser<'a> {
    fn read(&mut self, text: &'a str, marks_left: &mut usize) {
        let (mut from, mut at) = (0, 0);
        while let Some(found) = text[at..].find(['{', '}', ':', '<']) {
            at += found;
            let rest = &text[at..];
            if !self.is_mark(rest) {
                at += 1;
                continue;
            }
            if *marks_left == 0 {
                break;
            }
            *marks_left -= 1;
            self.text(&text[from..at]);
            at += match rest.as_bytes()[0] {
                b'{' => self.open(rest),
                b'<' => self.angle(rest),
                b':' => self.end_part(),
                _ => self.close(),
            };
            from = at;
        }
        self.text(&text[from..]);
    }

    /// Whether something begins or ends here; else it is text.
    fn is_mark(&self, rest: &str) -> bool {
        let is_macro = |it: &Frame<'_>| matches!(it.kind, Kind::Macro(_));
        match rest.as_bytes()[0] {
            b'{' => rest.starts_with("{{") && self.open.len() < MAX_NESTING,
            b'<' => angle_name(rest).is_some(),
            b':' => rest.starts_with("::") && self.open.last().is_some_and(is_macro),
            _ => rest.starts_with("}}") && self.open.iter().any(is_macro),
        }
    }

    fn text(&mut self, text: &'a str) {
        if !text.is_empty() {
            self.nodes.push(Node::Text(text));
        }
    }

    /// Takes a row of `{`. Of an odd number the first is text: `{{{char}}}` is a name in braces.
    fn open(&mut self, rest: &'a str) -> usize {
        let n = rest.len() - rest.trim_start_matches('{').len();
        let mut at = n % 2;
        self.text(&rest[..at]);
        while at < n && self.open.len() < MAX_NESTING {
            at += 2;
            let after = &rest[at..];
            if after.starts_with("//") && self.has_ends {
                match after.find("}}") {
                    Some(end) => return at + end + 2, // a comment
                    None => self.has_ends = false,
                }
            }
            self.push(Kind::Macro(Vec::new()));
        }
        self.text(&rest[at..n]);
        n
    }

    fn push(&mut self, kind: Kind<'a>) {
        let around = std::mem::take(&mut self.nodes);
        self.open.push(Frame { kind, around });
    }

    fn end_part(&mut self) -> usize {
        if let Some(Frame {
            kind: Kind::Macro(parts),
            ..
        }) = self.open.last_mut()
        {
            parts.push(fitted(std::mem::take(&mut self.nodes)));
        }
        2
    }

    fn close(&mut self) -> usize {
        while let Some(Frame { kind, around }) = self.open.pop() {
            match kind {
                Kind::Macro(mut parts) => {
                    parts.push(fitted(std::mem::replace(&mut self.nodes, around)));
                    let parts = fitted(parts);
                    self.take(Call { parts });
                    break;
                }
                condition => self.give_up(Frame {
                    kind: condition,
                    around,
                }),
            }
        }
        2
    }

    /// Puts a macro where it stands, or where it changes what stands around it.
    fn take(&mut self, call: Call<'a>) {
        if call.is_called("if") && self.open.len() < MAX_NESTING {
            return self.push(Kind::If(call, None));
        }
        if let Some(Frame {
            kind: Kind::If(_, then),
            ..
        }) = self.open.last_mut()
        {
            if then.is_none() && call.is_only("else") {
                *then = Some(std::mem::take(&mut self.nodes));
                return;
            }
            if call.is_only("/if") {
                return self.end_if();
            }
        }
        self.nodes.push(Node::Macro(call));
    }

    fn end_if(&mut self) {
        let Some(Frame {
            kind: Kind::If(call, then),
            around,
        }) = self.open.pop()
        else {
            return;
        };
        let last = std::mem::replace(&mut self.nodes, around);
        let (then, otherwise) = match then {
            Some(then) => (then, last),
            None => (last, Vec::new()),
        };
        let choice = Choice {
            call,
            then: fitted(then),
            otherwise: fitted(otherwise),
        };
        self.nodes.push(Node::If(Box::new(choice)));
    }

    /// Nobody closes it: what looked like a macro is text, with the macros in it.
    fn give_up(&mut self, frame: Frame<'a>) {
        let inner = std::mem::replace(&mut self.nodes, frame.around);
        match frame.kind {
            Kind::Macro(parts) => {
                self.text("{{");
                for part in parts {
                    self.nodes.extend(part);
                    self.text("::");
                }
            }
            Kind::If(call, then) => {
                self.nodes.push(Node::Macro(call));
                if let Some(then) = then {
                    self.nodes.extend(then);
                    self.text("{{else}}");
                }
            }
        }
        self.nodes.extend(inner);
    }

    fn angle(&mut self, rest: &'a str) -> usize {
        let name = angle_name(rest).unwrap_or_default();
        self.nodes.push(Node::Angle(name));
        name.len() + 2
    }
}

/// Nothing is added any more: the room for it is given back.
fn fitted<T>(mut all: Vec<T>) -> Vec<T> {
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
