//! Separates a model's reasoning from its text if the text begins with `<think>…</think>` or with the
//! tags of a reasoning template.
//!
//! **Invariant:** the result does not depend on how the response was cut into pieces, and all
//! output in order is the whole input without the two tags.

use std::mem;

use crate::delta::Delta;

/// Tags with which models mark reasoning. No opening tag is a prefix of another.
const USUAL_TAGS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// State between two pieces of one response.
#[derive(Debug, Clone)]
pub struct ReasoningTagParser {
    /// Opening and closing tags; those of a template first.
    tags: Vec<(String, String)>,
    state: TagState,
    /// Possible beginning of a tag; never longer than a tag.
    held: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum TagState {
    /// Only white space so far.
    #[default]
    Start,
    /// Inside reasoning, until the closing tag with this index.
    Inside(usize),
    /// The rest is text.
    Done,
}

impl Default for ReasoningTagParser {
    fn default() -> Self {
        Self::with_tags(None)
    }
}

impl ReasoningTagParser {
    /// Creates a parser that knows these tags, too.
    pub fn with_tags(own: Option<&(String, String)>) -> Self {
        let usual = USUAL_TAGS.map(|(opening, closing)| (opening.to_owned(), closing.to_owned()));
        Self {
            tags: own.cloned().into_iter().chain(usual).collect(),
            state: TagState::default(),
            held: String::new(),
        }
    }

    /// Adds the next piece and returns the deltas that it completes.
    pub fn push(&mut self, piece: &str) -> Vec<Delta> {
        let mut rest = mem::take(&mut self.held);
        rest.push_str(piece);
        let mut out = Vec::new();
        if self.state == TagState::Start {
            let blank = rest.len() - rest.trim_start().len();
            out.extend(text(rest.drain(..blank).collect()));
            if rest.is_empty() || self.match_opening_tag(&mut rest) {
                self.held = rest;
                return out;
            }
        }
        if let TagState::Inside(index) = self.state {
            let closing = self.tags[index].1.as_str();
            let Some(at) = rest.find(closing) else {
                self.held = rest.split_off(rest.len() - overlap(&rest, closing));
                out.extend(reasoning(rest));
                return out;
            };
            out.extend(reasoning(rest[..at].to_owned()));
            rest.drain(..at + closing.len());
            self.state = TagState::Done;
        }
        out.extend(text(rest));
        out
    }

    /// Ends the response and returns the rest. Reasoning without a closing tag stays reasoning.
    pub fn finish(&mut self) -> Option<Delta> {
        let held = mem::take(&mut self.held);
        match mem::replace(&mut self.state, TagState::Done) {
            TagState::Inside(_) => reasoning(held),
            TagState::Start | TagState::Done => text(held),
        }
    }

    /// Checks the beginning of the text for an opening tag. Returns `true` if more text is needed.
    fn match_opening_tag(&mut self, rest: &mut String) -> bool {
        let mut tags = self.tags.iter();
        let found = tags.position(|(opening, _)| rest.starts_with(opening.as_str()));
        match found {
            Some(index) => {
                rest.drain(..self.tags[index].0.len());
                self.state = TagState::Inside(index);
                false
            }
            None if self
                .tags
                .iter()
                .any(|(it, _)| it.starts_with(rest.as_str())) =>
            {
                true
            }
            None => {
                self.state = TagState::Done;
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

/// Returns the length of the longest prefix of the tag with which the text ends.
fn overlap(text: &str, tag: &str) -> usize {
    (1..tag.len())
        .rev()
        .find(|n| text.ends_with(&tag[..*n]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq};
    use proptest::proptest;

    use super::ReasoningTagParser;
    use crate::delta::Delta;

    #[test]
    fn a_template_may_have_other_tags() {
        let tags = ("[THINK]".to_owned(), "[/THINK]".to_owned());
        let mut parser = ReasoningTagParser::with_tags(Some(&tags));

        let deltas: Vec<Delta> = ["[THI", "NK]hm[/TH", "INK]Hi"]
            .iter()
            .flat_map(|it| parser.push(it))
            .collect();

        let expected = [
            Delta::Reasoning("hm".to_owned()),
            Delta::Text("Hi".to_owned()),
        ];
        assert_eq!(deltas, expected);
        let mut usual = ReasoningTagParser::with_tags(Some(&tags));
        assert_eq!(
            usual.push("<think>a</think>b"),
            [
                Delta::Reasoning("a".to_owned()),
                Delta::Text("b".to_owned())
            ]
        );
    }

    /// Returns the text and the reasoning of these pieces.
    fn parse_pieces(pieces: &[&str]) -> (String, String) {
        let mut parser = ReasoningTagParser::default();
        let mut all: Vec<Delta> = pieces.iter().flat_map(|it| parser.push(it)).collect();
        all.extend(parser.finish());
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

    fn expected(text: &str, reasoning: &str) -> (String, String) {
        (text.to_owned(), reasoning.to_owned())
    }

    #[test]
    fn text_between_the_tags_is_reasoning() {
        for whole in ["<think>Hm.</think>Hi", "<thinking>Hm.</thinking>Hi"] {
            assert_eq!(parse_pieces(&[whole]), expected("Hi", "Hm."), "{whole}");
        }
        assert_eq!(
            parse_pieces(&["\n <thi", "nk>H", "m.</th", "ink>\n\nHi"]),
            expected("\n \n\nHi", "Hm.")
        );
        assert_eq!(parse_pieces(&["<think></think>Hi"]), expected("Hi", ""));
    }

    #[test]
    fn reasoning_without_an_end_stays_reasoning() {
        assert_eq!(parse_pieces(&["<think>Hm.</thi"]), expected("", "Hm.</thi"));
        assert_eq!(
            parse_pieces(&["<think>", "<b>", "</think"]),
            expected("", "<b></think")
        );
    }

    #[test]
    fn a_tag_after_other_text_is_text() {
        for whole in [
            "Hi <think>there</think>",
            "<thin",
            "<",
            "<b>bold</b>",
            "<thinker>",
            "</think>Hi",
        ] {
            assert_eq!(parse_pieces(&[whole]), expected(whole, ""), "{whole}");
        }
        assert_eq!(
            parse_pieces(&["<think>a</think>b<think>c</think>"]),
            expected("b<think>c</think>", "a")
        );
    }

    #[test]
    fn text_is_not_held_back_once_it_is_known_to_be_text() {
        let mut parser = ReasoningTagParser::default();

        assert_eq!(parser.push("<t"), []);
        assert_eq!(parser.push("a"), [Delta::Text("<ta".to_owned())]);
        assert_eq!(parser.push("<t"), [Delta::Text("<t".to_owned())]);
    }

    proptest! {
        #[test]
        fn the_result_does_not_depend_on_where_pieces_are_cut(
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

            prop_assert_eq!(parse_pieces(&pieces), parse_pieces(&[&whole]));
        }
    }
}
