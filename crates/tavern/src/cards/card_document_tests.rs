//! Tests of card documents of other programs, and of documents that are no cards.

use std::io::{Seek, Write};

use serde_json::json;

use super::{CardError, CardFile, File, read};

fn from_bytes(bytes: &[u8]) -> Result<CardFile, CardError> {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("written");
    file.rewind().expect("at its start");
    read(file)
}

fn fixture(name: &str) -> CardFile {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/cards");
    let file = File::open(format!("{root}/{name}")).expect("a fixture");
    read(file).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn refusal(bytes: &[u8]) -> String {
    match from_bytes(bytes) {
        Err(CardError::NotACard(reason)) => reason,
        other => panic!("{}: {other:?}", String::from_utf8_lossy(bytes)),
    }
}

#[test]
fn a_character_of_agnai_becomes_a_card() {
    let card = fixture("agnai_character.json").card;

    assert_eq!(card.warnings, [] as [String; 0]);
    assert_eq!(
        card.description(),
        "[character(\"Maren\")\n{\nspecies(\"human\")\nmind(\"patient\" + \"dry\")\n\
         job(\"lighthouse keeper\")\n}]"
    );
    assert_eq!(card.first_mes(), "The lamp is lit.\nCome in.");
    assert_eq!(card.alternate_greetings(), ["Who is there?"]);
    assert_eq!(
        card.mes_example(),
        "<START>\n{{user}}: Is it cold?\n{{char}}: Always."
    );
    assert_eq!(card.system_prompt(), "Write as {{char}}.");
    assert_eq!(card.post_history_instructions(), "Stay brief.");
    assert_eq!(card.creator_notes(), "A test character.");
    assert_eq!(card.character_version(), "2");
    assert_eq!(card.depth_prompt().expect("a note").depth, 3);
    assert_eq!(card.lore_texts(), ["The lamp burns oil."]);
    assert_eq!(card.document["visualType"], "avatar");
    // Values of unknown extensions are kept byte for byte.
    assert_eq!(
        card.document["data"]["extensions"]["other_tool"]["text"],
        "kept\r\nas it is"
    );
}

#[test]
fn a_character_of_text_generation_webui_is_read_from_yaml() {
    let card = fixture("webui_character.yaml").card;

    assert_eq!(card.warnings, [] as [String; 0]);
    assert_eq!(card.name(), "Maren");
    assert_eq!(
        card.description(),
        "Maren keeps the lighthouse on the Skerries.\nShe is patient."
    );
    assert_eq!(card.first_mes(), "The lamp is lit.\nCome in.");
    assert!(
        card.mes_example()
            .starts_with("<START>\n{{user}}: Is it cold?")
    );
    assert_eq!(card.document["your_name"], "Ben");
}

#[test]
fn a_blank_v1_field_is_filled_from_the_name_of_older_tools() {
    let card = json!({"name": "Ada", "description": "", "char_persona": "Calm.", "first_mes": "Hi.",
        "char_greeting": "Unused."});

    let card = from_bytes(card.to_string().as_bytes())
        .expect("a card")
        .card;

    assert_eq!((card.description(), card.first_mes()), ("Calm.", "Hi."));
}

#[test]
fn invalid_utf8_is_replaced_and_reported_with_its_offset() {
    let card = fixture("not_utf8.json").card;

    assert_eq!(card.description(), "Keeps the light\u{FFFD}house.");
    assert_eq!(card.warnings[0].code, "invalid_encoding");
    assert_eq!(card.warnings[0].params["offset"], 49);
}

#[test]
fn a_document_of_no_known_kind_is_refused_with_its_keys() {
    let reason = refusal(br#"{"alpha": 1, "beta": {"name": "x"}}"#);
    assert!(
        reason.contains("Its top-level keys: `alpha`, `beta`."),
        "{reason}"
    );
    let reason = refusal(b"alpha: 1\nbeta: 2\n");
    assert!(reason.contains("`alpha`, `beta`"), "{reason}");
    for (bytes, part) in [
        (&b"just words"[..], "text"),
        (b"{\"messages\": [{\"msg\": \"Hi.\"}]}", "a chat of Agnai"),
        (b"a: &x 1", "an anchor"),
    ] {
        assert!(refusal(bytes).contains(part), "{}", refusal(bytes));
    }
}

#[test]
fn a_character_without_a_name_or_without_texts_is_refused() {
    let v2 = |data| json!({"spec": "chara_card_v2", "data": data}).to_string();

    let nameless = refusal(v2(json!({"name": " ", "description": "d"})).as_bytes());
    let empty = refusal(v2(json!({"name": "Ada", "tags": ["a"], "scenario": " \n"})).as_bytes());
    let persona = json!({"kind": "character", "name": "Ada", "persona": {"kind": "text"}});
    let empty_too = refusal(persona.to_string().as_bytes());

    assert_eq!(nameless, "The card has no name.");
    assert!(
        empty.starts_with("The character has no description"),
        "{empty}"
    );
    assert!(!empty_too.is_empty());
    for field in [
        "description",
        "personality",
        "scenario",
        "first_mes",
        "mes_example",
    ] {
        let card = v2(json!({"name": "Ada", field: "x"}));
        assert!(from_bytes(card.as_bytes()).is_ok(), "{field}");
    }
}
