//! Imports the first character of a Backyard archive (BYAF) as a card, with its first image. The
//! archive contains a manifest, characters and scenarios as JSON; chats are skipped.

use serde_json::{Map, Value, json};

use crate::cards::card;
use crate::cards::card::Card;
use crate::cards::card_error::CardError;
use crate::cards::zip_archive::CardArchive;
use crate::documents::limits;
use crate::import_warning::ImportWarning;

/// The file that identifies such an archive.
pub const MANIFEST: &str = "manifest.json";
const MAX_SCENARIOS: usize = 100;
const MAX_IMAGE_BYTES: u64 = crate::cards::avatar_image::MAX_BYTES;

/// Returns the first character as a card, and the bytes of its first image.
pub fn read(archive: &mut CardArchive) -> Result<(Card, Option<Vec<u8>>), CardError> {
    let manifest = read_document(archive, MANIFEST)?;
    let characters = text_list(&manifest, "characters");
    let first = characters
        .first()
        .ok_or_else(|| CardError::reason("The archive contains no character."))?;
    let character = read_document(archive, first)?;
    let mut scenarios = Vec::new();
    for path in text_list(&manifest, "scenarios").iter().take(MAX_SCENARIOS) {
        scenarios.push(read_document(archive, path)?);
    }
    let mut card = Card::from_flat(card_fields(&character, &scenarios))?;
    if characters.len() > 1 {
        let sentence = "The archive has more than one character; only the first one was imported.";
        let warning = ImportWarning::new("other_characters", sentence);
        card.warnings.push(warning);
    }
    if scenarios
        .iter()
        .any(|it| !array_field(it, "messages").is_empty())
    {
        let sentence = "The chats in the archive were skipped.";
        card.warnings
            .push(ImportWarning::new("chats_left_out", sentence));
    }
    let folder = first.rsplit_once('/').map_or("", |(folder, _)| folder);
    let image = array_field(&character, "images").first();
    let image = image.and_then(|it| it["path"].as_str());
    let mut picture = None;
    if let Some(path) = image {
        let inside = format!("{folder}/{path}");
        let path = if archive.contains(path) {
            path
        } else {
            &inside
        };
        picture = archive.read(path, MAX_IMAGE_BYTES)?;
    }
    Ok((card, picture))
}

fn read_document(archive: &mut CardArchive, path: &str) -> Result<Value, CardError> {
    let bytes = archive.read(path, limits::MAX_BYTES as u64)?;
    let shown: String = path.chars().take(100).collect();
    let bytes = bytes.ok_or_else(|| CardError::reason(format!("The archive has no `{shown}`.")))?;
    card::parse_json(&bytes)
        .map_err(|error| CardError::reason(format!("`{shown}` in the archive: {error}")))
}

fn text_list(manifest: &Value, field: &str) -> Vec<String> {
    let texts = array_field(manifest, field)
        .iter()
        .filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

fn array_field<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    let list = value.get(field).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

fn card_fields(character: &Value, scenarios: &[Value]) -> Map<String, Value> {
    let main = scenarios.first().unwrap_or(&Value::Null);
    let name = [&character["displayName"], &character["name"]];
    let name = name.into_iter().filter_map(Value::as_str);
    let name = name.map(str::trim).find(|it| !it.is_empty());
    let mut greetings = scenarios
        .iter()
        .flat_map(|it| array_field(it, "firstMessages"));
    let first = greetings.next().map(|it| convert_placeholders(&it["text"]));
    let others: Vec<String> = greetings
        .map(|it| convert_placeholders(&it["text"]))
        .collect();
    let fields = json!({
        "name": name.unwrap_or_default(),
        "description": convert_placeholders(&character["persona"]),
        "scenario": convert_placeholders(&main["narrative"]),
        "first_mes": first.unwrap_or_default(),
        "alternate_greetings": others,
        "mes_example": example_messages(array_field(main, "exampleMessages")),
        "system_prompt": convert_placeholders(&main["formattingInstructions"]),
        "character_book": character_book(array_field(character, "loreItems")),
    });
    let fields = fields.as_object().cloned().unwrap_or_default();
    fields.into_iter().filter(|(_, it)| !it.is_null()).collect()
}

fn example_messages(messages: &[Value]) -> String {
    let texts = messages.iter().map(|it| convert_placeholders(&it["text"]));
    let texts: Vec<String> = texts.filter(|it| !it.trim().is_empty()).collect();
    match texts.is_empty() {
        true => String::new(),
        false => format!("<START>\n{}", texts.join("\n")),
    }
}

fn character_book(items: &[Value]) -> Value {
    let entry = |(order, item): (usize, &Value)| {
        let keys = convert_placeholders(&item["key"]);
        let keys = keys.split(',').map(str::trim).filter(|it| !it.is_empty());
        json!({
            "keys": keys.collect::<Vec<_>>(),
            "content": convert_placeholders(&item["value"]),
            "enabled": true,
            "insertion_order": order,
            "extensions": {},
        })
    };
    match items.is_empty() {
        true => Value::Null,
        false => {
            let entries: Vec<Value> = items.iter().enumerate().map(entry).collect();
            json!({"entries": entries, "extensions": {}})
        }
    }
}

/// Converts `{user}` and `{character}` to card macros; names in double braces are unchanged.
fn convert_placeholders(text: &Value) -> String {
    let mut text = text.as_str().unwrap_or_default().to_owned();
    for (theirs, ours) in [("{user}", "{{user}}"), ("{character}", "{{char}}")] {
        let doubled = format!("{{{theirs}}}");
        text = text.replace(&doubled, ours);
        let pieces: Vec<&str> = text.split(ours).collect();
        let pieces: Vec<String> = pieces.iter().map(|it| it.replace(theirs, ours)).collect();
        text = pieces.join(ours);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{card_fields, convert_placeholders};

    #[test]
    fn single_braces_are_doubled_only_once() {
        let text = json!("{user} and {{user}}, {character}, {{character}}, {{char}} {other}");

        assert_eq!(
            convert_placeholders(&text),
            "{{user}} and {{user}}, {{char}}, {{char}}, {{char}} {other}"
        );
        assert_eq!(convert_placeholders(&json!(7)), "");
    }

    #[test]
    fn each_field_is_mapped_to_its_card_field() {
        let character = json!({"name": "ada", "displayName": "Ada", "persona": "{character} counts.",
            "loreItems": [{"key": "engine, mill", "value": "Brass."}]});
        let scenarios = [
            json!({"narrative": "London", "formattingInstructions": "Be brief.",
                "firstMessages": [{"text": "Good day, {user}."}],
                "exampleMessages": [{"text": "{user}: Hm?"}, {"text": "{character}: Hm."}]}),
            json!({"firstMessages": [{"text": "You again."}]}),
        ];

        let card = card_fields(&character, &scenarios);

        assert_eq!(card["name"], "Ada");
        assert_eq!(card["description"], "{{char}} counts.");
        assert_eq!(card["first_mes"], "Good day, {{user}}.");
        assert_eq!(card["alternate_greetings"], json!(["You again."]));
        assert_eq!(card["mes_example"], "<START>\n{{user}}: Hm?\n{{char}}: Hm.");
        assert_eq!(
            card["character_book"]["entries"][0]["keys"],
            json!(["engine", "mill"])
        );
    }
}
