//! Tests of reading responses: both encodings, and everything that makes a response invalid.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use serde_json::{Value, json};

use super::{EmbeddingInput, EmbeddingRequest, ExpectedVectors, read_response};
use crate::embeddings::error::EmbeddingError;

fn read_vectors(
    body: &[u8],
    n_texts: usize,
    n_dimensions: Option<usize>,
) -> Result<Vec<Vec<f32>>, EmbeddingError> {
    let expected = ExpectedVectors {
        n_texts,
        n_dimensions,
        are_scaled: true,
    };
    read_response(body, expected).map(|it| it.vectors)
}

fn read(data: Value, n_texts: usize) -> Result<Vec<Vec<f32>>, EmbeddingError> {
    read_vectors(
        json!({ "data": data }).to_string().as_bytes(),
        n_texts,
        None,
    )
}

/// Reads a response with the vector `[3, 4]` and this one.
fn read_second(embedding: Value) -> Result<Vec<f32>, EmbeddingError> {
    let vectors = read(
        json!([
            { "index": 0, "embedding": [3, 4] },
            { "index": 1, "embedding": embedding },
        ]),
        2,
    );
    vectors.map(|it| it[1].clone())
}

fn to_bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|it| it.to_le_bytes()).collect()
}

#[test]
fn a_request_contains_only_what_is_set() {
    let mut request = EmbeddingRequest {
        model: "m",
        input: EmbeddingInput::Texts(&["a", "b"]),
        dimensions: None,
        user: None,
    };
    let to_json = |request: &EmbeddingRequest<'_>| serde_json::to_value(request).unwrap();

    assert_eq!(
        to_json(&request),
        json!({ "model": "m", "input": ["a", "b"] })
    );
    request.dimensions = Some(256);
    assert_eq!(to_json(&request)["dimensions"], 256);
    let token_ids = [vec![1, 2], vec![3]];
    request.input = EmbeddingInput::TokenIds(&token_ids);
    assert_eq!(to_json(&request)["input"], json!([[1, 2], [3]]));
}

#[test]
fn vectors_that_are_not_scaled_are_returned_as_received_and_with_the_stated_tokens() {
    for (usage, n_tokens) in [
        (json!({ "prompt_tokens": 7, "total_tokens": 9 }), Some(7)),
        (json!({ "total_tokens": 9 }), Some(9)),
        (json!({ "prompt_tokens": "7" }), None),
        (json!(null), None),
    ] {
        let body = json!({ "data": [{ "index": 0, "embedding": [3, 4] }], "usage": usage });
        let expected = ExpectedVectors {
            n_texts: 1,
            n_dimensions: None,
            are_scaled: false,
        };

        let received = read_response(body.to_string().as_bytes(), expected).unwrap();

        assert_eq!(received.vectors, [[3.0, 4.0]]);
        assert_eq!(received.n_tokens, n_tokens, "{usage}");
    }
}

#[test]
fn vectors_are_ordered_by_index_and_have_the_length_one() {
    let vectors = read(
        json!([
            { "index": 1, "embedding": [0.0, -5], "object": "embedding" },
            { "embedding": [3, 4e0], "index": 0 },
        ]),
        2,
    );

    assert_eq!(vectors, Ok(vec![vec![0.6, 0.8], vec![0.0, -1.0]]));
}

#[test]
fn base64_is_read_with_and_without_padding_and_with_escapes() {
    // 0x3f3f3f3f and 0xffffffbf contain `/`.
    let numbers = [f32::from_le_bytes([0x3f; 4]), -1.999_999_9];
    for text in [
        STANDARD.encode(to_bytes(&numbers)),
        STANDARD_NO_PAD.encode(to_bytes(&numbers)),
    ] {
        assert!(text.contains('/'));
        let plain = format!(r#"{{"data": [{{"index": 0, "embedding": "{text}"}}]}}"#);
        let escaped = plain.replace('/', "\\/");

        let vectors = read_vectors(plain.as_bytes(), 1, Some(2)).unwrap();

        assert_eq!(read_vectors(escaped.as_bytes(), 1, Some(2)), Ok(vectors));
        let from_numbers = read(json!([{ "index": 0, "embedding": numbers }]), 1);
        assert_eq!(
            read_vectors(plain.as_bytes(), 1, Some(2)),
            from_numbers,
            "both encodings of the same numbers"
        );
    }
}

#[test]
fn invalid_base64_is_an_error() {
    for text in ["?", "AAAAA", "AAAA", "AAA=A"] {
        assert_eq!(
            read_second(json!(text)),
            Err(EmbeddingError::InvalidBase64),
            "{text}"
        );
    }
}

#[test]
fn another_number_of_vectors_is_an_error() {
    let item = json!({ "index": 0, "embedding": [1] });
    for n_received in [0, 1, 3] {
        assert_eq!(
            read(json!(vec![item.clone(); n_received]), 2),
            Err(EmbeddingError::WrongCount {
                n_expected: 2,
                n_received
            })
        );
    }
}

#[test]
fn a_missing_repeated_or_unknown_index_is_an_error() {
    let read_indices = |first: Value, second: Value| {
        let item = |index: Value| match index {
            Value::Null => json!({ "embedding": [1] }),
            index => json!({ "index": index, "embedding": [1] }),
        };
        read(json!([item(first), item(second)]), 2).unwrap_err()
    };

    assert_eq!(
        read_indices(json!(0), Value::Null),
        EmbeddingError::MissingIndex
    );
    assert_eq!(
        read_indices(json!(1), json!(1)),
        EmbeddingError::RepeatedIndex { index: 1 }
    );
    assert_eq!(
        read_indices(json!(0), json!(2)),
        EmbeddingError::IndexOutOfRange { index: 2 }
    );
    assert_eq!(
        read_indices(json!(0), json!(-1)),
        EmbeddingError::NoEmbeddingList
    );
}

#[test]
fn other_dimensions_than_expected_or_than_the_first_are_an_error() {
    assert_eq!(
        read_second(json!([1, 2, 3])),
        Err(EmbeddingError::WrongDimensions {
            n_expected: 2,
            n_received: 3
        })
    );
    let one = br#"{"data": [{"index": 0, "embedding": [1, 2]}]}"#;
    assert_eq!(
        read_vectors(one, 1, Some(3)),
        Err(EmbeddingError::WrongDimensions {
            n_expected: 3,
            n_received: 2
        })
    );
    assert!(read_vectors(one, 1, Some(2)).is_ok());
}

#[test]
fn a_component_that_is_no_finite_number_is_an_error() {
    for number in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let text = STANDARD.encode(to_bytes(&[1.0, number]));
        assert_eq!(
            read_second(json!(text)),
            Err(EmbeddingError::NotFinite),
            "{number}"
        );
    }
    for list in [json!([1, null]), json!([1, 1e39])] {
        assert_eq!(
            read_second(list.clone()),
            Err(EmbeddingError::NotFinite),
            "{list}"
        );
    }
    // Not JSON, but some servers write it.
    let body = br#"{"data": [{"index": 0, "embedding": [1, NaN]}]}"#;
    assert_eq!(
        read_vectors(body, 1, None),
        Err(EmbeddingError::NoEmbeddingList)
    );
}

#[test]
fn a_vector_without_direction_is_an_error() {
    assert_eq!(read_second(json!([0, -0.0])), Err(EmbeddingError::AllZero));
    let empty = json!([{ "index": 0, "embedding": [] }]);
    assert_eq!(read(empty, 1), Err(EmbeddingError::AllZero));
}

#[test]
fn very_small_and_very_large_vectors_have_the_length_one() {
    assert_eq!(read_second(json!([1e-40, 0])), Ok(vec![1.0, 0.0]));
    assert_eq!(read_second(json!([0, -3e38])), Ok(vec![0.0, -1.0]));
}

#[test]
fn another_document_is_an_error() {
    for body in [
        "",
        "{}",
        "[]",
        "<html>",
        r#"{"error": "planted"}"#,
        r#"{"data": 7}"#,
        r#"{"data": [{"index": 0}]}"#,
        r#"{"data": [{"index": 0, "embedding": [[1, 2]]}]}"#,
        r#"{"data": [{"index": 0, "embedding": {"a": 1}}]}"#,
        r#"{"data": [{"index": 0, "embedding": ["1"]}]}"#,
    ] {
        assert_eq!(
            read_vectors(body.as_bytes(), 1, None),
            Err(EmbeddingError::NoEmbeddingList),
            "{body}"
        );
    }
}
