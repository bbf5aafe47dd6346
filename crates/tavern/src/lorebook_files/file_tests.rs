//! Tests of reading the files in `tests/fixtures/lore`: every tool, including known malformed
//! variants.

use serde_json::{Value, json};

use super::{
    LorebookError, MAX_BYTES, MAX_ENTRIES, ParsedLorebook, from_value, read, to_world_info,
};

macro_rules! fixture {
    ($name:literal) => {
        (
            $name,
            include_bytes!(concat!("../../../../tests/fixtures/lore/", $name, ".json")).as_slice(),
        )
    };
}

const ALL: [(&str, &[u8]); 7] = [
    fixture!("world_object"),
    fixture!("world_array"),
    fixture!("character_book"),
    fixture!("lorebook_v3"),
    fixture!("agnai"),
    fixture!("risu"),
    fixture!("novelai"),
];

fn parse_fixture(name: &str) -> ParsedLorebook {
    let (name, bytes) = ALL.iter().find(|(it, _)| *it == name).unwrap();
    read(bytes, &format!("{name}.json")).unwrap()
}

fn export(draft: &ParsedLorebook) -> Value {
    to_world_info(&draft.name, &draft.document, &draft.entries)
}

#[test]
fn an_exported_lorebook_is_imported_equal() {
    for (name, bytes) in ALL {
        let first = read(bytes, "a file.json").unwrap();
        let second = read(export(&first).to_string().as_bytes(), "b.json").unwrap();

        assert_eq!(second.name, first.name, "{name}");
        assert_eq!(second.document, first.document, "{name}");
        assert_eq!(second.entries, first.entries, "{name}");
        assert_eq!(second.warnings, [""; 0], "{name}");
        assert_eq!(export(&second), export(&first), "{name}");
    }
}

#[test]
fn small_objects_in_large_numbers_are_not_read_into_memory() {
    let many = vec![r#"{"":0}"#; 100_000].join(",");
    let file = format!(r#"{{"entries": [], "x": [{many}]}}"#);

    let refused = read(file.as_bytes(), "a.json").unwrap_err();

    assert!(matches!(refused, LorebookError::TooLarge(_)), "{refused:?}");
}

#[test]
fn numbers_keep_their_full_precision() {
    let world = br#"{"entries": {}, "name": "N", "x": 1.6666666666666668e41, "y": 0.1}"#;
    let first = read(world, "a.json").unwrap();

    assert_eq!(first.document["x"].to_string(), "1.6666666666666668e+41");
    let second = read(export(&first).to_string().as_bytes(), "b.json").unwrap();
    assert_eq!(second.document, first.document);
}

#[test]
fn a_world_file_keeps_all_its_fields() {
    let (_, bytes) = ALL[0];
    let stated: Value = serde_json::from_slice(bytes).unwrap();
    let exported = export(&parse_fixture("world_object"));

    for (uid, entry) in stated["entries"].as_object().unwrap() {
        for (field, value) in entry.as_object().unwrap() {
            let actual = &exported["entries"][uid][field];
            let is_same =
                actual == value || *actual.to_string() == *value.as_str().unwrap_or_default();
            assert!(is_same, "{uid}.{field}: {value} is exported as {actual}");
        }
    }
    assert_eq!(exported["originalData"], stated["originalData"]);
    assert_eq!(exported["name"], "Harbor");
}

#[test]
fn entries_may_be_a_list_with_text_numbers_and_keys_as_one_text() {
    let book = parse_fixture("world_array");

    assert_eq!(book.name, "world_array");
    assert_eq!(book.entries.len(), 3);
    assert_eq!(book.entries[0]["keys"], json!(["lamp", "lantern"]));
    let ids: Vec<&Value> = book.entries.iter().map(|it| &it["id"]).collect();
    assert_eq!(ids, [&json!("lamp"), &json!(0), &json!(1)]);
    assert_eq!(book.entries[2]["constant"], true);
    assert_eq!(book.warnings.len(), 3, "{:?}", book.warnings);
}

#[test]
fn a_lorebook_of_a_card_keeps_its_fields() {
    let book = parse_fixture("character_book");

    assert_eq!(book.name, "Of a card");
    assert_eq!(book.document["scan_depth"], 50);
    assert_eq!(book.document["recursive_scanning"], false);
    assert_eq!(book.entries[0]["extensions"]["position"], 0);
    assert_eq!(book.entries[0]["extensions"]["case_sensitive"], true);
    assert_eq!(
        (&book.entries[0]["name"], &book.entries[0]["comment"]),
        (&json!("Tower"), &json!("a note"))
    );
    assert_eq!(book.entries[1]["extensions"]["weird"], json!([true]));
    assert_eq!(book.entries[1]["made_up"], "kept");
    let card = json!({"spec": "chara_card_v2", "data": {"name": "A", "character_book": {"entries": [{"keys": ["a"], "content": "b"}]}}});
    assert_eq!(from_value(card, "card.json").unwrap().entries.len(), 1);
}

#[test]
fn keys_that_are_patterns_are_written_as_regex_literals() {
    let book = parse_fixture("lorebook_v3");

    assert_eq!(
        book.entries[0]["keys"],
        json!(["/dra(gon|ke)/i", "/wyrm/i"])
    );
    assert_eq!(book.entries[0]["constant"], false);
    assert_eq!(book.entries[0]["id"], "first");
}

#[test]
fn lorebooks_of_other_tools_keep_their_meaning() {
    let (agnai, risu, novel_ai) = (
        parse_fixture("agnai"),
        parse_fixture("risu"),
        parse_fixture("novelai"),
    );

    let entry = &agnai.entries[0];
    assert_eq!(
        entry["keys"],
        json!(["moor", r"/\bfog\w*\b/i", r"/\bm\wst\b/i"])
    );
    assert_eq!(
        (
            &entry["content"],
            &entry["insertion_order"],
            &entry["priority"]
        ),
        (&json!("Fog lies on it."), &json!(3), &json!(5))
    );
    assert_eq!(risu.entries.len(), 2);
    assert_eq!(risu.document["recursive_scanning"], true);
    assert_eq!(risu.entries[0]["keys"], json!(["inn", "tavern"]));
    assert_eq!(risu.entries[0]["secondary_keys"], json!(["night"]));
    assert_eq!(risu.entries[0]["extensions"]["probability"], 80.0);
    assert_eq!(risu.entries[1]["keys"], json!(["/a{1,3}/"]));
    assert_eq!(risu.entries[1]["constant"], true);
    assert_eq!(risu.warnings.len(), 1);
    assert_eq!(novel_ai.entries[0]["name"], "The vale");
    assert_eq!(novel_ai.entries[0]["insertion_order"], 400);
    assert_eq!(novel_ai.entries[0]["lastUpdatedAt"], 1);
}

#[test]
fn a_file_without_a_lorebook_is_refused() {
    let refused = |bytes: &[u8]| read(bytes, "x.json").unwrap_err();

    for bytes in [
        &b"not json"[..],
        b"[]",
        b"{}",
        b"{\"entries\": 5}",
        b"\xff\xfe",
        br#"{"spec": "lorebook_v3"}"#,
    ] {
        assert!(
            matches!(refused(bytes), LorebookError::NotALorebook(_)),
            "{bytes:?}"
        );
    }
    let deep = "[".repeat(100_000);
    assert!(matches!(
        refused(deep.as_bytes()),
        LorebookError::NotALorebook(_)
    ));
}

#[test]
fn every_size_has_a_limit() {
    let is_too_large = |bytes: &[u8]| matches!(read(bytes, "x"), Err(LorebookError::TooLarge(_)));
    let entries = |n: usize| json!({"entries": vec![json!({"keys": ["a"]}); n]}).to_string();

    assert!(is_too_large(&vec![b' '; MAX_BYTES + 1]));
    assert!(is_too_large(
        format!("[{}0]", "0,".repeat(2_000_000)).as_bytes()
    ));
    assert!(is_too_large(entries(MAX_ENTRIES + 1).as_bytes()));
    assert!(!is_too_large(entries(10).as_bytes()));
    let long = json!({"entries": [{"keys": ["a"], "content": "x".repeat(300_000)}]});
    assert!(is_too_large(long.to_string().as_bytes()));
    let keys = json!({"entries": [{"keys": vec!["a"; 1_001]}]});
    assert!(is_too_large(keys.to_string().as_bytes()));
}

#[test]
fn a_byte_order_mark_and_nul_are_removed() {
    let book = read(
        b"\xEF\xBB\xBF{\"entries\": [{\"keys\": [\"a\\u0000b\"]}]}",
        "x",
    )
    .unwrap();

    assert_eq!(book.entries[0]["keys"], json!(["ab"]));
}

#[test]
fn an_entry_without_keys_has_the_format_of_the_others() {
    let of_world = json!({"entries": [
        {"content": "It never goes out.", "order": 10, "disable": true},
        {"key": ["oil"], "content": "Whale oil."},
    ]});
    let alone = json!({"entries": {"7": {"content": "It rings.", "order": 10, "disable": true}}});
    let of_card = json!({"entries": [
        {"content": "It rings.", "order": 10, "insertion_order": 20, "enabled": false},
        {"keys": ["bell"], "content": "A bell."},
    ]});
    let first = |book: Value| {
        let entry = &from_value(book, "x").unwrap().entries[0];
        let fields = [&entry["insertion_order"], &entry["enabled"]];
        json!(fields)
    };

    assert_eq!(first(of_world), json!([10, false]));
    assert_eq!(first(alone), json!([10, false]));
    assert_eq!(first(of_card), json!([20, false]));
}

#[test]
fn conflicting_fields_are_restored() {
    let conflicting = json!({
        "group": "a,b", "sticky": 2, "order": 3, "key": ["x"], "uid": 9, "disable": "no",
        "scanDepth": 4, "troupe_beside": {"uid": 1},
    });
    let mut entry = conflicting.clone();
    entry["keys"] = json!(["Vale"]);
    let first = from_value(json!({"entries": [entry]}), "x").unwrap();
    let second = from_value(export(&first), "x").unwrap();

    assert_eq!(second.entries, first.entries);
    for (field, value) in conflicting.as_object().unwrap() {
        assert_eq!(&second.entries[0][field], value, "{field}");
    }
}

#[test]
fn the_origin_field_of_a_foreign_lorebook_is_kept() {
    let book = json!({"kind": "memory", "origin": "far away", "entries": []});

    let draft = from_value(book, "x").unwrap();

    assert_eq!(
        draft.document["origin"],
        json!({"origin": "far away", "kind": "memory"})
    );
}

#[test]
fn a_format_marker_is_not_applied_twice() {
    let books = [
        json!({"spec": "lorebook_v3", "data": {"spec": "lorebook_v3", "entries": []}}),
        json!({"spec": "lorebook_v3", "data": {"spec": "chara_card_v2", "entries": []}}),
        json!({"type": "risu", "data": [], "entries": "not the entries"}),
    ];

    for book in books {
        let first = from_value(book, "x").unwrap();
        let second = from_value(export(&first), "x").unwrap();
        assert_eq!(second.document, first.document);
    }
}
