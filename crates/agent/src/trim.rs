//! Cleans a model's text while it streams: removes control characters, whitespace at both ends, the
//! speaker's own `Name:` and a marker such as `(whispered to Ann)`, and cuts the text where another
//! member's `Name:` begins a line.
//!
//! **Invariant:** the results of [`ReplyTrimmer::push`] and [`ReplyTrimmer::finish`] together are
//! the final text: no output is ever taken back, and the text does not depend on how it was split
//! into chunks. For this, whitespace is held back until text follows it, and the beginning of a
//! line until it can no longer be a name.

use std::mem;

use crate::name_prefix;
use crate::name_prefix::{NamePrefixes, PrefixMatch};
use crate::text::stop_sequences::StopSequences;

/// Longer text in parentheses, in bytes, is not a marker.
const MAX_MARKER_BYTES: usize = 1_000;

/// The state between two chunks of one text.
#[derive(Debug, Clone)]
pub struct ReplyTrimmer {
    /// The speaker's own names first, then those of the others.
    names: NamePrefixes,
    n_own: usize,
    has_other_names: bool,
    position: LinePosition,
    /// Whitespace that is kept only if text follows it.
    blanks: String,
    /// The beginning of a line that may be a name.
    head: String,
    /// Asterisks that opened before the own name; their counterpart may follow its colon.
    unclosed: String,
    /// The beginning of a marker that is removed from the start of the text, up to its closing parenthesis.
    marker: Option<&'static str>,
    stops: StopSequences,
    /// The text continues another one, so whitespace at its start is kept.
    is_continuation: bool,
    /// Stored before the reply; the model does not repeat it. Empty after the first text was returned.
    stored_prefix: String,
    /// The text before this one ends within a line, so its first words do not begin a line.
    is_mid_line: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinePosition {
    /// No text was returned yet.
    Start,
    /// Right after the colon of the own name.
    AfterOwnName,
    LineStart,
    InLine,
    /// Another member's line began: the text has ended.
    Cut,
    /// Only U+0000 is removed.
    Verbatim,
}

impl ReplyTrimmer {
    /// Creates a trimmer for a speaker and the other members of the space. Both lists include
    /// aliases.
    pub fn new<S: AsRef<str>>(own: &[S], others: &[S]) -> Self {
        let all = own.iter().chain(others).map(AsRef::as_ref);
        Self {
            names: NamePrefixes::new(all),
            n_own: own.len(),
            has_other_names: !NamePrefixes::new(others).is_empty(),
            position: LinePosition::Start,
            blanks: String::new(),
            head: String::new(),
            unclosed: String::new(),
            marker: None,
            stops: StopSequences::default(),
            is_continuation: false,
            stored_prefix: String::new(),
            is_mid_line: false,
        }
    }

    /// Creates a trimmer that only removes control characters and surrounding whitespace.
    pub fn without_names() -> Self {
        Self::new::<&str>(&[], &[])
    }

    /// Creates a trimmer for text that a program parses: only U+0000, which PostgreSQL cannot
    /// store, is removed.
    pub fn verbatim() -> Self {
        Self {
            position: LinePosition::Verbatim,
            ..Self::without_names()
        }
    }

    /// Returns the trimmer for a text that continues another one: whitespace at its start is kept. If
    /// `is_mid_line`, it begins within a line, so the name of another member there does not end it.
    pub fn continuing(self, is_mid_line: bool) -> Self {
        Self {
            is_continuation: true,
            is_mid_line,
            ..self
        }
    }

    /// Returns the trimmer for a reply that is stored after `stored_prefix`, which the model does not repeat.
    pub fn with_stored_prefix(self, stored_prefix: String) -> Self {
        let is_mid_line = !stored_prefix.ends_with('\n');
        Self {
            stored_prefix,
            ..self.continuing(is_mid_line)
        }
    }

    /// Returns whether the reply is stored after a prefix.
    pub fn has_stored_prefix(&self) -> bool {
        !self.stored_prefix.is_empty()
    }

    /// Returns the trimmer that also removes a marker at the start of the text, before or after the own
    /// name: one that begins like this and ends with `)` on the same line.
    pub fn without_marker(self, begins: Option<&'static str>) -> Self {
        Self {
            marker: begins,
            ..self
        }
    }

    /// Returns the trimmer with stop sequences: the text ends before the first of them.
    pub fn with_stops(self, stops: &[String]) -> Self {
        Self {
            stops: StopSequences::new(stops),
            ..self
        }
    }

    /// Adds the next chunk and returns the text that can be shown.
    pub fn push(&mut self, piece: &str) -> String {
        let piece = self.stops.push(piece);
        let text = self.trim(&piece);
        self.prepend_stored_prefix(text)
    }

    /// Puts the stored prefix before the first text that is not empty.
    fn prepend_stored_prefix(&mut self, text: String) -> String {
        match text.is_empty() || self.stored_prefix.is_empty() {
            true => text,
            false => mem::take(&mut self.stored_prefix) + &text,
        }
    }

    fn trim(&mut self, piece: &str) -> String {
        if self.position == LinePosition::Verbatim {
            return piece.replace('\0', "");
        }
        let mut out = String::new();
        for it in piece.chars().filter(|it| is_allowed(*it)) {
            self.push_char(it, &mut out);
        }
        out
    }

    /// Ends the text and returns what was held back, without trailing whitespace.
    pub fn finish(&mut self) -> String {
        let held = self.stops.finish();
        let mut out = self.trim(&held);
        // Asterisks around nothing but the own name are not text.
        if !matches!(
            self.position,
            LinePosition::Cut | LinePosition::AfterOwnName
        ) {
            self.release_head(&mut out);
        }
        self.blanks.clear();
        self.prepend_stored_prefix(out)
    }

    /// Returns whether offsets in the input are also valid in the output.
    pub fn is_verbatim(&self) -> bool {
        self.position == LinePosition::Verbatim
    }

    /// Returns whether another member's line or a stop sequence ended the text, so that later chunks
    /// are ignored.
    pub fn is_cut(&self) -> bool {
        self.position == LinePosition::Cut || self.stops.is_reached()
    }

    fn push_char(&mut self, it: char, out: &mut String) {
        match self.position {
            LinePosition::Cut | LinePosition::Verbatim => {}
            LinePosition::AfterOwnName => self.push_after_own_name(it, out),
            LinePosition::InLine => self.push_in_line(it, out),
            LinePosition::Start | LinePosition::LineStart => self.push_at_start(it, out),
        }
    }

    fn push_in_line(&mut self, it: char, out: &mut String) {
        if it.is_whitespace() {
            self.blanks.push(it);
            if it == '\n' && self.has_other_names {
                self.position = LinePosition::LineStart;
            }
            return;
        }
        out.push_str(&mem::take(&mut self.blanks));
        out.push(it);
    }

    fn push_at_start(&mut self, it: char, out: &mut String) {
        if self.head.is_empty() && it.is_whitespace() {
            if self.position == LinePosition::LineStart || self.is_continuation {
                self.blanks.push(it);
                self.is_mid_line &= it != '\n';
            }
            return;
        }
        if it == '\n' {
            self.release_head(out);
            self.push_in_line(it, out);
            return;
        }
        self.head.push(it);
        if self.may_be_marker() {
            if it == ')' {
                self.head.clear();
            }
            return;
        }
        match self.names.match_prefix(&self.head) {
            PrefixMatch::Undecided => {}
            PrefixMatch::NotAName => self.release_head(out),
            PrefixMatch::Name(place) if place >= self.n_own && self.is_mid_line => {
                self.release_head(out);
            }
            PrefixMatch::Name(place) if place >= self.n_own => self.end_text(),
            PrefixMatch::Name(_) if self.position == LinePosition::LineStart => {
                self.release_head(out)
            }
            PrefixMatch::Name(_) => self.drop_own_name(),
        }
    }

    /// Returns whether the text so far is a marker or the beginning of one.
    fn may_be_marker(&self) -> bool {
        let is_start = self.position == LinePosition::Start && !self.is_continuation;
        let begins = |marker: &str| {
            let n = marker.len().min(self.head.len());
            self.head.as_bytes()[..n] == marker.as_bytes()[..n]
        };
        is_start && self.head.len() <= MAX_MARKER_BYTES && self.marker.is_some_and(begins)
    }

    /// Returns a line's beginning that is not a name; its trailing whitespace stays held back.
    fn release_head(&mut self, out: &mut String) {
        let head = mem::take(&mut self.head);
        let text = head.trim_end();
        if !text.is_empty() {
            out.push_str(&mem::take(&mut self.blanks));
            out.push_str(text);
        }
        self.blanks.push_str(&head[text.len()..]);
        self.position = LinePosition::InLine;
        self.is_mid_line = false;
    }

    fn drop_own_name(&mut self) {
        let head = mem::take(&mut self.head);
        let opening = name_prefix::decoration(&head);
        let is_closed = head[opening.len()..].contains('*');
        if opening.is_empty() || is_closed {
            self.position = LinePosition::Start;
        } else {
            opening.clone_into(&mut self.unclosed);
            self.position = LinePosition::AfterOwnName;
        }
    }

    /// `**Ada:** Hello` loses both pairs of asterisks, `*Ada: waves*` keeps both.
    fn push_after_own_name(&mut self, it: char, out: &mut String) {
        if it == '*' {
            self.head.push(it);
            if self.head == self.unclosed {
                self.head.clear();
                self.unclosed.clear();
                self.position = LinePosition::Start;
            }
            return;
        }
        if it.is_whitespace() {
            return;
        }
        self.position = LinePosition::Start;
        let line = mem::take(&mut self.unclosed) + &mem::take(&mut self.head);
        for held in line.chars().chain([it]) {
            self.push_char(held, out);
        }
    }

    fn end_text(&mut self) {
        self.head.clear();
        self.blanks.clear();
        self.position = LinePosition::Cut;
    }
}

/// PostgreSQL rejects NUL in a text; the other control characters have no use in a reply.
fn is_allowed(it: char) -> bool {
    matches!(it, '\n' | '\t') || !it.is_control()
}

#[cfg(test)]
#[path = "trim_tests.rs"]
mod tests;
