//! Requests and parses the log probabilities of tokens in the Chat Completions API.

use serde_json::{Map, Value, json};

use crate::request::Request;

/// Maximum number of alternative tokens that a client may request.
pub const MAX_TOP_LOGPROBS: u8 = 20;

/// Adds the fields that request log probabilities, if `request` contains `top_logprobs`.
pub fn insert_logprobs(body: &mut Map<String, Value>, request: &Request) {
    if let Some(n_others) = request.top_logprobs {
        body.insert("logprobs".to_owned(), json!(true));
        // Some servers reject zero.
        if n_others > 0 {
            body.insert("top_logprobs".to_owned(), json!(n_others));
        }
    }
}

/// Returns the log probabilities of a choice, or `None` if it has none. Entries that do not have
/// the documented format are dropped.
pub fn parse(choice: &Value) -> Option<Vec<Value>> {
    let content = choice.pointer("/logprobs/content")?.as_array()?;
    let read: Vec<Value> = content.iter().filter_map(parse_token).collect();
    (!read.is_empty()).then_some(read)
}

fn parse_token(entry: &Value) -> Option<Value> {
    let mut token = token_logprob(entry)?;
    let others = entry["top_logprobs"].as_array();
    let others = others.into_iter().flatten().filter_map(token_logprob);
    token["top_logprobs"] = others.take(usize::from(MAX_TOP_LOGPROBS)).collect();
    Some(token)
}

/// Parses one token. The bytes are needed for a token that is only a part of a character.
fn token_logprob(entry: &Value) -> Option<Value> {
    let token = entry["token"].as_str()?;
    let logprob = entry["logprob"].as_f64()?;
    let is_byte = |it: &Value| it.as_u64().is_some_and(|it| it < 256);
    let bytes = entry["bytes"]
        .as_array()
        .filter(|it| it.iter().all(is_byte));
    let bytes = bytes.map_or_else(|| json!(token.as_bytes()), |it| json!(it));
    // Databases reject U+0000.
    Some(json!({ "token": token.replace('\0', ""), "logprob": logprob, "bytes": bytes }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::{insert_logprobs, parse};
    use crate::request::Request;

    fn body(top_logprobs: Option<u8>) -> Value {
        let mut body = Map::new();
        let request = Request {
            top_logprobs,
            ..Request::default()
        };
        insert_logprobs(&mut body, &request);
        Value::Object(body)
    }

    #[test]
    fn logprobs_are_sent_only_if_requested() {
        assert_eq!(body(None), json!({}));
        assert_eq!(body(Some(0)), json!({ "logprobs": true }));
        assert_eq!(
            body(Some(2)),
            json!({ "logprobs": true, "top_logprobs": 2 })
        );
    }

    #[test]
    fn missing_token_fields_are_completed() {
        let other = json!({ "token": "Ho", "logprob": -2.5 });
        let content = json!([
            { "token": "Hé", "logprob": -0.5, "bytes": null, "top_logprobs": [other, 7] },
            { "token": "\u{fffd}", "logprob": -1, "bytes": [240, 159] },
            { "token": "a\u{0}", "logprob": 0, "bytes": [97, 0] },
        ]);

        let read = parse(&json!({ "logprobs": { "content": content } })).unwrap();

        let other = json!({ "token": "Ho", "logprob": -2.5, "bytes": [72, 111] });
        assert_eq!(
            json!(read),
            json!([
                { "token": "Hé", "logprob": -0.5, "bytes": [72, 195, 169], "top_logprobs": [other] },
                { "token": "\u{fffd}", "logprob": -1.0, "bytes": [240, 159], "top_logprobs": [] },
                { "token": "a", "logprob": 0.0, "bytes": [97, 0], "top_logprobs": [] },
            ])
        );
    }

    #[test]
    fn unknown_logprobs_are_ignored() {
        for logprobs in [
            json!(null),
            json!({ "content": null }),
            json!({ "content": [] }),
            json!({ "content": [{ "token": 1, "logprob": 2 }, { "token": "a" }, []] }),
            json!({ "tokens": ["a"], "token_logprobs": [-1] }),
        ] {
            assert_eq!(parse(&json!({ "logprobs": logprobs })), None, "{logprobs}");
        }
    }
}
