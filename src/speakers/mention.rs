//! Who is called by name in a text.
//!
//! Names are compared folded and on word boundaries, in any script. Three readings claim their
//! places in the text one after the other, and a place that is claimed is not read again: `@name`
//! of those mentioned by id; full names and aliases, the longest first; single words of longer names.
//! **Invariant:** the name of a muted one is claimed like any other but wakes nobody.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization;
use unicode_script::{Script, UnicodeScript};
use unicode_segmentation::UnicodeSegmentation;

use crate::ids::MembershipId;
use crate::speakers::selection::Candidate;
use crate::speakers::text_folding::{FoldedText, continues_word, fold_text};

/// One candidate who was called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// The seat that was called.
    pub id: MembershipId,
    /// The name, or the word of it, by which it was called.
    pub name: String,
}

/// The schedulable candidates whom `text` names, in the order in which they first stand in it, each
/// once. Those of `explicit` (mentioned by id beside the text) whose `@name` is not in the text come
/// before all others.
pub fn find(text: &str, explicit: &[MembershipId], candidates: &[Candidate]) -> Vec<Mention> {
    let text = FoldedText::new(text);
    let mut found = explicit_mentions(&text, explicit, candidates);
    let mut claimed: Vec<Range<usize>> = found.iter().filter_map(|it| it.range.clone()).collect();
    for names in [full_names(candidates), single_words(candidates)] {
        let next = scan(&text, &names, &claimed);
        claimed.extend(next.iter().filter_map(|it| it.range.clone()));
        found.extend(next);
    }
    found.sort_by_key(|it| it.range.as_ref().map(|place| place.start));
    to_mentions(found)
}

/// Something a candidate answers to.
struct CandidateName<'a> {
    candidate: &'a Candidate,
    original: String,
    folded: String,
}

/// A name that was read, and where; no place for one that is mentioned by id alone.
struct NameMatch<'a> {
    candidate: &'a Candidate,
    name: String,
    range: Option<Range<usize>>,
}

/// Those mentioned by id: each at its first free `@name`, else without a place.
fn explicit_mentions<'a>(
    text: &FoldedText,
    explicit: &[MembershipId],
    candidates: &'a [Candidate],
) -> Vec<NameMatch<'a>> {
    let mut mentioned: Vec<&Candidate> = Vec::new();
    for id in explicit {
        let candidate = candidates.iter().find(|it| it.id == *id);
        mentioned.extend(candidate.filter(|it| mentioned.iter().all(|other| other.id != it.id)));
    }
    let mut names: Vec<CandidateName> = mentioned.iter().flat_map(|it| names_of(it)).collect();
    names.sort_by_key(|it| std::cmp::Reverse(it.folded.chars().count()));

    let mut ranges: Vec<(MembershipId, Range<usize>)> = Vec::new();
    for name in &names {
        let has_place = ranges.iter().any(|(id, _)| *id == name.candidate.id);
        if !has_place && let Some(place) = find_free_at_name(text, &name.folded, &ranges) {
            ranges.push((name.candidate.id, place));
        }
    }
    let place_of = |id| ranges.iter().find(|it| it.0 == id).map(|it| it.1.clone());
    mentioned
        .into_iter()
        .map(|candidate| NameMatch {
            candidate,
            name: candidate.names.first().cloned().unwrap_or_default(),
            range: place_of(candidate.id),
        })
        .collect()
}

/// The first `@name` in the text that no other explicit mention has taken.
fn find_free_at_name(
    text: &FoldedText,
    folded: &str,
    taken: &[(MembershipId, Range<usize>)],
) -> Option<Range<usize>> {
    let pattern = format!("@{folded}");
    text.text
        .match_indices(&pattern)
        .map(|(at, _)| at..at + pattern.len())
        .find(|place| text.can_end_at(place.end) && taken.iter().all(|it| !overlap(&it.1, place)))
}

/// Reads the text from left to right and takes, at each free place, the first of `names` that
/// stands there.
fn scan<'a>(
    text: &FoldedText,
    names: &[CandidateName<'a>],
    claimed: &[Range<usize>],
) -> Vec<NameMatch<'a>> {
    let mut found = Vec::new();
    let mut free_from = 0;
    for (at, _) in text.text.char_indices() {
        if at < free_from || !text.can_begin_at(at) {
            continue;
        }
        let matched = names.iter().find(|name| {
            let place = at..at + name.folded.len();
            text.text[at..].starts_with(&name.folded)
                && text.can_end_at(place.end)
                && claimed.iter().all(|it| !overlap(it, &place))
        });
        if let Some(name) = matched {
            free_from = at + name.folded.len();
            found.push(NameMatch {
                candidate: name.candidate,
                name: name.original.clone(),
                range: Some(at..free_from),
            });
        }
    }
    found
}

/// Every full name and alias, in the order in which they win a place: the longest first; of equals
/// one who can be woken, then by position.
fn full_names(candidates: &[Candidate]) -> Vec<CandidateName<'_>> {
    sort_by_precedence(candidates.iter().flat_map(names_of).collect())
}

/// The single words by which the owners of longer names may be called.
fn single_words(candidates: &[Candidate]) -> Vec<CandidateName<'_>> {
    let wakeable = candidates.iter().filter(|it| it.is_schedulable);
    let words = wakeable.flat_map(|candidate| {
        let of_name = |name: &String| callable_words(name);
        candidate
            .names
            .iter()
            .flat_map(of_name)
            .map(move |word| CandidateName {
                candidate,
                folded: fold_text(&word),
                original: word,
            })
    });
    sort_by_precedence(words.collect())
}

fn sort_by_precedence(mut names: Vec<CandidateName>) -> Vec<CandidateName> {
    names.sort_by_key(|it| {
        let Candidate {
            id,
            position,
            is_schedulable: schedulable,
            ..
        } = it.candidate;
        let length = std::cmp::Reverse(it.folded.chars().count());
        (length, !schedulable, *position, *id)
    });
    names
}

/// The names of one candidate that can be recognized: not blank, and more than punctuation.
fn names_of(candidate: &Candidate) -> impl Iterator<Item = CandidateName<'_>> {
    let names = candidate.names.iter().map(move |name| CandidateName {
        candidate,
        original: name.trim().to_owned(),
        folded: fold_text(name),
    });
    names.filter(|it| !it.folded.chars().all(is_punctuation))
}

/// The words of a longer name that count alone: two letters or more, the first a capital or of a
/// script that has none. "the" does not wake Flux the Cat, nor "I" Henry I.
fn callable_words(name: &str) -> Vec<String> {
    let name: String = name.nfkc().collect();
    let counts = |it: &&&str| it.chars().count() > 1 && it.starts_with(is_capital);
    words(&name)
        .iter()
        .filter(counts)
        .map(|it| (*it).to_owned())
        .collect()
}

/// The words of a name. Where letters run on without spaces, a word ends where something else
/// begins: 孫 悟空 is two words, not three.
fn words(name: &str) -> Vec<&str> {
    let mut words: Vec<Range<usize>> = Vec::new();
    for (at, word) in name.unicode_word_indices() {
        let glued = |last: &Range<usize>| {
            let neighbors = [name[..at].chars().next_back(), word.chars().next()];
            last.end == at && neighbors.into_iter().flatten().any(continues_word)
        };
        match words.last_mut() {
            Some(last) if glued(last) => last.end = at + word.len(),
            _ => words.push(at..at + word.len()),
        }
    }
    words.into_iter().map(|it| &name[it]).collect()
}

/// A capital, or a letter of a script that has none. Georgian has capitals in Unicode, but names
/// are not written with them.
fn is_capital(letter: char) -> bool {
    let has_no_case = letter.is_alphabetic() && !letter.is_lowercase() && !letter.is_uppercase();
    letter.is_uppercase() || has_no_case || letter.script() == Script::Georgian
}

fn is_punctuation(letter: char) -> bool {
    letter.is_whitespace()
        || letter.is_ascii_punctuation()
        || matches!(letter, '\u{2000}'..='\u{206F}' | '\u{3000}'..='\u{303F}')
            && letter.script() != Script::Han
}

fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

/// Each one who can be woken, once, at its first place.
fn to_mentions(found: Vec<NameMatch>) -> Vec<Mention> {
    let mut mentions: Vec<Mention> = Vec::new();
    for it in found {
        let id = it.candidate.id;
        if it.candidate.is_schedulable && mentions.iter().all(|other| other.id != id) {
            mentions.push(Mention { id, name: it.name });
        }
    }
    mentions
}

#[cfg(test)]
#[path = "mention_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "mention_script_tests.rs"]
mod script_tests;
