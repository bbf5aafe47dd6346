//! Parses and validates the body of `POST /v1/embeddings`, which requests the vectors of texts.

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::request::error::RequestError;
use crate::request::object_reader;
use crate::request::object_reader::ObjectReader;

const KNOWN: [&str; 5] = ["model", "input", "encoding_format", "dimensions", "user"];

/// The maximum number of texts.
const MAX_TEXTS: usize = 2_048;

/// The maximum number of tokens of a text.
pub const MAX_TEXT_TOKENS: usize = 8_192;

/// The maximum number of tokens of all texts.
pub const MAX_TOKENS: usize = 300_000;

const INPUT_FORMS: &str = "a string, a list of strings, or token ids";

/// How a vector is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum VectorEncoding {
    /// A list of numbers.
    Float,
    /// Base64 of 32-bit numbers, least significant byte first.
    Base64,
}

/// The texts of a request; at least one, and none is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EmbeddedTexts {
    Texts(Vec<String>),
    /// Each text as a list of the model's token ids.
    TokenIds(Vec<Vec<u32>>),
}

/// A request for embeddings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateEmbeddings {
    pub model: String,
    pub input: EmbeddedTexts,
    pub encoding: VectorEncoding,
    /// The requested number of components of each vector.
    pub dimensions: Option<usize>,
    /// An identifier of the end user for the provider.
    pub user: Option<String>,
}

impl CreateEmbeddings {
    /// Parses the body of a request. Does not count the tokens of strings.
    ///
    /// # Errors
    /// Returns the first invalid field.
    pub fn parse(body: &Map<String, Value>) -> Result<Self, RequestError> {
        object_reader::parse(body, |body| {
            body.require_known(&KNOWN);
            let model = body.text("model").unwrap_or_default();
            if model.is_empty() {
                body.missing("model", "This parameter is required.");
            }
            let input = input(body);
            let encoding = body.word("encoding_format");
            let dimensions = body.integer("dimensions", 1..=i64::from(u32::MAX));
            Self {
                model: model.to_owned(),
                input,
                encoding: encoding.unwrap_or(VectorEncoding::Float),
                dimensions: dimensions.and_then(|it| usize::try_from(it).ok()),
                user: body.text("user").map(str::to_owned),
            }
        })
    }
}

fn input(body: &ObjectReader<'_>) -> EmbeddedTexts {
    match body.get("input") {
        None => body.missing("input", "This parameter is required."),
        Some(Value::String(text)) => {
            body.require(!text.is_empty(), "input", "a text that is not empty");
            return EmbeddedTexts::Texts(vec![text.clone()]);
        }
        Some(Value::Array(list)) => return list_input(body, list),
        Some(_) => body.wrong_type("input", INPUT_FORMS),
    }
    EmbeddedTexts::Texts(Vec::new())
}

/// Reads a list, whose first element determines what the others must be.
fn list_input(body: &ObjectReader<'_>, list: &[Value]) -> EmbeddedTexts {
    let is_text_of_ids = matches!(list.first(), Some(Value::Number(_)));
    if is_text_of_ids {
        return EmbeddedTexts::TokenIds(vec![token_ids(body, "input", list)]);
    }
    let expected = format!("a list of 1 to {MAX_TEXTS} texts");
    body.require((1..=MAX_TEXTS).contains(&list.len()), "input", &expected);
    let elements = list.iter().take(MAX_TEXTS).enumerate();
    let elements = elements.map(|(at, value)| (format!("input[{at}]"), value));
    if !matches!(list.first(), Some(Value::Array(_))) {
        let texts = elements.map(|(name, value)| text(body, &name, value));
        return EmbeddedTexts::Texts(texts.collect());
    }
    let texts: Vec<Vec<u32>> = elements
        .map(|(name, value)| match value.as_array() {
            Some(ids) => token_ids(body, &name, ids),
            None => {
                body.wrong_type(&name, "a list of token ids");
                Vec::new()
            }
        })
        .collect();
    let n_tokens: usize = texts.iter().map(Vec::len).sum();
    let expected = format!("at most {MAX_TOKENS} tokens");
    body.require(n_tokens <= MAX_TOKENS, "input", &expected);
    EmbeddedTexts::TokenIds(texts)
}

fn text(body: &ObjectReader<'_>, name: &str, value: &Value) -> String {
    let Some(text) = value.as_str() else {
        body.wrong_type(name, "a string");
        return String::new();
    };
    body.require(!text.is_empty(), name, "a text that is not empty");
    text.to_owned()
}

fn token_ids(body: &ObjectReader<'_>, name: &str, list: &[Value]) -> Vec<u32> {
    let expected = format!("a list of 1 to {MAX_TEXT_TOKENS} token ids");
    body.require((1..=MAX_TEXT_TOKENS).contains(&list.len()), name, &expected);
    let each = list.iter().take(MAX_TEXT_TOKENS).enumerate();
    each.map(|(at, value)| {
        let id = value.as_u64().and_then(|it| u32::try_from(it).ok());
        if id.is_none() {
            body.wrong_type(&format!("{name}[{at}]"), "a token id");
        }
        id.unwrap_or_default()
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{CreateEmbeddings, EmbeddedTexts, KNOWN, MAX_TEXT_TOKENS, VectorEncoding};
    use crate::schemas::request_bodies::EmbeddingsBody;
    use crate::schemas::request_values;

    fn parse(body: Value) -> Result<CreateEmbeddings, (&'static str, String)> {
        let body = body.as_object().unwrap().clone();
        CreateEmbeddings::parse(&body).map_err(|it| (it.code, it.param))
    }

    fn parse_input(input: Value) -> Result<EmbeddedTexts, (&'static str, String)> {
        parse(json!({ "model": "m", "input": input })).map(|it| it.input)
    }

    fn texts(texts: &[&str]) -> EmbeddedTexts {
        EmbeddedTexts::Texts(texts.iter().map(|&it| it.to_owned()).collect())
    }

    #[test]
    fn only_the_model_and_the_input_are_required() {
        let expected = CreateEmbeddings {
            model: "m".to_owned(),
            input: texts(&["a"]),
            encoding: VectorEncoding::Float,
            dimensions: None,
            user: None,
        };

        assert_eq!(
            parse(json!({ "model": "m", "input": "a" })),
            Ok(expected.clone())
        );
        let nulls = json!({
            "model": "m", "input": "a", "encoding_format": null, "dimensions": null, "user": null,
        });
        assert_eq!(parse(nulls), Ok(expected));
    }

    #[test]
    fn every_parameter_is_read() {
        let body = json!({
            "model": "m", "input": ["a", "b"], "encoding_format": "base64", "dimensions": 256, "user": "u",
        });

        let expected = CreateEmbeddings {
            model: "m".to_owned(),
            input: texts(&["a", "b"]),
            encoding: VectorEncoding::Base64,
            dimensions: Some(256),
            user: Some("u".to_owned()),
        };
        assert_eq!(parse(body), Ok(expected));
    }

    #[test]
    fn an_input_is_a_text_or_a_list_of_texts_as_strings_or_token_ids() {
        let ids = |ids: &[&[u32]]| {
            let ids = ids.iter().map(|it| it.to_vec());
            EmbeddedTexts::TokenIds(ids.collect())
        };
        for (input, expected) in [
            (json!(" "), texts(&[" "])),
            (json!(["a", "a"]), texts(&["a", "a"])),
            (json!([1, 2]), ids(&[&[1, 2]])),
            (json!([[1, 2], [3]]), ids(&[&[1, 2], &[3]])),
            (json!(vec!["a"; 2_048]), texts(&["a"; 2_048])),
        ] {
            assert_eq!(parse_input(input.clone()), Ok(expected), "{input}");
        }
        let longest = json!(vec![7; MAX_TEXT_TOKENS]);
        assert!(parse_input(longest).is_ok());
    }

    #[test]
    fn an_invalid_input_names_its_element() {
        for (input, code, param) in [
            (json!(null), "missing_required_parameter", "input"),
            (json!(42), "invalid_type", "input"),
            (json!({}), "invalid_type", "input"),
            (json!(""), "invalid_value", "input"),
            (json!([]), "invalid_value", "input"),
            (json!(["a", ""]), "invalid_value", "input[1]"),
            (json!(["a", 7]), "invalid_type", "input[1]"),
            (json!(["a", null]), "invalid_type", "input[1]"),
            (json!([null]), "invalid_type", "input[0]"),
            (json!([1, "a"]), "invalid_type", "input[1]"),
            (json!([1, 1.5]), "invalid_type", "input[1]"),
            (json!([-1]), "invalid_type", "input[0]"),
            (json!([1, 4_294_967_296_u64]), "invalid_type", "input[1]"),
            (json!([[1], "a"]), "invalid_type", "input[1]"),
            (json!([[1], []]), "invalid_value", "input[1]"),
            (json!([[1], ["a"]]), "invalid_type", "input[1][0]"),
            (json!(vec!["a"; 2_049]), "invalid_value", "input"),
            (
                json!(vec![7; MAX_TEXT_TOKENS + 1]),
                "invalid_value",
                "input",
            ),
            (
                json!([vec![7; MAX_TEXT_TOKENS + 1]]),
                "invalid_value",
                "input[0]",
            ),
            (json!(vec![vec![7; 8_000]; 38]), "invalid_value", "input"),
        ] {
            let result = parse_input(input);
            assert_eq!(result, Err((code, param.to_owned())));
        }
    }

    #[test]
    fn an_invalid_parameter_is_named() {
        for (name, value, code) in [
            ("model", json!(null), "missing_required_parameter"),
            ("model", json!(""), "missing_required_parameter"),
            ("model", json!(7), "invalid_type"),
            ("encoding_format", json!("int8"), "invalid_value"),
            ("encoding_format", json!(32), "invalid_type"),
            ("dimensions", json!(0), "invalid_value"),
            ("dimensions", json!("256"), "invalid_type"),
            ("user", json!(7), "invalid_type"),
            ("wobble", json!(1), "unknown_parameter"),
        ] {
            let mut body = json!({ "model": "m", "input": "a" });
            body[name] = value;
            assert_eq!(parse(body), Err((code, name.to_owned())));
        }
    }

    #[test]
    fn the_api_document_has_every_field() {
        let mut known = KNOWN;
        known.sort_unstable();

        assert_eq!(request_values::field_names::<EmbeddingsBody>(), known);
    }
}
