//! Defines the answer to a request for embeddings.
//!
//! **Invariant:** the order of the fields is the order on the wire, and the order of the vectors is
//! that of the texts.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use utoipa::ToSchema;

use crate::objects::ObjectType;
use crate::request::create_embeddings::VectorEncoding;

/// The vectors of all texts of a request.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct EmbeddingObjects {
    object: ObjectType,
    data: Vec<EmbeddingObject>,
    model: String,
    usage: EmbeddingUsage,
}

#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
struct EmbeddingObject {
    object: ObjectType,
    index: usize,
    embedding: WrittenVector,
}

#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
enum WrittenVector {
    Float(Vec<f32>),
    Base64(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
struct EmbeddingUsage {
    prompt_tokens: u64,
    total_tokens: u64,
}

impl EmbeddingObjects {
    /// Returns the answer with these vectors, which are in the order of the texts.
    pub fn new(
        model: String,
        vectors: Vec<Vec<f32>>,
        encoding: VectorEncoding,
        n_tokens: u64,
    ) -> Self {
        let data = vectors.into_iter().enumerate();
        let data = data.map(|(index, vector)| EmbeddingObject {
            object: ObjectType::Embedding,
            index,
            embedding: WrittenVector::new(vector, encoding),
        });
        Self {
            object: ObjectType::List,
            data: data.collect(),
            model,
            usage: EmbeddingUsage {
                prompt_tokens: n_tokens,
                total_tokens: n_tokens,
            },
        }
    }
}

impl WrittenVector {
    fn new(vector: Vec<f32>, encoding: VectorEncoding) -> Self {
        match encoding {
            VectorEncoding::Float => Self::Float(vector),
            VectorEncoding::Base64 => {
                let bytes: Vec<u8> = vector.iter().flat_map(|it| it.to_le_bytes()).collect();
                Self::Base64(STANDARD.encode(bytes))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::EmbeddingObjects;
    use crate::request::create_embeddings::VectorEncoding;

    fn to_json(encoding: VectorEncoding) -> String {
        let vectors = vec![vec![0.5, -1.0], vec![0.25, 0.1]];
        let list = EmbeddingObjects::new("m".to_owned(), vectors, encoding, 7);
        serde_json::to_string(&list).unwrap()
    }

    #[test]
    fn vectors_are_written_as_numbers_or_as_base64() {
        assert_eq!(
            to_json(VectorEncoding::Float),
            concat!(
                r#"{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,-1.0]},"#,
                r#"{"object":"embedding","index":1,"embedding":[0.25,0.1]}],"#,
                r#""model":"m","usage":{"prompt_tokens":7,"total_tokens":7}}"#,
            )
        );
        assert_eq!(
            to_json(VectorEncoding::Base64),
            concat!(
                r#"{"object":"list","data":[{"object":"embedding","index":0,"embedding":"AAAAPwAAgL8="},"#,
                r#"{"object":"embedding","index":1,"embedding":"AACAPs3MzD0="}],"#,
                r#""model":"m","usage":{"prompt_tokens":7,"total_tokens":7}}"#,
            )
        );
    }
}
