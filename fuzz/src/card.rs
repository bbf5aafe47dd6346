//! Card documents: an accepted card is normalized, parses to itself, and is unchanged by export and
//! import.

use serde_json::Value;
use tavern::cards::card::Card;
use tavern::cards::export_document::{export_v2, export_v3};

/// Parses the bytes as a card.
pub fn check(data: &[u8]) {
    if let Ok(card) = Card::parse(data) {
        check_round_trip(&card);
    }
}

/// Checks that export and import keep the card.
pub fn check_round_trip(card: &Card) {
    let again =
        Card::from_document(card.document.clone()).expect("the document of a card is not a card");
    assert_eq!(
        again.document, card.document,
        "parsing the document changed it"
    );
    for export in [export_v2, export_v3] {
        let out = export(card);
        let back = Card::parse(&bytes(&out)).expect("an exported card cannot be imported");
        assert_eq!(export(&back), out, "export and import changed the card");
    }
}

fn bytes(document: &Value) -> Vec<u8> {
    serde_json::to_vec(document).expect("a document serializes to JSON")
}
