//! Extracts a one-line excerpt of a text around the first search hit, with the positions of all
//! hits in the excerpt.

use serde::Serialize;
use utoipa::ToSchema;

/// Length before the first hit, and in total, in characters.
const CHARS_BEFORE: usize = 40;
const MAX_CHARS: usize = 160;

/// An excerpt of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Snippet {
    /// Plain text; omitted parts are replaced by an ellipsis.
    pub snippet: String,
    /// Start and end of each hit in the snippet, in UTF-16 units as in browsers.
    #[schema(value_type = Vec<Vec<i64>>)]
    pub marks: Vec<[usize; 2]>,
}

/// Returns the excerpt of `text` around the first of `words`, ignoring case.
pub fn extract(text: &str, words: &[String]) -> Snippet {
    let chars: Vec<char> = text.chars().map(flatten_whitespace).collect();
    let words: Vec<Vec<char>> = words.iter().map(|it| lowercase(it)).collect();
    let lower: Vec<char> = chars.iter().map(|it| lowercase_char(*it)).collect();
    let first = (0..lower.len()).find(|at| match_length_at(&lower[*at..], &words).is_some());
    let from = match first.unwrap_or(0).saturating_sub(CHARS_BEFORE) {
        // An ellipsis is not worth it for a few characters.
        ..4 => 0,
        from => from,
    };
    let to = (from + MAX_CHARS).min(chars.len());
    let mut out = Snippet {
        snippet: String::new(),
        marks: Vec::new(),
    };
    let mut n_units = 0;
    if from > 0 {
        out.snippet.push('…');
        n_units = 1;
    }
    let mut marked_to = from;
    for at in from..to {
        if at >= marked_to
            && let Some(length) = match_length_at(&lower[at..], &words)
        {
            marked_to = (at + length).min(to);
            let n_marked: usize = chars[at..marked_to].iter().map(|it| it.len_utf16()).sum();
            out.marks.push([n_units, n_units + n_marked]);
        }
        out.snippet.push(chars[at]);
        n_units += chars[at].len_utf16();
    }
    if to < chars.len() {
        out.snippet.push('…');
    }
    out
}

/// Returns the length of the longest word that starts here.
fn match_length_at(text: &[char], words: &[Vec<char>]) -> Option<usize> {
    let matching = words.iter().filter(|it| text.starts_with(it));
    matching.map(Vec::len).max()
}

fn lowercase(word: &str) -> Vec<char> {
    word.chars().map(lowercase_char).collect()
}

/// Maps to exactly one character, so that positions do not shift.
fn lowercase_char(c: char) -> char {
    let mut all = c.to_lowercase();
    match (all.next(), all.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

/// Replaces line breaks and control characters, because a snippet is one line.
fn flatten_whitespace(c: char) -> char {
    if c.is_whitespace() || c.is_control() {
        ' '
    } else {
        c
    }
}

#[cfg(test)]
mod tests {
    use super::{Snippet, extract};

    fn marked(it: &Snippet) -> Vec<String> {
        let units: Vec<u16> = it.snippet.encode_utf16().collect();
        let marks = it.marks.iter();
        marks
            .map(|[from, to]| String::from_utf16(&units[*from..*to]).unwrap())
            .collect()
    }

    fn snippet_of(text: &str, words: &[&str]) -> Snippet {
        let words: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
        extract(text, &words)
    }

    #[test]
    fn a_short_text_is_shown_whole_with_every_word_marked() {
        let found = snippet_of("The red Door and the RED house", &["red", "door"]);

        assert_eq!(found.snippet, "The red Door and the RED house");
        assert_eq!(marked(&found), ["red", "Door", "RED"]);
    }

    #[test]
    fn a_long_text_is_cut_around_the_first_word() {
        let text = format!("{} lantern {}", "far ".repeat(100), "away ".repeat(100));

        let found = snippet_of(&text, &["lantern"]);

        assert!(found.snippet.starts_with('…') && found.snippet.ends_with('…'));
        assert_eq!(found.snippet.chars().count(), 162);
        assert_eq!(marked(&found), ["lantern"]);
    }

    #[test]
    fn marks_are_utf16_offsets() {
        let found = snippet_of("👩‍🚀 你好，月亮湖\nİstanbul", &["月亮", "i̇stanbul"]);

        assert_eq!(marked(&found), ["月亮"]);
        assert!(found.snippet.contains("月亮湖 İstanbul"));
    }

    #[test]
    fn a_text_without_the_word_is_shown_from_its_beginning() {
        let found = snippet_of("nothing here", &["elsewhere"]);

        assert_eq!(
            (found.snippet.as_str(), found.marks.len()),
            ("nothing here", 0)
        );
    }
}
