//! What leaves can come in again, or is not given away in that form.

use super::Card;
use super::CardError;
use super::Character;
use crate::characters::card;
use crate::characters::parcel;
use crate::characters::png;
use serde_json::Value;
use serde_json::json;
use std::io::Seek;
use std::io::Write;

fn character(fields: Value, assets: &[(&str, usize)]) -> Character {
    let card = Card::from_document(fields).expect("a card");
    let asset = |(name, length): &(&str, usize)| ((*name).to_owned(), vec![7; *length]);
    Character {
        card,
        assets: assets.iter().map(asset).collect(),
    }
}

fn ada(data: Value) -> Value {
    let mut document = json!({"spec": "chara_card_v3", "data": {"name": "Ada"}});
    let fields = document["data"].as_object_mut().expect("an object");
    fields.extend(data.as_object().expect("an object").clone());
    document
}

fn back(bytes: &[u8]) -> Card {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("room on the disk");
    file.rewind().expect("its beginning");
    parcel::unpack(file).expect("what goes out comes in").card
}

#[test]
fn no_png_leaves_that_would_not_come_in() {
    let most = png::MAX_BYTES as usize;
    let many = [("a", most / 3), ("b", most / 3), ("c", most / 3)];

    let refused = character(ada(json!({})), &many).as_png();
    let refused = refused.expect_err("it would be larger than 20 MiB");
    let taken = character(ada(json!({})), &[("a", most / 3)]).as_png();

    assert!(matches!(refused, CardError::TooLarge(_)), "{refused:?}");
    assert!(refused.to_string().contains("CHARX"), "{refused}");
    assert_eq!(back(&taken.expect("a PNG")).name(), "Ada");
}

#[test]
fn an_archive_of_a_large_card_comes_in_again() {
    // Written with indents it is larger than a card may be, and it packs better than is believed.
    let many =
        ada(json!({"extensions": {"x": vec![json!([0]); 120_000], "y": "0".repeat(3_500_000)}}));
    let indented = serde_json::to_vec_pretty(&many).expect("JSON").len();
    assert!(indented > card::MAX_BYTES, "{indented} bytes");
    let even = ada(json!({"description": "x".repeat(1_000_000)}));

    for document in [many, even] {
        let before = character(document, &[]);
        let after = back(&before.as_charx().expect("an archive"));
        assert_eq!(
            after.document["data"]["extensions"],
            before.card.document["data"]["extensions"]
        );
        assert_eq!(after.description(), before.card.description());
    }
}
