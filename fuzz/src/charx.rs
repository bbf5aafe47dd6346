//! Archives with cards: whatever is in one, it is unpacked within its limits, and the card that was
//! in it goes out as an archive and comes in again.

use std::fs::File;
use std::io::{Seek, Write};

use tavern::cards::card_file;
use tavern::cards::export::export_v3;
use tavern::cards::export_file::CardExport;
use tavern::cards::temp_assets::TempAssets;

/// Unpacks the bytes.
pub fn is_held(data: &[u8]) {
    let Ok(read) = card_file::read(file(data)) else {
        return;
    };
    let name = export_v3(&read.card)["data"]["name"].clone();
    let mut out = CardExport {
        card: read.card,
        assets: TempAssets::new().expect("a temporary file can be created"),
    };
    let out = out.as_charx().expect("a card goes out");
    let back = card_file::read(out).expect("what goes out comes in");
    assert_eq!(export_v3(&back.card)["data"]["name"], name);
}

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().expect("a temporary file can be made");
    file.write_all(bytes).expect("it takes the bytes");
    file.rewind().expect("it can be read");
    file
}
