//! Parses escape sequences outside and inside of classes.

use crate::pattern::char_set::CharSet;
use crate::pattern::syntax::parser::{LINE_TERMINATORS, Parsed, Parser};
use crate::pattern::syntax::tree::{Assertion, BackReference, Node};
use crate::pattern::unicode_property;
use crate::pattern::unicode_property::MAX_CODE_POINT;

/// The characters of `\s` apart from the line terminators.
const SPACES: [(u32, u32); 10] = [
    (0x9, 0x9),
    (0xb, 0xc),
    (0x20, 0x20),
    (0xa0, 0xa0),
    (0x1680, 0x1680),
    (0x2000, 0x200a),
    (0x202f, 0x202f),
    (0x205f, 0x205f),
    (0x3000, 0x3000),
    (0xfeff, 0xfeff),
];
/// The characters of `\w` and the word boundaries.
pub const WORD_CHARS: [(u32, u32); 4] = [(0x30, 0x39), (0x41, 0x5a), (0x5f, 0x5f), (0x61, 0x7a)];
/// Outside ASCII, but equal to `s` and `k` in patterns with `i` and `u` or `v`.
pub const FOLDED_WORD_CHARS: [(u32, u32); 2] = [(0x17f, 0x17f), (0x212a, 0x212a)];
const SYNTAX_CHARS: &str = "^$\\.*+?()[]{}|/";
/// Punctuation that may be escaped in classes with set operations.
const SET_PUNCTUATION: &str = "&-!#%,:;<=>@`~";

impl Parser {
    /// Parses an escape sequence outside of a class, after its backslash.
    pub fn parse_atom_escape(&mut self) -> Parsed<Node> {
        match self.peek() {
            None => Err(self.error_before("\\ at end of pattern")),
            Some(letter @ ('b' | 'B')) => {
                self.at += 1;
                Ok(Node::Assertion(Assertion::WordBoundary {
                    is_negated: letter == 'B',
                    is_folded: self.flags.unicode && self.flags.ignore_case,
                }))
            }
            Some('1'..='9') => self.parse_decimal_escape(),
            Some('k') if self.flags.unicode || self.groups.has_names => {
                self.at += 1;
                self.parse_named_reference()
            }
            Some(_) => match self.parse_class_escape()? {
                Some(set) => Ok(Node::Set(self.close(set))),
                None => {
                    let char = self.parse_character_escape(false)?;
                    Ok(self.literal(char))
                }
            },
        }
    }

    /// Adds the other cases to a set, if case is ignored.
    pub fn close(&self, set: CharSet) -> CharSet {
        match self.flags.ignore_case {
            true => self.case_rule().close(&set),
            false => set,
        }
    }

    /// Parses a back-reference; without the flag `u` it may be a character instead.
    fn parse_decimal_escape(&mut self) -> Parsed<Node> {
        let start = self.at;
        let number = self.parse_number().unwrap_or(0);
        if number <= self.groups.n_groups {
            return Ok(self.back_reference(vec![number]));
        }
        self.at = start;
        if self.flags.unicode {
            return Err(self.error("reference to a group that does not exist"));
        }
        let char = self.parse_octal();
        Ok(self.literal(char))
    }

    fn parse_named_reference(&mut self) -> Parsed<Node> {
        if !self.eat('<') {
            return Err(self.error("invalid named reference"));
        }
        let name = self.parse_group_name()?;
        match self.groups.groups(&name) {
            groups if groups.is_empty() => {
                Err(self.error("reference to a group that does not exist"))
            }
            groups => Ok(self.back_reference(groups)),
        }
    }

    fn back_reference(&mut self, groups: Vec<u32>) -> Node {
        self.has_back_references = true;
        Node::BackReference(BackReference {
            groups,
            ignore_case: self.flags.ignore_case,
        })
    }

    /// Parses up to three octal digits; `8` and `9` are themselves.
    fn parse_octal(&mut self) -> u32 {
        let mut char = None;
        while let Some(digit) = self.peek().and_then(|it| it.to_digit(8)) {
            let next = char.unwrap_or(0) * 8 + digit;
            if next > 0o377 {
                break;
            }
            char = Some(next);
            self.at += 1;
            // A fourth digit never belongs to it, not even after zeros.
            if char.is_some_and(|it| it >= 0o40) || self.n_octal_digits() == 3 {
                break;
            }
        }
        char.unwrap_or_else(|| self.advance().map_or(0, u32::from))
    }

    /// Returns how many octal digits the escape sequence has that ends here.
    fn n_octal_digits(&self) -> usize {
        let before = self.source[..self.at].iter().rev();
        let digits = before.take_while(|it| (0x30..=0x37).contains(*it));
        digits.count()
    }

    /// Parses `\d`, `\s`, `\w`, `\p{…}` and their complements; returns `None` for other escapes.
    /// Other cases are not added yet.
    pub fn parse_class_escape(&mut self) -> Parsed<Option<CharSet>> {
        let Some(letter) = self.peek() else {
            return Ok(None);
        };
        let set = match letter {
            'd' | 'D' => CharSet::from_ranges([(0x30, 0x39)]),
            's' | 'S' => CharSet::from_ranges(SPACES.into_iter().chain(LINE_TERMINATORS)),
            'w' | 'W' if self.flags.unicode && self.flags.ignore_case => {
                CharSet::from_ranges(WORD_CHARS.into_iter().chain(FOLDED_WORD_CHARS))
            }
            'w' | 'W' => CharSet::from_ranges(WORD_CHARS),
            'p' | 'P' if self.flags.unicode => {
                self.at += 1;
                return self.parse_property(letter == 'P').map(Some);
            }
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(Some(match letter.is_ascii_uppercase() {
            true => set.complement(self.max_char()),
            false => set,
        }))
    }

    /// Parses the name of a property and its braces.
    fn parse_property(&mut self, is_negated: bool) -> Parsed<CharSet> {
        let start = self.at;
        let mut name = String::new();
        let is_braced = self.eat('{');
        while let Some(char @ ('a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '=')) = self.peek() {
            name.push(char);
            self.at += 1;
        }
        if !is_braced || !self.eat('}') {
            self.at = start;
            return Err(self.error("invalid property name"));
        }
        if self.flags.unicode_sets && !is_negated && unicode_property::is_string_property(&name) {
            return Err(self.error("properties of strings are not supported"));
        }
        let Some(set) = unicode_property::code_points(&name) else {
            self.at = start;
            return Err(self.error("invalid property name"));
        };
        // With `v`, the complement is that of the set with all cases.
        let set = match self.flags.unicode_sets {
            true => self.close(set),
            false => set,
        };
        Ok(match is_negated {
            true => set.complement(MAX_CODE_POINT),
            false => set,
        })
    }

    /// Parses an escape sequence for one character, after its backslash.
    pub fn parse_character_escape(&mut self, in_class: bool) -> Parsed<u32> {
        let unit = self.source[self.at];
        let Some(letter) = self.advance() else {
            return Err(self.error("\\ at end of pattern"));
        };
        Ok(match letter {
            'f' => 0xc,
            'n' => 0xa,
            'r' => 0xd,
            't' => 0x9,
            'v' => 0xb,
            'c' => return self.parse_control(in_class),
            'x' => match self.parse_hex(2) {
                Some(char) => char,
                None if self.flags.unicode => return Err(self.error("invalid escape")),
                None => unit,
            },
            'u' => return self.parse_unicode_escape(),
            '0'..='9' if !self.flags.unicode => {
                self.at -= 1;
                self.parse_octal()
            }
            '0' if !matches!(self.peek(), Some('0'..='9')) => 0,
            _ if self.is_identity_escape(letter, in_class) => unit,
            _ => return Err(self.error_before("invalid escape")),
        })
    }

    fn is_identity_escape(&self, letter: char, in_class: bool) -> bool {
        if !self.flags.unicode {
            return letter != 'k' || !self.groups.has_names;
        }
        let in_set = in_class && self.flags.unicode_sets;
        SYNTAX_CHARS.contains(letter)
            || (in_class && letter == '-')
            || (in_set && SET_PUNCTUATION.contains(letter))
    }

    /// Parses the letter after `\c`. A backslash without a letter is a backslash.
    fn parse_control(&mut self, in_class: bool) -> Parsed<u32> {
        match self.peek() {
            Some(letter) if letter.is_ascii_alphabetic() => {
                self.at += 1;
                Ok(u32::from(letter) % 32)
            }
            Some(letter @ ('0'..='9' | '_')) if in_class && !self.flags.unicode => {
                self.at += 1;
                Ok(u32::from(letter) % 32)
            }
            _ if self.flags.unicode => Err(self.error("invalid escape")),
            _ => {
                self.at -= 1;
                Ok(u32::from('\\'))
            }
        }
    }

    /// Parses the digits after `\u`.
    fn parse_unicode_escape(&mut self) -> Parsed<u32> {
        if self.flags.unicode && self.peek() == Some('{') {
            let code_point = self.parse_braced_hex();
            return code_point.ok_or_else(|| self.error("invalid escape"));
        }
        let Some(unit) = self.parse_hex(4) else {
            return match self.flags.unicode {
                true => Err(self.error("invalid escape")),
                false => Ok(u32::from('u')),
            };
        };
        if !self.flags.unicode || !(0xd800..0xdc00).contains(&unit) {
            return Ok(unit);
        }
        let start = self.at;
        if self.eat_all("\\u")
            && let Some(low @ 0xdc00..0xe000) = self.parse_hex(4)
        {
            return Ok(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
        }
        self.at = start;
        Ok(unit)
    }

    /// Parses this number of hexadecimal digits. Consumes nothing if there are fewer.
    pub fn parse_hex(&mut self, n_digits: usize) -> Option<u32> {
        let digits = (0..n_digits).map(|n| self.peek_at(n)?.to_digit(16));
        let number = digits
            .into_iter()
            .try_fold(0, |number, digit| Some(number * 16 + digit?))?;
        self.at += n_digits;
        Some(number)
    }

    /// Parses a code point in braces. Consumes nothing if there is none.
    pub fn parse_braced_hex(&mut self) -> Option<u32> {
        let start = self.at;
        self.at += 1;
        let mut code_point = None;
        while let Some(digit) = self.peek().and_then(|it| it.to_digit(16)) {
            self.at += 1;
            let next = code_point.unwrap_or(0_u32) * 16 + digit;
            // A greater number is invalid; it must not overflow before its end is reached.
            code_point = Some(next.min(MAX_CODE_POINT + 1));
        }
        let is_closed = self.eat('}');
        let code_point = code_point.filter(|it| is_closed && *it <= MAX_CODE_POINT);
        if code_point.is_none() {
            self.at = start;
        }
        code_point
    }
}
