//! Archives with cards: any archive is unpacked within the limits, and its card can be exported as
//! an archive and imported again.

use std::fs::File;
use std::io::{Seek, Write};

use tavern::cards::card_file;
use tavern::cards::export_document::export_v3;
use tavern::cards::export_file::CardExport;
use tavern::cards::temp_assets::TempAssets;

/// Reads the bytes as an archive.
pub fn check(data: &[u8]) {
    let Ok(read) = card_file::read(file(data)) else {
        return;
    };
    let name = export_v3(&read.card)["data"]["name"].clone();
    let mut out = CardExport {
        card: read.card,
        assets: TempAssets::new().expect("a temporary file can be created"),
    };
    let out = out.as_charx().expect("a card cannot be exported");
    let back = card_file::read(out).expect("an exported archive cannot be imported");
    assert_eq!(export_v3(&back.card)["data"]["name"], name);
}

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().expect("a temporary file can be created");
    file.write_all(bytes)
        .expect("a temporary file can be written");
    file.rewind().expect("a temporary file can be rewound");
    file
}
