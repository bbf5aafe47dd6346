//! Describes the bodies of requests except those that create a response or complete a chat. A field
//! whose value is `null` counts as absent.

use serde_json::Value;
use utoipa::ToSchema;

use crate::request::create_embeddings::VectorEncoding;
use crate::request::memory_query::MemorySpan;
use crate::schemas::request_values;

/// A request to compact an exchange.
#[derive(Clone, Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompactBody {
    /// The id of a model.
    #[schema(min_length = 1, example = "demo")]
    pub model: String,
    #[schema(schema_with = request_values::text_or_items)]
    pub input: Option<Value>,
    /// The id of a stored response, whose exchange is compacted, too.
    pub previous_response_id: Option<String>,
    /// Instructions for the summary.
    pub instructions: Option<String>,
    /// Has no effect.
    pub prompt_cache_key: Option<String>,
}

/// A new conversation.
#[derive(Clone, Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewConversationBody {
    #[schema(schema_with = request_values::metadata)]
    pub metadata: Option<Value>,
    /// The first items.
    #[schema(value_type = Option<Vec<Object>>, max_items = 20)]
    pub items: Option<Vec<Value>>,
}

/// New metadata of an object.
#[derive(Clone, Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MetadataBody {
    #[schema(schema_with = request_values::metadata)]
    pub metadata: Option<Value>,
}

/// Items to append to a conversation.
#[derive(Clone, Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewItemsBody {
    #[schema(value_type = Vec<Object>, max_items = 20)]
    pub items: Vec<Value>,
}

/// A request for embeddings.
#[derive(Clone, Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EmbeddingsBody {
    /// The id of an embedding model.
    #[schema(min_length = 1, example = "troupe-ngram-256")]
    pub model: String,
    #[schema(schema_with = request_values::embedded_texts)]
    pub input: Value,
    /// How the vectors are returned; lists of numbers by default.
    pub encoding_format: Option<VectorEncoding>,
    /// The number of components of each vector.
    #[schema(minimum = 1, maximum = 4_294_967_295_i64)]
    pub dimensions: Option<i64>,
    /// An identifier of the end user, for the provider.
    pub user: Option<String>,
}

/// A search in the messages and memories of a conversation of a space.
#[derive(Clone, Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryQueryBody {
    #[schema(schema_with = request_values::space_conversation)]
    pub conversation_id: Value,
    /// The text to search the memories for.
    pub query: Option<String>,
    /// What to return; both by default.
    pub r#type: Option<MemorySpan>,
    /// Twice as many messages are returned.
    #[schema(minimum = 1, maximum = 20)]
    pub turns: Option<i64>,
    /// The maximum number of memories.
    #[schema(minimum = 1, maximum = 20)]
    pub top_k: Option<i64>,
    /// The minimum score of a memory.
    #[schema(minimum = 0, maximum = 1)]
    pub threshold: Option<f64>,
}
