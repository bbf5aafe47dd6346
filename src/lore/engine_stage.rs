//! A stage for the engine: books as JSON, lines as they are said, and what comes of it as words.

use crate::lore::book::Book;
use crate::lore::book::Source;
use crate::lore::entry;
use crate::lore::outcome::Outcome;
use crate::lore::scan::Generation;
use crate::lore::scan::Scan;
use crate::lore::scan::Settings;
use crate::lore::scan::Speaker;
use crate::lore::scan::Spoken;
use crate::lore::scan::Texts;
use crate::lore::timed::Timed;
use serde_json::Value;

/// One turn; tests change what they are about.
pub struct Stage<'a> {
    pub books: Vec<Book>,
    pub settings: Settings,
    pub lines: Vec<&'a str>,
    pub n_messages: i64,
    pub n_replies: i64,
    pub extras: Vec<&'a str>,
    pub texts: Texts<'a>,
    pub names: Vec<&'a str>,
    pub tags: Vec<&'a str>,
    pub kind: Generation,
    pub timed: Timed,
    pub seed: u64,
}

/// A turn after these lines, newest first, with one book of the space.
pub fn stage<'a>(lines: &[&'a str], entries: Value) -> Stage<'a> {
    Stage {
        books: vec![book("1", Source::Space, entries)],
        settings: Settings::default(),
        lines: lines.to_vec(),
        n_messages: lines.len() as i64,
        n_replies: 0,
        extras: Vec::new(),
        texts: Texts::default(),
        names: vec!["Ada"],
        tags: Vec::new(),
        kind: Generation::Normal,
        timed: Timed::default(),
        seed: 7,
    }
}

/// A book of entries as a `character_book` has them.
pub fn book(key: &str, source: Source, entries: Value) -> Book {
    let entries = entries.as_array().cloned().unwrap_or_default();
    let entries = entries.iter().enumerate();
    Book {
        key: key.to_owned(),
        id: None,
        name: format!("Book {key}"),
        source,
        scan_depth: None,
        token_budget: None,
        recursive: None,
        entries: entries
            .map(|(n, it)| entry::read(it, n.to_string(), None))
            .collect(),
    }
}

impl Stage<'_> {
    /// A token is a word here; `{{char}}` is the speaker.
    pub fn run(&self) -> Outcome {
        let messages = self.lines.iter().enumerate().map(|(n, text)| Spoken {
            seq: self.n_messages - n as i64,
            name: "Ben",
            text,
        });
        let name = self.names.first().copied().unwrap_or_default();
        super::run(&Scan {
            books: &self.books,
            settings: self.settings.clone(),
            messages: &messages.collect::<Vec<_>>(),
            n_messages: self.n_messages,
            n_replies: self.n_replies,
            extras: &self.extras,
            texts: self.texts,
            speaker: Speaker {
                names: &self.names,
                tags: &self.tags,
            },
            kind: self.kind,
            timed: &self.timed,
            expand: &|text| text.replace("{{char}}", name),
            count: &|text| text.split_whitespace().count() as i64,
            seed: self.seed,
        })
    }

    /// What enters, one after the other.
    pub fn texts(&self) -> Vec<String> {
        self.run().fired.into_iter().map(|it| it.text).collect()
    }

    /// Why the first entry enters, or why not.
    pub fn why(&self) -> String {
        let outcome = self.run();
        let fired = outcome.fired.iter().find(|it| it.entry.key == "0");
        let not = outcome.not_fired.iter().find(|it| it.entry.key == "0");
        match (fired, not) {
            (Some(it), None) => it.because.to_string(),
            (None, Some(it)) => format!("not: {}", it.because),
            _ => panic!("an entry is one or the other, and once"),
        }
    }
}
