//! Parses classes without the flag `v`: `[a-z\d]`.

use crate::pattern::char_set::CharSet;
use crate::pattern::syntax::parser::{Parsed, Parser};
use crate::pattern::syntax::tree::Node;

/// An element of a class.
enum ClassAtom {
    Char(u32),
    Set(CharSet),
}

impl ClassAtom {
    fn ranges(&self) -> Vec<(u32, u32)> {
        match self {
            Self::Char(char) => vec![(*char, *char)],
            Self::Set(set) => set.ranges().to_vec(),
        }
    }
}

impl Parser {
    /// Parses a class after its `[`.
    pub fn parse_class(&mut self) -> Parsed<Node> {
        if self.flags.unicode_sets {
            return self.parse_class_set();
        }
        let is_negated = self.eat('^');
        let mut ranges = Vec::new();
        while !self.eat(']') {
            let first = self.parse_class_atom()?;
            let is_range = self.peek() == Some('-') && !matches!(self.peek_at(1), Some(']') | None);
            if !is_range {
                ranges.extend(first.ranges());
                continue;
            }
            self.at += 1;
            match (first, self.parse_class_atom()?) {
                (ClassAtom::Char(first), ClassAtom::Char(last)) if first <= last => {
                    ranges.push((first, last));
                }
                (ClassAtom::Char(_), ClassAtom::Char(_)) => {
                    return Err(self.error("range out of order in character class"));
                }
                _ if self.flags.unicode => return Err(self.error("invalid character class")),
                (first, last) => {
                    ranges.extend(first.ranges());
                    ranges.extend(last.ranges());
                    ranges.push((0x2d, 0x2d));
                }
            }
        }
        let set = self.close(CharSet::from_ranges(ranges));
        Ok(Node::Set(match is_negated {
            true => set.complement(self.max_char()),
            false => set,
        }))
    }

    fn parse_class_atom(&mut self) -> Parsed<ClassAtom> {
        let Some(char) = self.advance() else {
            return Err(self.error("unterminated character class"));
        };
        if char != '\\' {
            return Ok(ClassAtom::Char(self.source[self.at - 1]));
        }
        match self.peek() {
            None => return Err(self.error_before("\\ at end of pattern")),
            Some('b') => {
                self.at += 1;
                return Ok(ClassAtom::Char(0x8));
            }
            _ => {}
        }
        if let Some(set) = self.parse_class_escape()? {
            return Ok(ClassAtom::Set(set));
        }
        self.parse_character_escape(true).map(ClassAtom::Char)
    }
}
