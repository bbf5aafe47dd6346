//! Writes the persona of an Agnai character as a description: plain text, or its attributes in the
//! notation that the character states (lists, W++, SBF, Boostyle).

use serde_json::Value;

/// Returns the description of a persona `{kind, attributes}`, and `None` if its kind is unknown or
/// it has no attributes.
pub fn describe(name: &str, persona: &Value) -> Option<String> {
    let attributes = read_attributes(persona.get("attributes")?)?;
    match persona.get("kind")?.as_str()? {
        "text" => {
            let texts: Vec<String> = attributes.into_iter().flat_map(|it| it.1).collect();
            Some(texts.join("\n"))
        }
        "attributes" => Some(as_lines(&attributes)),
        "wpp" => Some(as_wpp(name, &attributes)),
        "sbf" => Some(as_sbf(name, &attributes)),
        "boostyle" => Some(as_boostyle(name, &attributes)),
        _ => None,
    }
}

/// The attributes with their values, in the order of the file.
type Attributes = Vec<(String, Vec<String>)>;

fn read_attributes(attributes: &Value) -> Option<Attributes> {
    let read = attributes.as_object()?.iter().map(|(name, values)| {
        let values: Vec<String> = match values {
            Value::Array(items) => items.iter().filter_map(plain_text).collect(),
            value => plain_text(value).into_iter().collect(),
        };
        (name.trim().to_owned(), values)
    });
    let read: Attributes = read.filter(|(_, values)| !values.is_empty()).collect();
    (!read.is_empty()).then_some(read)
}

fn plain_text(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Bool(truth) => truth.to_string(),
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}

fn as_lines(attributes: &Attributes) -> String {
    let lines = attributes
        .iter()
        .map(|(name, values)| format!("{name}: {}", values.join(", ")));
    lines.collect::<Vec<_>>().join("\n")
}

fn as_wpp(name: &str, attributes: &Attributes) -> String {
    let lines = attributes.iter().map(|(attribute, values)| {
        let quoted: Vec<String> = values.iter().map(|it| quote(it)).collect();
        format!("{attribute}({})\n", quoted.join(" + "))
    });
    let lines: String = lines.collect();
    format!("[character({})\n{{\n{lines}}}]", quote(name))
}

fn as_sbf(name: &str, attributes: &Attributes) -> String {
    let parts = attributes.iter().map(|(attribute, values)| {
        let quoted: Vec<String> = values.iter().map(|it| quote(it)).collect();
        format!("; {attribute}: {}", quoted.join(", "))
    });
    let parts: String = parts.collect();
    format!("[character: {}{parts}]", quote(name))
}

fn as_boostyle(name: &str, attributes: &Attributes) -> String {
    let values = attributes.iter().flat_map(|(_, values)| values);
    let quoted: Vec<String> = values.map(|it| quote(it)).collect();
    format!("{name} = {}", quoted.join(" + "))
}

fn quote(text: &str) -> String {
    format!("\"{text}\"")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::describe;

    #[test]
    fn each_kind_has_its_notation() {
        let attributes =
            json!({"species": ["human"], "mind": ["calm", "witty"], "age": 36, "": []});
        let of = |kind: &str| {
            let persona = json!({"kind": kind, "attributes": attributes});
            describe("Ada", &persona)
        };

        assert_eq!(
            of("attributes").as_deref(),
            Some("species: human\nmind: calm, witty\nage: 36")
        );
        assert_eq!(
            of("wpp").as_deref(),
            Some(
                "[character(\"Ada\")\n{\nspecies(\"human\")\nmind(\"calm\" + \"witty\")\n\
                 age(\"36\")\n}]"
            )
        );
        assert_eq!(
            of("sbf").as_deref(),
            Some(
                "[character: \"Ada\"; species: \"human\"; mind: \"calm\", \"witty\"; age: \"36\"]"
            )
        );
        assert_eq!(
            of("boostyle").as_deref(),
            Some("Ada = \"human\" + \"calm\" + \"witty\" + \"36\"")
        );
        assert_eq!(of("unknown"), None);
    }

    #[test]
    fn a_text_is_the_description_itself() {
        let persona = json!({"kind": "text", "attributes": {"text": ["{{char}} builds engines."]}});

        assert_eq!(
            describe("Ada", &persona).as_deref(),
            Some("{{char}} builds engines.")
        );
        for other in [
            json!({}),
            json!({"kind": "text", "attributes": {}}),
            json!(7),
        ] {
            assert_eq!(describe("Ada", &other), None);
        }
    }
}
