//! Finds the characters that a message mentions: by name or alias in its text, or explicitly by id.
//!
//! Names are compared folded and at word boundaries, in any script. Three passes claim ranges of
//! the text, and a claimed range is not matched again: first `@name` of explicit mentions (by id),
//! then full names and aliases (longest first), then single words of longer names. **Invariant:**
//! the name of a muted member claims its range like any other, but is not returned.

use std::ops::Range;

use base::ids::MembershipId;
use unicode_normalization::UnicodeNormalization;
use unicode_script::{Script, UnicodeScript};
use unicode_segmentation::UnicodeSegmentation;

use crate::speakers::selection::Candidate;
use crate::speakers::text_folding::{FoldedText, continues_word, fold_text};

/// A candidate that the text mentions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// The mentioned membership.
    pub id: MembershipId,
    /// The name, alias or single word that matched.
    pub name: String,
}

/// Returns the schedulable candidates that `text` mentions, each once, in the order of their first
/// match. Members of `explicit` (mentioned by id, outside the text) whose `@name` is not in the
/// text come first.
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

/// A name, alias or word by which a candidate can be mentioned.
struct CandidateName<'a> {
    candidate: &'a Candidate,
    original: String,
    folded: String,
}

/// A matched name and its range in the text; no range for a mention by id alone.
struct NameMatch<'a> {
    candidate: &'a Candidate,
    name: String,
    range: Option<Range<usize>>,
}

/// Returns the explicit mentions, each with its first unclaimed `@name`, otherwise without a range.
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
        let has_range = ranges.iter().any(|(id, _)| *id == name.candidate.id);
        if !has_range && let Some(place) = find_free_at_name(text, &name.folded, &ranges) {
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

/// Returns the first `@name` in the text that no other explicit mention has claimed.
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

/// Scans the text from left to right; at each unclaimed position the first matching one of `names`
/// claims its range.
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

/// Returns all full names and aliases by precedence: longest first; among equals, schedulable
/// candidates first, then by position.
fn full_names(candidates: &[Candidate]) -> Vec<CandidateName<'_>> {
    sort_by_precedence(candidates.iter().flat_map(names_of).collect())
}

/// Returns the single words by which schedulable candidates with longer names can be mentioned.
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

/// Returns the names of a candidate that can be matched: not blank, and not only punctuation.
fn names_of(candidate: &Candidate) -> impl Iterator<Item = CandidateName<'_>> {
    let names = candidate.names.iter().map(move |name| CandidateName {
        candidate,
        original: name.trim().to_owned(),
        folded: fold_text(name),
    });
    names.filter(|it| !it.folded.chars().all(is_punctuation))
}

/// Returns the words of a longer name that count alone: at least two letters, the first a capital
/// or of a script without case. "the" does not match Flux the Cat, nor "I" Henry I.
fn callable_words(name: &str) -> Vec<String> {
    let name: String = name.nfkc().collect();
    let counts = |it: &&&str| it.chars().count() > 1 && it.starts_with(is_capital);
    words(&name)
        .iter()
        .filter(counts)
        .map(|it| (*it).to_owned())
        .collect()
}

/// Splits a name into words. In scripts without spaces between words, a word ends only where other
/// characters begin: 孫 悟空 is two words, not three.
fn words(name: &str) -> Vec<&str> {
    let mut words: Vec<Range<usize>> = Vec::new();
    for (at, word) in name.unicode_word_indices() {
        let adjoins = |last: &Range<usize>| {
            let neighbors = [name[..at].chars().next_back(), word.chars().next()];
            last.end == at && neighbors.into_iter().flatten().any(continues_word)
        };
        match words.last_mut() {
            Some(last) if adjoins(last) => last.end = at + word.len(),
            _ => words.push(at..at + word.len()),
        }
    }
    words.into_iter().map(|it| &name[it]).collect()
}

/// Returns whether the letter is a capital or of a script without case. Georgian has capitals in
/// Unicode, but names are not written with them.
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

/// Returns each schedulable candidate once, at its first match.
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
