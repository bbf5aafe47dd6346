//! Parses classes with the flag `v`, which may be nested, have set operations and contain strings:
//! `[\p{L}--[a-z]]`, `[\q{abc|d}]`.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::pattern::case_folding::CaseRule;
use crate::pattern::char_set::CharSet;
use crate::pattern::syntax::parser::{Parsed, Parser};
use crate::pattern::syntax::tree::Node;
use crate::pattern::unicode_property::MAX_CODE_POINT;

/// Characters that must be escaped in such a class.
const SYNTAX_CHARS: &str = "()[]{}/-|";
/// Characters that must be escaped if there are two of them.
const DOUBLED: &str = "&!#$%*+,.:;<=>?@^`~";

/// The content of a class.
#[derive(Default)]
struct ClassSet {
    /// With all cases, if case is ignored.
    chars: CharSet,
    /// The strings that are not one character; folded, if case is ignored.
    strings: BTreeSet<Vec<u32>>,
    /// Whether the syntax allows strings, even if there is none.
    may_have_strings: bool,
}

/// How the operands of a class are combined.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SetOperator {
    Union,
    Intersection,
    Subtraction,
}

impl ClassSet {
    fn from_chars(chars: CharSet) -> Self {
        Self {
            chars,
            ..Self::default()
        }
    }

    fn combine(&mut self, operator: SetOperator, other: Self) {
        match operator {
            SetOperator::Union => {
                self.chars = self.chars.union(&other.chars);
                self.strings.extend(other.strings);
                self.may_have_strings |= other.may_have_strings;
            }
            SetOperator::Intersection => {
                self.chars = self.chars.intersection(&other.chars);
                self.strings.retain(|it| other.strings.contains(it));
                self.may_have_strings &= other.may_have_strings;
            }
            SetOperator::Subtraction => {
                self.chars = self.chars.difference(&other.chars);
                self.strings.retain(|it| !other.strings.contains(it));
            }
        }
    }
}

impl Parser {
    /// Parses a class after its `[`.
    pub fn parse_class_set(&mut self) -> Parsed<Node> {
        let set = self.parse_class_contents()?;
        if set.strings.is_empty() {
            return Ok(Node::Set(set.chars));
        }
        let mut strings: Vec<Vec<u32>> = set.strings.into_iter().collect();
        strings.sort_by_key(|it| Reverse(it.len()));
        let to_node =
            |it: &Vec<u32>| Node::Sequence(it.iter().map(|char| self.literal(*char)).collect());
        let mut alternatives: Vec<Node> = strings.iter().map(to_node).collect();
        let n_longer = strings.iter().filter(|it| !it.is_empty()).count();
        alternatives.insert(n_longer, Node::Set(set.chars));
        Ok(Node::Alternation(alternatives))
    }

    fn parse_class_contents(&mut self) -> Parsed<ClassSet> {
        self.enter()?;
        let is_negated = self.eat('^');
        let set = self.parse_operands()?;
        self.leave();
        if !is_negated {
            return Ok(set);
        }
        if set.may_have_strings {
            return Err(self.error("negated character class may contain strings"));
        }
        Ok(ClassSet::from_chars(set.chars.complement(MAX_CODE_POINT)))
    }

    /// Parses operands and the `]` after them.
    fn parse_operands(&mut self) -> Parsed<ClassSet> {
        let mut set = ClassSet::default();
        let mut operator = None;
        while !self.eat(']') {
            let next = self.parse_operator();
            let is_first = operator.is_none();
            match (operator, next) {
                (None, SetOperator::Union) => {}
                (None, _) => return Err(self.error("invalid set operation in character class")),
                (Some(None), _) => operator = Some(Some(next)),
                (Some(Some(previous)), _) if previous == next => {}
                _ => return Err(self.error("invalid set operation in character class")),
            }
            let (operand, is_range) = self.parse_operand_or_range()?;
            if is_range && (next != SetOperator::Union) {
                return Err(self.error("invalid set operation in character class"));
            }
            if is_first {
                // A range cannot be an operand of an operation.
                operator = Some(is_range.then_some(SetOperator::Union));
                set = operand;
            } else {
                set.combine(next, operand);
            }
        }
        Ok(set)
    }

    fn parse_operator(&mut self) -> SetOperator {
        match self.eat_all("--") {
            true => SetOperator::Subtraction,
            false if self.peek_at(2) != Some('&') && self.eat_all("&&") => {
                SetOperator::Intersection
            }
            false => SetOperator::Union,
        }
    }

    fn parse_operand_or_range(&mut self) -> Parsed<(ClassSet, bool)> {
        let first = match self.parse_operand()? {
            Ok(set) => return Ok((set, false)),
            Err(char) => char,
        };
        let is_range = self.peek() == Some('-') && self.peek_at(1) != Some('-');
        if !is_range {
            let chars = self.close(CharSet::single(first));
            return Ok((ClassSet::from_chars(chars), false));
        }
        self.at += 1;
        match self.parse_operand()? {
            Ok(_) => Err(self.error("invalid character class")),
            Err(last) if first > last => Err(self.error("range out of order in character class")),
            Err(last) => {
                let chars = self.close(CharSet::from_ranges([(first, last)]));
                Ok((ClassSet::from_chars(chars), true))
            }
        }
    }

    /// Parses an operand: a set, or `Err` with a single character.
    fn parse_operand(&mut self) -> Parsed<Result<ClassSet, u32>> {
        let Some(char) = self.peek() else {
            return Err(self.error("unterminated character class"));
        };
        if char == '[' {
            self.at += 1;
            return self.parse_class_contents().map(Ok);
        }
        if self.eat_all("\\q{") {
            return self.parse_strings().map(Ok);
        }
        if char == '\\' {
            self.at += 1;
            if let Some(set) = self.parse_class_escape()? {
                return Ok(Ok(ClassSet::from_chars(self.close(set))));
            }
            self.at -= 1;
        }
        self.parse_set_char().map(Err)
    }

    fn parse_set_char(&mut self) -> Parsed<u32> {
        let Some(char) = self.advance() else {
            return Err(self.error("unterminated character class"));
        };
        if char == '\\' {
            if self.peek().is_none() {
                return Err(self.error_before("\\ at end of pattern"));
            }
            return match self.eat('b') {
                true => Ok(0x8),
                false => self.parse_character_escape(true),
            };
        }
        let is_doubled = DOUBLED.contains(char) && self.peek() == Some(char);
        match is_doubled || SYNTAX_CHARS.contains(char) {
            true => Err(self.error_before("invalid character in character class")),
            false => Ok(u32::from(char)),
        }
    }

    /// Parses the strings of `\q{a|bc}` after the brace.
    fn parse_strings(&mut self) -> Parsed<ClassSet> {
        let mut set = ClassSet::default();
        let mut string = Vec::new();
        loop {
            let is_end = self.eat('}');
            if !is_end && !self.eat('|') {
                string.push(self.parse_set_char()?);
                continue;
            }
            let found = match string.as_slice() {
                [char] => ClassSet::from_chars(self.close(CharSet::single(*char))),
                _ => {
                    let folded = string.iter().map(|it| match self.flags.ignore_case {
                        true => CaseRule::Folding.canonicalize(*it),
                        false => *it,
                    });
                    ClassSet {
                        strings: BTreeSet::from([folded.collect()]),
                        may_have_strings: true,
                        ..ClassSet::default()
                    }
                }
            };
            set.combine(SetOperator::Union, found);
            if is_end {
                return Ok(set);
            }
            string.clear();
        }
    }
}
