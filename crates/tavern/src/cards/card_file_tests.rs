//! Tests of reading every file in `tests/fixtures/cards`, each with one irregularity, and of
//! importing exported cards again.

use std::io::{Read, Seek, Write};
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{CardError, CardFile, File, read};
use crate::cards::export_file::{CardExport, ExportVersion};
use crate::cards::temp_assets::TempAssets;

const FOLDER: &str = "tests/fixtures/cards";

fn open(name: &str) -> Result<CardFile, CardError> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../..", FOLDER, name]
        .iter()
        .collect();
    read(File::open(path).expect("a fixture"))
}

fn import(name: &str) -> CardFile {
    open(name).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn import_error(name: &str) -> String {
    match open(name) {
        Ok(_) => panic!("{name} was imported"),
        Err(error) => error.to_string(),
    }
}

fn has_warning(imported: &CardFile, part: &str) -> bool {
    imported.card.warnings.iter().any(|it| it.contains(part))
}

fn from_bytes(bytes: &[u8]) -> CardFile {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("free disk space");
    file.rewind().expect("file is seekable");
    read(file).expect("a card")
}

/// Returns the bytes of a written file.
fn bytes_of(file: Result<File, CardError>) -> Vec<u8> {
    let mut file = file.expect("a file");
    let mut bytes = Vec::new();
    file.rewind().expect("file is seekable");
    file.read_to_end(&mut bytes).expect("readable");
    bytes
}

/// Converts an imported character to an export.
fn to_export(mut imported: CardFile) -> CardExport {
    let names: Vec<String> = imported.assets.names().map(str::to_owned).collect();
    let mut assets = TempAssets::new().expect("free disk space");
    if let Some(picture) = imported.avatar.take() {
        assets.push("", &picture.large).expect("free disk space");
    }
    for name in names {
        let bytes = imported.assets.read(&name).expect("readable");
        let bytes = bytes.expect("a piece");
        assets.push(&name, &bytes).expect("free disk space");
    }
    CardExport {
        card: imported.card,
        assets,
    }
}

#[test]
fn json_cards_of_every_form_are_read() {
    for name in [
        "v1_flat",
        "v1_old_words",
        "v2_bom_crlf",
        "v2_wrong_types",
        "root_differs",
        "numbers_for_version",
    ] {
        let imported = import(&format!("{name}.json"));
        assert_eq!(imported.card.name(), "Maren", "{name}");
        assert!(imported.avatar.is_none(), "{name}");
    }
    let flat = import("v1_flat.json").card;
    assert_eq!(flat.talkativeness(), Some(0.3));
    assert_eq!(flat.document["chat"], "Maren - 2023-4-21");
    assert_eq!(import("v1_old_words.json").card.scenario(), "A lighthouse.");
    let root = import("root_differs.json").card;
    assert_eq!(
        root.description(),
        "Keeps the lamp of the northern lighthouse."
    );
    assert_eq!(
        import("numbers_for_version.json").card.spec_version(),
        "3.0"
    );
}

#[test]
fn repairs_are_reported_as_warnings() {
    let imported = import("v2_wrong_types.json");

    for part in [
        "`tags`",
        "`alternate_greetings`",
        "`character_version`",
        "`talkativeness`",
        "Skerries",
    ] {
        assert!(
            has_warning(&imported, part),
            "{part}: {:?}",
            imported.card.warnings
        );
    }
    assert_eq!(imported.card.linked_world(), Some("Skerries"));
    assert_eq!(imported.card.depth_prompt().expect("one").depth, 2);
    assert_eq!(
        imported.card.document["data"]["extensions"]["chub"]["id"],
        7
    );
}

#[test]
fn a_newer_version_keeps_unknown_fields() {
    let imported = import("v3_newer.json");

    assert_eq!(imported.card.spec_version(), "3.4");
    assert_eq!(imported.card.display_name(), "Maren");
    assert_eq!(
        imported.card.document["data"]["from_the_future"],
        json!({"deep": [1, null]})
    );
    assert!(
        has_warning(&imported, "not downloaded: 1"),
        "{:?}",
        imported.card.warnings
    );
}

#[test]
fn a_card_is_found_in_any_text_chunk_of_a_png() {
    for name in [
        "text",
        "twice",
        "after_image",
        "keyword_case",
        "bad_checksum",
        "packed_ztxt",
        "plain_itxt",
        "packed_itxt",
        "foreign",
        "wrapped_base64",
        "no_end",
        "moving",
        "broken_v3",
        "cut_after_card",
    ] {
        let imported = import(&format!("{name}.png"));
        assert_eq!(imported.card.name(), "Maren", "{name}");
        let is_cut = ["cut_after_card", "no_end"].contains(&name);
        assert_eq!(
            imported.avatar.is_some(),
            !is_cut,
            "{name}: {:?}",
            imported.card.warnings
        );
    }
    assert_eq!(import("both.png").card.name(), "Maren the third");
    assert!(import("text.png").card.warnings.is_empty());
    for (name, part) in [
        ("bad_checksum.png", "checksum"),
        ("twice.png", "more than one"),
        ("broken_v3.png", "newer card"),
        ("no_end.png", "incomplete"),
        ("cut_after_card.png", "picture was skipped"),
    ] {
        assert!(has_warning(&import(name), part), "{name}");
    }
}

#[test]
fn an_older_card_replaces_a_broken_newer_one() {
    for (name, part) in [
        ("v3_not_base64.png", "base64"),
        ("v3_not_utf8.png", "UTF-8"),
        ("v3_not_json.png", "JSON"),
        ("v3_cut.png", "JSON"),
        ("v3_not_packed.png", "decompressed"),
        ("v3_too_large.png", "decompressed"),
    ] {
        let imported = import(name);
        assert_eq!(imported.card.name(), "Maren", "{name}");
        assert!(imported.avatar.is_some(), "{name}");
        let warnings = &imported.card.warnings;
        assert_eq!(warnings.len(), 1, "{name}: {warnings:?}");
        assert!(has_warning(&imported, part), "{name}: {warnings:?}");
        assert!(has_warning(&imported, "older"), "{name}: {warnings:?}");
    }
}

#[test]
fn errors_of_files_without_a_card_state_the_reason() {
    for (name, part) in [
        ("no_card.png", "contains no card"),
        ("not_base64.png", "not base64"),
        ("cut_before_card.png", "byte 60"),
        ("bomb_ztxt.png", "cannot be decompressed"),
        ("no_card.charx", "no `card.json`"),
        ("broken_card.charx", "`card.json`"),
        ("leads_out.charx", "lead out"),
        ("absolute.charx", "lead out"),
        ("link.charx", "links"),
        ("encrypted.charx", "encrypted"),
        ("bomb.charx", "is too large"),
        ("bomb_asset.charx", "is too large"),
        ("lying_size.charx", "cannot be read"),
        ("cut.charx", "its end is missing"),
    ] {
        let reason = import_error(name);
        assert!(reason.contains(part), "{name}: {reason}");
    }
}

#[test]
fn a_card_is_imported_without_an_image_past_the_limits() {
    let imported = import("enormous.png");

    assert_eq!(imported.card.name(), "Maren");
    assert!(imported.avatar.is_none());
    assert!(has_warning(&imported, "picture was skipped"));
}

#[test]
fn an_archive_is_imported_with_its_picture_and_assets() {
    for name in ["whole", "behind_jpeg", "behind_program", "extras"] {
        let imported = import(&format!("{name}.charx"));
        assert!(imported.avatar.is_some(), "{name}");
        let names: Vec<&str> = imported.assets.names().collect();
        let both = [
            "assets/icon/images/lamp.png",
            "assets/background/images/coast.png",
        ];
        // Risu's binary files are kept, though no card names them.
        let opaque = match name {
            "extras" => &["module.risum", "x_meta/1.json"][..],
            _ => &[],
        };
        assert_eq!(names, [&both[..], opaque].concat(), "{name}");
    }
    for name in ["lying_extension", "misspelt_right"] {
        let imported = import(&format!("{name}.charx"));
        assert!(
            imported.avatar.is_some(),
            "{name}: {:?}",
            imported.card.warnings
        );
    }
    assert!(import("whole.charx").card.warnings.is_empty());
    assert!(has_warning(
        &import("extras.charx"),
        "were kept and will be exported again: 2"
    ));
    assert!(has_warning(
        &import("missing_asset.charx"),
        "not in the file: 1"
    ));
}

#[test]
fn assets_of_a_png_are_kept_if_the_card_names_them() {
    let imported = import("assets.png");

    assert_eq!(imported.assets.names().collect::<Vec<_>>(), ["joy"]);
    assert!(
        has_warning(&imported, "not in the file: 1"),
        "{:?}",
        imported.card.warnings
    );
}

#[test]
fn a_backyard_archive_becomes_a_card() {
    let imported = import("maren.byaf");
    let card = &imported.card;

    assert_eq!((card.name(), card.n_lore_entries()), ("Maren", 1));
    assert_eq!(card.first_mes(), "Mind the stairs, {{user}}.");
    assert_eq!(card.alternate_greetings(), ["You came by boat?"]);
    assert_eq!(card.system_prompt(), "Write short sentences.");
    assert!(imported.avatar.is_some());
    assert!(has_warning(&imported, "chats"), "{:?}", card.warnings);
}

#[test]
fn an_export_is_imported_equal_from_every_container() {
    for name in [
        "text.png",
        "both.png",
        "moving.png",
        "assets.png",
        "v2_wrong_types.json",
        "v1_flat.json",
        "maren.byaf",
    ] {
        let before = import(name).card.document;
        let again = from_bytes(&bytes_of(to_export(import(name)).as_png()));
        assert_eq!(again.card.document, before, "{name}");
        assert!(again.avatar.is_some(), "{name}");
    }
    for name in [
        "whole.charx",
        "behind_jpeg.charx",
        "missing_asset.charx",
        "v3_newer.json",
    ] {
        let before = import(name);
        let again = from_bytes(&bytes_of(to_export(import(name)).as_charx()));
        assert_eq!(again.card.document, before.card.document, "{name}");
        let names = before.assets.names().collect::<Vec<_>>();
        assert_eq!(again.assets.names().collect::<Vec<_>>(), names, "{name}");
    }
    for name in [
        "text.png",
        "whole.charx",
        "v2_bom_crlf.json",
        "numbers_for_version.json",
    ] {
        let before = import(name).card.document;
        let json = to_export(import(name)).document(None).to_string();
        assert_eq!(from_bytes(json.as_bytes()).card.document, before, "{name}");
    }
}

#[test]
fn assets_move_between_containers() {
    let as_png = from_bytes(&bytes_of(to_export(import("whole.charx")).as_png()));
    let as_charx = from_bytes(&bytes_of(to_export(import("assets.png")).as_charx()));

    assert_eq!(as_png.assets.names().count(), 2);
    let uris = |it: &Value| {
        it["data"]["assets"][1]["uri"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(
        uris(&as_png.card.document),
        "__asset:assets/background/images/coast.png"
    );
    assert_eq!(uris(&as_charx.card.document), "embeded://joy");
    assert!(
        as_charx.avatar.is_some(),
        "its picture is listed for other tools"
    );
    assert!(as_charx.assets.names().any(|it| it == "joy"));
}

#[test]
fn the_export_version_can_be_chosen() {
    let card = to_export(import("v2_bom_crlf.json"));

    assert_eq!(card.document(None)["spec"], "chara_card_v2");
    assert_eq!(
        card.document(Some(ExportVersion::V3))["spec"],
        "chara_card_v3"
    );
}

#[test]
fn unknown_macros_are_listed_by_field() {
    let card = json!({"name": "Ada", "data": {
        "name": "Ada", "description": "{{char}} {{calc::1}}", "first_mes": "{{setvar::x}}",
        "character_book": {"entries": [{"keys": ["a"], "content": "{{#each x}}"}]},
    }});

    let imported = from_bytes(card.to_string().as_bytes());

    let unknown = "contains unknown macros, which are sent as they are:";
    for (field, names) in [
        ("description", "{{calc}}"),
        ("first_mes", "{{setvar}}"),
        ("character_book", "{{each}}"),
    ] {
        assert!(has_warning(
            &imported,
            &format!("`{field}` {unknown} {names}.")
        ));
    }
    assert!(!has_warning(&imported, "`scenario`"));
}
