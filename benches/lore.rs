//! Measures how long it takes to find the active lorebook entries of a turn: 2 000 entries over the
//! last four messages. The same is measured with one entry, which shows what grows with the number
//! of entries. Nothing is asserted, because results on a busy machine are not valid.

// A benchmark prints its results and panics on errors.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::json;
use tavern::lorebook::engine;
use tavern::lorebook::engine_lorebook::{Lorebook, LorebookSource};
use tavern::lorebook::scan_request::{
    MatchTexts, ScanRequest, ScanSettings, ScanSpeaker, ScanTrigger, ScannedMessage,
};
use tavern::lorebook::timed_effects::TimedEffects;
use tavern::lorebook_files::entry;

const ENTRIES: usize = 2_000;
const ROUNDS: usize = 31;

fn main() {
    let line = "The road to the harbor of Place1234 is long, and who comes from Place77 knows it. ";
    let text = line.repeat(25);
    for n in [1, ENTRIES] {
        let lorebook = lorebook(n);
        let mut times: Vec<Duration> = (0..ROUNDS).map(|_| scan(&lorebook, &text)).collect();
        times.sort_unstable();
        println!(
            "{n} entries, 4 messages of {} bytes: median {:?}, slowest {:?}",
            text.len(),
            times[ROUNDS / 2],
            times[ROUNDS - 1]
        );
    }
}

/// A lorebook of `n` entries with three keys each, of which one in twenty is a regular expression.
fn lorebook(n: usize) -> Lorebook {
    let one = |n: usize| {
        let third = match n.is_multiple_of(20) && n < 4_000 {
            true => format!("/plac[e3]{n}\\b/i"),
            false => format!("third{n}"),
        };
        json!({"keys": [format!("Place{n}"), format!("old name {n}"), third], "content": "A place."})
    };
    let entries = (0..n).map(|n| entry::read(&one(n), n.to_string(), None));
    Lorebook {
        key: "bench".into(),
        id: None,
        name: "Places".into(),
        source: LorebookSource::Space,
        scan_depth: None,
        token_budget: None,
        recursive: None,
        entries: entries.collect(),
    }
}

fn scan(lorebook: &Lorebook, text: &str) -> Duration {
    let message = ScannedMessage {
        seq: 1,
        name: "Ann",
        text,
    };
    let began = Instant::now();
    let outcome = engine::activate(&ScanRequest {
        lorebooks: std::slice::from_ref(lorebook),
        settings: ScanSettings {
            scan_depth: 4,
            ..ScanSettings::default()
        },
        messages: &[message; 4],
        n_messages: 4,
        n_replies: 2,
        extra_texts: &[],
        texts: MatchTexts::default(),
        speaker: ScanSpeaker::default(),
        trigger: ScanTrigger::Normal,
        timed_effects: &TimedEffects::default(),
        expand: &str::to_owned,
        count_tokens: &|text| text.len() as i64 / 4,
        seed: 1,
    });
    let took = began.elapsed();
    assert_eq!(
        outcome.activated.len() + outcome.skipped.len(),
        lorebook.entries.len()
    );
    black_box(outcome);
    took
}
