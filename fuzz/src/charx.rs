//! Archives with cards: whatever is in one, it is unpacked within its limits, and the card that was
//! in it goes out as an archive and comes in again.

use std::fs::File;
use std::io::Seek;
use std::io::Write;

use troupe::characters::export::export_v3;
use troupe::characters::outgoing::Character;
use troupe::characters::parcel;

/// Unpacks the bytes.
pub fn is_held(data: &[u8]) {
    let Ok(parcel) = parcel::unpack(file(data)) else {
        return;
    };
    let name = export_v3(&parcel.card)["data"]["name"].clone();
    let out = Character {
        card: parcel.card,
        assets: Vec::new(),
    };
    let out = out.as_charx().expect("a card goes out");
    let back = parcel::unpack(file(&out)).expect("what goes out comes in");
    assert_eq!(export_v3(&back.card)["data"]["name"], name);
}

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().expect("a temporary file can be made");
    file.write_all(bytes).expect("it takes the bytes");
    file.rewind().expect("it can be read");
    file
}
