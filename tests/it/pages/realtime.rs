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

/// A frame schema of the API document. Several event names may share one schema, each with some of
/// its keys.
struct Frame {
    names: Keys,
    keys: Keys,
    required: Keys,
}

impl Frame {
    fn matches(&self, name: &str, keys: &Keys) -> bool {
        self.names.contains(name) && self.required.is_subset(keys) && keys.is_subset(&self.keys)
    }
}

fn strings(value: &Value) -> Keys {
    let all = value.as_array().into_iter().flatten();
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns the frame schemas of a kind, distinguished by the value of the field `tag`.
fn documented(kind: &str, tag: &str) -> Vec<Frame> {
    let document = api_contract::document();
    let schema = &document["components"]["schemas"][kind];
    let choices = schema["oneOf"].as_array().or(schema["anyOf"].as_array());
    let frame = |choice: &Value| {
        let pointer = choice["$ref"].as_str().expect("the choice is a reference");
        let schema = document.pointer(&pointer[1..]).expect("the schema exists");
        let properties = schema["properties"]
            .as_object()
            .expect("the schema has properties");
        let mut keys: Keys = properties.keys().cloned().collect();
        let mut required = strings(&schema["required"]);
        keys.remove(tag);
        required.remove(tag);
        Frame {
            names: strings(&properties[tag]["enum"]),
            keys,
            required,
        }
    };
    let choices = choices.expect("the schema is a choice of frames");
    choices.iter().map(frame).collect()
}

fn names(frames: &[Frame]) -> Keys {
    frames.iter().flat_map(|it| it.names.clone()).collect()
}

/// Returns the rows of the page's tables whose header begins with `head`, split into cells.
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

/// Returns the keys that a cell names in backticks, without the value after a colon.
fn named(cell: &str) -> Keys {
    let ticked = cell.split('`').skip(1).step_by(2);
    ticked
        .map(|it| it.split(':').next().unwrap_or(it).to_owned())
        .collect()
}

/// Returns the example frames of the page, one per line; `…` marks omitted content.
fn examples(page: &str) -> Vec<Value> {
    page.split("```json")
        .skip(1)
        .filter_map(|it| it.split("```").next())
        .flat_map(str::lines)
        .filter(|it| !it.is_empty())
        .map(|line| {
            let json = line.replace("{…}", "{}");
            serde_json::from_str(&json).unwrap_or_else(|it| panic!("{it}: {line}"))
        })
        .collect()
}

#[test]
fn every_event_is_in_a_table_with_all_its_keys() {
    let documented = documented("SocketEvent", "type");
    let listed: BTreeMap<_, _> = table(&page(), "event")
        .into_iter()
        .map(|row| {
            let name = named(&row[0]).pop_first().expect("the row names an event");
            (name, named(&row[1]))
        })
        .collect();

    assert_eq!(listed.keys().cloned().collect::<Keys>(), names(&documented));
    for frame in &documented {
        let mut seen = Keys::new();
        for name in &frame.names {
            // If an event name has two schemas, its row lists the keys of both.
            let keys: Keys = listed[name].intersection(&frame.keys).cloned().collect();
            assert!(
                frame.matches(name, &keys),
                "{name} does not match a schema with {keys:?}"
            );
            seen.extend(keys);
        }
        assert_eq!(seen, frame.keys, "keys of {:?} are missing", frame.names);
    }
    for (name, keys) in &listed {
        let frames = documented.iter().filter(|it| it.names.contains(name));
        let all: Keys = frames.flat_map(|it| it.keys.clone()).collect();
        assert!(keys.is_subset(&all), "{name} does not have all of {keys:?}");
    }
}

#[test]
fn every_example_event_matches_the_document() {
    let examples = examples(&page()).into_iter();
    check_examples(
        examples.filter(|it| it["type"].is_string()),
        "SocketEvent",
        "type",
    );
}

#[test]
fn every_example_operation_matches_the_document() {
    let rows = table(&page(), "frame").into_iter();
    let frames = rows
        .map(|row| serde_json::from_str(row[0].trim_matches('`')).expect("the cell is a frame"));
    check_examples(frames, "SocketCommand", "op");
}

fn check_examples(examples: impl Iterator<Item = Value>, kind: &str, tag: &str) {
    let documented = documented(kind, tag);
    let mut shown = Keys::new();
    for example in examples {
        let name = example[tag].as_str().expect("the tag is a string");
        let object = example.as_object().expect("the frame is an object");
        let keys = object.keys().filter(|it| *it != tag).cloned().collect();
        let matches = documented.iter().any(|it| it.matches(name, &keys));
        assert!(
            matches,
            "the example does not match the document: {example}"
        );
        shown.insert(name.to_owned());
    }
    assert_eq!(
        shown,
        names(&documented),
        "the examples do not cover exactly the documented frames"
    );
}

#[test]
fn every_key_of_the_snapshot_is_in_the_table() {
    let rows = table(&page(), "key");
    let listed: Keys = rows.iter().flat_map(|row| named(&row[0])).collect();
    let schema = &api_contract::document()["components"]["schemas"]["Snapshot"]["properties"];
    let mut documented: Keys = schema
        .as_object()
        .expect("an object")
        .keys()
        .cloned()
        .collect();
    // `rev` is next to the snapshot in the response.
    documented.insert("rev".to_owned());

    assert_eq!(listed, documented);
}
