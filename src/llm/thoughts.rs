//! Takes what a model thinks aloud out of its text: `<think>…</think>` at the beginning of it.
//!
//! **Invariant:** what is text and what is reasoning does not depend on where the pieces were cut,
//! and all pieces in order are the whole, without the two tags.

use std::mem;

use crate::llm::delta::Delta;

/// The tags that models were trained to think between. No opening one begins another.
const TAGS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// The state between two pieces of one answer.
#[derive(Debug, Clone, Default)]
pub struct Thoughts {
    place: Place,
    /// What may be the beginning of a tag; never longer than one.
    held: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    /// Only white space came yet.
    #[default]
    Start,
    /// Inside, up to this tag.
    Inside(&'static str),
    /// Everything is text from here on.
    Past,
}

impl Thoughts {
    /// Takes the next piece, gives what can be told of it.
    pub fn push(&mut self, piece: &str) -> Vec<Delta> {
        let mut rest = mem::take(&mut self.held);
        rest.push_str(piece);
        let mut out = Vec::new();
        if self.place == Place::Start {
            let blank = rest.len() - rest.trim_start().len();
            out.extend(text(rest.drain(..blank).collect()));
            if rest.is_empty() || self.is_open(&mut rest) {
                self.held = rest;
                return out;
            }
        }
        if let Place::Inside(closing) = self.place {
            let Some(at) = rest.find(closing) else {
                self.held = rest.split_off(rest.len() - overlap(&rest, closing));
                out.extend(reasoning(rest));
                return out;
            };
            out.extend(reasoning(rest[..at].to_owned()));
            rest.drain(..at + closing.len());
            self.place = Place::Past;
        }
        out.extend(text(rest));
        out
    }

    /// Ends the answer, gives what was held back. Reasoning without an end stays reasoning.
    pub fn finish(&mut self) -> Option<Delta> {
        let held = mem::take(&mut self.held);
        match mem::replace(&mut self.place, Place::Past) {
            Place::Inside(_) => reasoning(held),
            Place::Start | Place::Past => text(held),
        }
    }

    /// Judges the beginning of the text. `true`: it may still become a tag.
    fn is_open(&mut self, rest: &mut String) -> bool {
        let found = TAGS.iter().find(|(opening, _)| rest.starts_with(opening));
        match found {
            Some((opening, closing)) => {
                rest.drain(..opening.len());
                self.place = Place::Inside(closing);
                false
            }
            None if TAGS.iter().any(|(it, _)| it.starts_with(rest.as_str())) => true,
            None => {
                self.place = Place::Past;
                false
            }
        }
    }
}

fn text(text: String) -> Option<Delta> {
    (!text.is_empty()).then_some(Delta::Text(text))
}

fn reasoning(text: String) -> Option<Delta> {
    (!text.is_empty()).then_some(Delta::Reasoning(text))
}

/// How much of the tag's beginning stands at the end of the text.
fn overlap(text: &str, tag: &str) -> usize {
    (1..tag.len())
        .rev()
        .find(|n| text.ends_with(&tag[..*n]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::any;
    use proptest::prelude::prop_assert_eq;
    use proptest::proptest;

    use super::Thoughts;
    use crate::llm::delta::Delta;

    /// What is told of these pieces: text, and reasoning.
    fn told(pieces: &[&str]) -> (String, String) {
        let mut thoughts = Thoughts::default();
        let mut all: Vec<Delta> = pieces.iter().flat_map(|it| thoughts.push(it)).collect();
        all.extend(thoughts.finish());
        let (mut text, mut reasoning) = (String::new(), String::new());
        for delta in all {
            match delta {
                Delta::Text(it) => text.push_str(&it),
                Delta::Reasoning(it) => reasoning.push_str(&it),
                other => panic!("{other:?}"),
            }
        }
        (text, reasoning)
    }

    fn both(text: &str, reasoning: &str) -> (String, String) {
        (text.to_owned(), reasoning.to_owned())
    }

    #[test]
    fn what_stands_between_the_tags_is_reasoning() {
        for whole in ["<think>Hm.</think>Hi", "<thinking>Hm.</thinking>Hi"] {
            assert_eq!(told(&[whole]), both("Hi", "Hm."), "{whole}");
        }
        assert_eq!(
            told(&["\n <thi", "nk>H", "m.</th", "ink>\n\nHi"]),
            both("\n \n\nHi", "Hm.")
        );
        assert_eq!(told(&["<think></think>Hi"]), both("Hi", ""));
    }

    #[test]
    fn reasoning_without_an_end_stays_reasoning() {
        assert_eq!(told(&["<think>Hm.</thi"]), both("", "Hm.</thi"));
        assert_eq!(told(&["<think>", "<b>", "</think"]), both("", "<b></think"));
    }

    #[test]
    fn a_tag_further_on_is_text() {
        for whole in [
            "Hi <think>there</think>",
            "<thin",
            "<",
            "<b>bold</b>",
            "<thinker>",
            "</think>Hi",
        ] {
            assert_eq!(told(&[whole]), both(whole, ""), "{whole}");
        }
        assert_eq!(
            told(&["<think>a</think>b<think>c</think>"]),
            both("b<think>c</think>", "a")
        );
    }

    #[test]
    fn text_is_not_held_back_once_it_is_known_to_be_text() {
        let mut thoughts = Thoughts::default();

        assert_eq!(thoughts.push("<t"), []);
        assert_eq!(thoughts.push("a"), [Delta::Text("<ta".to_owned())]);
        assert_eq!(thoughts.push("<t"), [Delta::Text("<t".to_owned())]);
    }

    proptest! {
        #[test]
        fn it_does_not_depend_on_where_it_is_cut(
            parts in proptest::collection::vec(
                proptest::sample::select(vec![
                    "<think>", "</think>", "<thinking>", "</thinking>", "<", "</", "think>", " \n", "é漢🦀", "Hi",
                ]),
                0..8,
            ),
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..12),
        ) {
            let whole = parts.concat();
            let places: Vec<usize> = whole.char_indices().map(|(at, _)| at).chain([whole.len()]).collect();
            let mut cuts: Vec<usize> = cuts.iter().map(|it| places[it.index(places.len())]).collect();
            cuts.extend([0, whole.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&str> = cuts.windows(2).map(|it| &whole[it[0]..it[1]]).collect();

            prop_assert_eq!(told(&pieces), told(&[&whole]));
        }
    }
}
