//! Defines the objects that the API returns besides responses: lists, models, conversations,
//! confirmations of a deletion, and counts of input tokens.
//!
//! **Invariant:** the order of the fields is the order on the wire.

use base::clock::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The type of an object, in its field `object`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObjectType {
    Response,
    List,
    Model,
    Conversation,
    Embedding,
    #[serde(rename = "response.deleted")]
    ResponseDeleted,
    #[serde(rename = "response.compaction")]
    ResponseCompaction,
    #[serde(rename = "response.input_tokens")]
    ResponseInputTokens,
    #[serde(rename = "conversation.deleted")]
    ConversationDeleted,
    #[serde(rename = "memory.query")]
    MemoryQuery,
    Assistant,
    #[serde(rename = "assistant.deleted")]
    AssistantDeleted,
    Thread,
    #[serde(rename = "thread.deleted")]
    ThreadDeleted,
    #[serde(rename = "thread.message.deleted")]
    ThreadMessageDeleted,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct List<I> {
    object: ObjectType,
    first_id: Option<String>,
    last_id: Option<String>,
    pub has_more: bool,
    pub data: Vec<I>,
}

impl<I> List<I> {
    /// Returns the list of these objects; `id` returns the id of one.
    pub fn new(data: Vec<I>, has_more: bool, id: impl Fn(&I) -> Option<&str>) -> Self {
        let id_of = |it: Option<&I>| it.and_then(&id).map(str::to_owned);
        Self {
            object: ObjectType::List,
            first_id: id_of(data.first()),
            last_id: id_of(data.last()),
            has_more,
            data,
        }
    }
}

/// A model, or a character or a space that acts as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ModelObject)]
pub struct Model {
    pub id: String,
    pub object: ObjectType,
    /// In seconds since 1970.
    pub created: i64,
    pub owned_by: String,
    pub name: String,
    pub kind: &'static str,
}

/// A conversation of the API.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = ApiConversation)]
pub struct Conversation {
    id: String,
    object: ObjectType,
    created_at: i64,
    #[schema(value_type = Object)]
    metadata: Value,
}

impl Conversation {
    /// Returns a conversation object.
    pub fn new(id: String, created_at: Timestamp, metadata: Value) -> Self {
        Self {
            id,
            object: ObjectType::Conversation,
            created_at: seconds(created_at),
            metadata,
        }
    }

    /// Returns its id.
    pub fn id(&self) -> &str {
        &self.id
    }
}

/// States that an object was deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct DeletedObject {
    id: String,
    object: ObjectType,
    deleted: bool,
}

impl DeletedObject {
    /// Returns the object for a deletion; `object` is the type that ends in `.deleted`.
    pub fn new(id: String, object: ObjectType) -> Self {
        Self {
            id,
            object,
            deleted: true,
        }
    }
}

/// The input tokens of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct InputTokens {
    object: ObjectType,
    input_tokens: i64,
}

impl InputTokens {
    /// Returns the object for this many tokens.
    pub fn new(input_tokens: i64) -> Self {
        Self {
            object: ObjectType::ResponseInputTokens,
            input_tokens,
        }
    }
}

/// Returns a time in whole seconds, the unit of this API.
pub fn seconds(at: Timestamp) -> i64 {
    at.0.div_euclid(1_000)
}

#[cfg(test)]
mod tests {
    use base::clock::Timestamp;
    use serde::Serialize;
    use serde_json::{Value, json};

    use super::{Conversation, DeletedObject, InputTokens, List, Model, ObjectType, seconds};

    fn assert_json(object: impl Serialize, expected: &str) {
        assert_eq!(serde_json::to_string(&object).unwrap(), expected);
    }

    #[test]
    fn every_object_has_exactly_this_json() {
        let id = || "x_1".to_owned();
        assert_json(
            Conversation::new(id(), Timestamp(1_999), json!({ "z": "1", "a": "2" })),
            r#"{"id":"x_1","object":"conversation","created_at":1,"metadata":{"z":"1","a":"2"}}"#,
        );
        assert_json(
            DeletedObject::new(id(), ObjectType::ResponseDeleted),
            r#"{"id":"x_1","object":"response.deleted","deleted":true}"#,
        );
        assert_json(
            DeletedObject::new(id(), ObjectType::ConversationDeleted),
            r#"{"id":"x_1","object":"conversation.deleted","deleted":true}"#,
        );
        assert_json(
            InputTokens::new(7),
            r#"{"object":"response.input_tokens","input_tokens":7}"#,
        );
        let model = Model {
            id: id(),
            object: ObjectType::Model,
            created: seconds(Timestamp(-1)),
            owned_by: "user:1".to_owned(),
            name: "n".to_owned(),
            kind: "character",
        };
        assert_json(
            model,
            r#"{"id":"x_1","object":"model","created":-1,"owned_by":"user:1","name":"n","kind":"character"}"#,
        );
    }

    fn id(item: &Value) -> Option<&str> {
        item["id"].as_str()
    }

    #[test]
    fn a_list_names_its_first_and_last_object() {
        assert_json(
            List::new(vec![json!({ "id": "a" }), json!({ "id": "b" })], true, id),
            r#"{"object":"list","first_id":"a","last_id":"b","has_more":true,"data":[{"id":"a"},{"id":"b"}]}"#,
        );
        assert_json(
            List::new(Vec::<Value>::new(), false, id),
            r#"{"object":"list","first_id":null,"last_id":null,"has_more":false,"data":[]}"#,
        );
    }
}
