//! Finds the regex scripts of a card or a preset.

use serde_json::Value;

use crate::regex_scripts::script::RegexScript;

/// The maximum number of scripts of a card or a preset; the others have no effect.
pub const MAX_SCRIPTS: usize = 200;

/// Returns the scripts under `regex_scripts` of the `extensions` of a card or a preset, in their order.
/// What is no script is left out.
pub fn read(extensions: &Value) -> Vec<RegexScript> {
    let scripts = extensions.get("regex_scripts").and_then(Value::as_array);
    let scripts = scripts.map_or(&[][..], Vec::as_slice).iter();
    let scripts = scripts.filter_map(RegexScript::from_value);
    scripts.take(MAX_SCRIPTS).collect()
}

/// Returns the scripts of a card document.
pub fn of_card(document: &Value) -> Vec<RegexScript> {
    read(&document["data"]["extensions"])
}

/// Returns the scripts of a preset: those of the imported file, which its `origin` keeps.
pub fn of_preset(origin: Option<&Value>) -> Vec<RegexScript> {
    origin.map_or_else(Vec::new, |it| read(&it["fields"]["extensions"]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{MAX_SCRIPTS, of_card, of_preset};

    #[test]
    fn scripts_of_cards_and_presets_are_found_in_their_order() {
        let extensions =
            json!({"regex_scripts": [{"scriptName": "a"}, 5, null, {"scriptName": "b"}]});
        let card = json!({"data": {"extensions": extensions.clone()}});
        let origin = json!({"fields": {"extensions": extensions}});

        for found in [of_card(&card), of_preset(Some(&origin))] {
            let names: Vec<&str> = found.iter().map(|it| it.name.as_str()).collect();
            assert_eq!(names, ["a", "b"]);
        }
    }

    #[test]
    fn a_document_without_scripts_has_none() {
        for card in [
            json!({}),
            json!({"data": {"extensions": 5}}),
            json!({"data": {"extensions": {"regex_scripts": {"scriptName": "a"}}}}),
        ] {
            assert_eq!(of_card(&card), []);
        }
        assert_eq!(of_preset(None), []);
    }

    #[test]
    fn scripts_beyond_the_maximum_have_no_effect() {
        let scripts = vec![json!({"scriptName": "a"}); MAX_SCRIPTS + 1];
        let card = json!({"data": {"extensions": {"regex_scripts": scripts}}});

        assert_eq!(of_card(&card).len(), MAX_SCRIPTS);
    }
}
