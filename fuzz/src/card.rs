//! Card documents: what is taken is whole, is taken again as it is, and loses nothing on its way out
//! and in.

use serde_json::Value;
use tavern::cards::card::Card;
use tavern::cards::export::{export_v2, export_v3};

/// Reads the bytes as a card.
pub fn is_held(data: &[u8]) {
    if let Ok(card) = Card::parse(data) {
        round_trips(&card);
    }
}

/// Import, export, import: the same card.
pub fn round_trips(card: &Card) {
    let again = Card::from_document(card.document.clone()).expect("a card is a card");
    assert_eq!(again.document, card.document, "what is taken is whole");
    for export in [export_v2, export_v3] {
        let out = export(card);
        let back = Card::parse(&bytes(&out)).expect("what goes out comes in");
        assert_eq!(export(&back), out, "nothing is lost on the way");
    }
}

fn bytes(document: &Value) -> Vec<u8> {
    serde_json::to_vec(document).expect("a document is JSON")
}
