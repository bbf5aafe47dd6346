//! Tests that exported files can be imported again, or that the export is refused.

use std::fs::File;
use std::io::Seek;

use serde_json::{Value, json};

use super::{Card, CardError, CardExport};
use crate::cards::temp_assets::TempAssets;
use crate::cards::{card_file, png};
use crate::documents::limits;

fn character(fields: Value, assets: &[(&str, usize)]) -> CardExport {
    let card = Card::from_document(fields).expect("a card");
    let mut temp_assets = TempAssets::new().expect("free disk space");
    for (name, length) in assets {
        let bytes = vec![7; *length];
        temp_assets.push(name, &bytes).expect("free disk space");
    }
    CardExport {
        card,
        assets: temp_assets,
    }
}

fn ada(data: Value) -> Value {
    let mut document =
        json!({"spec": "chara_card_v3", "data": {"name": "Ada", "description": "d"}});
    let fields = document["data"].as_object_mut().expect("an object");
    fields.extend(data.as_object().expect("an object").clone());
    document
}

fn read_back(mut file: File) -> Card {
    file.rewind().expect("file is seekable");
    card_file::read(file)
        .expect("an exported file can be imported")
        .card
}

#[test]
fn an_exported_png_can_be_imported() {
    let max_bytes = png::MAX_BYTES as usize;
    let many = [
        ("a", max_bytes / 3),
        ("b", max_bytes / 3),
        ("c", max_bytes / 3),
    ];

    let refused = character(ada(json!({})), &many).as_png();
    let refused = refused.expect_err("it would be larger than 20 MiB");
    let exported = character(ada(json!({})), &[("a", max_bytes / 3)]).as_png();

    assert!(matches!(refused, CardError::TooLarge(_)), "{refused:?}");
    assert!(refused.to_string().contains("CHARX"), "{refused}");
    assert_eq!(read_back(exported.expect("a PNG")).name(), "Ada");
}

#[test]
fn an_exported_archive_of_a_large_card_can_be_imported() {
    // Indented, `many` is larger than the limit; `even` exceeds the compression ratio.
    let many =
        ada(json!({"extensions": {"x": vec![json!([0]); 120_000], "y": "0".repeat(3_500_000)}}));
    let indented = serde_json::to_vec_pretty(&many).expect("JSON").len();
    assert!(indented > limits::MAX_BYTES, "{indented} bytes");
    let even = ada(json!({"description": "x".repeat(1_000_000)}));

    for document in [many, even] {
        let mut before = character(document, &[]);
        let after = read_back(before.as_charx().expect("an archive"));
        assert_eq!(
            after.document["data"]["extensions"],
            before.card.document["data"]["extensions"]
        );
        assert_eq!(after.description(), before.card.description());
    }
}

#[test]
fn memory_of_an_export_does_not_grow_with_its_assets() {
    let peak_bytes = |n_assets: usize, is_png: bool| {
        let names: Vec<String> = (0..n_assets).map(|it| format!("a{it}")).collect();
        let assets: Vec<_> = names.iter().map(|it| (it.as_str(), 2_000_000)).collect();
        let mut export = character(ada(json!({})), &assets);
        let measured = allocation_counter::measure(|| {
            let file = match is_png {
                true => export.as_png(),
                false => export.as_charx(),
            };
            assert!(file.expect("a file").metadata().expect("a size").len() > 2_000_000);
        });
        measured.bytes_max
    };

    for is_png in [false, true] {
        let (few, many) = (peak_bytes(1, is_png), peak_bytes(6, is_png));
        assert!(many < few + 1_000_000, "{few} and {many} bytes");
    }
}
