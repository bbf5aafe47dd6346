//! The lore engine: it ends, tells of every entry once, keeps to its budget, and comes to the same
//! each time.

use std::collections::BTreeSet;

use serde_json::json;
use troupe::lore::book::Book;
use troupe::lore::book::Entry;
use troupe::lore::book::Source;
use troupe::lore::engine;
use troupe::lore::entry;
use troupe::lore::outcome::NotFired;
use troupe::lore::outcome::WhyNot;
use troupe::lore::scan::Generation;
use troupe::lore::scan::Scan;
use troupe::lore::scan::Settings;
use troupe::lore::scan::Speaker;
use troupe::lore::scan::Spoken;
use troupe::lore::scan::Texts;
use troupe::lore::timed::Timed;

/// Lines: the first sets the settings; one that begins with `>` is a message, any other an entry:
/// a few letters of flags, then keys, secondary keys and content, each after a `|`.
pub fn is_held(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.lines();
    let settings = settings(lines.next().unwrap_or_default());
    let (said, entries): (Vec<&str>, Vec<&str>) = lines.partition(|it| it.starts_with('>'));
    let messages: Vec<Spoken> = said
        .iter()
        .zip(0..)
        .map(|(text, n)| Spoken {
            seq: 100 - n,
            name: "Bob",
            text: &text[1..],
        })
        .collect();
    let entries: Vec<Entry> = entries
        .iter()
        .enumerate()
        .map(|(n, it)| read(it, n))
        .collect();
    let n_entries = entries.len();
    let books = [book(entries)];
    let scan = Scan {
        books: &books,
        settings,
        messages: &messages,
        n_messages: messages.len() as i64,
        n_replies: 1,
        extras: &["a note"],
        texts: Texts::default(),
        speaker: Speaker {
            names: &["Ada"],
            tags: &["tag"],
        },
        kind: Generation::Normal,
        timed: &Timed::default(),
        expand: &|text| text.replace("{{char}}", "Ada"),
        count: &|text| text.len() as i64,
        seed: data.len() as u64,
    };

    let outcome = engine::run(&scan);

    // How long a pattern may look is told by the clock.
    let too_slow = |it: &NotFired| matches!(it.because, WhyNot::TooSlow(_));
    let again = engine::run(&scan);
    if !outcome
        .not_fired
        .iter()
        .chain(&again.not_fired)
        .any(too_slow)
    {
        assert_eq!(outcome, again, "the same scan comes to the same");
    }
    let fired = outcome.fired.iter().map(|it| &it.entry.key);
    let not_fired = outcome.not_fired.iter().map(|it| &it.entry.key);
    let told: Vec<&String> = fired.chain(not_fired).collect();
    let once: BTreeSet<&String> = told.iter().copied().collect();
    assert_eq!(
        (told.len(), once.len()),
        (n_entries, n_entries),
        "each entry is told of once"
    );
    let asks_for_room = |key: &str| {
        books[0]
            .entries
            .iter()
            .any(|it| it.key == key && !it.ignore_budget)
    };
    let within = outcome
        .fired
        .iter()
        .filter(|it| asks_for_room(&it.entry.key));
    let spent: i64 = within.map(|it| it.tokens).sum();
    assert!(
        spent <= scan.settings.budget,
        "{spent} of {}",
        scan.settings.budget
    );
}

fn settings(flags: &str) -> Settings {
    let has = |it: char| flags.contains(it);
    let n = flags
        .bytes()
        .filter(u8::is_ascii_digit)
        .map(|it| usize::from(it - b'0'))
        .sum::<usize>();
    Settings {
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
        ..Settings::default()
    }
}

fn read(line: &str, n: usize) -> Entry {
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

fn book(entries: Vec<Entry>) -> Book {
    Book {
        key: "book".to_owned(),
        id: None,
        name: "Book".to_owned(),
        source: Source::Character,
        scan_depth: None,
        token_budget: None,
        recursive: None,
        entries,
    }
}
