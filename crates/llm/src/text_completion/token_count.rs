//! Asks the server of a text completion how many tokens a text has.

use serde_json::{Value, json};

use crate::dialect::DialectRequest;
use crate::text_completion::completion_api::CompletionApi;

/// Returns the request that counts the tokens of a text: `/tokenize` of llama.cpp's server, or
/// `/api/extra/tokencount` of KoboldCpp. `None`: the API has no such request.
pub fn request(api: CompletionApi, text: &str) -> Option<DialectRequest> {
    let (path, body) = match api {
        // The server adds the token that begins a text (BOS), as it does to a prompt.
        CompletionApi::LlamaCpp => ("/tokenize", json!({ "content": text, "add_special": true })),
        CompletionApi::Koboldcpp => ("/api/extra/tokencount", json!({ "prompt": text })),
        CompletionApi::Auto | CompletionApi::Openai => return None,
    };
    Some(DialectRequest {
        path: path.to_owned(),
        query: None,
        body,
    })
}

/// Returns the number of tokens that a response states: llama.cpp lists them in `tokens`, KoboldCpp counts
/// them in `value`.
pub fn parse(response: &Value) -> Option<i64> {
    match response["tokens"].as_array() {
        Some(tokens) => i64::try_from(tokens.len()).ok(),
        None => response["value"].as_i64().filter(|it| *it >= 0),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{parse, request};
    use crate::text_completion::completion_api::CompletionApi;

    #[test]
    fn only_the_apis_of_local_servers_count_tokens() {
        let of = |api| request(api, "Once").map(|it| (it.path, it.body));

        let tokenize = (
            "/tokenize".to_owned(),
            json!({"content": "Once", "add_special": true}),
        );
        assert_eq!(of(CompletionApi::LlamaCpp), Some(tokenize));
        let count = (
            "/api/extra/tokencount".to_owned(),
            json!({"prompt": "Once"}),
        );
        assert_eq!(of(CompletionApi::Koboldcpp), Some(count));
        assert_eq!(of(CompletionApi::Openai), None);
    }

    #[test]
    fn the_number_of_tokens_is_listed_or_counted() {
        assert_eq!(parse(&json!({"tokens": [1, 15, 7]})), Some(3));
        assert_eq!(parse(&json!({"value": 4, "ids": [1, 2, 3, 4]})), Some(4));
        for other in [
            json!({"value": -1}),
            json!({"tokens": "many"}),
            json!([3]),
            json!(null),
        ] {
            assert_eq!(parse(&other), None, "{other}");
        }
    }
}
