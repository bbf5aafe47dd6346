//! Fields that an admin adds to the body of every request of a provider.

use serde_json::{Map, Value};

/// Fields that cannot be set, because the server builds them.
pub const RESERVED: [&str; 4] = ["model", "messages", "prompt", "stream"];

/// Merges fields into a body: objects are merged, `null` removes a field, and all other values replace
/// what the body has.
pub fn merge(body: &mut Value, extra: &Map<String, Value>) {
    if !body.is_object() && !extra.is_empty() {
        *body = Value::Object(Map::new());
    }
    let Some(fields) = body.as_object_mut() else {
        return;
    };
    for (name, value) in extra {
        match value {
            Value::Null => drop(fields.shift_remove(name)),
            Value::Object(inner) => {
                merge(fields.entry(name.as_str()).or_insert(Value::Null), inner)
            }
            value => drop(fields.insert(name.clone(), value.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    fn merged(mut body: Value, extra: &Value) -> Value {
        super::merge(&mut body, extra.as_object().unwrap());
        body
    }

    #[test]
    fn objects_are_merged_and_other_values_replaced() {
        let body = json!({"a": {"b": 1, "c": [1, 2]}, "d": 1});
        let extra = json!({"a": {"c": [3], "e": {"f": 1}}, "d": {"g": 2}});

        let expected = json!({"a": {"b": 1, "c": [3], "e": {"f": 1}}, "d": {"g": 2}});
        assert_eq!(merged(body, &extra), expected);
    }

    #[test]
    fn null_removes_a_field() {
        let body = json!({"a": 1, "b": {"c": 1, "d": 2}});

        let sent = merged(
            body.clone(),
            &json!({"a": null, "b": {"c": null}, "e": null}),
        );

        assert_eq!(sent, json!({"b": {"d": 2}}));
        assert_eq!(merged(body.clone(), &json!({})), body);
    }
}
