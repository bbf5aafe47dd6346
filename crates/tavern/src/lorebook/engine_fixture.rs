//! Builds the input of a scan for tests of the engine (lorebooks from JSON, messages from strings),
//! runs the scan, and returns its result as text.

use std::collections::HashSet;

use serde_json::Value;

use crate::lorebook::engine_lorebook::{Lorebook, LorebookSource};
use crate::lorebook::scan_request::{
    MatchTexts, ScanRequest, ScanSettings, ScanSpeaker, ScanTrigger, ScannedMessage,
};
use crate::lorebook::scan_result::ScanResult;
use crate::lorebook::timed_effects::TimedEffects;
use crate::lorebook_files::entry;

/// The inputs of one scan; a test changes the fields it is about.
pub struct EngineFixture<'a> {
    pub lorebooks: Vec<Lorebook>,
    pub settings: ScanSettings,
    pub messages: Vec<&'a str>,
    pub n_messages: i64,
    pub n_replies: i64,
    pub extras: Vec<&'a str>,
    pub texts: MatchTexts<'a>,
    pub names: Vec<&'a str>,
    pub tags: Vec<&'a str>,
    pub trigger: ScanTrigger,
    pub timed_effects: TimedEffects,
    pub external_activations: HashSet<String>,
    pub seed: u64,
}

/// Builds a scan of these messages, newest first, with one lorebook linked to the space.
pub fn fixture<'a>(lines: &[&'a str], entries: Value) -> EngineFixture<'a> {
    EngineFixture {
        lorebooks: vec![lorebook("1", LorebookSource::Space, entries)],
        settings: ScanSettings::default(),
        messages: lines.to_vec(),
        n_messages: lines.len() as i64,
        n_replies: 0,
        extras: Vec::new(),
        texts: MatchTexts::default(),
        names: vec!["Ada"],
        tags: Vec::new(),
        trigger: ScanTrigger::Normal,
        timed_effects: TimedEffects::default(),
        external_activations: HashSet::new(),
        seed: 7,
    }
}

/// Builds a lorebook from entries in the `character_book` format.
pub fn lorebook(key: &str, source: LorebookSource, entries: Value) -> Lorebook {
    let entries = entries.as_array().cloned().unwrap_or_default();
    let entries = entries.iter().enumerate();
    Lorebook {
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

impl EngineFixture<'_> {
    /// Runs the scan. A token is a word here; `{{char}}` is the speaker.
    pub fn run(&self) -> ScanResult {
        let messages = self
            .messages
            .iter()
            .enumerate()
            .map(|(n, text)| ScannedMessage {
                seq: self.n_messages - n as i64,
                name: "Ben",
                text,
            });
        let name = self.names.first().copied().unwrap_or_default();
        super::activate(&ScanRequest {
            lorebooks: &self.lorebooks,
            settings: self.settings.clone(),
            messages: &messages.collect::<Vec<_>>(),
            n_messages: self.n_messages,
            n_replies: self.n_replies,
            extra_texts: &self.extras,
            texts: self.texts,
            speaker: ScanSpeaker {
                names: &self.names,
                tags: &self.tags,
            },
            trigger: self.trigger,
            timed_effects: &self.timed_effects,
            external_activations: &self.external_activations,
            expand: &|text| text.replace("{{char}}", name),
            count_tokens: &|text| text.split_whitespace().count() as i64,
            seed: self.seed,
        })
    }

    /// Returns the activated texts in order.
    pub fn texts(&self) -> Vec<String> {
        self.run().activated.into_iter().map(|it| it.text).collect()
    }

    /// Returns the reason for which the first entry is activated or skipped.
    pub fn reason(&self) -> String {
        let outcome = self.run();
        let activated = outcome.activated.iter().find(|it| it.entry.key == "0");
        let skipped = outcome.skipped.iter().find(|it| it.entry.key == "0");
        match (activated, skipped) {
            (Some(it), None) => it.reason.to_string(),
            (None, Some(it)) => format!("not: {}", it.reason),
            _ => panic!("the entry must be either activated or skipped"),
        }
    }
}
