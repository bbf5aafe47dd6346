//! Returns whether the beginning of a line is one of several names and a colon (`Bob:`), can still
//! become one, or cannot. Called again after each further character of the line. No I/O.
//!
//! Names are compared without case and in compatibility form, and a line may wrap the name in
//! asterisks (`**Bob:**`).
//!
//! **Invariant:** decisions are made per character, so they never depend on how a text was split
//! into chunks.

use caseless::Caseless;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;

/// More asterisks than this are not emphasis, so no name can follow them.
const MAX_DECORATION: usize = 3;

/// What the beginning of a line can turn out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrefixMatch {
    /// It may still become a name.
    Undecided,
    /// It is not a name, whatever follows.
    NotAName,
    /// It is the name at this index of the list, colon included.
    Name(usize),
}

/// The names to look for, normalized once.
#[derive(Debug, Clone, Default)]
pub struct NamePrefixes(Vec<String>);

impl NamePrefixes {
    /// Keeps blank names so that indexes stay stable, but never matches them.
    pub fn new<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Self {
        Self(
            names
                .into_iter()
                .map(|name| fold(undecorated(name.as_ref())))
                .collect(),
        )
    }

    /// Returns whether no name can match.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(String::is_empty)
    }

    /// Classifies the beginning of a line, which never starts with whitespace. Must be called after
    /// each character, because a colon is only recognized as the last character.
    pub fn match_prefix(&self, head: &str) -> PrefixMatch {
        let n_opening = head.chars().take_while(|it| *it == '*').count();
        if n_opening > MAX_DECORATION {
            return PrefixMatch::NotAName;
        }
        let name = &head[n_opening..];
        if name.ends_with(is_colon) {
            let folded = fold(undecorated(
                &name[..name.floor_char_boundary(name.len() - 1)],
            ));
            let found = self.0.iter().position(|it| !it.is_empty() && *it == folded);
            if let Some(index) = found {
                return PrefixMatch::Name(index);
            }
        }
        if self.can_become_name(name) {
            PrefixMatch::Undecided
        } else {
            PrefixMatch::NotAName
        }
    }

    fn can_become_name(&self, beginning: &str) -> bool {
        let bare = undecorated(beginning);
        if beginning.len() - bare.len() > 2 * MAX_DECORATION {
            return false;
        }
        let folded = fold(bare);
        // Combining marks at the end may still be reordered with later ones.
        let settled = folded.trim_end_matches(|it| canonical_combining_class(it) != 0);
        self.0
            .iter()
            .any(|it| !it.is_empty() && it.starts_with(settled))
    }
}

/// Returns the asterisks that open a line.
pub fn decoration(head: &str) -> &str {
    &head[..head.len() - head.trim_start_matches('*').len()]
}

/// Removes asterisks and whitespace around a name; those inside remain.
fn undecorated(name: &str) -> &str {
    name.trim_matches(|it: char| it == '*' || it.is_whitespace())
}

/// Normalizes by decomposition, not composition: the normalized form of a prefix is then a prefix
/// of the normalized text, and equality is the same.
fn fold(text: &str) -> String {
    text.nfkd().default_case_fold().nfkd().collect()
}

/// Returns whether this is a colon of any width.
fn is_colon(it: char) -> bool {
    matches!(it, ':' | '\u{ff1a}' | '\u{fe55}' | '\u{fe13}')
}

#[cfg(test)]
mod tests {
    use super::{NamePrefixes, PrefixMatch};

    fn match_line(names: &[&str], line: &str) -> PrefixMatch {
        let names = NamePrefixes::new(names);
        line.char_indices()
            .map(|(at, it)| names.match_prefix(&line[..at + it.len_utf8()]))
            .find(|result| *result != PrefixMatch::Undecided)
            .unwrap_or(PrefixMatch::Undecided)
    }

    #[test]
    fn a_name_prefix_is_found_in_any_case_and_with_emphasis() {
        let decorated_lines = [
            "Bob:",
            "bob:",
            "BOB：",
            "**Bob:",
            "**Bob**:",
            "*Bob*:",
            "***Bob:",
            "Ｂｏｂ:",
            "Bob :",
        ];
        for line in decorated_lines {
            assert_eq!(
                match_line(&["Ada", "Bob"], line),
                PrefixMatch::Name(1),
                "{line}"
            );
        }
        assert_eq!(match_line(&["Zoë"], "zoe\u{308}:"), PrefixMatch::Name(0));
        assert_eq!(match_line(&["Zoe\u{308}"], "ZOË:"), PrefixMatch::Name(0));
        assert_eq!(match_line(&["Straße"], "STRASSE:"), PrefixMatch::Name(0));
        assert_eq!(
            match_line(&["Sir Lancelot"], "Sir Lancelot:"),
            PrefixMatch::Name(0)
        );
    }

    #[test]
    fn a_line_that_only_resembles_a_name_is_no_match() {
        for line in [
            "Bobby:",
            "Bob said:",
            "Bo:",
            "Rob:",
            "****Bob:",
            "- Bob:",
            ":",
            "Bob\u{301}:",
        ] {
            assert_eq!(match_line(&["Bob"], line), PrefixMatch::NotAName, "{line}");
        }
        assert_eq!(match_line(&["", "*"], "x"), PrefixMatch::NotAName);
        assert_eq!(match_line(&["", "*"], ":"), PrefixMatch::NotAName);
    }

    #[test]
    fn a_line_is_held_back_only_while_it_may_be_a_name_prefix() {
        let names = NamePrefixes::new(["Bob"]);

        assert_eq!(names.match_prefix("Bo"), PrefixMatch::Undecided);
        assert_eq!(names.match_prefix("Box"), PrefixMatch::NotAName);
        assert_eq!(names.match_prefix("Bob*******"), PrefixMatch::NotAName);
        assert_eq!(names.match_prefix("Bob       "), PrefixMatch::NotAName);
    }
}
