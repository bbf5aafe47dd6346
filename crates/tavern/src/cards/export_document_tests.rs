//! Tests that exports equal what was imported.

use proptest::prelude::{
    Just, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest,
};

use super::{Card, Value, export_v2, export_v3, json};

fn read(document: Value) -> Card {
    Card::from_document(document).expect("a card")
}

fn v2(data: Value) -> Value {
    json!({"spec": "chara_card_v2", "spec_version": "2.0", "data": data})
}

#[test]
fn exports_state_their_version_and_keep_all_fields() {
    let card = read(
        json!({"spec": "chara_card_v3", "spec_version": "3.0", "extra": 1, "data": {
            "name": "Ada", "nickname": "A", "group_only_greetings": ["g"], "unknown": {"deep": [1]},
            "character_book": {"entries": [{"keys": ["k"]}, {"use_regex": true}]},
        }}),
    );

    let (v2, v3) = (export_v2(&card), export_v3(&card));

    assert_eq!(
        (&v2["spec"], &v2["spec_version"]),
        (&json!("chara_card_v2"), &json!("2.0"))
    );
    assert_eq!(
        (&v3["spec"], &v3["spec_version"]),
        (&json!("chara_card_v3"), &json!("3.0"))
    );
    for document in [&v2, &v3] {
        assert_eq!(document["extra"], 1);
        assert_eq!(document["data"]["unknown"]["deep"], json!([1]));
        assert_eq!(document["data"]["group_only_greetings"], json!(["g"]));
    }
    assert_eq!(
        v3["data"]["character_book"]["entries"][0]["use_regex"],
        false
    );
    assert_eq!(
        v3["data"]["character_book"]["entries"][1]["use_regex"],
        true
    );
}

#[test]
fn a_v2_card_exported_as_v3_has_the_required_fields() {
    let card = read(v2(json!({"name": "Ada"})));

    assert_eq!(export_v3(&card)["data"]["group_only_greetings"], json!([]));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-zA-Zäß漢🦊\"\\\\ ]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::hash_map("[a-z_]{1,8}", inner, 0..5)
                .prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn unknown_fields_survive_import_edit_and_export(
        unknown in any_json(), at_root in any_json(), extension in any_json(),
    ) {
        let card = read(json!({"spec": "chara_card_v2", "x_root": at_root, "data": {
            "name": "Ada", "x_unknown": unknown, "extensions": {"x_extension": extension},
        }}));
        let changes = json!({"description": "new"});
        let edited = card.with_changes(changes.as_object().unwrap().clone()).unwrap();
        let out = read(export_v3(&edited));

        prop_assert_eq!(&out.document["x_root"], &at_root);
        prop_assert_eq!(&out.document["data"]["x_unknown"], &unknown);
        prop_assert_eq!(&out.document["data"]["extensions"]["x_extension"], &extension);
    }

    #[test]
    fn any_json_is_read_or_refused(document in any_json(), data in any_json()) {
        let _ = Card::from_document(document);
        let read = Card::from_document(v2(data));
        if let Ok(card) = read {
            prop_assert!(!card.name().is_empty());
            prop_assert_eq!(Card::from_document(card.document.clone()).unwrap().document, card.document);
        }
    }
}
