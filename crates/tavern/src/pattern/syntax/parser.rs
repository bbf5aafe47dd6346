//! Parses a pattern: alternatives, groups, assertions and quantifiers.

use crate::pattern::case_folding::CaseRule;
use crate::pattern::char_set::CharSet;
use crate::pattern::syntax::capture_groups::CaptureGroups;
use crate::pattern::syntax::flags::PatternFlags;
use crate::pattern::syntax::syntax_error::PatternSyntaxError;
use crate::pattern::syntax::tree::{Assertion, Look, Node, Repeat, SyntaxTree};
use crate::pattern::unicode_property::MAX_CODE_POINT;

/// How deep groups and classes may be nested. The parser and the compiler are recursive, so that
/// deeper patterns could exhaust the stack.
const MAX_NESTING: usize = 200;
/// The characters that end a line.
pub const LINE_TERMINATORS: [(u32, u32); 3] = [(0xa, 0xa), (0xd, 0xd), (0x2028, 0x2029)];

pub type Parsed<T> = Result<T, PatternSyntaxError>;

/// The state of the parser.
pub struct Parser {
    /// The code points of the pattern with the flags `u` and `v`, otherwise its UTF-16 code units.
    pub source: Vec<u32>,
    /// The index of the next element of `source`.
    pub at: usize,
    /// Groups may change the flags `i`, `m` and `s`.
    pub flags: PatternFlags,
    pub groups: CaptureGroups,
    /// The number of capture groups parsed so far.
    n_groups: u32,
    pub has_back_references: bool,
    n_nested: usize,
    /// The position among alternatives: the number of each enclosing disjunction, and its current
    /// alternative.
    alternatives: Vec<(usize, usize)>,
    n_disjunctions: usize,
    /// The named groups parsed so far, with their positions among alternatives.
    named: Vec<(String, Vec<(usize, usize)>)>,
}

/// Parses a pattern.
///
/// # Errors
/// Returns why and where the pattern violates the syntax of JavaScript.
pub fn parse(pattern: &str, flags: PatternFlags) -> Parsed<SyntaxTree> {
    let mut parser = Parser::new(pattern, flags);
    parser.groups = parser.find_groups();
    let root = parser.parse_disjunction()?;
    if parser.peek().is_some() {
        return Err(parser.error("unmatched ')'"));
    }
    Ok(SyntaxTree {
        root,
        n_groups: parser.n_groups,
        group_names: parser.groups.names,
        has_back_references: parser.has_back_references,
    })
}

impl Parser {
    fn new(pattern: &str, flags: PatternFlags) -> Self {
        let source = if flags.unicode {
            pattern.chars().map(u32::from).collect()
        } else {
            pattern.encode_utf16().map(u32::from).collect()
        };
        Self {
            source,
            at: 0,
            flags,
            groups: CaptureGroups::default(),
            n_groups: 0,
            has_back_references: false,
            n_nested: 0,
            alternatives: Vec::new(),
            n_disjunctions: 0,
            named: Vec::new(),
        }
    }

    fn parse_disjunction(&mut self) -> Parsed<Node> {
        self.enter()?;
        self.alternatives.push((self.n_disjunctions, 0));
        self.n_disjunctions += 1;
        let mut alternatives = vec![self.parse_alternative()?];
        while self.eat('|') {
            if let Some((_, alternative)) = self.alternatives.last_mut() {
                *alternative += 1;
            }
            alternatives.push(self.parse_alternative()?);
        }
        self.alternatives.pop();
        self.leave();
        Ok(match alternatives.len() {
            1 => alternatives.remove(0),
            _ => Node::Alternation(alternatives),
        })
    }

    fn parse_alternative(&mut self) -> Parsed<Node> {
        let mut terms = Vec::new();
        while let Some(char) = self.peek()
            && !matches!(char, '|' | ')')
        {
            terms.push(self.parse_term(char)?);
        }
        Ok(match terms.len() {
            1 => terms.remove(0),
            _ => Node::Sequence(terms),
        })
    }

    /// Parses a term that begins with this character, and its quantifier.
    fn parse_term(&mut self, char: char) -> Parsed<Node> {
        let first_group = self.n_groups + 1;
        self.at += 1;
        let term = match char {
            '^' => return Ok(Node::Assertion(self.line_assertion(Assertion::TextStart))),
            '$' => return Ok(Node::Assertion(self.line_assertion(Assertion::TextEnd))),
            '(' => match self.parse_group()? {
                Node::Look(look) if look.is_behind || self.flags.unicode => {
                    return Ok(Node::Look(look));
                }
                group => group,
            },
            '.' => self.any_char(),
            '[' => self.parse_class()?,
            '\\' => match self.parse_atom_escape()? {
                Node::Assertion(boundary) => return Ok(Node::Assertion(boundary)),
                escaped => escaped,
            },
            '*' | '+' | '?' => return Err(self.error_before("nothing to repeat")),
            '{' if self.flags.unicode || self.parse_braces().is_some() => {
                return Err(self.error("nothing to repeat"));
            }
            '}' | ']' if self.flags.unicode => {
                return Err(self.error_before("unescaped bracket"));
            }
            _ => self.literal(self.source[self.at - 1]),
        };
        self.parse_quantifier(term, first_group)
    }

    fn line_assertion(&self, assertion: Assertion) -> Assertion {
        match assertion {
            Assertion::TextStart if self.flags.multiline => Assertion::LineStart,
            Assertion::TextEnd if self.flags.multiline => Assertion::LineEnd,
            _ => assertion,
        }
    }

    fn any_char(&self) -> Node {
        let excluded = match self.flags.dot_all {
            true => CharSet::default(),
            false => CharSet::from_ranges(LINE_TERMINATORS),
        };
        Node::Set(excluded.complement(self.max_char()))
    }

    /// Parses a quantifier of `body`, if there is one. `first_group` is the first group in the body.
    fn parse_quantifier(&mut self, body: Node, first_group: u32) -> Parsed<Node> {
        let start = self.at;
        let (min, max) = match self.peek() {
            Some('*') => (0, u32::MAX),
            Some('+') => (1, u32::MAX),
            Some('?') => (0, 1),
            Some('{') => {
                self.at += 1;
                match self.parse_braces() {
                    Some(bounds) => bounds,
                    None if self.flags.unicode => return Err(self.error("incomplete quantifier")),
                    None => {
                        self.at = start;
                        return Ok(body);
                    }
                }
            }
            _ => return Ok(body),
        };
        if self.source[start] != u32::from('{') {
            self.at += 1;
        }
        if min > max {
            return Err(self.error("numbers out of order in quantifier"));
        }
        Ok(Node::Repeat(Box::new(Repeat {
            body,
            min,
            max,
            is_lazy: self.eat('?'),
            groups: (first_group, self.n_groups + 1),
        })))
    }

    /// Parses the bounds of a quantifier after `{`: `3}`, `3,}` or `3,5}`. Consumes nothing if there
    /// are none.
    fn parse_braces(&mut self) -> Option<(u32, u32)> {
        let start = self.at;
        let bounds = self.parse_bounds();
        if bounds.is_none() {
            self.at = start;
        }
        bounds
    }

    fn parse_bounds(&mut self) -> Option<(u32, u32)> {
        let min = self.parse_number()?;
        let max = match self.eat(',') {
            false => Some(min),
            true => self.parse_number(),
        };
        self.eat('}').then_some((min, max.unwrap_or(u32::MAX)))
    }

    /// Parses a decimal number; a number that does not fit means no maximum.
    pub fn parse_number(&mut self) -> Option<u32> {
        let mut number = None;
        while let Some(digit) = self.peek().and_then(|it| it.to_digit(10)) {
            let before = number.unwrap_or(0_u32);
            number = Some(before.saturating_mul(10).saturating_add(digit));
            self.at += 1;
        }
        number
    }

    /// Parses a group after its `(`.
    fn parse_group(&mut self) -> Parsed<Node> {
        if !self.eat('?') {
            return self.parse_capture();
        }
        for (prefix, is_behind, is_negated) in [
            ("=", false, false),
            ("!", false, true),
            ("<=", true, false),
            ("<!", true, true),
        ] {
            if self.eat_all(prefix) {
                let body = self.parse_group_body()?;
                return Ok(Node::Look(Box::new(Look {
                    is_behind,
                    is_negated,
                    body,
                })));
            }
        }
        if self.eat('<') {
            let name = self.parse_group_name()?;
            self.add_name(name)?;
            return self.parse_capture();
        }
        let outer = self.flags;
        self.parse_modifiers()?;
        let body = self.parse_group_body();
        self.flags = outer;
        // A sequence of one: the group must stay one node for its quantifier.
        Ok(Node::Sequence(vec![body?]))
    }

    fn parse_capture(&mut self) -> Parsed<Node> {
        self.n_groups += 1;
        let group = self.n_groups;
        Ok(Node::Group(group, Box::new(self.parse_group_body()?)))
    }

    fn parse_group_body(&mut self) -> Parsed<Node> {
        let body = self.parse_disjunction()?;
        match self.eat(')') {
            true => Ok(body),
            false => Err(self.error("unterminated group")),
        }
    }

    /// Parses the flags that a group changes, and the colon: `i-ms:`.
    fn parse_modifiers(&mut self) -> Parsed<()> {
        let (mut seen, mut is_on) = (String::new(), true);
        loop {
            let flag = match self.advance() {
                Some(':') if is_on || !seen.is_empty() => return Ok(()),
                Some('-') if is_on => {
                    is_on = false;
                    continue;
                }
                Some(flag @ ('i' | 'm' | 's')) if !seen.contains(flag) => flag,
                _ => return Err(self.error_before("invalid group")),
            };
            match flag {
                'i' => self.flags.ignore_case = is_on,
                'm' => self.flags.multiline = is_on,
                _ => self.flags.dot_all = is_on,
            }
            seen.push(flag);
        }
    }

    /// Adds a group name. A name may only be repeated in another alternative.
    fn add_name(&mut self, name: String) -> Parsed<()> {
        let are_alternatives = |other: &Vec<(usize, usize)>| {
            let mut both = self.alternatives.iter();
            both.any(|here| other.iter().any(|it| it.0 == here.0 && it.1 != here.1))
        };
        let mut same = self.named.iter().filter(|(it, _)| *it == name);
        if !same.all(|(_, place)| are_alternatives(place)) {
            return Err(self.error("duplicate capture group name"));
        }
        self.named.push((name, self.alternatives.clone()));
        Ok(())
    }

    /// Returns a node that matches a character under the current flags.
    pub fn literal(&self, char: u32) -> Node {
        if !self.flags.ignore_case {
            return Node::Char(char);
        }
        let set = self.case_rule().close(&CharSet::single(char));
        match set.as_single() {
            Some(char) => Node::Char(char),
            None => Node::Set(set),
        }
    }

    /// Returns when two characters are equal if case is ignored.
    pub fn case_rule(&self) -> CaseRule {
        CaseRule::from_unicode(self.flags.unicode)
    }

    /// Returns the greatest character of a text.
    pub fn max_char(&self) -> u32 {
        match self.flags.unicode {
            true => MAX_CODE_POINT,
            false => 0xffff,
        }
    }

    /// Enters a nested group or class.
    pub fn enter(&mut self) -> Parsed<()> {
        self.n_nested += 1;
        match self.n_nested > MAX_NESTING {
            true => Err(self.error("nested too deeply")),
            false => Ok(()),
        }
    }

    /// Leaves a nested group or class.
    pub fn leave(&mut self) {
        self.n_nested -= 1;
    }

    /// Returns the next character without consuming it; U+FFFD for half of a surrogate pair.
    pub fn peek(&self) -> Option<char> {
        self.peek_at(0)
    }

    /// Returns the character after `n` others without consuming it.
    pub fn peek_at(&self, n: usize) -> Option<char> {
        let char = self.source.get(self.at + n)?;
        Some(char::from_u32(*char).unwrap_or('\u{fffd}'))
    }

    /// Consumes a character.
    pub fn advance(&mut self) -> Option<char> {
        let char = self.peek()?;
        self.at += 1;
        Some(char)
    }

    /// Consumes this character, if it is the next.
    pub fn eat(&mut self, char: char) -> bool {
        let is_next = self.peek() == Some(char);
        self.at += usize::from(is_next);
        is_next
    }

    /// Consumes these characters, if they are next.
    pub fn eat_all(&mut self, chars: &str) -> bool {
        let are_next = (0..)
            .zip(chars.chars())
            .all(|(n, it)| self.peek_at(n) == Some(it));
        self.at += if are_next { chars.chars().count() } else { 0 };
        are_next
    }

    /// Builds an error at the current position.
    pub fn error(&self, reason: &'static str) -> PatternSyntaxError {
        let before = self.source.iter().take(self.at);
        let position = before.filter(|it| !(0xdc00..0xe000).contains(*it)).count();
        PatternSyntaxError { reason, position }
    }

    /// Builds an error at the character that was consumed last.
    pub fn error_before(&mut self, reason: &'static str) -> PatternSyntaxError {
        self.at -= 1;
        self.error(reason)
    }
}
