//! Defines the object of a thread as clients see it.
//!
//! **Invariant:** the order of the fields is the order on the wire.

use base::clock::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::objects::{ObjectType, seconds};

/// A thread, without its messages.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ThreadObject {
    pub id: String,
    object: ObjectType,
    /// In seconds since 1970.
    created_at: i64,
    #[schema(value_type = Object)]
    metadata: Value,
    /// The files of tools; always empty, because this server has no such tools.
    #[schema(value_type = Object)]
    tool_resources: Map<String, Value>,
}

impl ThreadObject {
    /// Returns a thread object.
    pub fn new(id: String, created_at: Timestamp, metadata: Value) -> Self {
        Self {
            id,
            object: ObjectType::Thread,
            created_at: seconds(created_at),
            metadata,
            tool_resources: Map::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use base::clock::Timestamp;
    use serde_json::json;

    use super::ThreadObject;

    #[test]
    fn a_thread_has_exactly_this_json() {
        let thread = ThreadObject::new("thread_1".to_owned(), Timestamp(1_999), json!({}));

        let json = serde_json::to_string(&thread).unwrap();

        assert_eq!(
            json,
            r#"{"id":"thread_1","object":"thread","created_at":1,"metadata":{},"tool_resources":{}}"#
        );
    }
}
