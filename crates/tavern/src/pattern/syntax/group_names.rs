//! Parses the names of capture groups, and counts the groups before the pattern is parsed, because
//! the meaning of `\1` and `\k` depends on groups that follow.

use icu_properties::CodePointSetData;
use icu_properties::props::{IdContinue, IdStart};

use crate::pattern::syntax::capture_groups::CaptureGroups;
use crate::pattern::syntax::parser::{Parsed, Parser};

impl Parser {
    /// Finds all capture groups, and returns to the start of the pattern.
    pub fn find_groups(&mut self) -> CaptureGroups {
        let mut found = CaptureGroups::default();
        let mut in_class = false;
        while let Some(char) = self.advance() {
            match char {
                '\\' => {
                    self.advance();
                }
                '[' => in_class = true,
                ']' => in_class = false,
                '(' if !in_class => self.find_group(&mut found),
                _ => {}
            }
        }
        self.at = 0;
        found
    }

    fn find_group(&mut self, found: &mut CaptureGroups) {
        if self.peek() != Some('?') {
            found.n_groups += 1;
            return;
        }
        if !self.eat_all("?<") || matches!(self.peek(), Some('=' | '!')) {
            return;
        }
        found.n_groups += 1;
        found.has_names = true;
        let start = self.at;
        match self.parse_group_name() {
            Ok(name) => found.names.push((name, found.n_groups)),
            Err(_) => self.at = start,
        }
    }

    /// Parses a name and the `>` after it.
    pub fn parse_group_name(&mut self) -> Parsed<String> {
        let mut name = String::new();
        loop {
            let start = self.at;
            let char = match self.next_code_point() {
                Some(0x3e) if !name.is_empty() => return Ok(name),
                Some(0x5c) => self.parse_name_escape(),
                other => other,
            };
            let char = char.and_then(char::from_u32);
            match char.filter(|it| is_name_char(*it, name.is_empty())) {
                Some(char) => name.push(char),
                None => {
                    self.at = start;
                    return Err(self.error("invalid capture group name"));
                }
            }
        }
    }

    /// Parses an escape sequence in a name, after its backslash.
    fn parse_name_escape(&mut self) -> Option<u32> {
        if !self.eat('u') {
            return None;
        }
        if self.peek() == Some('{') {
            return self.parse_braced_hex();
        }
        let high = self.parse_hex(4)?;
        let start = self.at;
        if (0xd800..0xdc00).contains(&high) && self.eat_all("\\u") {
            match self.parse_hex(4) {
                Some(low @ 0xdc00..0xe000) => {
                    return Some(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
                }
                _ => self.at = start,
            }
        }
        Some(high)
    }

    /// Consumes a code point, also if the pattern consists of UTF-16 code units.
    fn next_code_point(&mut self) -> Option<u32> {
        let high = *self.source.get(self.at)?;
        self.at += 1;
        match self.source.get(self.at) {
            Some(low @ 0xdc00..0xe000) if (0xd800..0xdc00).contains(&high) => {
                self.at += 1;
                Some(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))
            }
            _ => Some(high),
        }
    }
}

fn is_name_char(char: char, is_first: bool) -> bool {
    matches!(char, '$' | '_')
        || CodePointSetData::new::<IdStart>().contains(char)
        || (!is_first
            && (matches!(char, '\u{200c}' | '\u{200d}')
                || CodePointSetData::new::<IdContinue>().contains(char)))
}
