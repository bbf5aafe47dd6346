//! A piece of a text around what was looked for in it, as plain text, with the places of the words.

use serde::Serialize;
use utoipa::ToSchema;

/// How much is shown before the first word, and in all, in characters.
const BEFORE: usize = 40;
const WHOLE: usize = 160;

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Snippet {
    /// Plain text; an ellipsis stands for what is left out.
    pub snippet: String,
    /// Where the words are in it: from and to, in UTF-16 units, as a browser counts.
    #[schema(value_type = Vec<Vec<i64>>)]
    pub marks: Vec<[usize; 2]>,
}

/// The piece of `text` around the first of `words`. Capitals do not matter.
pub fn around(text: &str, words: &[String]) -> Snippet {
    let chars: Vec<char> = text.chars().map(flat).collect();
    let words: Vec<Vec<char>> = words.iter().map(|it| folded(it)).collect();
    let lower: Vec<char> = chars.iter().map(|it| lower(*it)).collect();
    let first = (0..lower.len()).find(|at| length_at(&lower[*at..], &words).is_some());
    let from = match first.unwrap_or(0).saturating_sub(BEFORE) {
        // To save a few characters is not worth an ellipsis.
        ..4 => 0,
        from => from,
    };
    let to = (from + WHOLE).min(chars.len());
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
            && let Some(length) = length_at(&lower[at..], &words)
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

/// How long the longest word is that begins here.
fn length_at(text: &[char], words: &[Vec<char>]) -> Option<usize> {
    let here = words.iter().filter(|it| text.starts_with(it));
    here.map(Vec::len).max()
}

fn folded(word: &str) -> Vec<char> {
    word.chars().map(lower).collect()
}

/// One character for one: places stay where they are.
fn lower(c: char) -> char {
    let mut all = c.to_lowercase();
    match (all.next(), all.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

/// A snippet is one line.
fn flat(c: char) -> char {
    if c.is_whitespace() || c.is_control() {
        ' '
    } else {
        c
    }
}

#[cfg(test)]
mod tests {
    use super::Snippet;
    use super::around;

    fn marked(it: &Snippet) -> Vec<String> {
        let units: Vec<u16> = it.snippet.encode_utf16().collect();
        let marks = it.marks.iter();
        marks
            .map(|[from, to]| String::from_utf16(&units[*from..*to]).unwrap())
            .collect()
    }

    fn look(text: &str, words: &[&str]) -> Snippet {
        let words: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
        around(text, &words)
    }

    #[test]
    fn a_short_text_is_told_whole_with_every_word_marked() {
        let found = look("The red Door and the RED house", &["red", "door"]);

        assert_eq!(found.snippet, "The red Door and the RED house");
        assert_eq!(marked(&found), ["red", "Door", "RED"]);
    }

    #[test]
    fn a_long_text_is_cut_around_the_first_word() {
        let text = format!("{} lantern {}", "far ".repeat(100), "away ".repeat(100));

        let found = look(&text, &["lantern"]);

        assert!(found.snippet.starts_with('…') && found.snippet.ends_with('…'));
        assert_eq!(found.snippet.chars().count(), 162);
        assert_eq!(marked(&found), ["lantern"]);
    }

    #[test]
    fn places_are_told_as_a_browser_counts() {
        let found = look("👩‍🚀 你好，月亮湖\nİstanbul", &["月亮", "i̇stanbul"]);

        assert_eq!(marked(&found), ["月亮"]);
        assert!(found.snippet.contains("月亮湖 İstanbul"));
    }

    #[test]
    fn a_text_without_the_word_begins_at_its_beginning() {
        let found = look("nothing here", &["elsewhere"]);

        assert_eq!(
            (found.snippet.as_str(), found.marks.len()),
            ("nothing here", 0)
        );
    }
}
