//! Measures how long it takes to find the active lorebook entries of a turn, in six scans: few and
//! many entries over the last four messages, many entries over 200 messages, and patterns of three
//! kinds. Nothing is asserted about times, because results on a busy machine are not valid.

// A benchmark prints its results and panics on errors.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::collections::HashSet;
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

const ROUNDS: usize = 31;
const LINE: &str =
    "The road to the harbor of Place1234 is long, and who comes from Place77 knows it. ";

fn main() {
    let long = LINE.repeat(25);
    let few_long = vec![long.as_str(); 4];
    measure("1 entry", &[lorebook(1, keys)], &few_long, ROUNDS);
    measure("2000 entries", &[lorebook(2_000, keys)], &few_long, ROUNDS);

    let short: Vec<String> = (0..200)
        .map(|n| format!("{LINE}In message {n} a king met the queen of Place{n}. {LINE}"))
        .collect();
    let many_short: Vec<&str> = short.iter().map(String::as_str).collect();
    measure(
        "1000 entries",
        &[lorebook(1_000, keys)],
        &many_short,
        ROUNDS,
    );
    // Several lorebooks, because one lorebook may use only its share of the steps.
    let lookarounds: Vec<Lorebook> = (0..10).map(|_| lorebook(200, lookaround)).collect();
    measure("2000 look-arounds", &lookarounds, &many_short, ROUNDS);
    let classes: Vec<Lorebook> = (0..5).map(|_| lorebook(200, class)).collect();
    measure("1000 patterns of classes", &classes, &many_short, ROUNDS);
    let slow: Vec<Lorebook> = (0..5).map(|_| lorebook(200, catastrophic)).collect();
    let hostile = "a".repeat(32 * 1024);
    measure("1000 catastrophic patterns", &slow, &[&hostile], 3);
}

/// Three keys, of which one in sixty is a regular expression.
fn keys(n: usize) -> Vec<String> {
    let third = match n.is_multiple_of(20) {
        true => format!("/plac[e3]{n}\\b/i"),
        false => format!("third{n}"),
    };
    vec![format!("Place{n}"), format!("old name {n}"), third]
}

/// A pattern with look-around or a window, as authors write them.
fn lookaround(n: usize) -> Vec<String> {
    let n = n + 100;
    vec![match n % 5 {
        0 => format!(r"/(?<!old )place{n}(?!\d)/i"),
        1 => format!(r"/(?=.*sword{n})(?=.*shield)/i"),
        2 => format!(r"/(?<!no )\b(?:dragon|wyrm){n}s?\b/i"),
        3 => format!(r"/\bking\b(?=.{{0,200}}\bqueen of place{n}\b)/i"),
        _ => format!(r"/(?<=the road to )[\w' ]{{1,40}}(?<!of )harbor{n}/i"),
    }]
}

/// A pattern in which no literal is required, and which does not match.
fn class(n: usize) -> Vec<String> {
    vec![match n % 3 {
        0 => format!(r"/\b[A-Z][a-z]+ [A-Z][a-z]+ \d{{{}}}\b/", n % 7 + 9),
        1 => format!(r"/[xyz]\d[qjv]{{{}}}/", n % 7 + 1),
        _ => format!(r"/(?<![a-z])\d{{{}}}(?=[a-z])/i", n % 7 + 5),
    }]
}

fn catastrophic(n: usize) -> Vec<String> {
    vec![match n % 4 {
        0 => format!("/(?=a)(a+)+x{{{n}}}$/"),
        1 => format!("/(a|aa)+(?<!b)[x]{{{}}}$/", n + 1),
        2 => format!(r"/(?:a?){{{}}}(a+)\1$[x]/", n + 1),
        _ => format!("/(?=(?=(a+)+[x]{{{}}}))a/", n + 1),
    }]
}

fn lorebook(n: usize, keys: fn(usize) -> Vec<String>) -> Lorebook {
    let one = |n: usize| json!({"keys": keys(n), "content": "A place."});
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

fn measure(name: &str, lorebooks: &[Lorebook], texts: &[&str], rounds: usize) {
    let mut lorebooks = lorebooks.to_vec();
    for (n, book) in lorebooks.iter_mut().enumerate() {
        book.key = format!("bench{n}");
    }
    let scanned = (0..rounds).map(|_| scan(&lorebooks, texts));
    let (mut times, counts): (Vec<Duration>, Vec<[usize; 2]>) = scanned.unzip();
    times.sort_unstable();
    let [n_activated, n_warnings] = counts[0];
    println!(
        "{name}, {} messages of {} bytes: median {:?}, slowest {:?}; {n_activated} activated, {n_warnings} warnings",
        texts.len(),
        texts[0].len(),
        times[rounds / 2],
        times[rounds - 1]
    );
}

/// Scans once; returns the time, and how many entries were activated and how many have warnings.
fn scan(lorebooks: &[Lorebook], texts: &[&str]) -> (Duration, [usize; 2]) {
    let messages: Vec<ScannedMessage> = texts
        .iter()
        .map(|text| ScannedMessage {
            seq: 1,
            name: "Ann",
            text,
        })
        .collect();
    let began = Instant::now();
    let outcome = engine::activate(&ScanRequest {
        lorebooks,
        settings: ScanSettings {
            scan_depth: 200,
            ..ScanSettings::default()
        },
        messages: &messages,
        n_messages: messages.len() as i64,
        n_replies: 2,
        extra_texts: &[],
        texts: MatchTexts::default(),
        speaker: ScanSpeaker::default(),
        trigger: ScanTrigger::Normal,
        timed_effects: &TimedEffects::default(),
        external_activations: &HashSet::new(),
        expand: &str::to_owned,
        count_tokens: &|text| text.len() as i64 / 4,
        seed: 1,
    });
    let took = began.elapsed();
    let n_entries: usize = lorebooks.iter().map(|it| it.entries.len()).sum();
    assert_eq!(outcome.activated.len() + outcome.skipped.len(), n_entries);
    let counts = [outcome.activated.len(), outcome.warnings.len()];
    black_box(outcome);
    (took, counts)
}
