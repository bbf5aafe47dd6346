//! Converts a character of text-generation-webui, written as YAML or JSON (`name`, `context`,
//! `greeting`, `example_dialogue`), to the flat fields of a card.

use serde_json::{Map, Value, json};

use crate::cards::importers::flat_fields::{move_field, with_start};

/// The program's fields that a card has under another name.
const RENAMED_FIELDS: [(&str, &str); 4] = [
    ("char_name", "name"),
    ("context", "description"),
    ("greeting", "first_mes"),
    ("example_dialogue", "mes_example"),
];

/// Returns whether text-generation-webui wrote this document.
pub fn is_character(root: &Map<String, Value>) -> bool {
    let is_text = |field: &str| root.get(field).is_some_and(Value::is_string);
    let is_named = ["name", "char_name"].iter().any(|it| is_text(it));
    is_named && (is_text("context") || is_text("greeting"))
}

/// Returns the flat fields of a card.
pub fn to_flat_fields(mut root: Map<String, Value>) -> Map<String, Value> {
    for (theirs, ours) in RENAMED_FIELDS {
        move_field(&mut root, theirs, ours);
    }
    if let Some(examples) = root.get("mes_example").and_then(Value::as_str) {
        let examples = with_start(examples);
        root.insert("mes_example".to_owned(), json!(examples));
    }
    root
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{is_character, to_flat_fields};

    #[test]
    fn the_fields_become_those_of_a_card() {
        let document = json!({
            "name": "Ada", "context": "A mathematician.", "greeting": "Hello.",
            "example_dialogue": "You: Hm?\nAda: Hm.", "your_name": "Ben",
        });
        let root = document.as_object().expect("an object").clone();
        assert!(is_character(&root));

        let fields = Value::Object(to_flat_fields(root));

        assert_eq!(
            fields,
            json!({
                "name": "Ada", "description": "A mathematician.", "first_mes": "Hello.",
                "mes_example": "<START>\nYou: Hm?\nAda: Hm.", "your_name": "Ben",
            })
        );
    }

    #[test]
    fn a_document_without_context_and_greeting_is_another() {
        for other in [
            json!({"name": "Ada"}),
            json!({"context": "x"}),
            json!({"name": 1, "context": "x"}),
        ] {
            assert!(
                !is_character(other.as_object().expect("an object")),
                "{other}"
            );
        }
    }
}
