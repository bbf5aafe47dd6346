//! Cleans what a model says while it says it: control characters, white space at both ends, the
//! speaker's own `Name:`, and everything from another member's `Name:` on.
//!
//! **Invariant:** what [`Trim::push`] and [`Trim::finish`] give, put together, is the final text:
//! nothing given is ever taken back, and the text does not depend on how it was cut into pieces.
//! For that, white space is held back until something follows it, and the beginning of a line
//! until it can no longer be a name.

use std::mem;

use crate::generation::names;
use crate::generation::names::Names;
use crate::generation::names::Verdict;

/// The state between two pieces of one text.
#[derive(Debug, Clone)]
pub struct Trim {
    /// The speaker's own names first, then those of the others.
    names: Names,
    n_own: usize,
    cuts: bool,
    place: Place,
    /// White space that counts only if text follows it.
    blanks: String,
    /// The beginning of a line that may be a name.
    head: String,
    /// Asterisks opened before the own name, to be closed right after its colon.
    unclosed: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nothing was given yet.
    Start,
    /// Right after the own name's colon.
    AfterOwnName,
    LineStart,
    InLine,
    /// Another member's line began: the text is over.
    Cut,
    /// Nothing is cleaned.
    Verbatim,
}

impl Trim {
    /// For a speaker called one of `own`, in a room with `others`. Both with their aliases.
    pub fn new<S: AsRef<str>>(own: &[S], others: &[S]) -> Self {
        let all = own.iter().chain(others).map(AsRef::as_ref);
        Self {
            names: Names::new(all),
            n_own: own.len(),
            cuts: !Names::new(others).is_empty(),
            place: Place::Start,
            blanks: String::new(),
            head: String::new(),
            unclosed: String::new(),
        }
    }

    /// For text that nobody in particular says: only control characters and white space go.
    pub fn nameless() -> Self {
        Self::new::<&str>(&[], &[])
    }

    /// For text that a program reads: nothing goes but U+0000, which no database takes.
    pub fn verbatim() -> Self {
        Self {
            place: Place::Verbatim,
            ..Self::nameless()
        }
    }

    /// Takes the next piece, gives what may be shown.
    pub fn push(&mut self, piece: &str) -> String {
        if self.place == Place::Verbatim {
            return piece.replace('\0', "");
        }
        let mut out = String::new();
        for it in piece.chars().filter(|it| is_allowed(*it)) {
            self.push_char(it, &mut out);
        }
        out
    }

    /// Ends the text, gives what was held back and is no white space.
    pub fn finish(&mut self) -> String {
        let mut out = String::new();
        // Asterisks around nothing but the own name are no text.
        if !matches!(self.place, Place::Cut | Place::AfterOwnName) {
            self.release_head(&mut out);
        }
        self.blanks.clear();
        out
    }

    /// Whether a place in what is pushed is the same place in what is given.
    pub fn is_verbatim(&self) -> bool {
        self.place == Place::Verbatim
    }

    /// Whether another member's line ended the text: nothing that follows will be given.
    pub fn is_cut(&self) -> bool {
        self.place == Place::Cut
    }

    fn push_char(&mut self, it: char, out: &mut String) {
        match self.place {
            Place::Cut | Place::Verbatim => {}
            Place::AfterOwnName => self.push_after_own_name(it, out),
            Place::InLine => self.push_in_line(it, out),
            Place::Start | Place::LineStart => self.push_at_start(it, out),
        }
    }

    fn push_in_line(&mut self, it: char, out: &mut String) {
        if it.is_whitespace() {
            self.blanks.push(it);
            if it == '\n' && self.cuts {
                self.place = Place::LineStart;
            }
            return;
        }
        out.push_str(&mem::take(&mut self.blanks));
        out.push(it);
    }

    fn push_at_start(&mut self, it: char, out: &mut String) {
        if self.head.is_empty() && it.is_whitespace() {
            if self.place == Place::LineStart {
                self.blanks.push(it);
            }
            return;
        }
        if it == '\n' {
            self.release_head(out);
            self.push_in_line(it, out);
            return;
        }
        self.head.push(it);
        match self.names.judge(&self.head) {
            Verdict::Open => {}
            Verdict::Plain => self.release_head(out),
            Verdict::Name(place) if place >= self.n_own => self.cut(),
            Verdict::Name(_) if self.place == Place::LineStart => self.release_head(out),
            Verdict::Name(_) => self.drop_own_name(),
        }
    }

    /// Gives the beginning of a line that is no name; the white space at its end stays held.
    fn release_head(&mut self, out: &mut String) {
        let head = mem::take(&mut self.head);
        let text = head.trim_end();
        if !text.is_empty() {
            out.push_str(&mem::take(&mut self.blanks));
            out.push_str(text);
        }
        self.blanks.push_str(&head[text.len()..]);
        self.place = Place::InLine;
    }

    fn drop_own_name(&mut self) {
        let head = mem::take(&mut self.head);
        let opening = names::decoration(&head);
        let is_closed = head[opening.len()..].contains('*');
        if opening.is_empty() || is_closed {
            self.place = Place::Start;
        } else {
            opening.clone_into(&mut self.unclosed);
            self.place = Place::AfterOwnName;
        }
    }

    /// `**Ada:** Hello` loses both pairs of asterisks, `*Ada: waves*` keeps both.
    fn push_after_own_name(&mut self, it: char, out: &mut String) {
        if it == '*' {
            self.head.push(it);
            if self.head == self.unclosed {
                self.head.clear();
                self.unclosed.clear();
                self.place = Place::Start;
            }
            return;
        }
        if it.is_whitespace() {
            return;
        }
        self.place = Place::Start;
        let line = mem::take(&mut self.unclosed) + &mem::take(&mut self.head);
        for held in line.chars().chain([it]) {
            self.push_char(held, out);
        }
    }

    fn cut(&mut self) {
        self.head.clear();
        self.blanks.clear();
        self.place = Place::Cut;
    }
}

/// PostgreSQL refuses NUL in a text, and no reader misses the other control characters.
fn is_allowed(it: char) -> bool {
    matches!(it, '\n' | '\t') || !it.is_control()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::any;
    use proptest::prelude::prop_assert;
    use proptest::prelude::prop_assert_eq;
    use proptest::proptest;
    use proptest::sample::Index;
    use proptest::sample::select;

    use super::Trim;

    fn ada() -> Trim {
        Trim::new(&["Ada", "Countess"], &["Bob", "Sir Lancelot"])
    }

    fn clean(mut trim: Trim, text: &str) -> String {
        trim.push(text) + &trim.finish()
    }

    #[test]
    fn white_space_goes_at_both_ends_and_stays_inside() {
        assert_eq!(
            clean(ada(), " \n\t Hello.\n\n  You there? \n "),
            "Hello.\n\n  You there?"
        );
    }

    #[test]
    fn what_a_program_reads_stays_as_it_is() {
        let text = " \t{\r\n  \"a\": 1\n}\u{85}\n";

        assert_eq!(clean(Trim::verbatim(), text), text);
        assert_eq!(clean(Trim::verbatim(), "a\0b"), "ab");
    }

    #[test]
    fn control_characters_go_and_line_breaks_and_tabs_stay() {
        assert_eq!(
            clean(ada(), "a\0b\u{1b}[1mc\r\nd\te\u{85}f\u{7f}"),
            "ab[1mc\nd\tef"
        );
    }

    #[test]
    fn the_own_name_goes_at_the_beginning_only() {
        for own in [
            "Ada: ",
            "ada:",
            " **Ada:** ",
            "**Ada**: ",
            "Countess:\n\n",
            "Ada: Ada: ",
        ] {
            let text = format!("{own}Hello.\nAda: I said hello.");

            assert_eq!(clean(ada(), &text), "Hello.\nAda: I said hello.", "{own:?}");
        }
    }

    #[test]
    fn emphasis_around_the_own_line_stays_whole() {
        assert_eq!(clean(ada(), "*Ada: waves.* Hello."), "*waves.* Hello.");
        assert_eq!(clean(ada(), "**Ada: **"), "");
    }

    #[test]
    fn text_is_cut_where_another_member_begins_to_speak() {
        for line in [
            "Bob: Hi!",
            "bob:",
            "**Bob:** Hi!",
            "  Bob: Hi!",
            "Sir Lancelot: Ho!",
            "BOB：x",
        ] {
            let mut trim = ada();

            let text = trim.push(&format!("Hello.\n\n{line}\nMore."));

            assert_eq!(text, "Hello.", "{line:?}");
            assert!(trim.is_cut());
            assert_eq!(trim.push("Even more."), "");
            assert_eq!(trim.finish(), "");
        }
    }

    #[test]
    fn a_text_that_begins_as_another_member_is_cut_to_nothing() {
        assert_eq!(clean(ada(), "Bob: Hello, I am Bob."), "");
        assert_eq!(clean(ada(), "Ada: Bob: Hello."), "");
        assert_eq!(clean(ada(), "*Ada: Bob: Hello."), "");
    }

    #[test]
    fn a_name_inside_a_line_or_without_a_colon_cuts_nothing() {
        let text = "I told Bob: no.\nBob laughed.\nBobby: who?\nSir\nLancelot: hm.";

        assert_eq!(clean(ada(), text), text);
    }

    #[test]
    fn alone_in_a_room_nothing_is_cut() {
        let trim = Trim::new(&["Ada"], &[]);

        assert_eq!(clean(trim, "Ada: One.\nBob: Two."), "One.\nBob: Two.");
        assert_eq!(clean(Trim::nameless(), " Ada: One. "), "Ada: One.");
    }

    #[test]
    fn only_what_may_still_change_is_held_back() {
        let mut trim = ada();

        assert_eq!(trim.push("Ad"), "");
        assert_eq!(trim.push("d this"), "Add this");
        assert_eq!(trim.push(" \nB"), "");
        assert_eq!(trim.push("ox"), " \nBox");
        assert_eq!(trim.push("\nBob"), "");
        assert_eq!(trim.finish(), "\nBob");
    }

    proptest! {
        #[test]
        fn the_text_does_not_depend_on_how_it_was_cut(
            words in proptest::collection::vec(
                select(vec![
                    "Ada", "Bob", ":", "：", "*", "**", "\n", " ", "\t", "\0", "\r\n", "é", "e\u{301}",
                    "Sir ", "Lancelot", "hello", "🦀", "B",
                ]),
                0..30,
            ),
            cuts in proptest::collection::vec(any::<Index>(), 0..10),
        ) {
            let raw = words.concat();
            let mut cuts: Vec<usize> =
                cuts.iter().map(|it| raw.floor_char_boundary(it.index(raw.len() + 1))).collect();
            cuts.extend([0, raw.len()]);
            cuts.sort_unstable();

            let whole = clean(ada(), &raw);
            let mut trim = ada();
            let mut pieces: String = cuts.windows(2).map(|it| trim.push(&raw[it[0]..it[1]])).collect();
            pieces += &trim.finish();

            prop_assert_eq!(&pieces, &whole);
            prop_assert_eq!(whole.trim(), &whole);
            prop_assert!(!whole.chars().any(|it| it.is_control() && it != '\n' && it != '\t'));
            prop_assert_eq!(clean(ada(), &whole), whole);
        }
    }
}
