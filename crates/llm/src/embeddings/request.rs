//! Writes requests of the OpenAI protocol `/embeddings`, and reads and checks their responses.
//!
//! **Invariant:** vector `i` of a result belongs to text `i` of the request, whatever the order of
//! the response; all have the same number of dimensions, and the length 1 if they are scaled. If
//! anything is wrong with a response, there is no result at all.

use std::borrow::Cow;
use std::fmt;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::embeddings::error::EmbeddingError;

/// Some servers leave out the padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The body of a request. The encoding is not requested, because some servers reject the field.
#[derive(Debug, Serialize)]
pub struct EmbeddingRequest<'a> {
    pub model: &'a str,
    pub input: EmbeddingInput<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<usize>,
    /// An identifier of the end user, which only OpenAI reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<&'a str>,
}

/// What is embedded.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(untagged)]
pub enum EmbeddingInput<'a> {
    Texts(&'a [&'a str]),
    /// Texts as lists of token ids, which only models of OpenAI accept.
    TokenIds(&'a [Vec<u32>]),
}

impl EmbeddingInput<'_> {
    /// Returns the number of texts.
    pub fn n_texts(&self) -> usize {
        match self {
            Self::Texts(texts) => texts.len(),
            Self::TokenIds(texts) => texts.len(),
        }
    }
}

/// What is known of a response before it is read.
#[derive(Debug, Clone, Copy)]
pub struct ExpectedVectors {
    pub n_texts: usize,
    /// `None`: all vectors must have as many dimensions as the first one.
    pub n_dimensions: Option<usize>,
    /// Whether the vectors are scaled to the length 1.
    pub are_scaled: bool,
}

/// The vectors of a response.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedVectors {
    /// In the order of the texts.
    pub vectors: Vec<Vec<f32>>,
    /// The tokens of the texts, if the provider states them.
    pub n_tokens: Option<u64>,
}

/// The body of a response. Other fields are ignored.
#[derive(Deserialize)]
struct EmbeddingList<'a> {
    #[serde(borrow)]
    data: Vec<EmbeddingItem<'a>>,
    #[serde(default)]
    usage: Value,
}

#[derive(Deserialize)]
struct EmbeddingItem<'a> {
    index: Option<usize>,
    #[serde(borrow)]
    embedding: EncodedVector<'a>,
}

/// The components of a vector as they were sent.
enum EncodedVector<'a> {
    /// A list of numbers. A value that is null, as some servers write NaN, is NaN here.
    Numbers(Vec<f32>),
    /// Base64 of 32-bit numbers, least significant byte first.
    Base64(Cow<'a, str>),
}

/// Reads a response, and returns the vectors in the order of the texts.
///
/// # Errors
/// Returns the variant that names what is wrong with the response, such as `WrongDimensions` when a vector
/// does not have the expected number of dimensions.
pub fn read_response(
    body: &[u8],
    expected: ExpectedVectors,
) -> Result<ReceivedVectors, EmbeddingError> {
    let list: EmbeddingList<'_> =
        serde_json::from_slice(body).map_err(|_| EmbeddingError::NoEmbeddingList)?;
    let n_tokens = ["prompt_tokens", "total_tokens"]
        .iter()
        .find_map(|it| list.usage.get(it)?.as_u64());
    let vectors = order_by_index(list.data, expected.n_texts)?;
    let mut n_expected = expected.n_dimensions;
    let check = |vector: EncodedVector<'_>| {
        let vector = vector.decode()?;
        let n_expected = *n_expected.get_or_insert(vector.len());
        let n_received = vector.len();
        if n_received != n_expected {
            return Err(EmbeddingError::WrongDimensions {
                n_expected,
                n_received,
            });
        }
        let length = require_length(&vector)?;
        Ok(match expected.are_scaled {
            true => scale(&vector, length),
            false => vector,
        })
    };
    let vectors = vectors.into_iter().map(check).collect::<Result<_, _>>()?;
    Ok(ReceivedVectors { vectors, n_tokens })
}

/// Assigns the vectors to their texts.
fn order_by_index(
    items: Vec<EmbeddingItem<'_>>,
    n_texts: usize,
) -> Result<Vec<EncodedVector<'_>>, EmbeddingError> {
    if items.len() != n_texts {
        return Err(EmbeddingError::WrongCount {
            n_expected: n_texts,
            n_received: items.len(),
        });
    }
    let mut vectors: Vec<Option<EncodedVector<'_>>> = (0..n_texts).map(|_| None).collect();
    for item in items {
        let index = item.index.ok_or(EmbeddingError::MissingIndex)?;
        let place = vectors.get_mut(index);
        let place = place.ok_or(EmbeddingError::IndexOutOfRange { index })?;
        if place.replace(item.embedding).is_some() {
            return Err(EmbeddingError::RepeatedIndex { index });
        }
    }
    // As many items as places and no index twice: every place is filled.
    Ok(vectors.into_iter().flatten().collect())
}

/// Returns the length of a vector. Rejects a vector of the length 0.
fn require_length(vector: &[f32]) -> Result<f64, EmbeddingError> {
    if !vector.iter().all(|it| it.is_finite()) {
        return Err(EmbeddingError::NotFinite);
    }
    // In f64, in which the square of no f32 is infinite or rounded to zero.
    let squares: f64 = vector.iter().map(|it| f64::from(*it).powi(2)).sum();
    if squares == 0.0 {
        return Err(EmbeddingError::AllZero);
    }
    Ok(squares.sqrt())
}

/// Scales a vector of this length to the length 1.
fn scale(vector: &[f32], length: f64) -> Vec<f32> {
    let scaled = vector.iter().map(|it| (f64::from(*it) / length) as f32);
    scaled.collect()
}

impl EncodedVector<'_> {
    fn decode(self) -> Result<Vec<f32>, EmbeddingError> {
        let text = match self {
            Self::Numbers(vector) => return Ok(vector),
            Self::Base64(text) => text,
        };
        let bytes = BASE64.decode(text.as_ref());
        let bytes = bytes.map_err(|_| EmbeddingError::InvalidBase64)?;
        let (numbers, rest) = bytes.as_chunks();
        if !rest.is_empty() {
            return Err(EmbeddingError::InvalidBase64);
        }
        Ok(numbers.iter().map(|it| f32::from_le_bytes(*it)).collect())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for EncodedVector<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EncodedVectorVisitor)
    }
}

/// Reads both encodings without a copy of the whole list between.
struct EncodedVectorVisitor;

impl<'de> Visitor<'de> for EncodedVectorVisitor {
    type Value = EncodedVector<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of numbers or a base64 text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(EncodedVector::Base64(Cow::Borrowed(text)))
    }

    /// Reads a text with escapes: some servers write `/` as `\/`.
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(EncodedVector::Base64(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut vector = Vec::new();
        while let Some(number) = list.next_element::<Option<f64>>()? {
            vector.push(number.map_or(f32::NAN, |it| it as f32));
        }
        Ok(EncodedVector::Numbers(vector))
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
