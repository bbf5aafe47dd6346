//! Checks that `docs/websocket-api.md` documents every frame with all its keys, and no other frame.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::api_contract;

type Keys = BTreeSet<String>;

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/websocket-api.md");
    fs::read_to_string(path).expect("the page can be read")
}

/// A frame of the API document. Several names may share one frame; each adds some of its keys.
struct Frame {
    words: Keys,
    keys: Keys,
    required: Keys,
}

impl Frame {
    fn fits(&self, word: &str, keys: &Keys) -> bool {
        self.words.contains(word) && self.required.is_subset(keys) && keys.is_subset(&self.keys)
    }
}

fn strings(value: &Value) -> Keys {
    let all = value.as_array().into_iter().flatten();
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The frames of a kind, distinguished by the value of the field `tag`.
fn documented(kind: &str, tag: &str) -> Vec<Frame> {
    let document = api_contract::document();
    let schema = &document["components"]["schemas"][kind];
    let choices = schema["oneOf"].as_array().or(schema["anyOf"].as_array());
    let frame = |choice: &Value| {
        let pointer = choice["$ref"].as_str().expect("a reference");
        let schema = document.pointer(&pointer[1..]).expect("a schema");
        let properties = schema["properties"].as_object().expect("an object");
        let mut keys: Keys = properties.keys().cloned().collect();
        let mut required = strings(&schema["required"]);
        keys.remove(tag);
        required.remove(tag);
        Frame {
            words: strings(&properties[tag]["enum"]),
            keys,
            required,
        }
    };
    let choices = choices.expect("a choice of frames");
    choices.iter().map(frame).collect()
}

fn words(frames: &[Frame]) -> Keys {
    frames.iter().flat_map(|it| it.words.clone()).collect()
}

/// The rows of the page's tables whose header begins with this word, split into cells.
fn table(page: &str, head: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        let cells = line.strip_prefix("| ").and_then(|it| it.strip_suffix(" |"));
        let Some(cells) = cells else {
            inside = false;
            continue;
        };
        let cells: Vec<_> = cells.split(" | ").map(str::to_owned).collect();
        match inside {
            true if !cells[0].starts_with("---") => rows.push(cells),
            true => {}
            false => inside = cells[0] == head,
        }
    }
    rows
}

/// The keys that a cell names in backticks; the content of a key, after a colon, is left out.
fn named(cell: &str) -> Keys {
    let ticked = cell.split('`').skip(1).step_by(2);
    ticked
        .map(|it| it.split(':').next().unwrap_or(it).to_owned())
        .collect()
}

/// The example frames of the page, one per line; `…` marks omitted content.
fn examples(page: &str) -> Vec<Value> {
    page.split("```json")
        .skip(1)
        .filter_map(|it| it.split("```").next())
        .flat_map(str::lines)
        .filter(|it| !it.is_empty())
        .map(|line| {
            let whole = line.replace("{…}", "{}");
            serde_json::from_str(&whole).unwrap_or_else(|it| panic!("{it}: {line}"))
        })
        .collect()
}

#[test]
fn every_event_stands_in_a_table_with_all_its_keys() {
    let documented = documented("SocketEvent", "type");
    let told: BTreeMap<_, _> = table(&page(), "event")
        .into_iter()
        .map(|row| {
            let name = named(&row[0]).pop_first().expect("an event");
            (name, named(&row[1]))
        })
        .collect();

    assert_eq!(told.keys().cloned().collect::<Keys>(), words(&documented));
    for frame in &documented {
        let mut seen = Keys::new();
        for word in &frame.words {
            // If a name has two frames, its row lists the keys that both have.
            let keys: Keys = told[word].intersection(&frame.keys).cloned().collect();
            assert!(frame.fits(word, &keys), "{word} with {keys:?}");
            seen.extend(keys);
        }
        assert_eq!(seen, frame.keys, "of {:?}", frame.words);
    }
    for (word, keys) in &told {
        let frames = documented.iter().filter(|it| it.words.contains(word));
        let all: Keys = frames.flat_map(|it| it.keys.clone()).collect();
        assert!(keys.is_subset(&all), "{word} has not all of {keys:?}");
    }
}

#[test]
fn every_event_is_shown_as_the_document_has_it() {
    let examples = examples(&page()).into_iter();
    are_shown(
        examples.filter(|it| it["type"].is_string()),
        "SocketEvent",
        "type",
    );
}

#[test]
fn every_operation_is_shown_as_the_document_has_it() {
    let rows = table(&page(), "frame").into_iter();
    let frames = rows.map(|row| serde_json::from_str(row[0].trim_matches('`')).expect("a frame"));
    are_shown(frames, "SocketCommand", "op");
}

fn are_shown(examples: impl Iterator<Item = Value>, kind: &str, tag: &str) {
    let documented = documented(kind, tag);
    let mut shown = Keys::new();
    for example in examples {
        let word = example[tag].as_str().expect("a word");
        let object = example.as_object().expect("a frame is an object");
        let keys = object.keys().filter(|it| *it != tag).cloned().collect();
        let fits = documented.iter().any(|it| it.fits(word, &keys));
        assert!(fits, "not as the document has it: {example}");
        shown.insert(word.to_owned());
    }
    assert_eq!(shown, words(&documented), "shown, and documented");
}

#[test]
fn every_key_of_the_snapshot_stands_in_the_table() {
    let rows = table(&page(), "key");
    let told: Keys = rows.iter().flat_map(|row| named(&row[0])).collect();
    let schema = &api_contract::document()["components"]["schemas"]["Snapshot"]["properties"];
    let mut documented: Keys = schema
        .as_object()
        .expect("an object")
        .keys()
        .cloned()
        .collect();
    // It is next to the snapshot in the response.
    documented.insert("rev".to_owned());

    assert_eq!(told, documented);
}
