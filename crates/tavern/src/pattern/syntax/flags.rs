//! Parses the flags of a pattern.

/// The flags of a pattern. `d` has no effect, and `g` none on whether it matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PatternFlags {
    /// `g`: all matches are replaced, not only the first one.
    pub global: bool,
    /// `i`
    pub ignore_case: bool,
    /// `m`: `^` and `$` match at line breaks.
    pub multiline: bool,
    /// `s`: `.` matches line breaks.
    pub dot_all: bool,
    /// `u` or `v`: the pattern consists of code points instead of UTF-16 code units.
    pub unicode: bool,
    /// `v`: classes have set operations.
    pub unicode_sets: bool,
    /// `y`: the pattern matches only at the start of the text.
    pub sticky: bool,
}

/// Parses flags. Returns `None` for an unknown or repeated flag, and for `u` together with `v`.
pub fn parse_flags(text: &str) -> Option<PatternFlags> {
    let is_repeated = |(n, flag)| text[..n].contains::<char>(flag);
    let has = |flag: char| text.contains(flag);
    let is_invalid = text.contains(|it| !"dgimsuvy".contains(it))
        || text.char_indices().any(is_repeated)
        || (has('u') && has('v'));
    (!is_invalid).then(|| PatternFlags {
        global: has('g'),
        ignore_case: has('i'),
        multiline: has('m'),
        dot_all: has('s'),
        unicode: has('u') || has('v'),
        unicode_sets: has('v'),
        sticky: has('y'),
    })
}
