//! The lorebook engine: it terminates, reports every entry once, stays within its budget, and is
//! deterministic.

use std::collections::{BTreeSet, HashSet};

use serde_json::json;
use tavern::lorebook::engine;
use tavern::lorebook::engine_lorebook::{Lorebook, LorebookEntry, LorebookSource};
use tavern::lorebook::scan_request::{
    MatchTexts, ScanRequest, ScanSettings, ScanSpeaker, ScanTrigger, ScannedMessage,
};
use tavern::lorebook::timed_effects::TimedEffects;
use tavern::lorebook_files::entry;

/// Scans the entries and messages in these lines. The first line has the settings; a line that
/// begins with `>` is a message, any other an entry: `flags|keys|secondary keys|content`.
pub fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.lines();
    let settings = settings(lines.next().unwrap_or_default());
    let (said, entries): (Vec<&str>, Vec<&str>) = lines.partition(|it| it.starts_with('>'));
    let messages: Vec<ScannedMessage> = said
        .iter()
        .zip(0..)
        .map(|(text, n)| ScannedMessage {
            seq: 100 - n,
            name: "Bob",
            text: &text[1..],
        })
        .collect();
    let entries: Vec<LorebookEntry> = entries
        .iter()
        .enumerate()
        .map(|(n, it)| read(it, n))
        .collect();
    let n_entries = entries.len();
    let lorebooks = [lorebook(entries)];
    let scan = ScanRequest {
        lorebooks: &lorebooks,
        settings,
        messages: &messages,
        n_messages: messages.len() as i64,
        n_replies: 1,
        extra_texts: &["a note"],
        texts: MatchTexts::default(),
        speaker: ScanSpeaker {
            names: &["Ada"],
            tags: &["tag"],
        },
        trigger: ScanTrigger::Normal,
        timed_effects: &TimedEffects::default(),
        external_activations: &HashSet::new(),
        expand: &|text| text.replace("{{char}}", "Ada"),
        count_tokens: &|text| text.len() as i64,
        seed: data.len() as u64,
    };

    let result = engine::activate(&scan);

    let again = engine::activate(&scan);
    assert_eq!(result, again, "the same scan has two results");
    let activated = result.activated.iter().map(|it| &it.entry.key);
    let skipped = result.skipped.iter().map(|it| &it.entry.key);
    let reported: Vec<&String> = activated.chain(skipped).collect();
    let unique: BTreeSet<&String> = reported.iter().copied().collect();
    assert_eq!(
        (reported.len(), unique.len()),
        (n_entries, n_entries),
        "an entry is not reported exactly once"
    );
    let counts_for_budget = |key: &str| {
        lorebooks[0]
            .entries
            .iter()
            .any(|it| it.key == key && !it.ignore_budget)
    };
    let counted = result
        .activated
        .iter()
        .filter(|it| counts_for_budget(&it.entry.key));
    let spent: i64 = counted.map(|it| it.tokens).sum();
    assert!(
        spent <= scan.settings.budget,
        "{spent} of {}",
        scan.settings.budget
    );
}

fn settings(flags: &str) -> ScanSettings {
    let has = |it: char| flags.contains(it);
    let n = flags
        .bytes()
        .filter(u8::is_ascii_digit)
        .map(|it| usize::from(it - b'0'))
        .sum::<usize>();
    ScanSettings {
        scan_depth: n,
        recursive: has('r'),
        max_steps: n % 4,
        min_activations: if has('m') { n } else { 0 },
        case_sensitive: has('c'),
        whole_words: has('w'),
        ascii_words: has('a'),
        include_names: has('n'),
        group_scoring: has('g'),
        budget: if has('b') { n as i64 * 4 } else { 10_000 },
        ..ScanSettings::default()
    }
}

fn read(line: &str, n: usize) -> LorebookEntry {
    let mut parts = line.splitn(4, '|');
    let mut part = || parts.next().unwrap_or_default();
    let (flags, keys, secondary, content) = (part(), part(), part(), part());
    let has = |it: char| flags.contains(it);
    let list = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    let document = json!({
        "keys": list(keys),
        "secondary_keys": list(secondary),
        "selective": has('s'),
        "content": content,
        "enabled": !has('d'),
        "constant": has('c'),
        "use_regex": has('x'),
        "insertion_order": flags.len(),
        "extensions": {
            "selectiveLogic": flags.len() % 4,
            "probability": if has('p') { 50 } else { 100 },
            "useProbability": true,
            "exclude_recursion": has('e'),
            "prevent_recursion": has('v'),
            "delay_until_recursion": has('u'),
            "group": if has('g') { "one" } else { "" },
            "sticky": i32::from(has('t')),
            "ignore_budget": has('i'),
            "match_whole_words": has('w'),
        },
    });
    entry::read(&document, format!("e{n}"), None)
}

fn lorebook(entries: Vec<LorebookEntry>) -> Lorebook {
    Lorebook {
        key: "book".to_owned(),
        id: None,
        name: "Book".to_owned(),
        source: LorebookSource::Character,
        scan_depth: None,
        token_budget: None,
        recursive: None,
        entries,
    }
}
